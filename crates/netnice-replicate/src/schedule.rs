// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How many transfers are under way at a time, and when a failed one is tried again.

use std::time::Duration;

/// Transfers under way at first.
pub const FIRST: u32 = 4;
/// Transfers under way at most, unless told otherwise: 16 Nice flows at one bottleneck lengthen
/// the users' transfers by a tenth, and more by more (docs/evaluation.md).
pub const MOST: u32 = 16;
/// Processes at most: transfers under way, and destinations that do not answer.
pub const PROCESSES: usize = 64;
/// A destination that does not answer within this takes no place from others.
pub const ANSWER: Duration = Duration::from_secs(2);
/// How long goodput is measured for each decision. A background flow needs tens of round trips to
/// find what is free.
pub const EPOCH: Duration = Duration::from_secs(10);

/// How often everything is compared, at least, while not all of the source can be watched.
pub const OFTEN: Duration = Duration::from_secs(300);

/// Growth of the aggregate goodput that pays for a step.
const WORTH: f64 = 1.1;
/// Epochs until a step that did not pay is tried again: paths and users change.
const HOLD: u32 = 6;

/// The number of transfers under way: grows by half as long as each step makes the aggregate
/// goodput grow by a tenth; a step that did not is taken back for a minute.
#[derive(Debug)]
pub struct Level {
    now: u32,
    most: u32,
    /// The level before the step under trial, and the goodput then, in bytes/s.
    trial: Option<(u32, f64)>,
    hold: u32,
}

impl Level {
    pub fn new(most: u32) -> Level {
        Level { now: FIRST.min(most), most, trial: None, hold: 0 }
    }

    pub fn now(&self) -> u32 {
        self.now
    }

    /// An epoch ended in which the aggregate goodput was `goodput` bytes/s. `full`: as many
    /// transfers as allowed were under way, and more destinations waited.
    pub fn epoch(&mut self, goodput: f64, full: bool) {
        if !full {
            // with fewer transfers than allowed the goodput says nothing about the step
            self.trial = None;
            return;
        }
        if let Some((before, base)) = self.trial.take() {
            if goodput <= base * WORTH {
                self.now = before;
                self.hold = HOLD;
                return;
            }
        }
        if self.hold > 0 {
            self.hold -= 1;
        } else if self.now < self.most {
            self.trial = Some((self.now, goodput));
            self.now = (self.now + (self.now / 2).max(1)).min(self.most);
        }
    }
}

/// How long a complete comparison stays good: `every`, and less while not all can be watched.
pub fn pause(every: Duration, trouble: bool) -> Duration {
    match trouble {
        true => every.min(OFTEN),
        false => every,
    }
}

/// The pause before attempt `attempt` (the first retry: 1): a second, doubling up to five minutes,
/// spread by a quarter either way by `seed`, lest a thousand destinations come back at once.
pub fn backoff(attempt: u32, seed: u64) -> Duration {
    let seconds = (1u64 << attempt.saturating_sub(1).min(9)).min(300) as f64;
    // a multiplicative hash; its upper bits are well mixed
    let mixed = (seed ^ u64::from(attempt)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    let spread = mixed as f64 / (1u64 << 24) as f64; // 0 to 1
    Duration::from_secs_f64(seconds * (0.75 + 0.5 * spread))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_level_grows_while_goodput_grows_with_it() {
        let mut level = Level::new(MOST);
        let mut seen = vec![];
        for _ in 0..6 {
            level.epoch(f64::from(level.now()), true); // each transfer has a path of its own
            seen.push(level.now());
        }
        assert_eq!(seen, [6, 9, 13, 16, 16, 16]); // 4 + 2, 6 + 3, 9 + 4, 13 + 6 > 16
    }

    #[test]
    fn a_step_that_does_not_pay_is_taken_back_for_a_minute() {
        let mut level = Level::new(MOST);
        level.epoch(100.0, true);
        assert_eq!(level.now(), 6);
        for _ in 0..=HOLD {
            level.epoch(105.0, true); // less than a tenth more: one bottleneck
            assert_eq!(level.now(), 4);
        }
        level.epoch(105.0, true);
        assert_eq!(level.now(), 6);
    }

    #[test]
    fn a_step_from_nothing_to_nothing_is_taken_back() {
        let mut level = Level::new(MOST);
        for expected in [6, 4, 4] {
            level.epoch(0.0, true);
            assert_eq!(level.now(), expected);
        }
    }

    #[test]
    fn an_epoch_with_too_few_transfers_decides_nothing() {
        let mut level = Level::new(MOST);
        level.epoch(100.0, true);
        level.epoch(1.0, false);
        assert_eq!(level.now(), 6);
    }

    #[test]
    fn pauses_double_up_to_five_minutes() {
        for (attempt, seconds) in
            [(1, 1.0), (2, 2.0), (5, 16.0), (9, 256.0), (10, 300.0), (4000, 300.0)]
        {
            for seed in 0..50 {
                let pause = backoff(attempt, seed).as_secs_f64() / seconds;
                assert!((0.75..=1.25).contains(&pause), "{attempt} {seed}: {pause}");
            }
        }
        assert_ne!(backoff(3, 1), backoff(3, 2));
    }

    proptest! {
        #[test]
        fn the_level_stays_within_its_bounds(most in 1u32..=64, epochs in prop::collection::vec((0.0f64..1e9, any::<bool>()), 0..100)) {
            let mut level = Level::new(most);
            for (goodput, full) in epochs {
                level.epoch(goodput, full);
                prop_assert!((1..=most).contains(&level.now()));
            }
        }
    }
}

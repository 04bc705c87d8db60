// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Proportional integral controller enhanced (RFC 8033): drops at random, with a probability that a
//! controller steers such that packets wait 15 ms.
//!
//! Every 15 ms the probability moves by `0.125 (wait - 15 ms) + 1.25 (wait - last wait)`, both in
//! seconds, scaled down while it is small (4.2) and capped (5.5). The wait is that of the last packet
//! that left (4.3, by time stamps), 0 once the queue is empty. A burst of 150 ms goes unpunished
//! (4.4), drops are spread evenly (5.4), and packets are marked up to a probability of 0.1 (5.1).

use rand::Rng;
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{Discipline, Limits, Stats, FULL_PACKET};
use crate::packet::{Nanos, Packet};

/// The wait to steer to, in seconds (`QDELAY_REF`).
const TARGET_S: f64 = 0.015;

/// Time between updates of the probability (`T_UPDATE`).
const UPDATE: Nanos = 15_000_000;

/// Time after the queue has been quiet in which nothing is dropped (`MAX_BURST`).
const MAX_BURST: Nanos = 150_000_000;

/// Weight of the distance from the target, per second (`alpha`).
const ALPHA: f64 = 0.125;

/// Weight of the change since the last update, per second (`beta`).
const BETA: f64 = 1.25;

/// Probability above which packets are dropped even if they could be marked (`MARK_ECNTH`).
const MARK_BELOW: f64 = 0.1;

/// A queue under the controller.
#[derive(Debug)]
pub(super) struct Pie {
    fifo: Fifo,
    limits: Limits,
    ecn: bool,
    /// Probability of a drop.
    probability: f64,
    /// Sum of the probabilities of the packets since the last drop.
    accumulated: f64,
    /// The wait of the last packet that left, in seconds.
    wait_s: f64,
    /// The same at the last update.
    last_wait_s: f64,
    burst_left: Nanos,
    next_update: Nanos,
    random: Pcg64,
}

impl Pie {
    pub(super) fn new(limits: Limits, ecn: bool, random: Pcg64) -> Pie {
        Pie {
            fifo: Fifo::default(),
            limits,
            ecn,
            probability: 0.0,
            accumulated: 0.0,
            wait_s: 0.0,
            last_wait_s: 0.0,
            burst_left: MAX_BURST,
            next_update: UPDATE,
            random,
        }
    }

    /// Makes up for the updates due by `now`: nothing else happened in between.
    fn catch_up(&mut self, now: Nanos) {
        while self.next_update <= now {
            self.update();
            self.next_update += UPDATE;
            if self.probability == 0.0 && self.wait_s == 0.0 && self.last_wait_s == 0.0 {
                // The next ones change nothing; a quiet queue gets its burst when a packet comes.
                self.next_update +=
                    (now + UPDATE).saturating_sub(self.next_update) / UPDATE * UPDATE;
            }
        }
    }

    fn update(&mut self) {
        let mut p = ALPHA * (self.wait_s - TARGET_S) + BETA * (self.wait_s - self.last_wait_s);
        p /= match self.probability {
            x if x < 0.000_001 => 2048.0,
            x if x < 0.000_01 => 512.0,
            x if x < 0.000_1 => 128.0,
            x if x < 0.001 => 32.0,
            x if x < 0.01 => 8.0,
            x if x < 0.1 => 2.0,
            _ => 1.0,
        };
        if self.probability >= 0.1 {
            p = p.min(0.02);
        }
        self.probability += p;
        if self.wait_s == 0.0 && self.last_wait_s == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.last_wait_s = self.wait_s;
        self.burst_left = self.burst_left.saturating_sub(UPDATE);
    }

    /// Whether there is no congestion to speak of.
    fn quiet(&self) -> bool {
        self.probability == 0.0 && self.wait_s < TARGET_S / 2.0 && self.last_wait_s < TARGET_S / 2.0
    }

    /// Whether the packet that comes now is to be dropped or marked.
    fn unlucky(&mut self) -> bool {
        if self.last_wait_s < TARGET_S / 2.0 && self.probability < 0.2
            || self.fifo.bytes() <= 2 * u64::from(FULL_PACKET)
        {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        let drop = self.accumulated >= 0.85
            && (self.accumulated >= 8.5 || self.random.random::<f64>() < self.probability);
        if drop {
            self.accumulated = 0.0;
        }
        drop
    }
}

impl Discipline for Pie {
    fn push(&mut self, mut packet: Packet, now: Nanos, stats: &mut Stats) {
        self.catch_up(now);
        if self.quiet() {
            self.burst_left = MAX_BURST;
        }
        if !self.limits.admit(&self.fifo, packet.bytes) {
            stats.drops += 1;
            return;
        }
        if self.burst_left == 0 && self.unlucky() {
            if !(self.ecn && packet.ect && self.probability < MARK_BELOW) {
                stats.drops += 1;
                return;
            }
            packet.ce = true;
            stats.marks += 1;
        }
        self.fifo.push(packet);
    }

    fn pop(&mut self, now: Nanos, _: &mut Stats) -> Option<Packet> {
        self.catch_up(now);
        let packet = self.fifo.pop()?;
        let empty = self.fifo.packets() == 0;
        self.wait_s = if empty { 0.0 } else { (now - packet.enqueued_ns) as f64 / 1e9 };
        Some(packet)
    }

    fn lists(&self) -> impl Iterator<Item = &Fifo> {
        std::iter::once(&self.fifo)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{limited, packet, random, MS};
    use super::*;

    fn pie() -> Pie {
        Pie::new(limited(1000), true, random())
    }

    #[test]
    fn the_probability_after_each_update_follows_the_controller() {
        // wait 100 ms, before 0: 0.125 x 0.085 + 1.25 x 0.1 = 0.135625, / 2048 = 6.6223e-5.
        // Then wait 100 ms again: 0.125 x 0.085 = 0.010625, / 128 (p < 1e-4) = 8.3008e-5 more.
        // Then 0 ms: 0.125 x -0.015 + 1.25 x -0.1 = -0.126875, / 32 (p < 1e-3): down to 0.
        let mut q = pie();
        let mut after = |wait_s| {
            q.wait_s = wait_s;
            q.update();
            q.probability
        };
        assert!((after(0.1) - 6.6223e-5).abs() < 1e-9);
        assert!((after(0.1) - 14.9231e-5).abs() < 1e-9);
        assert_eq!(after(0.0), 0.0);
    }

    #[test]
    fn a_large_probability_grows_by_at_most_0_02_and_decays_by_2_percent_when_idle() {
        let mut q = pie();
        q.probability = 0.5;
        q.wait_s = 1.0; // 0.125 x 0.985 + 1.25 = 1.37, capped
        q.update();
        assert!((q.probability - 0.52).abs() < 1e-12);
        (q.wait_s, q.last_wait_s) = (0.0, 0.0);
        q.update(); // (0.52 - 0.125 x 0.015) x 0.98 = 0.5077625
        assert!((q.probability - 0.507_762_5).abs() < 1e-12);
    }

    #[test]
    fn updates_come_every_15_ms_however_rarely_packets_do() {
        // One update at 15 ms with p as above; the packet at 31 ms makes up for those at 15 and 30.
        for steps in [vec![31 * MS], vec![14 * MS, 15 * MS, 29 * MS, 31 * MS]] {
            let mut q = pie();
            q.wait_s = 0.1;
            steps.iter().for_each(|&now| q.catch_up(now));
            assert!((q.probability - 14.9231e-5).abs() < 1e-9);
            assert_eq!(q.next_update, 45 * MS);
        }
    }

    #[test]
    fn a_long_silence_costs_no_time_and_keeps_the_rhythm() {
        let mut q = pie();
        let day = 86_400_000 * MS; // 5,760,000 updates
        q.catch_up(day + 7 * MS);
        assert_eq!(q.next_update, day + UPDATE);
    }

    #[test]
    fn a_burst_of_150_ms_is_let_through() {
        // Nobody takes a packet: the wait is 0 by what has left. Then it is 1 s; the 10 updates of
        // 150 ms use the burst up, and the probability soon makes drops.
        let (mut q, mut stats) = (pie(), Stats::default());
        let mut first_drop = None;
        for ms in 0..1000 {
            q.wait_s = 1.0;
            q.push(packet(0), ms * MS, &mut stats);
            first_drop = first_drop.or((stats.drops > 0).then_some(ms));
        }
        // The first update at 15 ms ends the quiet; ten more use up what is left of the burst.
        assert!((150..400).contains(&first_drop.unwrap()), "{first_drop:?}");
    }

    #[test]
    fn drops_are_at_least_0_85_over_p_packets_apart() {
        // p = 0.05 held: 17 packets add up to 0.85, and 170 to 8.5. Between, each with 0.05: the gap
        // is 16 + a geometric number of mean 20 = 36 on average.
        let mut q = pie();
        (0..9).for_each(|_| q.fifo.push(packet(0)));
        (q.probability, q.last_wait_s) = (0.05, 0.1);
        let gaps: Vec<u32> = (0..2000).map(|_| (1..).find(|_| q.unlucky()).unwrap()).collect();
        assert!(gaps.iter().all(|g| (17..=171).contains(g)));
        let mean = f64::from(gaps.iter().sum::<u32>()) / 2000.0;
        assert!((mean - 36.0).abs() < 2.0, "{mean}"); // standard deviation 19.5 / sqrt(2000) = 0.44
    }

    #[test]
    fn two_packets_waiting_are_never_too_many() {
        let mut q = pie();
        (q.probability, q.last_wait_s, q.accumulated) = (1.0, 0.1, 8.5);
        (0..2).for_each(|_| q.fifo.push(packet(0)));
        assert!(!q.unlucky());
        q.fifo.push(packet(0));
        assert!(q.unlucky());
    }

    #[test]
    fn packets_are_marked_below_a_probability_of_0_1_and_dropped_above() {
        for (probability, expected) in
            [(0.099, Stats { drops: 0, marks: 1 }), (0.1, Stats { drops: 1, marks: 0 })]
        {
            let (mut q, mut stats) = (pie(), Stats::default());
            (0..9).for_each(|_| q.fifo.push(packet(0)));
            (q.probability, q.last_wait_s, q.accumulated) = (probability, 0.1, 8.5);
            q.burst_left = 0;
            q.push(Packet { ect: true, ..packet(1) }, 0, &mut stats);
            assert_eq!(stats, expected);
        }
    }
}

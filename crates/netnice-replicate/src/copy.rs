// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A destination's copy in the engine: what it needs, and its transfer.

use std::mem;
use std::time::{Duration, Instant};

use crate::job::Job;
use crate::need::{merge, Need};
use crate::rsync::{Progress, Running};
use crate::schedule::ANSWER;
use crate::store::{now, Row, State};

/// A transfer under way.
pub struct Transfer {
    pub need: Need,
    pub running: Running,
    pub started: Instant,
    /// What the source had before then, it brings; None: that is not known.
    pub reaches: Option<f64>,
    pub progress: Progress,
    /// Bytes at the last look, for the rate.
    pub seen: u64,
}

/// A destination's copy.
pub struct Copy {
    pub row: Row,
    pub changed: bool,
    pub feeder: Option<usize>,
    pub need: Option<Need>,
    pub transfer: Option<Transfer>,
    pub retry: Option<Instant>,
    /// The next attempt compares checksums: an earlier one found other content.
    pub checksum: bool,
    /// When the last transfer that compared everything ended, in this run.
    pub compared: Option<Instant>,
    /// Bytes of ended transfers.
    pub bytes: u64,
}

impl Copy {
    pub fn set(&mut self, state: State) {
        self.row.state = state;
        self.changed = true;
    }

    /// Begins a transfer of what it needs, if it needs something.
    pub fn begin(&mut self, reaches: Option<f64>) -> Option<(Need, Running)> {
        let (need, running) = (self.need.take()?, Running::default());
        self.retry = None;
        self.row.retry_at = None;
        self.row.done = 0.0;
        self.set(State::Connecting);
        self.transfer = Some(Transfer {
            need: need.clone(),
            running: running.clone(),
            started: Instant::now(),
            reaches,
            progress: Progress::default(),
            seen: 0,
        });
        Some((need, running))
    }

    pub fn ready(&self, at: Instant) -> bool {
        self.transfer.is_none()
            && self.need.is_some()
            && self.retry.is_none_or(|r| r <= at)
            && self.row.state != State::Failed
    }

    /// Whether this machine feeds it, it seems to lack nothing, and it was compared long ago.
    pub fn is_due(&self, pause: Duration) -> bool {
        let idle = self.feeder.is_none() && self.transfer.is_none() && self.need.is_none();
        idle && self.compared.is_none_or(|c| c.elapsed() >= pause)
    }

    /// Whether it counts against the level: a host that does not answer takes no bandwidth.
    pub fn counts(&self) -> bool {
        self.transfer
            .as_ref()
            .is_some_and(|t| self.row.state != State::Connecting || t.started.elapsed() < ANSWER)
    }
}

pub fn copy(job: &Job, i: usize, earlier: Option<&Row>) -> Copy {
    let destination = &job.destinations[i];
    let row = Row {
        feeder: destination.feeder.map(|f| job.destinations[f].place.to_string()),
        share: job.share(i),
        behind_since: Some(earlier.and_then(|r| r.behind_since).unwrap_or_else(now)),
        current_at: earlier.and_then(|r| r.current_at),
        compared_at: earlier.and_then(|r| r.compared_at),
        bytes: earlier.map_or(0, |r| r.bytes),
        ..Row::new(destination.place.to_string())
    };
    Copy {
        bytes: row.bytes,
        row,
        changed: false,
        feeder: destination.feeder,
        need: destination.feeder.is_none().then_some(Need::Full),
        transfer: None,
        retry: None,
        checksum: false,
        compared: None,
    }
}

/// Adds to what a copy needs; one that was current waits for its turn again.
pub fn wants(copy: &mut Copy, need: Need) {
    copy.need = Some(merge(mem::take(&mut copy.need), need));
    if copy.transfer.is_none() && copy.row.state == State::Current {
        copy.set(State::Waiting);
    }
}

/// Rate, share and estimated end of a transfer under way.
pub fn account(copy: &mut Copy, seconds: f64) {
    let Some(transfer) = &mut copy.transfer else { return };
    let bytes = transfer.progress.bytes;
    let rate = bytes.saturating_sub(transfer.seen) as f64 / seconds.max(1e-3);
    transfer.seen = bytes;
    let weight = (seconds / 5.0).min(1.0); // an average over about five seconds
    copy.row.rate += weight * (rate - copy.row.rate);
    copy.row.bytes = copy.bytes + bytes;
    // of a copy that was complete once most files need nothing: their number says more than bytes
    copy.row.done = match copy.row.current_at {
        Some(_) => transfer.progress.checked,
        None => transfer.progress.share,
    };
    let spent = transfer.started.elapsed().as_secs_f64();
    copy.row.ends_at =
        (copy.row.done > 0.0).then(|| now() + spent * (1.0 - copy.row.done) / copy.row.done);
    copy.changed = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::job;

    #[test]
    fn a_copy_that_lacks_nothing_is_compared_again_when_the_last_time_is_long_ago() {
        let job = job("a:/1\n  b:/2\n");
        let pause = Duration::from_secs(10);
        let ago = |s| Instant::now().checked_sub(Duration::from_secs(s));
        let mut first = copy(&job, 0, None);
        assert!(!first.is_due(pause)); // it waits for its first transfer
        first.need = None;
        for (compared, due) in [(ago(9), false), (ago(10), true), (ago(100), true)] {
            first.compared = compared;
            assert_eq!(first.is_due(pause), due);
        }
        let mut fed = copy(&job, 1, None);
        fed.compared = ago(100);
        assert!(!fed.is_due(pause)); // its feeder's turn brings its own
    }

    #[test]
    fn a_comparison_of_a_current_copy_is_no_lag() {
        let mut copy = copy(&job("a:/1\n"), 0, None);
        (copy.need, copy.row.behind_since, copy.row.state) = (None, None, State::Current);
        wants(&mut copy, Need::Full);
        assert_eq!((copy.row.state, copy.row.behind_since), (State::Waiting, None));
        assert_eq!(copy.need, Some(Need::Full));
    }
}

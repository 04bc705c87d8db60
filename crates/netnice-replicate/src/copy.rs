// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A destination's copy in the engine: what it needs, and its transfer.

use std::mem;
use std::time::Instant;

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
    /// Bytes of ended transfers.
    pub bytes: u64,
}

impl Copy {
    pub fn set(&mut self, state: State) {
        self.row.state = state;
        self.changed = true;
    }

    pub fn ready(&self, at: Instant) -> bool {
        self.transfer.is_none()
            && self.need.is_some()
            && self.retry.is_none_or(|r| r <= at)
            && self.row.state != State::Failed
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

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is known of jobs, whether they run or not.

use std::path::Path;

use serde::Serialize;

use crate::lock::Lock;
use crate::store::{now, Row, State, Store, Summary};
use crate::Result;

/// A job: sizes in bytes, rates in bytes/s, times in seconds; points in time are since 1970.
#[derive(Serialize)]
pub struct Report {
    pub job: String,
    /// The process that runs it now.
    pub pid: Option<u32>,
    #[serde(flatten)]
    pub summary: Summary,
    pub destinations: Vec<Entry>,
}

/// A destination.
#[derive(Serialize)]
pub struct Entry {
    #[serde(flatten)]
    pub row: Row,
    /// For how long the source has had something that the copy lacks; 0: it lacks nothing.
    pub lag: f64,
    /// How long ago all of it was compared; None: never.
    pub compared: Option<f64>,
    /// Seconds until the transfer under way ends at its present speed.
    pub remaining: Option<f64>,
}

impl Report {
    /// As of now.
    pub fn new(job: String, pid: Option<u32>, summary: Summary, rows: Vec<Row>) -> Report {
        let now = now();
        let destinations = rows
            .into_iter()
            .map(|row| Entry {
                compared: row.compared_at.map(|c| (now - c).max(0.0)),
                lag: row.behind_since.map_or(0.0, |s| (now - s).max(0.0)),
                remaining: row.ends_at.map(|e| (e - now).max(0.0)),
                row,
            })
            .collect();
        Report { job, pid, summary, destinations }
    }

    /// Of the job `name`, whose state is in `dir`; None: it was never run.
    ///
    /// # Errors
    /// When its state cannot be read.
    pub fn read(dir: &Path, name: &str) -> Result<Option<Report>> {
        let Some((summary, mut rows)) = Store::read(dir, name)? else { return Ok(None) };
        let pid = Lock::holder(dir, name);
        if pid.is_none() {
            rows.iter_mut().for_each(at_rest);
        }
        Ok(Some(Report::new(name.into(), pid, summary, rows)))
    }
}

/// What a killed run left: nothing is under way any more.
fn at_rest(row: &mut Row) {
    if !matches!(row.state, State::Current | State::Failed) {
        row.state = State::Waiting;
    }
    row.rate = 0.0;
    (row.ends_at, row.retry_at) = (None, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_run_leaves_nothing_under_way() {
        let mut row = Row::new("a:/1".into());
        row.state = State::Copying;
        row.rate = 5.0;
        row.ends_at = Some(1.0);
        at_rest(&mut row);
        assert_eq!((row.state, row.rate, row.ends_at), (State::Waiting, 0.0, None));
    }
}

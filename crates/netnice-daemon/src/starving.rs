// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which runs starve, for all who ask what theirs did.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use netnice_manager::snapshot::{Job, Watch, Why};
use netnice_manager::Result;

/// Looks at all of netnice in the kernel are so far apart, however many ask.
const APART: Duration = Duration::from_secs(10);

/// What one watch sees, so that who asks needs no connection that looks.
#[derive(Default)]
pub struct Starving(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    watch: Watch,
    looked: Option<Instant>,
    runs: HashMap<u64, Why>,
}

impl Starving {
    /// Why a run starves, if it does.
    pub fn why(&self, run: u64) -> Option<Why> {
        self.why_by(run, |watch| Ok(watch.look()?.jobs))
    }

    fn why_by(&self, run: u64, look: impl FnOnce(&mut Watch) -> Result<Vec<Job>>) -> Option<Why> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.looked.is_none_or(|looked| looked.elapsed() >= APART) {
            seen.looked = Some(Instant::now());
            // what cannot be read now may be at the next look
            let jobs = look(&mut seen.watch).unwrap_or_default().into_iter();
            let starves = jobs.filter(|job| matches!(job.why, Why::Starving { .. }));
            seen.runs = starves.filter_map(|job| Some((job.run?, job.why))).collect();
        }
        seen.runs.get(&run).cloned()
    }
}

#[cfg(test)]
mod tests {
    use netnice_manager::snapshot::Kind;

    use super::*;

    fn job(run: u64, why: Why) -> Job {
        Job {
            id: format!("run {run}"),
            kind: Kind::Run,
            run: Some(run),
            pid: None,
            name: String::new(),
            group: None,
            control: String::new(),
            connections: 1,
            rate_bits: Some(0.0),
            history_bits: Vec::new(),
            bytes_sent: 0,
            bytes_unsent: 1,
            retransmits: 0,
            yielding_s: 0.0,
            others: None,
            queue: None,
            why_text: why.to_string(),
            why,
        }
    }

    #[test]
    fn who_asks_is_told_of_his_run_and_all_who_ask_soon_after_by_the_same_look() {
        let starves = Why::Starving { seconds: 60.0, others_bits: Some(8e6) };
        let starving = Starving::default();
        let look = |_: &mut Watch| Ok(vec![job(7, starves.clone()), job(8, Why::Idle)]);
        assert_eq!(starving.why_by(7, look), Some(starves));
        for run in [8, 9] {
            assert_eq!(starving.why_by(run, |_| panic!("looked again so soon")), None);
        }
    }
}

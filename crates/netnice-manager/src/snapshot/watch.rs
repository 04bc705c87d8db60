// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Looking again and again: rates, histories, and what ended meanwhile.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::download::{DownloadAt, ViewedDownload};
use super::job::{parts, Job};
use super::sample::Sample;
use super::why::{Facts, Why, STARVES};
use super::Status;
use crate::hold::HeldPath;
use crate::process::Process;
use crate::system::System;
use crate::Result;

/// Rates that are remembered of each job.
const HISTORY: usize = 120;
/// A job that ended is still shown for so long.
const ENDED: Duration = Duration::from_secs(5);

/// The jobs of this machine at one moment, and what happened since the look before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct View {
    /// Seconds since 1970.
    pub time: f64,
    /// How long ago the look before was, to which all rates are; none: this is the first.
    pub seconds: Option<f64>,
    pub jobs: Vec<Job>,
    /// The paths at which packets wait in this host.
    pub paths: Vec<ViewedPath>,
    /// What comes by those where downloads yield.
    pub downloads: Vec<ViewedDownload>,
    /// What is there beside it, and not told of; none: nothing is.
    pub left_out: Option<LeftOut>,
}

/// What a view leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Runs of other users, and what root attached.
    pub runs: usize,
    /// Background connections that are others', those of such runs too.
    pub connections: usize,
    /// Jobs of the user himself, beyond as many as are told.
    pub jobs: usize,
}

/// A path at which packets wait, and its device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ViewedPath {
    pub device: String,
    #[serde(flatten)]
    pub path: HeldPath,
}

/// Looks at this machine, and remembers.
#[derive(Default)]
pub struct Watch {
    last: Option<Sample>,
    past: HashMap<String, Past>,
    ended: Vec<(Instant, Job)>,
    shown: Vec<Job>,
}

/// What is remembered of a job.
#[derive(Default)]
struct Past {
    sent: u64,
    rates: VecDeque<f64>,
    stalls: Stall,
}

/// For how long a job had next to nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Stall(f64);

impl Stall {
    /// After further seconds with these facts; how long by now, if it starves. What is unsent may be new since
    /// a look long ago, so no look tells enough by itself.
    fn after(&mut self, facts: &Facts) -> Option<f64> {
        let more = facts.seconds.min(STARVES / 2.0);
        self.0 = if facts.starves() { self.0 + more } else { 0.0 };
        (self.0 >= STARVES).then_some(self.0)
    }
}

impl Watch {
    /// Looks now. What runs in other network namespaces is seen too, but not what else uses the
    /// devices there.
    ///
    /// # Errors
    /// Without the privileges, or when the kernel cannot be read.
    pub fn look(&mut self) -> Result<View> {
        self.look_at(&mut |_| true, |_, _| None)
    }

    /// The same for somebody who may not see all: jobs are made of what `narrow` leaves of the status, and
    /// of processes of which `his` says that he may see them.
    /// What the rest sends is in the figures of devices and paths alone, as the sum that it is there.
    ///
    /// # Errors
    /// As [`Watch::look`].
    pub fn look_through(
        &mut self,
        his: &mut dyn FnMut(i32) -> bool,
        narrow: impl FnOnce(&System, &mut Status) -> LeftOut,
    ) -> Result<View> {
        self.look_at(his, |system, status| Some(narrow(system, status)))
    }

    fn look_at(
        &mut self,
        his: &mut dyn FnMut(i32) -> bool,
        narrow: impl FnOnce(&System, &mut Status) -> Option<LeftOut>,
    ) -> Result<View> {
        let (now, shown, left_out) = {
            let system = System::look()?;
            let now = Sample::read(&system, his)?;
            let mut shown = now.status.clone();
            let left_out = narrow(&system, &mut shown);
            shown.name(his, Process::read);
            (now, shown, left_out)
        };
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let parts = parts(&shown);
        let present: HashSet<_> = parts.iter().map(|part| part.id().to_string()).collect();
        let mut jobs = Vec::new();
        for part in &parts {
            let known = self.past.get(part.id()).map(|past| past.sent);
            let facts = self.last.as_ref().zip(known);
            let facts = facts.map(|(before, sent)| part.facts(before, &now, sent));
            let past = self.past.entry(part.id().into()).or_default();
            past.sent = part.sent();
            let why = past.learn(facts.as_ref());
            jobs.push(part.job(&now, facts.as_ref(), why, past.rates.iter().copied().collect()));
        }
        self.past.retain(|id, _| present.contains(id));
        let gone = self.shown.drain(..).filter(|job| !present.contains(&job.id));
        self.ended.extend(gone.map(|job| (now.at, ended(job))));
        self.ended
            .retain(|(at, job)| now.at.duration_since(*at) < ENDED && !present.contains(&job.id));
        self.shown.clone_from(&jobs);
        jobs.extend(self.ended.iter().map(|(_, job)| job.clone()));
        let path = |(device, _, path): (&str, usize, &HeldPath)| ViewedPath {
            device: device.into(),
            path: path.clone(),
        };
        let view = View {
            time: since_epoch.as_secs_f64(),
            seconds: self.last.as_ref().map(|last| now.since(last).as_secs_f64()),
            jobs,
            paths: now.paths().map(path).collect(),
            downloads: self.downloads(&now),
            left_out,
        };
        self.last = Some(now);
        Ok(view)
    }

    /// What came since the last look.
    fn downloads(&self, now: &Sample) -> Vec<ViewedDownload> {
        let past = self.last.as_ref().map(|last| (last.downloads(), now.since(last).as_secs_f64()));
        let all = now.downloads();
        let viewed = |(n, at): (usize, &DownloadAt)| {
            // of a device the n-th: paths only become more
            let nth = all[..n].iter().filter(|other| other.device == at.device).count();
            let before = past.as_ref().and_then(|(past, seconds)| {
                let mut of_device = past.iter().filter(|other| other.device == at.device);
                Some((of_device.nth(nth)?, *seconds))
            });
            ViewedDownload::of(at, before)
        };
        all.iter().enumerate().map(viewed).collect()
    }
}

impl Past {
    /// Why it is as fast as it is, and remembers that.
    fn learn(&mut self, facts: Option<&Facts>) -> Why {
        let Some(facts) = facts else { return Why::NotYetKnown };
        self.rates.push_back(facts.rate());
        if self.rates.len() > HISTORY {
            self.rates.pop_front();
        }
        match self.stalls.after(facts) {
            Some(seconds) => {
                Why::Starving { seconds, others_bits: facts.others.as_ref().map(|o| o.bits) }
            }
            None => Why::of(facts),
        }
    }
}

/// A job that is there no more.
fn ended(job: Job) -> Job {
    Job {
        connections: 0,
        rate_bits: Some(0.0),
        others: None,
        queue: None,
        why_text: Why::Ended.to_string(),
        why: Why::Ended,
        ..job
    }
}

#[cfg(test)]
mod tests {
    use super::super::why::Others;
    use super::*;

    fn slow(seconds: f64) -> Facts {
        let others = Some(Others { bits: 8e6, device: "eth0".into(), on_path: true });
        Facts { seconds, open: 1, sent: 1500, unsent: 1_000_000, others, ..Facts::default() }
    }

    #[test]
    fn a_job_starves_after_a_minute_of_next_to_nothing_and_not_after_it_had_more() {
        let mut past = Past::default();
        for _ in 0..59 {
            assert!(!matches!(past.learn(Some(&slow(1.0))), Why::Starving { .. }));
        }
        let starving = Why::Starving { seconds: 60.0, others_bits: Some(8e6) };
        assert_eq!(past.learn(Some(&slow(1.0))), starving);
        let moves = Facts { sent: 100_000, ..slow(1.0) };
        assert!(!matches!(past.learn(Some(&moves)), Why::Starving { .. }));
        assert!(!matches!(past.learn(Some(&slow(1.0))), Why::Starving { .. }));
    }

    #[test]
    fn a_job_that_nobody_looked_at_for_an_hour_has_not_starved_since() {
        let mut past = Past::default();
        for seconds in [3600.0, 20.0] {
            assert!(!matches!(past.learn(Some(&slow(seconds))), Why::Starving { .. }));
        }
        let starving = Why::Starving { seconds: 70.0, others_bits: Some(8e6) };
        assert_eq!(past.learn(Some(&slow(20.0))), starving);
    }

    #[test]
    fn a_history_has_the_newest_rate_last_and_an_end() {
        let mut past = Past::default();
        assert_eq!(past.learn(None), Why::NotYetKnown);
        for sent in 0..200 {
            past.learn(Some(&Facts { sent, ..slow(1.0) }));
        }
        assert_eq!((past.rates.len(), past.rates.back()), (HISTORY, Some(&(199.0 * 8.0))));
    }
}

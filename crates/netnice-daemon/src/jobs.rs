// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The runs that users began, for as long as something is in them.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use netnice_core::Algorithm;
use netnice_manager::cgroup::{Group, Hierarchy};
use netnice_manager::choice::Choice;
use netnice_manager::hold::Held;
use netnice_manager::report::Report;
use netnice_manager::run::Kept;
use netnice_manager::system::System;
use netnice_manager::Result;

use crate::limits::{full, Full, Given, RUNS, RUNS_OF_USER};

/// How often the daemon looks which runs have ended.
const LOOK: Duration = Duration::from_secs(1);
/// How long connections may take to send what their ended programs left them.
const DRAIN: Duration = Duration::from_secs(60);
/// How long a client may ask what its run did, after it has ended.
const ASK: Duration = Duration::from_secs(10);
/// How long a run stays for that in the kernel, where the next daemon finds it.
const STAY: Duration = Duration::from_secs(2);

/// A run of a user.
pub struct Job {
    pub owner: u32,
    /// Whose packets are to wait, once it has begun.
    wish: Option<Wish>,
    /// None: not yet, or only an earlier daemon knew.
    held: Option<Held>,
    kept: Arc<Kept>,
    group: Group,
    ended: Option<Instant>,
    told: bool,
    swept: bool,
}

/// As what its packets are to wait.
pub struct Wish {
    pub choice: Choice,
    pub algorithm: Algorithm,
}

impl Job {
    pub fn new(owner: u32, group: Group, kept: Kept, wish: Option<Wish>) -> Job {
        let kept = Arc::new(kept);
        Job { owner, wish, held: None, kept, group, ended: None, told: false, swept: false }
    }

    /// What tells what it did by now, without the others waiting; and whether something is still in it.
    pub fn teller(&self) -> (impl FnOnce() -> Result<Report>, bool) {
        let (kept, held) = (Arc::clone(&self.kept), self.held.clone());
        let report = move || {
            let report = kept.report()?;
            Ok(match held {
                Some(held) => report.held(held),
                None => report.looked_after(),
            })
        };
        (report, self.group.is_populated())
    }

    /// Whether nothing is in it, nor is there somebody to be told what it did.
    fn has_ended(&mut self) -> bool {
        if self.group.is_populated() {
            return false;
        }
        let since = *self.ended.get_or_insert_with(Instant::now);
        self.told || since.elapsed() >= STAY
    }

    /// Whether it may still send something once it has ended: a hold that ends with it drops what waits.
    fn may_drain(&self) -> bool {
        let waits = self.held.as_ref().is_none_or(|held| !held.devices.is_empty());
        waits && self.ended.is_none_or(|since| since.elapsed() <= DRAIN)
    }
}

/// All of them, by the ids of the runs.
pub struct Jobs {
    all: Mutex<HashMap<u64, Job>>,
    changed: Condvar,
}

impl Jobs {
    /// Those that an earlier daemon began.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn find(hierarchy: &Hierarchy) -> Result<Jobs> {
        let mut all = HashMap::new();
        for (group, owner) in hierarchy.owned() {
            if let Some(kept) = Kept::find(group.id)? {
                all.insert(group.id, Job::new(owner, group, kept, None));
            }
        }
        Ok(Jobs { all: Mutex::new(all), changed: Condvar::new() })
    }

    pub fn all(&self) -> MutexGuard<'_, HashMap<u64, Job>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a user may have no more runs than he has.
    pub fn full(&self, uid: u32) -> Option<String> {
        let (all, given) = (self.all(), Given::now());
        let user = given.user(uid);
        // one that has ended takes its place until it is swept, and none after that
        let taken: Vec<_> = all.values().filter(|job| !job.swept).collect();
        let of_user = taken.iter().filter(|job| given.user(job.owner) == user).count();
        Some(match full(uid, (of_user, RUNS_OF_USER), (taken.len(), RUNS))? {
            Full::His => {
                format!("you have {RUNS_OF_USER} runs, as many as a user may have; let one end")
            }
            Full::All => {
                format!("all users together have {RUNS} runs, the most; try again later")
            }
        })
    }

    /// What is to be done for a run, once.
    pub fn wish(&self, id: u64) -> Option<Wish> {
        self.all().get_mut(&id)?.wish.take()
    }

    /// Whether something is in a run.
    pub fn lives(&self, id: u64) -> bool {
        self.all().get(&id).is_some_and(|job| job.group.is_populated())
    }

    /// Where its packets wait.
    pub fn held(&self, id: u64, held: Option<Held>) {
        if let Some(job) = self.all().get_mut(&id) {
            job.held = held;
        }
    }

    pub fn add(&self, id: u64, job: Job) {
        self.all().insert(id, job);
        self.changed.notify_all();
    }

    /// Takes away what ended runs needed, as long as there are runs; for ever.
    pub fn keep(&self) {
        loop {
            {
                let mut all = self.all();
                while all.is_empty() {
                    all = self.changed.wait(all).unwrap_or_else(PoisonError::into_inner);
                }
            }
            self.sweep();
            std::thread::sleep(LOOK);
        }
    }

    /// Takes away what ended runs needed.
    pub fn sweep(&self) {
        let drains = |job: &mut Job| !job.swept && job.has_ended() && job.may_drain();
        let drain = |job: &mut Job| drains(job).then(|| Arc::clone(&job.kept));
        let draining: Vec<_> = self.all().values_mut().filter_map(drain).collect();
        // a look at all sockets of the host: one for all, and nobody waits for it. If it fails, the next one tells
        let closed = Kept::closed(&draining).unwrap_or_default();
        let mut any = false;
        self.all().retain(|id, job| {
            if !job.swept && job.has_ended() && (!job.may_drain() || closed.contains(id)) {
                (job.swept, any) = (true, true);
            }
            !(job.swept && job.ended.is_some_and(|since| since.elapsed() > ASK))
        });
        if any {
            let _ = System::change(); // sweeps; what fails now the next change does
        }
    }

    /// Forgets what a run did that has ended, and takes away what it needed: its client knows.
    pub fn told(&self, id: u64) {
        if let Some(job) = self.all().get_mut(&id) {
            job.told = true;
        }
        self.sweep();
        let mut all = self.all();
        if all.get(&id).is_some_and(|job| job.swept) {
            all.remove(&id);
        }
    }
}

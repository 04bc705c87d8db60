// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the daemon does for a caller.

use std::cell::Cell;
use std::thread;

use netnice_core::Config;
use netnice_manager::cgroup::Hierarchy;
use netnice_manager::choice::Choice;
use netnice_manager::group::{self, Membership, Name};
use netnice_manager::hold::{Held, SOON};
use netnice_manager::run::{Kept, Run};
use netnice_manager::snapshot::Watch;
use netnice_manager::system::System;
use netnice_manager::{Error, Result};

use crate::caller::Caller;
use crate::jobs::{Job, Jobs, Wish};
use crate::protocol::{refused, Answer, InGroup, Meant, Request, Wanted};
use crate::starving::Starving;
use crate::{look, moves, rights};

/// The most descriptors of who begins a run, as many as a process has by default: all others wait
/// meanwhile.
const DESCRIPTORS: usize = 1024;

/// All that it works with.
pub struct Work {
    hierarchy: Hierarchy,
    pub jobs: Jobs,
    starving: Starving,
}

impl Work {
    /// Finds what an earlier daemon began, and loads what most requests need.
    ///
    /// # Errors
    /// Without the privileges, or cgroup v2.
    pub fn new() -> Result<Work> {
        let hierarchy = Hierarchy::open()?;
        let jobs = {
            let _system = System::look()?; // nobody sweeps what has ended meanwhile
            Jobs::find(&hierarchy)?
        };
        jobs.sweep();
        // so that nobody waits for it; what hinders it now, a request is told
        let _ = System::change().and_then(|system| system.make_ready());
        Ok(Work { hierarchy, jobs, starving: Starving::default() })
    }

    /// Carries a request out; `watch` remembers what the same connection has seen.
    pub fn answer(&self, caller: &Caller, request: Request, watch: &mut Watch) -> Answer {
        let done = match request {
            Request::Hello {} => Ok(Answer::Hello { netnice: env!("CARGO_PKG_VERSION").into() }),
            Request::Run { choice, meant, group } => {
                self.run(caller, &choice, &meant, group.as_ref())
            }
            Request::Report { run } => self.report(caller, run),
            Request::Attach { pids, choice, meant } => {
                moves::attach(caller, &pids, &choice, &meant)
            }
            Request::Detach { pids } => moves::detach(caller, &pids),
            Request::Status {} => look::status(caller),
            Request::Look {} => look::view(caller, watch),
            Request::Group { group, seconds } => look::group(caller, &group, seconds),
            Request::Share { group, run, share } => look::share(caller, &group, run, &share),
        };
        done.unwrap_or_else(|error| Answer::Refused { why: error.to_string() })
    }

    /// What is left to do once the answer was told. A daemon that is killed before leaves it undone: that run
    /// yields by its window alone, where no device holds for others, and the next one sweeps it.
    pub fn told(&self, caller: &Caller, answer: &Answer) {
        match answer {
            Answer::Run { run } => self.hold(caller, *run),
            Answer::Report { report, goes_on: false, .. } => self.jobs.told(report.run),
            _ => {}
        }
    }

    fn run(
        &self,
        caller: &Caller,
        choice: &Wanted,
        meant: &Meant,
        group: Option<&InGroup>,
    ) -> Result<Answer> {
        let choice = choice.choice()?;
        let selection = meant.selection()?;
        choice.require_fit(&selection, group.is_some())?;
        let (config, tos, membership) = match group {
            Some(group) => in_group(&choice, group, caller.uid)?,
            None => (choice.config()?, choice.tos(), None),
        };
        let system = System::change()?;
        // it may have ended while this waited for others, and another process have its number
        caller.require_alive()?;
        if let Some(why) = self.jobs.full(caller.uid) {
            return refused(why);
        }
        let pid = caller.process.pid;
        if let Err(run) = rights::begin(caller.uid, &self.hierarchy.above(pid)?) {
            return Ok(Answer::Kept { run });
        }
        let run = Run::begin_in(&system, &config, tos, membership.as_ref(), |_| {
            let made = self.hierarchy.create_for(pid)?;
            made.belongs_to(caller.uid).map(|()| made)
        })?;
        let run = run.limit_to(&system, selection)?;
        let left = Cell::new(DESCRIPTORS);
        let run = run.adopt_plain(&system, |put| caller.process.each_socket(&left, put))?;
        let listeners = run.listeners();
        let cgroup = run.into_cgroup();
        let id = cgroup.id;
        let Some(kept) = Kept::find(id)? else { return refused("the run ended as it began") };
        caller.require_alive()?;
        let before = self.hierarchy.place(pid)?;
        cgroup.admit(pid)?;
        caller.require_alive().inspect_err(|_| self.hierarchy.dismiss(&cgroup, &before))?;
        let kept = kept.with_listeners(listeners);
        let wish = Wish { choice, algorithm: config.algorithm() };
        self.jobs.add(id, Job::new(caller.uid, cgroup, kept, Some(wish)));
        Ok(Answer::Run { run: id })
    }

    /// Has the packets of a run that has begun wait. Until then its connections yield by their window.
    fn hold(&self, caller: &Caller, run: u64) {
        let Some(wish) = self.jobs.wish(run) else { return };
        let held = if caller.process.shares("net") {
            thread::sleep(SOON);
            if !self.jobs.lives(run) {
                return; // a change would take away what the next daemon tells, if this one is killed now
            }
            let Ok(system) = System::change() else { return };
            // what has ended meanwhile would leave a hold
            self.jobs.lives(run).then(|| system.hold_for(&wish.choice, wish.algorithm))
        } else {
            let why = "the command is in another network namespace than the daemon, which holds in its own";
            Some(Held { elsewhere: true, ..Held::nowhere(why) })
        };
        self.jobs.held(run, held);
    }

    fn report(&self, caller: &Caller, run: u64) -> Result<Answer> {
        let (teller, goes_on) = match self.jobs.all().get(&run) {
            Some(job) if rights::see(caller.uid, job.owner) => job.teller(),
            _ => return refused(format!("you have no run {run}")),
        };
        let report = Box::new(teller()?);
        let may_starve = goes_on && report.bytes_unsent > 0;
        let starving = if may_starve { self.starving.why(run) } else { None };
        Ok(Answer::Report { report, goes_on, starving })
    }
}

fn in_group(
    choice: &Choice,
    group: &InGroup,
    uid: u32,
) -> Result<(Config, u8, Option<Membership>)> {
    let name: Name = group.name.parse().map_err(Error::Refused)?;
    let scope = group.scope.as_deref().map(str::parse).transpose().map_err(Error::Refused)?;
    let (config, tos, membership) = group::of_run(choice, &name, group.share.as_deref(), scope)?;
    Ok((config, tos, Some(Membership { owner: uid, ..membership })))
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A run of a job, from its lock to its end.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::time::Duration;

use netnice_manager::system::{require_privileges, Change, System};

use crate::cgroups::{Cgroups, Told};
use crate::engine::{Engine, Event, Outcome};
use crate::error::{io, wrong};
use crate::job::Job;
use crate::keeper::Keeper;
use crate::lock::Lock;
use crate::observer::Observer;
use crate::watch::{Watch, Watched};
use crate::Result;

/// How long processes that ended transfers left are waited for.
const REST: Duration = Duration::from_secs(2);

/// A job that nobody else runs.
pub struct Replication {
    job: Arc<Job>,
    lock: Lock,
    given: Option<Told>,
    state: Keeper,
    to: Sender<Event>,
    events: Receiver<Event>,
}

/// Ends a run from another thread.
pub struct Stop(Sender<Event>);

impl Stop {
    /// Asks transfers to end; the second time it forces them to.
    pub fn stop(&self) {
        let _ = self.0.send(Event::Stop); // it fails once the run has ended
    }
}

impl Replication {
    /// Takes the job's lock; its state is kept in the directory `state`. `given` tells of the run that
    /// this process is in, if it is in one for this job.
    ///
    /// # Errors
    /// When another process runs the job, or something that it takes is missing.
    pub fn prepare(job: Job, state: &Path, given: Option<Told>) -> Result<Replication> {
        job.require_source()?;
        if !job.or_plain && given.is_none() {
            require_privileges()?;
        }
        require_rsync()?;
        let lock = Lock::take(state, &job.name)?;
        let state = Keeper::new(state, &job.name)?;
        let (to, events) = channel();
        Ok(Replication { job: Arc::new(job), lock, given, state, to, events })
    }

    /// For ending it.
    pub fn stopper(&self) -> Stop {
        Stop(self.to.clone())
    }

    /// Runs the job in cgroups whose TCP connections are all in the background.
    ///
    /// # Errors
    /// When the kernel refuses that, or the source cannot be watched.
    pub fn run(self, observer: &mut dyn Observer) -> Result<Outcome> {
        let Replication { job, mut lock, given, state, to, events } = self;
        let begun = match given {
            Some(told) => Ok((None, Cgroups::given(told))),
            None => begin(&job, &mut lock, observer).map(|(system, made)| (Some(system), made)),
        };
        let (system, cgroups) = match begun {
            Err(error) if job.or_plain => {
                observer
                    .notice(&format!("the copies are made, but not in the background: {error}"));
                (None, Cgroups::plain())
            }
            begun => begun?,
        };
        let cgroups = Arc::new(cgroups);
        let work = || {
            let _watch = match job.watch {
                true => {
                    let to = to.clone();
                    Some(Watch::start(Watched::of(&job), move |seen| {
                        let _ = to.send(Event::Seen(seen));
                    })?)
                }
                false => None,
            };
            Ok(Engine::new(Arc::clone(&job), Arc::clone(&cgroups), state, to, observer)
                .run(&events))
        };
        let (Some(whole), Some(system)) = (cgroups.whole(), system) else { return work() };
        // it stays in the cgroup while it lives: one without a process is swept away
        let mut hierarchy = None; // needed until it has left again
        let outcome = whole.inside(|| {
            hierarchy = Some(system.unlock());
            work()
        })?;
        // an rsync that was told to end may leave others of its kind, which end after it; with a
        // process in it the cgroup stays until another netnice looks
        let _ = whole.is_empty_within(REST);
        drop(cgroups);
        System::change()?; // takes away what the run needed, unless something still does
        outcome
    }
}

/// Makes the cgroups of a run of a job, once what a killed one left is gone.
fn begin(job: &Job, lock: &mut Lock, observer: &mut dyn Observer) -> Result<(Change, Cgroups)> {
    let system = System::change()?;
    // transfers of a run that was killed must not write to the same places as ours
    if lock.cgroup() != 0 {
        system.hierarchy().kill(lock.cgroup())?;
    }
    let cgroups = Cgroups::create(&system, job)?;
    let id = cgroups.whole().map_or(0, |whole| whole.id);
    if let Err(error) = lock.set_cgroup(id) {
        observer.notice(&error.to_string());
    }
    Ok((system, cgroups))
}

fn require_rsync() -> Result<()> {
    let tried = Command::new("rsync").arg("--version").stdout(Stdio::null()).status();
    match tried {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(wrong!("rsync --version failed: {status}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(wrong!("rsync was not found; install it: apt-get install rsync"))
        }
        Err(error) => Err(io("cannot run rsync")(error)),
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice replicate`: one tree to many hosts, as fast as nobody notices.
//!
//! rsync moves the data. This decides which transfers are under way when: all in the background,
//! as many at a time as make the aggregate goodput grow ([`schedule`]), each again after a failure,
//! with the state on disk ([`store`]).

mod args;
mod cgroups;
mod config;
mod engine;
mod job;
mod place;
mod progress;
mod rsync;
mod schedule;
mod status;
mod store;
mod watch;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::{fs, io, thread};

use anyhow::{anyhow, bail, Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

pub use args::ReplicateArgs;
use args::{CheckArgs, ReplicateCommand};
use cgroups::Cgroups;
use engine::{Engine, Event, Outcome};
use job::Job;
use store::{Lock, Owner, State, Store};
use watch::Watch;

use crate::system::{require_privileges, System};

/// The exit status when some destinations are not current.
const INCOMPLETE: u8 = 3;

pub fn main(args: ReplicateArgs) -> ExitCode {
    let done = match &args.command {
        Some(ReplicateCommand::Status(args)) => status::main(args).map(|()| 0),
        Some(ReplicateCommand::Check(args)) => check(args).map(|()| 0),
        None => run(args),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("netnice: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// `netnice replicate check`.
fn check(args: &CheckArgs) -> Result<()> {
    let job = config::read(&args.config)?;
    fs::metadata(&job.source).with_context(|| format!("cannot find the source {}", job.source))?;
    println!("{}: {} to {} destinations", job.name, job.source, job.destinations.len());
    Ok(())
}

fn run(args: ReplicateArgs) -> Result<u8> {
    let (json, state) = (args.json, args.job.state.clone());
    let job = match &args.config {
        Some(file) => config::read(file)?,
        None => Job::from_args(args)?,
    };
    fs::metadata(&job.source).with_context(|| format!("cannot find the source {}", job.source))?;
    require_privileges()?;
    require_rsync()?;
    let job = Arc::new(job);
    let outcome = replicate(&job, &state)?;
    if json {
        let report = status::Report::new(&job.name, None, &outcome.summary, &outcome.rows);
        println!("{}", serde_json::to_string_pretty(&report)?);
    }
    Ok(conclude(&outcome))
}

fn require_rsync() -> Result<()> {
    let tried = Command::new("rsync").arg("--version").stdout(Stdio::null()).status();
    match tried {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => bail!("rsync --version failed: {status}"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("rsync was not found; install it: apt-get install rsync")
        }
        Err(error) => Err(error).context("cannot run rsync"),
    }
}

/// Says which destinations are not current, and why.
fn conclude(outcome: &Outcome) -> u8 {
    let behind: Vec<_> = outcome.rows.iter().filter(|r| r.state != State::Current).collect();
    eprintln!(
        "netnice: {} of {} destinations current",
        outcome.rows.len() - behind.len(),
        outcome.rows.len()
    );
    for row in &behind {
        let why = match &row.error {
            Some(error) => error.as_str(),
            None if outcome.stopped => "interrupted; the next run goes on from here",
            None => "not reached",
        };
        eprintln!("  {}: {why}", row.place);
    }
    if behind.is_empty() {
        0
    } else {
        INCOMPLETE
    }
}

/// Runs the job in cgroups whose TCP connections are all in the background.
fn replicate(job: &Arc<Job>, state: &Path) -> Result<Outcome> {
    let mut lock = Lock::take(state, &job.name)?;
    let store = Store::create(state, &job.name)?;
    let (to, events) = channel();
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGQUIT, SIGTERM])?;
    let (handle, stop) = (signals.handle(), to.clone());
    let listener = thread::spawn(move || {
        for _ in signals.forever() {
            let _ = stop.send(Event::Stop);
        }
    });

    let system = System::open()?;
    let this = Owner::this();
    if let Some(before) = lock.before.take().filter(|b| b.boot == this.boot && b.cgroup != 0) {
        // transfers of a run that was killed must not write to the same places as ours
        system.hierarchy().kill(before.cgroup)?;
    }
    let cgroups = Arc::new(Cgroups::create(&system, job)?);
    lock.record(&Owner { cgroup: cgroups.whole().id, ..this })?;
    // it stays in the cgroup while it lives: one without a process is swept away
    let mut hierarchy = None; // needed until it has left again
    let outcome = cgroups.whole().inside(|| {
        hierarchy = Some(system.unlock());
        let _watch = match job.watch {
            true => {
                let to = to.clone();
                Some(Watch::start(&job.source, move |need| {
                    let _ = to.send(Event::Changed(need));
                })?)
            }
            false => None,
        };
        Engine::new(Arc::clone(job), Arc::clone(&cgroups), store, to.clone())?.run(&events)
    })?;
    handle.close();
    listener.join().map_err(|_| anyhow!("the thread that waits for signals failed"))?;
    crate::run::finish(cgroups)?;
    outcome
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice run`: a command with all its TCP connections in the background.
//!
//! The command runs in the place of this process, as under nice(1): its number, signals, terminal,
//! core file and exit status are its own. A companion stays until the run has ended, says what
//! there is to say, and takes away what the run needed.

mod live;

use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use netnice_core::Config;
use netnice_daemon::protocol::{InGroup, Meant, Request, Wanted};
use netnice_manager::cgroup::wait_for;
use netnice_manager::choice::{Choice, Class};
use netnice_manager::group::{self, Membership, Name, Scope};
use netnice_manager::hold::{self, Held};
use netnice_manager::peer::Selection;
use netnice_manager::report::{NotGoverned, Report};
use netnice_manager::run::Run;
use netnice_manager::system::{Change, System};
use netnice_manners::{exec, say};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::process::{getpid, pidfd_open, PidfdFlags};

use super::report::{carried, not_governed, summary, waited};
use crate::args::{BeginArgs, PeerArgs, SocketArgs};
use live::Live;

mod through;

/// Exit statuses of nice(1).
pub const FAILED: u8 = 125;
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How often a run looks whether another one has given back the connection that it needs too.
const AGAIN: Duration = Duration::from_secs(1);

/// The group of a run.
#[derive(Args)]
struct GroupArgs {
    /// Share bandwidth among your own transfers: runs with the same group name split what they
    /// would get together, in proportion to --share (docs/shares.md)
    #[arg(short, long, value_name = "NAME")]
    group: Option<Name>,
    /// How many parts this run gets [default: 1]
    #[arg(long, value_name = "PARTS", requires = "group", allow_hyphen_values = true)]
    share: Option<String>,
    /// Which connections of the group share: those to the same host, to the same prefix
    /// (prefix/24), or all [default: host]
    #[arg(long, requires = "group")]
    scope: Option<Scope>,
}

/// What is said at the end.
#[derive(Args, Clone, Copy)]
struct Saying {
    /// Print a summary at the end: bytes, mean rate, time spent yielding, connections
    #[arg(short, long)]
    verbose: bool,
    /// Print a report at the end, as one line of JSON on standard error: what the run did, and
    /// what of it was not in the background
    #[arg(long, conflicts_with = "verbose")]
    json: bool,
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    choice: BeginArgs,
    #[command(flatten)]
    peers: PeerArgs,
    #[command(flatten)]
    group: GroupArgs,
    #[command(flatten)]
    saying: Saying,
    #[command(flatten)]
    daemon: SocketArgs,
    /// If netnice cannot work here, say why and run the command as it is, as nice(1) does: for
    /// backups that matter more than who they disturb
    #[arg(long)]
    or_plain: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn main(args: RunArgs) -> ExitCode {
    let code = run(args).unwrap_or_else(|error| {
        say!("netnice: {error:#}");
        FAILED
    });
    ExitCode::from(code)
}

/// Returns only if the command cannot be run.
fn run(args: RunArgs) -> Result<u8> {
    let choice = Choice::from(args.choice);
    let selection = Selection::from(args.peers);
    let GroupArgs { group, share, scope } = args.group;
    choice.require_fit(&selection, group.is_some())?;
    let (config, tos, membership) = match &group {
        Some(name) => {
            let (config, tos, membership) = group::of_run(&choice, name, share.as_deref(), scope)?;
            (config, tos, Some(membership))
        }
        None => (choice.config()?, choice.tos(), None),
    };
    let without_root = args.daemon.is_needed();
    if !without_root
        && tos != 0
        && config.algorithm() == Class::default().algorithm_of_groups()
        && hold::any()?
    {
        say!(
            "netnice: a device here holds what is in the background, and {} yields to that wait too: it \
             will be slow; leave --group and --algorithm out",
            config.algorithm().name()
        );
    }
    let begun = if without_root {
        let group = group.map(|name| InGroup {
            name: name.0,
            share,
            scope: scope.map(|scope| scope.to_string()),
        });
        let meant = Meant::from(&selection);
        let wanted = Request::Run { choice: Wanted::from(&choice), meant, group };
        through::begin(args.daemon.socket, &wanted, args.saying)
    } else {
        let way = Way { choice, config, tos, membership };
        begin(&way, selection, args.saying)
    };
    let begun = match begun {
        Err(error) if args.or_plain => {
            say!("netnice: the command runs, but not in the background (--or-plain): {error:#}");
            None
        }
        begun => Some(begun?),
    };
    let mut words = args.command.into_iter();
    let program = words.next().unwrap_or_default();
    let error = exec::exec(program.clone(), words.collect());
    // the companion removes the cgroup once this process, which is in it, has ended
    if let Some(mut begun) = begun {
        begun.failing.write_all(b"!")?;
    }
    let name = program.display();
    Ok(match error.kind() {
        io::ErrorKind::NotFound => {
            say!("netnice: command not found: {name}");
            NOT_FOUND
        }
        _ => {
            say!("netnice: cannot run {name}: {error}");
            NOT_RUNNABLE
        }
    })
}

/// What this process has until the command runs in its place.
struct Begun {
    /// Takes a word if the command cannot be run.
    failing: PipeWriter,
    /// The lock, and what the companion has too; of a run that this process began itself.
    _held: Option<Box<(Change, Run, PipeReader)>>,
}

/// How the run yields.
struct Way {
    choice: Choice,
    config: Config,
    tos: u8,
    membership: Option<Membership>,
}

/// Puts this process into a run, and leaves a companion beside it.
fn begin(way: &Way, selection: Selection, saying: Saying) -> Result<Begun> {
    let system = System::change()?;
    let run = Run::begin(&system, &way.config, way.tos, way.membership.as_ref())?;
    let mut run = run.limit_to(&system, selection)?.adopt(&system)?;
    run.watch();
    let command = pidfd_open(getpid(), PidfdFlags::empty())?;
    // closed, and nothing in it, once the command runs
    let (failed, failing) = io::pipe()?;
    // under the lock: a run whose cgroup is still empty would be swept away
    run.cgroup().enter()?;
    let begun =
        exec::companion(((system, run, failed), failing), |((system, run, failed), failing)| {
            drop(failing);
            let _hierarchy = system.unlock(); // the command's process has the lock until it runs
            stay(run, command.as_fd(), failed, way, saying);
        });
    let ((mut system, run, failed), failing) =
        begun.map_err(|(((system, run, _), _), error)| {
            let _hierarchy = system.unlock(); // what follows takes the lock again
            let _ = give_up(run); // a failure here says less than the first one
            error
        })?;
    system.may_end(); // the companion takes away what the run needed
    Ok(Begun { failing, _held: Some(Box::new((system, run, failed))) })
}

/// Leaves a run that this process has entered, and ends it.
fn give_up(mut run: Run) -> Result<()> {
    run.cgroup().leave()?;
    run.give_back()?;
    Ok(run.finish()?)
}

/// Has the run's packets wait, unless the command ends at once. Nobody waits for that: until then its
/// connections yield by their window.
fn hold_for(way: &Way, command: BorrowedFd<'_>) -> Held {
    let algorithm = way.config.algorithm();
    if let Some(why) = way.choice.why_not_held(algorithm) {
        return Held::nowhere(why);
    }
    if wait_for(command, hold::SOON).unwrap_or(false) {
        return Held::default();
    }
    match System::change() {
        Ok(system) => system.hold_for(&way.choice, algorithm),
        Err(error) => Held::nowhere(error.to_string()),
    }
}

/// Waits for the end of the command, and of what it leaves running. `failed` has something to read
/// if the command could not be run.
fn stay(mut run: Run, command: BorrowedFd<'_>, mut failed: impl Read, way: &Way, saying: Saying) {
    let started = Instant::now();
    let mut told = || -> Result<()> {
        run.cgroup().leave()?;
        let held = hold_for(way, command);
        // with --json the report says it
        let told_now = run.is_of_downloads() && !saying.json;
        if told_now && !held.why_not.is_empty() && !hold::any()? {
            let why = held.why_not.join("; ");
            say!("netnice: with --only down nothing of it yields here: {why}");
        }
        let mut live = Live::new(saying.verbose);
        loop {
            let pause = if run.awaits() { live.pause().min(AGAIN) } else { live.pause() };
            if wait_for(command, pause)? {
                break;
            }
            let _ = run.look_again();
            // what cannot be read now may be at the next look
            run.report().into_iter().for_each(|report| live.look(report));
        }
        drop(live);
        let drain = !held.devices.is_empty();
        if failed.read(&mut [0])? == 0 {
            let report = run.report()?.held(held);
            tell(report, started.elapsed(), run.cgroup().is_populated(), saying)?;
        }
        run.give_back()?;
        if run.cgroup().is_populated() {
            exec::be_silent();
            run.cgroup().wait_until_empty()?;
        }
        if drain {
            run.drain();
        }
        Ok(())
    };
    if let Err(error) = told().and_then(|()| Ok(run.finish()?)) {
        say!("netnice: {error:#}");
    }
}

/// Says what the run did; `goes_on`: the command has left processes in it.
fn tell(mut report: Report, elapsed: Duration, goes_on: bool, saying: Saying) -> Result<()> {
    if goes_on {
        // they may make one yet
        report.not_governed.retain(|what| *what != NotGoverned::NoConnection);
    }
    if saying.json {
        say!("{}", serde_json::to_string(&report)?);
        return Ok(());
    }
    if saying.verbose {
        if let Some(carrier) = &report.carrier {
            say!("netnice: {}", carried(carrier, report.carried_by));
        }
        say!("netnice: {}", summary(&report, elapsed));
        let held = report.held.clone().unwrap_or_default();
        // what cannot be read must not keep the rest of the end from being said and done
        let holds = System::look().and_then(|system| system.holds()).ok();
        waited(&held, holds.as_deref(), &report).iter().for_each(|line| say!("netnice: {line}"));
    }
    if let Some(text) = not_governed(&report) {
        say!("netnice: {text}");
    }
    Ok(())
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice run`: a command with all its TCP connections in the background.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{anyhow, Context, Result};
use clap::Args;
use netnice_bpf::Totals;
use netnice_manager::choice::Choice;
use netnice_manager::group::{self, Name, Scope};
use netnice_manager::run::Run;
use netnice_manager::system::System;
use netnice_manners::say;
use rustix::process::{kill_process, Pid, Signal};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::siginfo::Cause;

use crate::args::ChoiceArgs;

/// Exit statuses of nice(1).
pub const FAILED: u8 = 125;
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The group of a run.
#[derive(Args)]
struct GroupArgs {
    /// Divide what its connections are entitled to with the other runs of this group, by their
    /// shares; with --class idle, what they find in the background (docs/shares.md)
    #[arg(short, long, value_name = "NAME")]
    group: Option<Name>,
    /// Parts that this run gets, against those of the others [default: 1]
    #[arg(long, value_name = "PARTS", requires = "group", allow_hyphen_values = true)]
    share: Option<String>,
    /// Which connections of the group share a bottleneck: those to one host, to one prefix
    /// (prefix/24), or all [default: host]
    #[arg(long, requires = "group")]
    scope: Option<Scope>,
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    group: GroupArgs,
    /// End with a summary: bytes, mean rate, time spent yielding, connections
    #[arg(short, long)]
    verbose: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub fn main(args: RunArgs) -> ExitCode {
    match run(args) {
        Ok(Ended::Code(code)) => ExitCode::from(code),
        Ok(Ended::Signal(signal)) => die_of(signal),
        Err(error) => {
            say!("netnice: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// How the command ended.
enum Ended {
    Code(u8),
    Signal(i32),
}

fn run(args: RunArgs) -> Result<Ended> {
    let choice = Choice::from(args.choice);
    let GroupArgs { group, share, scope } = args.group;
    let (config, tos, membership) = match &group {
        Some(name) => {
            let (config, tos, membership) = group::of_run(&choice, name, share.as_deref(), scope)?;
            (config, tos, Some(membership))
        }
        None => (choice.config()?, choice.tos(), None),
    };
    // the command must not outlive an unprepared netnice: signals are ours before it starts
    let signals = SignalsInfo::<WithOrigin>::new([
        SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
    ])?;
    let system = System::change()?;
    let run = Run::begin(&system, &config, tos, membership.as_ref())?;
    let started = Instant::now();
    // born under the lock: a run whose cgroup is still empty would be swept away
    let mut command = process::Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    let child = run.cgroup().inside(|| command.spawn())?;
    drop(system);

    let ended = match child {
        Ok(child) => wait(child, signals)?,
        Err(error) => {
            let name = args.command[0].display();
            let (code, text) = match error.kind() {
                io::ErrorKind::NotFound => (NOT_FOUND, format!("command not found: {name}")),
                _ => (NOT_RUNNABLE, format!("cannot run {name}: {error}")),
            };
            say!("netnice: {text}");
            Ended::Code(code)
        }
    };
    if args.verbose {
        summarize(&run.totals()?, started.elapsed());
    }
    run.finish()?;
    Ok(ended)
}

/// Waits for the command; passes on signals that were sent to netnice alone.
fn wait(mut child: Child, mut signals: SignalsInfo<WithOrigin>) -> Result<Ended> {
    let pid = Pid::from_child(&child);
    let handle = signals.handle();
    let forwarder = thread::spawn(move || {
        for origin in signals.forever() {
            // those of the terminal reach the command by themselves
            if matches!(origin.cause, Cause::Kernel) {
                continue;
            }
            if let Some(signal) = Signal::from_named_raw(origin.signal) {
                let _ = kill_process(pid, signal); // it may have ended just now
            }
        }
    });
    let status = child.wait().context("cannot wait for the command")?;
    handle.close();
    forwarder.join().map_err(|_| anyhow!("the thread that forwards signals failed"))?;
    Ok(ended(status))
}

fn ended(status: ExitStatus) -> Ended {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code as u8),
        (None, Some(signal)) => Ended::Signal(signal),
        (None, None) => Ended::Code(FAILED),
    }
}

/// Ends this process by the signal that ended the command, so that the caller sees the same.
fn die_of(signal: i32) -> ExitCode {
    if let Some(named) = Signal::from_named_raw(signal) {
        // handlers of ours were restored with the iterator; SIGKILL cannot be handled at all
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        let _ = kill_process(rustix::process::getpid(), named);
    }
    ExitCode::from(128 + signal as u8)
}

fn summarize(totals: &Totals, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    let mbit = totals.bytes_acked as f64 * 8e-6 / seconds.max(1e-9);
    let yielding = totals.yielding_us as f64 * 1e-6 / totals.connections.max(1) as f64;
    say!(
        "netnice: {} bytes in {seconds:.1} s ({mbit:.2} Mbit/s) over {} connections, each yielding \
         for {yielding:.1} s on average; {} packets retransmitted",
        totals.bytes_acked, totals.connections, totals.retransmits
    );
}

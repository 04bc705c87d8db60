// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice run`: a command with all its TCP connections in the background.

use std::os::unix::process::ExitStatusExt;
use std::process::{self, Child, ExitCode, ExitStatus};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{anyhow, Context, Result};
use netnice_bpf::{Run, Totals};
use rustix::process::{kill_process, Pid, Signal};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::SignalsInfo;
use signal_hook::low_level::siginfo::Cause;

use crate::cli::RunArgs;
use crate::group;
use crate::system::System;

/// Exit statuses of nice(1).
pub const FAILED: u8 = 125;
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

pub fn main(args: &RunArgs) -> ExitCode {
    match run(args) {
        Ok(Ended::Code(code)) => ExitCode::from(code),
        Ok(Ended::Signal(signal)) => die_of(signal),
        Err(error) => {
            eprintln!("netnice: {error:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// How the command ended.
enum Ended {
    Code(u8),
    Signal(i32),
}

fn run(args: &RunArgs) -> Result<Ended> {
    let (config, membership) = args.config()?;
    // the command must not outlive an unprepared netnice: signals are ours before it starts
    let signals = SignalsInfo::<WithOrigin>::new([
        SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH,
    ])?;
    let system = System::open()?;
    if let Some(membership) = &membership {
        group::require_alike(&system, membership, config.algorithm())?;
    }
    netnice_bpf::register(config.algorithm(), membership.is_some())?;
    let group = system.hierarchy().create()?;
    let tos = args.tos(config.algorithm());
    let programs = Run::attach(group.dir(), group.id, &config, tos, membership.as_ref())?;
    let started = Instant::now();
    // born under the lock: a run whose cgroup is still empty would be swept away
    let child = group
        .inside(|| process::Command::new(&args.command[0]).args(&args.command[1..]).spawn())?;
    drop(system);

    let ended = match child {
        Ok(child) => wait(child, signals)?,
        Err(error) => {
            let name = args.command[0].display();
            let (code, text) = match error.kind() {
                io::ErrorKind::NotFound => (NOT_FOUND, format!("command not found: {name}")),
                _ => (NOT_RUNNABLE, format!("cannot run {name}: {error}")),
            };
            eprintln!("netnice: {text}");
            Ended::Code(code)
        }
    };
    if args.verbose {
        summarize(&programs.totals(group.id)?, started.elapsed());
    }
    finish(group)?;
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

/// Takes away what the run needed, unless processes that it left behind still do.
pub fn finish<T>(cgroups: T) -> Result<()> {
    drop(cgroups);
    System::open().map(drop)
}

fn summarize(totals: &Totals, elapsed: Duration) {
    let seconds = elapsed.as_secs_f64();
    let mbit = totals.bytes_acked as f64 * 8e-6 / seconds.max(1e-9);
    let yielding = totals.yielding_us as f64 * 1e-6 / totals.connections.max(1) as f64;
    eprintln!(
        "netnice: {} bytes in {seconds:.1} s ({mbit:.2} Mbit/s) over {} connections, each yielding \
         for {yielding:.1} s on average; {} packets retransmitted",
        totals.bytes_acked, totals.connections, totals.retransmits
    );
}

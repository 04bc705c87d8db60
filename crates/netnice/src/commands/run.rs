// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice run`: a command with all its TCP connections in the background.
//!
//! The command runs in the place of this process, as under nice(1): its number, signals, terminal,
//! core file and exit status are its own. A companion stays until the run has ended, says what
//! there is to say, and takes away what the run needed.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::args::ChoiceArgs;
use anyhow::Result;
use clap::Args;
use netnice_bpf::Totals;
use netnice_manager::choice::Choice;
use netnice_manager::group::{self, Name, Scope};
use netnice_manager::run::Run;
use netnice_manager::system::System;
use netnice_manners::{exec, say};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::process::{getpid, pidfd_open, Pid, PidfdFlags};

/// Exit statuses of nice(1).
pub const FAILED: u8 = 125;
const NOT_RUNNABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

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

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    group: GroupArgs,
    /// Print a summary at the end: bytes, mean rate, time spent yielding, connections
    #[arg(short, long)]
    verbose: bool,
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
    let GroupArgs { group, share, scope } = args.group;
    let (config, tos, membership) = match &group {
        Some(name) => {
            let (config, tos, membership) = group::of_run(&choice, name, share.as_deref(), scope)?;
            (config, tos, Some(membership))
        }
        None => (choice.config()?, choice.tos(), None),
    };
    let system = System::change()?;
    let run = Run::begin(&system, &config, tos, membership.as_ref())?;
    // under the lock: a run whose cgroup is still empty would be swept away
    run.cgroup().enter()?;
    let pid = getpid();
    let command = pidfd_open(pid, PidfdFlags::empty())?;
    let _held = exec::companion((system, run), |(system, run)| {
        let _hierarchy = system.unlock(); // the command's process has the lock until it runs
        stay(run, pid, command.as_fd(), args.verbose);
    })?;
    let mut words = args.command.into_iter();
    let program = words.next().unwrap_or_default();
    let error = exec::exec(program.clone(), words.collect());
    // the companion removes the cgroup once this process, which is in it, has ended
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

/// Waits for the end of the command, and of what it leaves running.
fn stay(run: Run, pid: Pid, command: BorrowedFd<'_>, verbose: bool) {
    let started = Instant::now();
    let told = || -> Result<()> {
        run.cgroup().leave()?;
        let had_left = run.cgroup().wait_for(pid.as_raw_nonzero().get() as u64, command)?;
        let totals = run.totals()?;
        if verbose {
            summarize(&totals, started.elapsed());
        }
        if had_left {
            say!(
                "netnice: the command left the run: something moved it to another cgroup (a login \
                 session, a container, systemd-run). What it sent since was not in the background"
            );
        }
        if run.cgroup().is_populated() {
            exec::be_silent();
            run.cgroup().wait_until_empty()?;
        }
        Ok(())
    };
    if let Err(error) = told().and_then(|()| Ok(run.finish()?)) {
        say!("netnice: {error:#}");
    }
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

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `nice` yields the CPU, `ionice` the disk, `netnice` the network.

#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

mod args;
mod cli;
mod commands;
mod sight;
mod units;

use netnice_manners::{output, say, start};
use std::process::ExitCode;
use std::{env, io};

use anyhow::Result;
use cli::{Cli, Command};
use commands::{
    algorithms, attach, check, daemon, detach, enable, hold, hook, metrics, probe, replicate, run,
    share, status, top,
};

/// The exit status of a command line that was not understood.
///
/// `netnice run` fails as nice(1) does: its caller must not take it for the command's own status.
fn usage_status() -> u8 {
    match env::args_os().nth(1).is_some_and(|a| a == "run") {
        true => run::FAILED,
        false => 2,
    }
}

fn main() -> ExitCode {
    let cli = match Cli::of(env::args_os()) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let _ = error.print();
            return ExitCode::from(usage_status());
        }
        Err(help) => return ended(output::write(|| help.print()).map(|()| 0).map_err(Into::into)),
    };
    let result = match cli.command {
        Command::Run(args) => return run::main(args),
        Command::Replicate(args) => return ended(replicate::main(*args)),
        Command::Check(args) => return ended(check::main(&args)),
        Command::Attach(args) => attach::main(args),
        Command::Detach(args) => detach::main(args),
        Command::Daemon(args) => daemon::main(&args),
        Command::Enable(args) => enable::enable(&args),
        Command::Disable(args) => enable::disable(&args),
        Command::Hold(args) => hold::main(&args),
        Command::Hook(args) => hook::main(&args),
        Command::Share(args) => share::main(&args),
        Command::Status(args) => status::main(&args),
        Command::Top(args) => top::main(&args),
        Command::Metrics(args) => metrics::main(&args),
        Command::Probe(args) => probe::main(args),
        Command::Algorithms(args) => algorithms::main(&args),
        Command::Manual(args) => netnice_manual::write(Cli::whole(), &args).map_err(Into::into),
    };
    ended(result.map(|()| 0))
}

/// The exit status of a command with such an end.
fn ended(result: Result<u8>) -> ExitCode {
    match result {
        Ok(status) => ExitCode::from(status),
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(output::reader_left) => {
            start::end_as_reader_left()
        }
        Err(error) => {
            say!("netnice: {error:#}");
            ExitCode::FAILURE
        }
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `nice` yields the CPU, `ionice` the disk, `netnice` the network.

#![forbid(unsafe_code)]

mod attach;
mod cgroup;
mod cli;
mod group;
mod probe;
mod replicate;
mod run;
mod status;
mod system;

use std::io;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use clap::Parser;
use cli::{Cli, Command};
use signal_hook::consts::SIGPIPE;
use signal_hook::flag;

/// The exit status of a command line that was not understood, or of --help.
///
/// `netnice run` fails as nice(1) does: its caller must not take it for the command's own status.
fn usage_status(error: &clap::Error) -> u8 {
    match error.use_stderr() {
        false => 0,
        true if std::env::args_os().nth(1).is_some_and(|a| a == "run") => run::FAILED,
        true => 2,
    }
}

/// Lets the process end as `ls | head` does once nobody reads on.
///
/// Only for what leaves nothing to clean up: Rust ignores SIGPIPE, and `println!` then panics.
///
/// # Errors
/// What the system says if the signal cannot be handled.
pub fn end_with_reader() -> io::Result<()> {
    flag::register_conditional_default(SIGPIPE, Arc::new(AtomicBool::new(true))).map(|_| ())
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // nobody is left to tell that standard error is closed
            return ExitCode::from(usage_status(&error));
        }
    };
    let result = match cli.command {
        Command::Run(args) => return run::main(&args),
        Command::Attach(args) => attach::main(&args),
        Command::Replicate(args) => return replicate::main(*args),
        Command::Enable(args) => system::enable(&args),
        Command::Disable(args) => system::disable(&args),
        Command::Share(args) => group::share(&args),
        Command::Status(args) => status::main(&args),
        Command::Probe(args) => probe::main(&args),
        Command::Algorithms(args) => cli::list(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("netnice: {error:#}");
            ExitCode::FAILURE
        }
    }
}

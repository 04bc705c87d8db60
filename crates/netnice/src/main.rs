// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `nice` yields the CPU, `ionice` the disk, `netnice` the network.

#![forbid(unsafe_code)]

mod attach;
mod cgroup;
mod cli;
mod run;
mod status;
mod system;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => return run::main(&args),
        Command::Attach(args) => attach::main(&args),
        Command::Enable(args) => system::enable(&args),
        Command::Disable(args) => system::disable(&args),
        Command::Status(args) => status::main(&args),
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

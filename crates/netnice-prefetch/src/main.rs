// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command `netnice-prefetch`; see the library for what it does.
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

mod evaluating;
mod explain;
mod learn;
mod options;
mod replaying;
mod serve;

use std::io;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use netnice_manners::{output, say, start};
use netnice_manual::ManualArgs;
use netnice_prefetch::config;

/// A reverse proxy that lets browsers fetch the next page ahead of time, in the background.
///
/// It stands in front of any web server. It learns which pages follow which, and suggests the next ones
/// to browsers. What they fetch ahead of time uses only the bandwidth that nobody else wants.
#[derive(Parser)]
#[command(
    name = "netnice-prefetch",
    version,
    before_help = "Examples:\n  \
                   netnice-prefetch evaluate /var/log/nginx/access.log*\n  \
                   netnice-prefetch learn --model site.model /var/log/nginx/access.log*\n  \
                   netnice-prefetch explain --model site.model /docs/\n  \
                   netnice-prefetch serve --model site.model --listen :80",
    after_help = "Exit status: 0 all went well, 1 something failed (a sentence says what), 2 wrong usage \
                  or configuration."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Learn(learn::Arguments),
    Evaluate(evaluating::Arguments),
    Explain(explain::Arguments),
    Serve(serve::Arguments),
    Replay(replaying::Arguments),
    Site(replaying::SiteArguments),
    /// Write the man pages and the completions
    #[command(hide = true)]
    Manual(ManualArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            let _ = error.print();
            return ExitCode::from(2);
        }
        Err(help) => return ended(output::write(|| help.print()).map_err(Into::into)),
    };
    ended(match cli.command {
        Command::Learn(arguments) => learn::main(&arguments),
        Command::Evaluate(arguments) => evaluating::main(&arguments),
        Command::Explain(arguments) => explain::main(&arguments),
        Command::Serve(arguments) => serve::main(&arguments),
        Command::Replay(arguments) => replaying::main(&arguments),
        Command::Site(arguments) => replaying::site(&arguments),
        Command::Manual(args) => netnice_manual::write(Cli::command(), &args).map_err(Into::into),
    })
}

/// The exit status of a command with such an end.
fn ended(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.downcast_ref::<io::Error>().is_some_and(output::reader_left) => {
            start::end_as_reader_left()
        }
        Err(error) => {
            say!("netnice-prefetch: {error:#}");
            let usage = error.downcast_ref::<config::Error>().is_some();
            ExitCode::from(if usage { 2 } else { 1 })
        }
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command `netnice-load`; see the library for what it does.
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use netnice_load::net::{self, Stop};
use netnice_scenario::cli::{end, EXIT_STATUS};

mod command;

/// Traffic for experiments on real sockets: web-like fetches, bulk flows, probes.
///
/// A receiving side (serve, sink, echo) listens until it gets SIGTERM or SIGINT; a starting side
/// (fetch, send, probe) ends by itself. Every byte is checked. All sockets have the kernel's default
/// buffers and options; only the congestion control is set, and only on request.
#[derive(Parser)]
#[command(version, after_help = EXIT_STATUS)]
struct Cli {
    #[command(subcommand)]
    mode: command::Mode,
}

async fn run(cli: Cli) -> anyhow::Result<()> {
    net::raise_file_limit().context("Cannot raise the limit of open files")?;
    let stop = Stop::at_signal().context("Cannot catch SIGTERM")?;
    cli.mode.run(stop).await
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Cannot start the runtime")
        .and_then(|runtime| runtime.block_on(run(cli)));
    end("netnice-load", result)
}

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

/// Makes traffic on real sockets for experiments, and checks it: web-like fetches, bulk flows, RTTs.
///
/// A receiver (serve, sink, echo) runs until SIGTERM or SIGINT. A sender (fetch, send, probe) ends by
/// itself. Every byte is checked. Sockets have the kernel's default buffers and options; only
/// --control changes the congestion control. With --quic the same goes over HTTP/3: a connection is a
/// request. Its server makes a certificate when it starts, and clients trust that one alone.
#[derive(Parser)]
#[command(
    version,
    before_help = "Example, one command in each of two terminals:\n  \
                   netnice-load sink --listen 127.0.0.1:9000\n  \
                   netnice-load send 127.0.0.1:9000 --flows 4 --duration 10",
    after_help = EXIT_STATUS
)]
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

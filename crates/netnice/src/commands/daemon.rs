// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice daemon`: what takes root, for users without it.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;

use anyhow::Result;
use clap::Args;
use netnice_daemon::server::Server;
use netnice_daemon::start;
use netnice_manners::say;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::metrics;
use crate::args::address;
use crate::sight::Sight;

#[derive(Args)]
pub struct DaemonArgs {
    /// Where to listen, unless systemd hands a socket down
    #[arg(long, value_name = "PATH", default_value = netnice_daemon::SOCKET)]
    socket: PathBuf,
    /// Answer requests of Prometheus for /metrics there, too (docs/top.md)
    #[arg(long, value_name = "IP:PORT", value_parser = address)]
    metrics: Option<SocketAddr>,
}

pub fn main(args: &DaemonArgs) -> Result<()> {
    start::raise_limit();
    let server = Server::new()?;
    let listening = start::listen(&args.socket)?;
    if let Some(own) = &listening.own {
        say!("netnice: users are served at {}", own.display());
    }
    if let Some(address) = args.metrics {
        let listener = metrics::listen(address, &mut Sight::own())?;
        say!("netnice: metrics are at http://{}/metrics", listener.local_addr()?);
        thread::Builder::new().spawn(move || {
            // users are served all the same
            if let Err(error) = metrics::serve(listener, Sight::own()) {
                say!("netnice: no metrics: {error:#}");
            }
        })?;
    }
    let own = listening.own;
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    thread::Builder::new().spawn(move || {
        if signals.forever().next().is_some() {
            start::stopping();
            own.map(fs::remove_file);
            // runs go on: the next daemon finds them
            std::process::exit(0);
        }
    })?;
    start::ready();
    server.serve(&listening.listener)
}

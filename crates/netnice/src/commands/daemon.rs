// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice daemon`: what takes root, for users without it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;

use anyhow::Result;
use clap::Args;
use netnice_daemon::server::Server;
use netnice_daemon::start::{self, Listening};
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
    // first, what may fail, and what ends this: nobody is told of a socket that is not served
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let metrics =
        args.metrics.map(|address| metrics::listen(address, &mut Sight::own())).transpose()?;
    let Listening { listener, own } = start::listen(&args.socket)?;
    if let Some(own) = &own {
        say!("netnice: users are served at {}", own.path().display());
    }
    if let Some(listener) = metrics {
        say!("netnice: metrics are at http://{}/metrics", listener.local_addr()?);
        thread::Builder::new().spawn(move || {
            // users are served all the same
            if let Err(error) = metrics::serve(listener, Sight::own()) {
                say!("netnice: no metrics: {error:#}");
            }
        })?;
    }
    thread::Builder::new().spawn(move || server.serve(&listener))?;
    start::ready();
    signals.forever().next();
    // runs go on: the next daemon finds them
    Ok(())
}

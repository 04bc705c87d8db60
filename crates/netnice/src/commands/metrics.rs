// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice metrics`: what `netnice top` shows, for Prometheus.

use std::net::{SocketAddr, TcpListener};

use anyhow::{anyhow, Result};
use clap::Args;
use netnice_manners::{say, show};

use crate::args::{address, SocketArgs};
use crate::sight::Sight;

#[derive(Args)]
pub struct MetricsArgs {
    /// Where requests for /metrics are answered; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9464", value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    daemon: SocketArgs,
}

pub fn main(args: &MetricsArgs) -> Result<()> {
    let mut sight = Sight::new(&args.daemon, false);
    let listener = listen(args.listen, &mut sight)?;
    show!("http://{}/metrics", listener.local_addr()?)?;
    if let Sight::Daemons(_) = sight {
        say!("netnice: these are of your own jobs; of all: sudo netnice metrics");
    }
    serve(listener, sight)
}

/// What it cannot do it says now, and not to each request.
pub fn listen(address: SocketAddr, sight: &mut Sight) -> Result<TcpListener> {
    sight.look()?;
    TcpListener::bind(address)
        .map_err(|e| anyhow!("cannot listen at {address}: {e}; choose another address or port"))
}

/// Answers for ever.
pub fn serve(listener: TcpListener, mut sight: Sight) -> Result<()> {
    // with the next step that is said of a look which failed
    let look = move || sight.look().map_err(|error| format!("{error:#}"));
    Ok(netnice_metrics::serve(listener, look)?)
}

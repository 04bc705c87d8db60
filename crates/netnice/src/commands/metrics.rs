// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice metrics`: what `netnice top` shows, for Prometheus.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use clap::Args;
use netnice_manager::snapshot::Watch;
use netnice_manners::show;

#[derive(Args)]
pub struct MetricsArgs {
    /// Where requests for /metrics are answered; port 0 takes a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9464")]
    listen: SocketAddr,
}

pub fn main(args: &MetricsArgs) -> Result<()> {
    let listener = listen(args.listen)?;
    show!("http://{}/metrics", listener.local_addr()?)?;
    serve(listener)
}

/// What it cannot do it says now, and not to each request.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    Watch::default().look()?;
    TcpListener::bind(address).with_context(|| format!("cannot listen at {address}"))
}

/// Answers for ever.
pub fn serve(listener: TcpListener) -> Result<()> {
    let mut watch = Watch::default();
    Ok(netnice_metrics::serve(listener, move || watch.look())?)
}

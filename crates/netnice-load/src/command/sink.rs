// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load sink`.

use std::net::SocketAddr;

use clap::Args;
use netnice_load::bulk;
use netnice_load::net::{self, Stop};
use netnice_scenario::cli::Output;

use super::{announce, positive, seconds, Clock};

/// Receives and checks bulk flows.
///
/// Prints "listening IP:PORT" when ready. Confirms to each finite flow how many of its bytes arrived
/// intact. Fails after writing its report if a flow was not; a flow that the sender cut off is
/// reported as incomplete, and no failure.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-load sink --listen 127.0.0.1:9000 --warmup 3 --measure 30 --json sink.json"
)]
pub struct Sink {
    /// Address and port to listen on.
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// Start of the window whose bytes are counted apart.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0", requires = "measure")]
    warmup: f64,
    /// Length of that window [default: no window].
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    measure: Option<f64>,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

impl Sink {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        let sheet = self.output.open(&[])?;
        let listener = net::listen(self.listen, None)?;
        let window = self
            .measure
            .map(|measure| bulk::Window { from_s: self.warmup, to_s: self.warmup + measure });
        let timeline = self.clock.timeline()?;
        announce(listener.local_addr())?;
        let report = bulk::sink(listener, window, timeline, stop).await?;
        let fault = report.fault();
        sheet.finish("sink", &report, fault)
    }
}

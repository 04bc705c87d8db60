// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load probe`.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use netnice_load::net::Stop;
use netnice_load::ping;
use netnice_scenario::cli::Output;

use super::{positive, seconds, Clock};

/// Measures the RTT to `echo` with small UDP datagrams (64 bytes of payload).
#[derive(Args)]
#[command(
    before_help = "Example:\n  \
                   netnice-load probe 127.0.0.1:7000 --interval-ms 100 --duration 33 --json -",
    after_help = "Exit status: 0 all went well, 1 not a single probe came back, 2 wrong usage."
)]
pub struct Probe {
    /// Address and port of `netnice-load echo`.
    #[arg(value_name = "IP:PORT")]
    to: SocketAddr,
    /// Time from one probe to the next, in milliseconds.
    #[arg(long, value_name = "MS", value_parser = positive, default_value = "100")]
    interval_ms: f64,
    /// How long to send probes, from t = 0.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: f64,
    /// How long to wait for echoes after the last probe.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    wait: f64,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

impl Probe {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        let sheet = self.output.open(&[])?;
        let timeline = self.clock.timeline_of_a_start()?;
        let probing = ping::Probing {
            to: self.to,
            interval: Duration::from_secs_f64(self.interval_ms / 1e3),
            end_s: self.duration,
            wait: Duration::from_secs_f64(self.wait),
        };
        let report = ping::probe(probing, timeline, stop).await?;
        let fault = report.fault();
        sheet.finish("probe", &report, fault)
    }
}

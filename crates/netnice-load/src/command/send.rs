// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load send`.

use std::net::SocketAddr;

use clap::Args;
use netnice_load::bulk;
use netnice_load::net::Stop;
use netnice_scenario::cli::Output;

use super::{seconds, Clock, Connect};

/// Sends bulk flows to `sink`: backups, copies, updates.
///
/// With --bytes each flow ends when the sink has confirmed all of its bytes. Without, flows are endless
/// until --duration or SIGTERM. A flow that these cut off is no failure; the report shows it.
#[derive(Args)]
#[command(
    before_help = "Examples:\n  \
                   netnice-load send 127.0.0.1:9000 --flows 16 --control nn_nice --duration 33\n  \
                   netnice-load send 127.0.0.1:9000 --flows 1000 --bytes 1000000 --json -\n  \
                   netnice-load send 127.0.0.1:9000 --quic sink.der --control nn_nice",
    after_help = "Exit status: 0 all went well, 1 a flow failed (the report has it), 2 wrong usage."
)]
pub struct Send {
    /// Address and port of `netnice-load sink`.
    #[arg(value_name = "IP:PORT")]
    to: SocketAddr,
    /// Number of flows.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    flows: u32,
    /// Congestion control of the flows, as in nn_nice [default: the system's; over QUIC quinn's CUBIC].
    ///
    /// Over QUIC it is nn_ and an algorithm, a class, or one of quinn's own: cubic, bbr.
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    /// Over QUIC: a parameter of the control, as `netnice run` takes it; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "quic")]
    set: Vec<String>,
    /// Over QUIC: the flows share what they may send.
    #[arg(long, requires = "quic")]
    group: bool,
    /// Bytes of each flow; 0 is endless.
    #[arg(long, value_name = "BYTES", default_value = "0")]
    bytes: u64,
    /// When the first flow starts, in seconds after t = 0.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    start: f64,
    /// Time from the start of one flow to that of the next.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    stagger: f64,
    /// When all flows end, in seconds after t = 0 (not after --start) [default: never].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Seed of the content.
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

impl Send {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        let sheet = self.output.open(&[])?;
        let timeline = self.clock.timeline_of_a_start()?;
        let sending = bulk::Sending {
            sink: self.connect.to(self.to, self.control, &self.set, self.group)?,
            flows: self.flows,
            bytes: Some(self.bytes).filter(|&bytes| bytes > 0),
            start_s: self.start,
            stagger_s: self.stagger,
            end_s: self.duration,
            seed: self.seed,
        };
        let report = bulk::send(sending, timeline, stop).await;
        let fault = report.fault();
        sheet.finish("send", &report, fault)
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load fetch`.

use std::net::SocketAddr;

use clap::Args;
use netnice_load::net::Stop;
use netnice_load::web;
use netnice_scenario::cli::Output;

use super::{Clock, Connect, Planned};

/// Fetches from `serve` what a scenario's foreground asks for: web-like traffic.
///
/// Every flow starts at its scheduled time, whether or not earlier ones have ended (open loop). Its
/// completion time, "fct_s", is measured from connect() to the last byte. A flow that has not ended
/// when the scenario does (warmup_s + measure_s + drain_s) has "fct_s": null, and "elapsed_s".
#[derive(Args)]
#[command(
    before_help = "Example:\n  \
                   netnice-load fetch lab/scenarios/k1.toml --from 127.0.0.1:8000 --seed 1",
    after_help = "Exit status: 0 all went well, 1 a fetch failed or a byte was wrong (the report has \
                  it), 2 wrong usage or a scenario that is not valid."
)]
pub struct Fetch {
    #[command(flatten)]
    what: Planned,
    /// Address and port of `netnice-load serve`.
    #[arg(long, value_name = "IP:PORT")]
    from: SocketAddr,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

impl Fetch {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        let (scenario, flows) = self.what.plan()?;
        let sheet = self.output.open(&self.what.inputs(&scenario))?;
        let timeline = self.clock.timeline_of_a_start()?;
        let end_s = scenario.end_s();
        let from = self.connect.to(self.from, None, &[], false)?;
        let report = web::fetch(&flows, &from, end_s, timeline, stop).await;
        let fault = report.fault();
        sheet.finish("fetch", &report, fault)
    }
}

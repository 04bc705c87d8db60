// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load schedule`.

use std::fmt::{self, Display};

use clap::Args;
use netnice_scenario::cli::Output;
use netnice_scenario::Flow;
use serde::Serialize;

use super::Planned;

/// Prints the foreground flows of a scenario: start in seconds, size in bytes.
///
/// `fetch` fetches just these. They follow from the scenario's foreground, rate and durations, and
/// from the seed. So every background of a run meets the same flows. Flows before the measured time
/// are marked "warm-up".
#[derive(Args)]
#[command(before_help = "Example: netnice-load schedule lab/scenarios/k1.toml --seed 1 | less")]
pub struct Schedule {
    #[command(flatten)]
    what: Planned,
    #[command(flatten)]
    output: Output,
}

impl Schedule {
    pub fn run(self) -> anyhow::Result<()> {
        let (scenario, flows) = self.what.plan()?;
        let bytes = flows.iter().map(|f| f.bytes).sum();
        let plan = Plan {
            seed: self.what.seed,
            counted: flows.iter().filter(|f| f.counted).count(),
            bytes,
            offered_load: bytes as f64 / scenario.arrivals_end_s() / scenario.rate_bytes(),
            flows,
        };
        self.output.open(&self.what.inputs(&scenario))?.finish("schedule", &plan, None)
    }
}

/// The report of `schedule`.
#[derive(Serialize)]
struct Plan {
    seed: u64,
    counted: usize,
    bytes: u64,
    /// Offered load in [0, warmup + measure) as a share of the rate of the bottleneck, or of the
    /// slowest link on the path.
    offered_load: f64,
    flows: Vec<Flow>,
}

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for flow in &self.flows {
            let warmup = if flow.counted { "" } else { "  warm-up" };
            writeln!(f, "{:>12.6} {:>9}{warmup}", flow.start_s, flow.bytes)?;
        }
        write!(
            f,
            "{} flows, {} of them counted; {} bytes, {:.4} of the bottleneck rate",
            self.flows.len(),
            self.counted,
            self.bytes,
            self.offered_load
        )
    }
}

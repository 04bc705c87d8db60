// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load scenario`.

use std::fmt;

use clap::Args;
use netnice_scenario::cli::{Output, Source};
use netnice_scenario::{Described, Scenario};
use serde::Serialize;

/// Checks a scenario and prints it with every default filled in, as TOML.
///
/// With --json it is under "scenario". Beside it is what follows from it: "end_s", the lengths of a
/// packet, the "variants" to run, and the "dumbbell" that the network is, if it is one link between two
/// nodes. A key without a value is null.
#[derive(Args)]
#[command(
    before_help = "Example: netnice-load scenario lab/scenarios/k1.toml --set foreground.load=0.3"
)]
pub struct Checked {
    #[command(flatten)]
    what: Source,
    /// Read a JSON array of scenarios; the report is an array "scenarios".
    #[arg(long, conflicts_with = "settings")]
    many: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Serialize)]
struct Many {
    scenarios: Vec<Described>,
}

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scenarios.iter().try_for_each(|described| write!(f, "{described}\n\n"))
    }
}

impl Checked {
    pub fn run(self) -> anyhow::Result<()> {
        let file = &self.what.file;
        let read = match self.many {
            true => Scenario::read_all(file)?,
            false => vec![self.what.read()?],
        };
        let sheet = self.output.open(&self.what.inputs(&read))?;
        let mut scenarios: Vec<_> =
            read.into_iter().map(|scenario| Described::new(scenario.located(file))).collect();
        match self.many {
            true => sheet.finish("scenarios", &Many { scenarios }, None),
            false => sheet.finish("scenario", &scenarios.remove(0), None),
        }
    }
}

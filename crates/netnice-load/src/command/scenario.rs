// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load scenario`.

use clap::Args;
use netnice_scenario::cli::{Output, Source};
use netnice_scenario::Described;

/// Checks a scenario and prints it with every default filled in, as TOML.
///
/// As JSON it is "scenario", beside what follows from it: "end_s", the "variants" to run, and the
/// "dumbbell" that the network is, if it is one link between two nodes.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-load scenario lab/scenarios/k1.toml --set foreground.load=0.3"
)]
pub struct Checked {
    #[command(flatten)]
    what: Source,
    #[command(flatten)]
    output: Output,
}

impl Checked {
    pub fn run(self) -> anyhow::Result<()> {
        let sheet = self.output.open(&[&self.what.file])?;
        let scenario = self.what.read([])?.located(&self.what.file);
        sheet.finish("scenario", &Described::new(scenario), None)
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load scenario`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use clap::Args;
use netnice_quinn::{Algorithm, Config};
use netnice_scenario::cli::{Output, Source};
use netnice_scenario::{Described, Error, Parameter, Scenario};
use serde::Serialize;

/// Checks a scenario and prints it with every default filled in, as TOML.
///
/// With --json it is under "scenario". Beside it is what follows from it: "end_s", the lengths of a
/// packet, the "variants" to run, and the "dumbbell" that the network is, if it is one link between two
/// nodes. A key without a value is null.
///
/// A congestion control "nn_NAME", and what is set of one that is in core/, are checked too, but not with
/// --many: an algorithm of a kept scenario may be gone. Whether a kernel has another control, and what an
/// engine does not carry, only a run finds.
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
            false => {
                let scenario = self.what.read()?;
                check_controls(&scenario, file)?;
                vec![scenario]
            }
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

/// Refuses controls of core/ that do not exist, or do not take what is set.
fn check_controls(scenario: &Scenario, file: &Path) -> Result<(), Error> {
    let nothing = BTreeMap::new();
    let foreground = scenario.foreground.iter();
    let foreground = foreground.map(|f| ("[foreground]".to_owned(), &f.control, &nothing));
    let ideal = [("[ideal]".to_owned(), &scenario.ideal.control, &nothing)];
    let backgrounds = scenario.background.iter();
    let backgrounds =
        backgrounds.map(|b| (format!("background \"{}\"", b.name), &b.control, &b.set));
    let cross = scenario.cross.iter();
    let cross = cross.map(|c| (format!("cross \"{}\"", c.name), &c.control, &c.set));
    for (place, control, set) in foreground.chain(ideal).chain(backgrounds).chain(cross) {
        takes(control, set).map_err(|reason| Error::Scenario {
            place: format!("{}, {place}", file.display()),
            what: reason.to_string(),
        })?;
    }
    Ok(())
}

fn takes(control: &str, set: &BTreeMap<String, Parameter>) -> Result<(), netnice_quinn::Error> {
    let algorithm = match Algorithm::by_name(control) {
        Err(_) if !control.starts_with("nn_") => return Ok(()), // a kernel may have it
        algorithm => algorithm?,
    };
    let mut config = Config::new(algorithm);
    set.iter().try_for_each(|(name, value)| config.set(&format!("{name}={value}")))
}

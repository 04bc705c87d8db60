// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Many runs on all cores: every background with every seed, over a grid of scenarios.

use std::str::FromStr;

use netnice_scenario::cli::Misuse;
use netnice_scenario::weblog::WebLog;
use netnice_scenario::{Scenario, Variant, IDEAL, NONE};
use rayon::prelude::*;

use crate::result::Run;
use crate::trace::Sink;
use crate::{run, Error};

/// What to run of one scenario.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The scenario.
    pub scenario: Scenario,
    /// With each of these backgrounds.
    pub variants: Vec<Variant>,
    /// With each of these seeds.
    pub seeds: Vec<u64>,
}

impl Plan {
    /// A plan for the backgrounds called `only`, or all if that is empty; no background and strict
    /// priority, which the others are compared with, always stay.
    ///
    /// # Errors
    /// [`Misuse`] for a name that no background has.
    pub fn new(scenario: Scenario, only: &[String], seeds: Vec<u64>) -> Result<Plan, Misuse> {
        let mut variants = scenario.variants();
        if let Some(name) = only.iter().find(|&name| variants.iter().all(|v| v.name != *name)) {
            let known = scenario.background.iter().map(|b| format!("{:?}", b.name));
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(Misuse(format!(
                "No background is called {name:?}. The scenario has: {known}."
            )));
        }
        variants.retain(|v| {
            only.is_empty() || [NONE, IDEAL].contains(&&*v.name) || only.contains(&v.name)
        });
        Ok(Plan { scenario, variants, seeds })
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.variants.len() * self.seeds.len()
    }

    /// Seeds and backgrounds in the order of the result.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, &Variant)> {
        self.seeds.iter().flat_map(|&seed| self.variants.iter().map(move |v| (seed, v)))
    }
}

/// Runs a scenario once and digests what was measured.
///
/// # Errors
/// See [`run`].
pub fn run_once(
    scenario: &Scenario,
    variant: &Variant,
    seed: u64,
    log: Option<&WebLog>,
    trace: Option<&mut dyn Sink>,
) -> Result<Run, Error> {
    let outcome = run(scenario, variant, seed, log, trace)?;
    Ok(Run::new(scenario, variant, seed, &outcome))
}

/// Carries out all plans on all cores, and returns the runs of each in the order of [`Plan::pairs`];
/// `done` hears of each run that has ended.
///
/// # Errors
/// One of the errors of [`run`], if there were any.
pub fn run_all(
    plans: &[Plan],
    log: Option<&WebLog>,
    done: &(dyn Fn(&Run) + Sync),
) -> Result<Vec<Vec<Run>>, Error> {
    let jobs: Vec<_> = plans
        .iter()
        .flat_map(|plan| plan.pairs().map(move |(seed, variant)| (plan, seed, variant)))
        .collect();
    let runs: Vec<Run> = jobs
        .into_par_iter()
        .with_max_len(1)
        .map(|(plan, seed, variant)| {
            run_once(&plan.scenario, variant, seed, log, None).inspect(|run| done(run))
        })
        .collect::<Result<_, _>>()?;
    let mut runs = runs.into_iter();
    Ok(plans.iter().map(|plan| runs.by_ref().take(plan.runs()).collect()).collect())
}

/// A key of the scenario and the values to give it, as in `foreground.load=0.3,0.5`.
#[derive(Debug, Clone, PartialEq)]
pub struct Vary {
    /// The key, as for [`Scenario::read_with`].
    pub key: String,
    /// The values as text, at least one.
    pub values: Vec<String>,
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let malformed = || format!("{text:?} varies nothing; write it as foreground.load=0.3,0.5");
        let (key, values) = text.split_once('=').ok_or_else(malformed)?;
        let values: Vec<String> = values.split(',').map(|v| v.trim().to_owned()).collect();
        if key.trim().is_empty() || values.iter().any(String::is_empty) {
            return Err(malformed());
        }
        Ok(Vary { key: key.trim().into(), values })
    }
}

/// One value for each key that varies, in the order of the keys.
pub type Point = Vec<(String, String)>;

/// Every combination of the values; the last key varies fastest.
pub fn grid(vary: &[Vary]) -> Vec<Point> {
    vary.iter().fold(vec![Vec::new()], |points, Vary { key, values }| {
        let with = |point: &Point, value: &String| {
            point.iter().cloned().chain([(key.clone(), value.clone())]).collect()
        };
        points.iter().flat_map(|point| values.iter().map(move |v| with(point, v))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> Scenario {
        let text = "name = \"t\"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\nlimit_packets = 50\n\
            [[background]]\nname = \"a\"\ncontrol = \"reno\"\n\
            [[background]]\nname = \"b\"\ncontrol = \"reno\"\n";
        Scenario::parse(text, "t.toml").unwrap()
    }

    fn planned(only: &[&str]) -> Result<Vec<String>, Misuse> {
        let only: Vec<String> = only.iter().map(|&name| name.into()).collect();
        let plan = Plan::new(scenario(), &only, vec![1])?;
        Ok(plan.variants.into_iter().map(|v| v.name).collect())
    }

    #[test]
    fn a_choice_of_backgrounds_keeps_the_references() {
        assert_eq!(planned(&[]).unwrap(), ["none", "strict priority", "a", "b"]);
        assert_eq!(planned(&["b"]).unwrap(), ["none", "strict priority", "b"]);
        assert_eq!(planned(&["none"]).unwrap(), ["none", "strict priority"]);
    }

    #[test]
    fn a_choice_that_is_not_there_is_an_error_that_names_those_that_are() {
        let refused = planned(&["b", "c"]).unwrap_err().to_string();
        assert_eq!(refused, "No background is called \"c\". The scenario has: \"a\", \"b\".");
    }

    #[test]
    fn a_grid_has_every_combination_in_order() {
        let vary = ["x=1,2", "y.z=red, pie"].map(|text| text.parse().unwrap());
        let point = |x: &str, yz: &str| vec![("x".into(), x.into()), ("y.z".into(), yz.into())];
        assert_eq!(
            grid(&vary),
            [point("1", "red"), point("1", "pie"), point("2", "red"), point("2", "pie")]
        );
        assert_eq!(grid(&[]), [Point::new()]);
    }

    #[test]
    fn what_varies_nothing_is_refused() {
        for text in ["", "x", "x=", "=1", "x=1,,2"] {
            assert!(text.parse::<Vary>().unwrap_err().contains("foreground.load=0.3,0.5"));
        }
    }
}

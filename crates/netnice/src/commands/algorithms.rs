// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice algorithms`: the algorithms, and one with its parameters.

use anyhow::Result;
use clap::Args;
use netnice_core::{Algorithm, Param};
use netnice_manners::show;
use serde_json::json;

#[derive(Args)]
pub struct AlgorithmsArgs {
    /// The algorithm to explain
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub fn main(args: &AlgorithmsArgs) -> Result<()> {
    let chosen = match &args.name {
        Some(name) => vec![Algorithm::by_name(name)?],
        None => Algorithm::all().collect(),
    };
    netnice_manners::start::end_with_reader()?;
    if args.json {
        let all: Vec<_> = chosen.iter().map(describe).collect();
        show!("{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(());
    }
    for algorithm in chosen {
        show!("{:8} {}", algorithm.name(), algorithm.summary())?;
        if args.name.is_none() {
            continue;
        }
        for p in algorithm.params() {
            show!("\n  {}", default(&p))?;
            show!("      {}", p.help())?;
            show!("      {}; {}", range(&p), p.source())?;
        }
        for (i, s) in algorithm.shown().enumerate() {
            show!(
                "{}  {}: {}",
                if i == 0 { "\nIts connections show\n" } else { "" },
                s.key(),
                s.help()
            )?;
        }
    }
    if args.name.is_none() {
        show!("\nOne with its parameters: netnice algorithms NAME")?;
    }
    Ok(())
}

/// A parameter with its default: `threshold=0.2 share of the buffer`, `mode=alpha`.
fn default(p: &Param) -> String {
    match p.choices().nth(p.default() as usize) {
        Some(choice) => format!("{}={choice}", p.name()),
        None => format!("{}={} {}", p.name(), number(p.default()), p.unit()),
    }
}

/// What a parameter may be.
fn range(p: &Param) -> String {
    match p.choices().next() {
        Some(_) => format!("one of {}", p.choices().collect::<Vec<_>>().join(", ")),
        None => format!("from {} to {}", number(p.least()), number(p.most())),
    }
}

fn describe(algorithm: &Algorithm) -> serde_json::Value {
    let params: Vec<_> = algorithm
        .params()
        .map(|p| {
            json!({"name": p.name(), "default": p.default(), "least": p.least(), "most": p.most(),
                   "unit": p.unit(), "source": p.source(), "help": p.help()})
        })
        .collect();
    let shows: Vec<_> =
        algorithm.shown().map(|s| json!({"name": s.key(), "help": s.help()})).collect();
    json!({"name": algorithm.name(), "summary": algorithm.summary(), "parameters": params,
           "shows": shows})
}

/// At most five decimals, since values are kept to 1/65536.
fn number(x: f64) -> String {
    format!("{x:.5}").trim_end_matches('0').trim_end_matches('.').into()
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice enable` and `netnice disable`: algorithms for the whole system.

use anyhow::Result;
use clap::Args;
use netnice_core::Algorithm;
use netnice_manager::system::System;
use netnice_manners::say;

#[derive(Args)]
pub struct EnableArgs {
    /// Algorithms to register; all by default
    #[arg(value_name = "ALGORITHM")]
    algorithms: Vec<String>,
    /// Let unprivileged programs choose them too (tcp_allowed_congestion_control)
    #[arg(long)]
    allow_all: bool,
}

#[derive(Args)]
pub struct DisableArgs {
    /// Algorithms to take off the list; all by default
    #[arg(value_name = "ALGORITHM")]
    algorithms: Vec<String>,
}

/// The named algorithms, or all of them.
fn chosen(names: &[String]) -> Result<Vec<Algorithm>> {
    match names {
        [] => Ok(Algorithm::all().collect()),
        names => Ok(names.iter().map(|n| Algorithm::by_name(n)).collect::<Result<_, _>>()?),
    }
}

pub fn enable(args: &EnableArgs) -> Result<()> {
    let algorithms = chosen(&args.algorithms)?;
    Ok(System::change()?.enable(&algorithms, args.allow_all)?)
}

pub fn disable(args: &DisableArgs) -> Result<()> {
    let algorithms = chosen(&args.algorithms)?;
    let left = System::change()?.disable(&algorithms)?;
    let controls = left.controls.join(", ");
    match (left.controls.len(), left.runs) {
        (0, _) => {}
        (_, 0) => say!("netnice: {controls} stays: a run in another container uses it"),
        (_, runs) => say!(
            "netnice: {controls} stays until the {runs} running `netnice run` end: see netnice status"
        ),
    }
    Ok(())
}

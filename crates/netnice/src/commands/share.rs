// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice share`: the share of a run in its group.

use anyhow::Result;
use clap::Args;
use netnice_manager::group::{self, Name};
use netnice_manager::system::System;

#[derive(Args)]
pub struct ShareArgs {
    /// The group
    #[arg(value_name = "NAME")]
    group: Name,
    /// The run, or a process in it
    #[arg(value_name = "PID|RUN")]
    run: u64,
    /// Its new share, in parts
    #[arg(value_name = "WEIGHT", allow_hyphen_values = true)]
    weight: String,
}

pub fn main(args: &ShareArgs) -> Result<()> {
    Ok(group::share(&System::change()?, &args.group, args.run, &args.weight)?)
}

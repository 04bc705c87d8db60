// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice share`: the share of a run in its group.

use anyhow::{bail, Result};
use clap::Args;
use netnice_daemon::client::{ask, Error};
use netnice_daemon::protocol::{Answer, Request};
use netnice_manager::group::{self, Name};
use netnice_manager::system::System;

use crate::args::SocketArgs;

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
    #[command(flatten)]
    daemon: SocketArgs,
}

pub fn main(args: &ShareArgs) -> Result<()> {
    if args.daemon.is_needed() {
        let (group, share) = (args.group.0.clone(), args.weight.clone());
        return match ask(&args.daemon.socket, &Request::Share { group, run: args.run, share })? {
            Answer::Shared {} => Ok(()),
            _ => bail!(Error::NotAsked),
        };
    }
    Ok(group::share(&System::change()?, &args.group, args.run, &args.weight)?)
}

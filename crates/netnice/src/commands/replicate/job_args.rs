// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which job a command is about.

use std::path::PathBuf;

use clap::Args;

/// Where the state of jobs is kept unless `--state` says otherwise.
const STATE: &str = "/var/lib/netnice/replicate";

/// Which job, and where its state is.
#[derive(Args)]
pub struct JobArgs {
    /// The job's name; by default made from the source
    #[arg(long = "job", value_name = "NAME")]
    pub name: Option<String>,
    /// Where the state of jobs is kept
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub state: PathBuf,
}

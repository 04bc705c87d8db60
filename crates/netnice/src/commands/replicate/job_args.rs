// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which job a command is about.

use std::env;
use std::path::PathBuf;

use clap::Args;
use rustix::process::geteuid;

/// Where the state of root's jobs is kept unless `--state` says otherwise,
const STATE: &str = "/var/lib/netnice/replicate";
/// and that of a user's, below his home.
const OF_USER: &str = ".local/state/netnice/replicate";

/// Which job, and where its state is.
#[derive(Args)]
pub struct JobArgs {
    /// The job's name; by default made from the source
    #[arg(long = "job", value_name = "NAME")]
    pub name: Option<String>,
    /// Where the state of jobs is kept [default: /var/lib/netnice/replicate; without root
    /// ~/.local/state/netnice/replicate]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl JobArgs {
    /// Where the state of jobs is kept.
    pub fn state(&self) -> PathBuf {
        let of_user = || Some(PathBuf::from(env::var_os("HOME")?).join(OF_USER));
        let default = || match geteuid().is_root() {
            true => None,
            false => of_user(),
        };
        self.state.clone().or_else(default).unwrap_or_else(|| STATE.into())
    }

    /// Where there is one to show: of a user who has none, root's.
    pub fn shown(&self) -> PathBuf {
        let state = self.state();
        match self.state.is_none() && !state.exists() {
            true => STATE.into(),
            false => state,
        }
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice attach`: the existing connections of running processes.

use anyhow::{bail, Context, Result};
use clap::Args;
use netnice_manager::choice::Choice;
use netnice_manager::socket::{self, Mover};
use netnice_manager::system::{require_privileges, System};
use netnice_manners::say;

use crate::args::ChoiceArgs;

#[derive(Args)]
pub struct AttachArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    /// The processes
    #[arg(required = true, value_name = "PID")]
    pids: Vec<i32>,
}

pub fn main(args: AttachArgs) -> Result<()> {
    let choice = Choice::from(args.choice);
    let config = choice.config()?;
    require_privileges()?;
    let mut sockets = Vec::new();
    for pid in args.pids {
        sockets.extend(socket::of_process(pid)?.into_iter().map(|socket| (pid, socket)));
    }
    if sockets.is_empty() {
        bail!(
            "these processes have no TCP connection now; start them with: netnice run -- COMMAND"
        );
    }
    let system = System::change()?;
    let mover = Mover::new(&system, &config, choice.tos())?;
    for (pid, socket) in &sockets {
        let put = mover.put(socket);
        put.with_context(|| format!("cannot move a connection of process {pid}"))?;
    }
    let moved = sockets.len();
    say!("netnice: moved {moved} connections; see netnice status");
    Ok(())
}

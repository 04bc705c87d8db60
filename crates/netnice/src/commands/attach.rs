// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice attach`: the existing connections of running processes.

use std::os::fd::OwnedFd;

use anyhow::{bail, Context, Result};
use clap::Args;
use netnice_core::Config;
use netnice_manager::choice::Choice;
use netnice_manager::socket::{self, Mover};
use netnice_manager::system::{require_privileges, System};
use netnice_manners::say;

use crate::args::{ChoiceArgs, PeerArgs};

#[derive(Args)]
pub struct AttachArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    peers: PeerArgs,
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
    let all = sockets.len();
    sockets.retain(|(_, socket)| socket::is_meant(socket, &args.peers.to));
    let spared = all - sockets.len();
    if spared > 0 {
        say!(
            "netnice: {spared} connections and listening sockets stay as they are (--to); what a \
             listener accepts: netnice run --to"
        );
    }
    let system = System::change()?;
    let mover = Mover::new(&system, &config, choice.tos())?;
    let moved = move_all(&mover, &sockets);
    if !matches!(moved, Ok(1..)) {
        drop(system);
        System::change()?; // takes the control off the kernel's list, if nobody else needs it
    }
    let moved = moved?;
    let multipath = sockets.iter().filter(|(_, s)| socket::is_multipath(s)).count();
    if multipath > 0 && config.values() != Config::new(config.algorithm()).values() {
        say!(
            "netnice: {multipath} connections are of MPTCP, which hands on no --set: they have the \
             default parameters; for others start the process with: netnice run --set ..."
        );
    }
    let kept = sockets.len() - moved;
    if kept > 0 {
        say!("netnice: {kept} connections are of a run already, and keep what it chose for them");
    }
    if moved == 0 {
        bail!("there is nothing else to move; see netnice status");
    }
    say!("netnice: moved {moved} connections; see netnice status");
    Ok(())
}

/// Returns how many of the sockets of processes are not a run's, and so are moved.
fn move_all(mover: &Mover<'_>, sockets: &[(i32, OwnedFd)]) -> Result<usize> {
    let mut moved = 0;
    for (pid, socket) in sockets {
        let put = mover.put(socket);
        let put = put.with_context(|| format!("cannot move a connection of process {pid}"))?;
        moved += usize::from(put);
    }
    Ok(moved)
}

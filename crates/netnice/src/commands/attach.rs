// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice attach`: the existing connections of running processes.

use std::os::fd::OwnedFd;

use anyhow::{bail, Context, Result};
use clap::Args;
use netnice_core::Config;
use netnice_daemon::client::{ask, Error::NotAsked};
use netnice_daemon::protocol::{Answer, Attached, Request, Wanted};
use netnice_manager::choice::Choice;
use netnice_manager::peer::Peers;
use netnice_manager::socket::{self, Mover};
use netnice_manager::system::{require_privileges, System};
use netnice_manager::Error;
use netnice_manners::say;

use crate::args::{ChoiceArgs, PeerArgs, SocketArgs};

#[derive(Args)]
pub struct AttachArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    peers: PeerArgs,
    #[command(flatten)]
    daemon: SocketArgs,
    /// The processes
    #[arg(required = true, value_name = "PID")]
    pids: Vec<i32>,
}

pub fn main(args: AttachArgs) -> Result<()> {
    let choice = Choice::from(args.choice);
    let config = choice.config()?;
    let done = match require_privileges() {
        Err(Error::Privileges(_)) => {
            let to = args.peers.to.iter().map(ToString::to_string).collect();
            let choice = Wanted::from(&choice);
            match ask(&args.daemon.socket, &Request::Attach { pids: args.pids, choice, to })? {
                Answer::Attached(done) => done,
                _ => bail!(NotAsked),
            }
        }
        others => {
            others?;
            attach(&args.pids, &choice, &config, &args.peers.to)?
        }
    };
    let Attached { moved, spared, kept, others, multipath } = done;
    if moved + spared + kept + others == 0 {
        bail!(
            "these processes have no TCP connection now; start them with: netnice run -- COMMAND"
        );
    }
    if spared > 0 {
        say!(
            "netnice: {spared} connections and listening sockets stay as they are (--to); what a \
             listener accepts: netnice run --to"
        );
    }
    if multipath > 0 && config.values() != Config::new(config.algorithm()).values() {
        say!(
            "netnice: {multipath} connections are of MPTCP, which hands on no --set: they have the \
             default parameters; for others start the process with: netnice run --set ..."
        );
    }
    if kept > 0 {
        say!("netnice: {kept} connections are of a run already, and keep what it chose for them");
    }
    if others > 0 {
        say!("netnice: {others} connections keep what root or another user chose for them");
    }
    if moved == 0 {
        bail!("there is nothing else to move; see netnice status");
    }
    say!("netnice: moved {moved} connections; see netnice status");
    Ok(())
}

fn attach(pids: &[i32], choice: &Choice, config: &Config, to: &[Peers]) -> Result<Attached> {
    let mut sockets = Vec::new();
    for pid in pids {
        sockets.extend(socket::of_process(*pid)?.into_iter().map(|socket| (*pid, socket)));
    }
    let all = sockets.len();
    sockets.retain(|(_, socket)| socket::is_meant(socket, to));
    let spared = all - sockets.len();
    if all == 0 {
        return Ok(Attached::default());
    }
    let system = System::change()?;
    let mover = Mover::new(&system, config, choice.tos())?;
    let moved = move_all(&mover, &sockets);
    if !matches!(moved, Ok(1..)) {
        drop(system);
        System::change()?; // takes the control off the kernel's list, if nobody else needs it
    }
    let moved = moved?;
    let multipath = sockets.iter().filter(|(_, s)| socket::is_multipath(s)).count();
    let kept = sockets.len() - moved;
    Ok(Attached { moved, spared, kept, multipath, ..Attached::default() })
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

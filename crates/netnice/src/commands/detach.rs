// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice detach`: what `netnice attach` did, undone.

use anyhow::{bail, Context, Result};
use clap::Args;
use netnice_daemon::client::{ask, Error::NotAsked};
use netnice_daemon::protocol::{Answer, Detached, Request};
use netnice_manager::named::Named;
use netnice_manager::socket::{self, Removed, Remover};
use netnice_manager::system::{require_privileges, System};
use netnice_manager::Error;
use netnice_manners::say;

use crate::args::{NamedArgs, SocketArgs};
use crate::units::count;

#[derive(Args)]
pub struct DetachArgs {
    #[command(flatten)]
    daemon: SocketArgs,
    #[command(flatten)]
    named: NamedArgs,
    /// The processes
    #[arg(required_unless_present_any = ["unit", "container", "cgroup"], value_name = "PID")]
    pids: Vec<i32>,
}

pub fn main(args: DetachArgs) -> Result<()> {
    if let Some(named) = args.named.named() {
        require_privileges()?;
        return whole(&named);
    }
    let done = match require_privileges() {
        Err(Error::Privileges(_)) => {
            match ask(&args.daemon.socket, &Request::Detach { pids: args.pids })? {
                Answer::Detached(done) => done,
                _ => bail!(NotAsked),
            }
        }
        others => {
            others?;
            detach(&args.pids)?
        }
    };
    let Detached { done, of_runs, kept } = done;
    if of_runs > 0 {
        say!(
            "netnice: {of_runs} connections are of a run, and stay in the background until it ends"
        );
    }
    if kept > 0 {
        say!("netnice: {kept} connections stay in the background: root or another user put them there");
    }
    if done == 0 {
        bail!("there is nothing else to take out of the background; see netnice status");
    }
    say!("netnice: took {done} connections out of the background");
    Ok(())
}

/// All of a cgroup.
fn whole(named: &Named) -> Result<()> {
    let (name, given) = {
        let system = System::change()?;
        let whole = named.find(system.hierarchy())?;
        let given = whole.detach(&system)?;
        (whole.name().to_string(), given)
    };
    System::change()?; // takes the control off the kernel's list, if nobody else needs it
    let given = count(given as u64, "connection", "connections");
    say!("netnice: {name} is out of the background again, with {given}");
    Ok(())
}

fn detach(pids: &[i32]) -> Result<Detached> {
    let mut found = Detached::default();
    {
        let system = System::change()?;
        let remover = Remover::new(&system)?;
        for pid in pids {
            let sockets = socket::of_process(*pid)?;
            let default = socket::default_control(*pid)?;
            for socket in &sockets {
                let what = || format!("cannot take a connection of process {pid} out");
                match remover.take(socket, &default).with_context(what)? {
                    Removed::Done => found.done += 1,
                    Removed::OfARun => found.of_runs += 1,
                    Removed::Plain => {}
                }
            }
        }
    }
    System::change()?; // takes the control off the kernel's list, if nobody else needs it
    Ok(found)
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice detach`: what `netnice attach` did, undone.

use anyhow::{bail, Result};
use clap::Args;
use netnice_daemon::client::{ask, Error::NotAsked};
use netnice_daemon::protocol::{Answer, Request};
use netnice_manager::attached::{self, Whole};
use netnice_manager::cgroup::Hierarchy;
use netnice_manager::moves::{self, Detached, Mandate};
use netnice_manager::named::Named;
use netnice_manager::socket::Opened;
use netnice_manager::system::{require_privileges, Change, System};
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
    /// All units, containers and cgroups that are attached
    #[arg(long, conflicts_with_all = ["unit", "container", "cgroup", "pods", "pids"])]
    all: bool,
    /// The processes
    #[arg(required_unless_present_any = ["unit", "container", "cgroup", "pods", "all"], value_name = "PID")]
    pids: Vec<i32>,
}

pub fn main(args: DetachArgs) -> Result<()> {
    let named = args.named.named();
    if args.all || named.is_some() {
        require_privileges()?;
        return named.map_or_else(all, |named| whole(&named));
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
            let processes =
                args.pids.into_iter().map(Opened::new).collect::<Result<Vec<_>, _>>()?;
            moves::detach(&processes, &Mandate::of_root())?
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
pub fn whole(named: &Named) -> Result<()> {
    let hierarchy = Hierarchy::open()?;
    let whole = named.find(&hierarchy)?;
    take(&System::change()?, &whole)?;
    System::change()?; // takes the control off the kernel's list, if nobody else needs it
    Ok(())
}

/// All cgroups that are attached.
fn all() -> Result<()> {
    {
        let system = System::change()?;
        attached::all(&system)?.iter().try_for_each(|whole| take(&system, whole))?;
    }
    System::change()?; // as above
    Ok(())
}

fn take(system: &Change, whole: &Whole) -> Result<()> {
    let given = count(whole.detach(system)? as u64, "connection", "connections");
    say!("netnice: {} is out of the background again, with {given}", whole.name());
    Ok(())
}

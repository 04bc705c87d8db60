// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice detach`: what `netnice attach` did, undone.

use std::iter::once;

use anyhow::{bail, Result};
use clap::Args;
use netnice_daemon::client::{ask, Error::NotAsked};
use netnice_daemon::protocol::{Answer, Request};
use netnice_manager::attached::{self, Released, Whole};
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
    let Detached { done, of_runs, of_attached, kept } = done;
    if of_runs > 0 {
        say!(
            "netnice: {of_runs} connections are of a run, and stay in the background until it ends"
        );
    }
    for (cgroup, number) in of_attached {
        say!(
            "netnice: {} of an attached cgroup, and in the background until: netnice detach --cgroup {cgroup}",
            count(number as u64, "connection is", "connections are")
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
    let hierarchy = Hierarchy::open()?;
    all_of(once(&named.find(&hierarchy)?))
}

/// All cgroups that are attached.
fn all() -> Result<()> {
    let hierarchy = Hierarchy::open()?;
    all_of(&attached::all(&hierarchy)?)
}

/// These, as far as they have not ended.
pub fn all_of<'a>(wholes: impl IntoIterator<Item = &'a Whole>) -> Result<()> {
    {
        let system = System::change()?;
        let there = wholes.into_iter().filter(|whole| whole.is_there());
        // one that cannot be taken out keeps no other in
        let done: Vec<_> = there.map(|whole| take(&system, whole)).collect();
        done.into_iter().collect::<Result<()>>()?;
    }
    System::change()?; // takes the control off the kernel's list, if nobody else needs it
    Ok(())
}

fn take(system: &Change, whole: &Whole) -> Result<()> {
    let Released { connections, to } = whole.detach(system)?;
    let now = to.map_or("out of the background again".into(), |outer| {
        format!("now in the background as {outer} is")
    });
    let with = count(connections as u64, "connection", "connections");
    say!("netnice: {} is {now}, with {with}", whole.name());
    Ok(())
}

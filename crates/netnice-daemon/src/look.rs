// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a user sees of what is in the background: what is his in full, of the rest that it is there.

use std::collections::HashMap;
use std::time::Duration;

use netnice_manager::cgroup::Hierarchy;
use netnice_manager::group::{self, Name};
use netnice_manager::snapshot::{GroupStatus, LeftOut, Status, Watch};
use netnice_manager::system::System;
use netnice_manager::{Error, Result};

use crate::caller::{Caller, Process};
use crate::protocol::{refused, Answer, MOST_CONNECTIONS, MOST_JOBS, MOST_SECONDS};
use crate::rights;

/// The users to whom runs belong, by the ids of those.
struct Owners(HashMap<u64, u32>);

impl Owners {
    fn of(hierarchy: &Hierarchy) -> Owners {
        Owners(hierarchy.owners().into_iter().collect())
    }

    fn of_run(&self, run: u64) -> u32 {
        self.0.get(&run).copied().unwrap_or(rights::ROOT)
    }
}

pub fn status(caller: &Caller) -> Result<Answer> {
    require_same_numbers(caller)?;
    let system = System::look()?;
    let owners = Owners::of(system.hierarchy());
    let (status, (others, left_out)) = Status::read_through(&system, &mut his(caller), |status| {
        let LeftOut { runs: others, .. } = narrow(caller, &owners, status);
        let left_out = status.connections.len().saturating_sub(MOST_CONNECTIONS);
        status.connections.truncate(MOST_CONNECTIONS);
        (others, left_out)
    })?;
    Ok(Answer::Status { status: Box::new(status), others, left_out })
}

/// What the jobs of the caller did since `watch` looked.
pub fn view(caller: &Caller, watch: &mut Watch) -> Result<Answer> {
    require_same_numbers(caller)?;
    let mut view = watch.look_through(&mut his(caller), |system, status| {
        narrow(caller, &Owners::of(system.hierarchy()), status)
    })?;
    if !caller.process.shares("net") {
        view.paths.clear();
        view.downloads.clear();
    }
    if let Some(left_out) = &mut view.left_out {
        left_out.jobs = view.jobs.len().saturating_sub(MOST_JOBS);
    }
    view.jobs.truncate(MOST_JOBS);
    Ok(Answer::View { view: Box::new(view) })
}

fn require_same_numbers(caller: &Caller) -> Result<()> {
    match caller.process.shares("pid") {
        true => Ok(()),
        false => refused("process ids of this container are not those of the daemon"),
    }
}

/// Says which processes are the caller's.
fn his(caller: &Caller) -> impl FnMut(i32) -> bool {
    let uid = caller.uid;
    let mut known = HashMap::new();
    move |pid| {
        let look = || Process::open(pid).is_some_and(|p| rights::touch(uid, &p.users()));
        *known.entry(pid).or_insert_with(look)
    }
}

/// Leaves of a status what is the caller's, and the figures of the devices of his network: the kernel
/// tells every user those, and of each connection what it sent (`ip -s link`, `ss -ti`).
fn narrow(caller: &Caller, owners: &Owners, status: &mut Status) -> LeftOut {
    let uid = caller.uid;
    let (runs, connections) = (status.runs.len(), open(status));
    status.runs.retain(|run| rights::see(uid, owners.of_run(run.report.run)));
    // one of somebody else's run is his if all that hold it are his processes
    status.connections.retain(|connection| {
        let of_his = connection.run != 0 && rights::see(uid, owners.of_run(connection.run));
        of_his || connection.is_his()
    });
    if !caller.process.shares("net") {
        status.downloads.clear();
    }
    LeftOut { runs: runs - status.runs.len(), connections: connections - open(status), jobs: 0 }
}

/// Connections, but for what listens.
fn open(status: &Status) -> usize {
    status.connections.iter().filter(|c| c.remote.port() != 0).count()
}

pub fn group(caller: &Caller, name: &str, seconds: f64) -> Result<Answer> {
    if !(seconds > 0.0 && seconds <= MOST_SECONDS) {
        return refused(format!(
            "the daemon measures for up to {MOST_SECONDS} s; longer: sudo netnice status"
        ));
    }
    let name: Name = name.parse().map_err(Error::Refused)?;
    let during = Duration::from_secs_f64(seconds);
    let status = GroupStatus::measure_of(caller.uid, &name, during)?;
    Ok(Answer::Group { status: Box::new(status) })
}

pub fn share(caller: &Caller, name: &str, run: u64, share: &str) -> Result<Answer> {
    let name: Name = name.parse().map_err(Error::Refused)?;
    let system = System::change()?;
    let owners = Owners::of(system.hierarchy());
    let may = |run| rights::see(caller.uid, owners.of_run(run));
    group::share_among(&system, caller.uid, &name, run, share, may)?;
    Ok(Answer::Shared {})
}

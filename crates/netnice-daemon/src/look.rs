// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a user sees of what is in the background: what is his in full, of the rest that it is there.

use std::collections::HashMap;
use std::time::Duration;

use netnice_manager::cgroup::Hierarchy;
use netnice_manager::group::{self, Name};
use netnice_manager::snapshot::{GroupStatus, Status};
use netnice_manager::system::System;
use netnice_manager::{Error, Result};

use crate::caller::{Caller, Process};
use crate::protocol::{refused, Answer, MOST_CONNECTIONS, MOST_SECONDS};
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
    if !caller.process.shares("pid") {
        return refused("process ids of this container are not those of the daemon");
    }
    let (owners, mut status) = {
        let system = System::look()?;
        (Owners::of(system.hierarchy()), Status::read(&system)?)
    };
    let uid = caller.uid;
    let mut known = HashMap::new();
    let mut his = |pid: i32| {
        let look = || Process::open(pid).is_some_and(|p| rights::touch(uid, &p.users()));
        *known.entry(pid).or_insert_with(look)
    };
    let all = status.runs.len();
    status.runs.retain(|run| rights::see(uid, owners.of_run(run.report.run)));
    let others = all - status.runs.len();
    for run in &mut status.runs {
        run.processes.retain(|process| his(process.pid));
    }
    // one of somebody else's run is his if all that hold it are his processes
    status.connections.retain_mut(|connection| {
        let held = connection.processes.len();
        connection.processes.retain(|process| his(process.pid));
        let of_his = connection.run != 0 && rights::see(uid, owners.of_run(connection.run));
        of_his || (held > 0 && connection.processes.len() == held)
    });
    let left_out = status.connections.len().saturating_sub(MOST_CONNECTIONS);
    status.connections.truncate(MOST_CONNECTIONS);
    Ok(Answer::Status { status: Box::new(status), others, left_out })
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

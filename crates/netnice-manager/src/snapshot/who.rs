// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which processes connections and runs have. A socket that many inherit would be told of with each of
//! them, so there is a most of what is kept.

use std::collections::{HashMap, HashSet};

use super::connection::Holders;
use super::{Connection, Status};
use crate::process::{each_holder, Process};

/// The most processes that are told of a run.
const OF_RUN: usize = 100;

/// Notes which processes have connections: of those in runs, if they are all there is.
pub(super) fn find_holders(
    connections: &mut [Connection],
    members: &HashMap<u64, Vec<i32>>,
    his: &mut dyn FnMut(i32) -> bool,
) {
    let sockets = connections.iter().map(|c| c.inode).filter(|inode| *inode != 0).collect();
    let mut holders: HashMap<u64, Holders> = HashMap::new();
    let first: HashSet<i32> = members.values().flatten().copied().collect();
    each_holder(&sockets, &first, |pid, held| {
        let is_his = his(pid);
        held.iter().for_each(|inode| holders.entry(*inode).or_default().add(pid, is_his));
    });
    for connection in connections {
        connection.holders = holders.get(&connection.inode).cloned().unwrap_or_default();
    }
}

impl Status {
    /// Says what the processes are that are told, and how many others there are; each is read once.
    pub(super) fn name(
        &mut self,
        his: &mut dyn FnMut(i32) -> bool,
        read: impl Fn(i32) -> Option<Process>,
    ) {
        let mut known = HashMap::new();
        let mut named = |pids: &[i32]| -> Vec<Process> {
            let each = |pid: &i32| known.entry(*pid).or_insert_with(|| read(*pid)).clone();
            pids.iter().filter_map(each).collect()
        };
        for run in &mut self.runs {
            run.pids.retain(|pid| his(*pid));
            run.began = run.began.filter(|pid| his(*pid)); // its number may be another's by now
            run.processes = named(&run.pids[..run.pids.len().min(OF_RUN)]);
            run.processes_left_out = run.pids.len().saturating_sub(OF_RUN);
        }
        for connection in &mut self.connections {
            connection.processes = named(&connection.holders.pids);
            connection.processes_left_out = connection.holders.more;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use netnice_bpf::Record;

    use super::super::connection::OF_CONNECTION;
    use super::super::RunStatus;
    use super::*;

    const PIDS: i32 = 1000;

    fn connection(his: impl Fn(i32) -> bool) -> Connection {
        let mut connection = Connection::of(&Record::default());
        (1..=PIDS).rev().for_each(|pid| connection.holders.add(pid, his(pid)));
        connection
    }

    #[test]
    fn what_a_status_holds_has_a_bound_where_all_of_a_run_inherit_all_connections() {
        let mut status = Status {
            controls: Vec::new(),
            runs: vec![RunStatus { pids: (1..=PIDS).collect(), ..RunStatus::default() }],
            connections: vec![connection(|_| true); 400],
            downloads: Vec::new(),
        };
        let asked = RefCell::new(Vec::new());
        status.name(&mut |_| true, |pid| {
            asked.borrow_mut().push(pid);
            Some(Process { pid, name: "name".into(), command: "command".into() })
        });
        let asked = asked.into_inner();
        assert_eq!(asked.len(), OF_RUN.max(OF_CONNECTION), "each is read once");
        let run = &status.runs[0];
        assert_eq!((run.processes.len(), run.processes_left_out), (OF_RUN, 1000 - OF_RUN));
        for c in &status.connections {
            let pids: Vec<_> = c.processes.iter().map(|process| process.pid).collect();
            assert_eq!(pids, (1..=OF_CONNECTION as i32).collect::<Vec<_>>());
            assert_eq!((c.holders.pids.len(), c.processes_left_out), (OF_CONNECTION, 992));
        }
    }

    #[test]
    fn one_holder_of_somebody_else_among_those_not_told_makes_a_connection_not_his() {
        assert!(connection(|_| true).is_his());
        assert!(!connection(|pid| pid != PIDS).is_his());
        assert!(!connection(|_| false).is_his());
        assert!(!Connection::of(&Record::default()).is_his(), "nobody is seen to hold it");
    }

    #[test]
    fn of_a_run_only_his_processes_are_told_and_counted() {
        let run = RunStatus { pids: vec![1, 2, 3], began: Some(1), ..RunStatus::default() };
        let mut status = Status {
            controls: Vec::new(),
            runs: vec![run],
            connections: Vec::new(),
            downloads: Vec::new(),
        };
        let read = |pid| Some(Process { pid, name: String::new(), command: String::new() });
        status.name(&mut |pid| pid == 2, read);
        let run = &status.runs[0];
        assert_eq!((run.processes[0].pid, run.processes.len(), run.began), (2, 1, None));
        assert_eq!(run.processes_left_out, 0);
    }
}

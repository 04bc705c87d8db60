// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections of running processes, in the background and out of it again, as far as they are the caller's.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use netnice_manager::moves::{self, Holder, Mandate};
use netnice_manager::Result;

use crate::caller::{Caller, Process};
use crate::protocol::{refused, Answer, Meant, Wanted, MOST_PIDS};
use crate::rights;

/// The most descriptors of all processes of a request: each is looked at.
const DESCRIPTORS: usize = 20_000;

pub fn attach(caller: &Caller, pids: &[i32], choice: &Wanted, meant: &Meant) -> Result<Answer> {
    let (choice, selection) = (choice.choice()?, meant.selection()?);
    let left = Cell::new(DESCRIPTORS);
    let done = moves::attach(&all(caller, pids, &left)?, &choice, &selection, &mandate(caller))?;
    Ok(Answer::Attached(done))
}

pub fn detach(caller: &Caller, pids: &[i32]) -> Result<Answer> {
    let left = Cell::new(DESCRIPTORS);
    Ok(Answer::Detached(moves::detach(&all(caller, pids, &left)?, &mandate(caller))?))
}

fn mandate(caller: &Caller) -> Mandate<impl Fn(Option<u32>) -> bool> {
    let uid = caller.uid;
    Mandate { uid, may: move |by| rights::change(uid, by) }
}

/// A process, as long as it is the caller's.
struct His<'a> {
    caller: &'a Caller,
    process: Process,
    /// How many descriptors of him may still be looked at.
    left: &'a Cell<usize>,
}

impl Holder for His<'_> {
    fn pid(&self) -> i32 {
        self.process.pid.cast_signed()
    }

    fn each_socket(&self, f: &mut dyn FnMut(OwnedFd) -> Result<()>) -> Result<()> {
        let His { caller, process, left } = self;
        process.each_socket(left, |held| {
            caller.require_alive()?;
            // it may run a program of another user by now, as sudo
            require_his(caller, process)?;
            f(held)
        })
    }
}

/// The processes with these numbers, each once, which are all the caller's.
fn all<'a>(caller: &'a Caller, pids: &[i32], left: &'a Cell<usize>) -> Result<Vec<His<'a>>> {
    if pids.is_empty() || pids.len() > MOST_PIDS {
        return refused(format!("name 1 to {MOST_PIDS} processes"));
    }
    if !caller.process.shares("pid") {
        return refused("process ids of this container are not those of the daemon");
    }
    let mut found = Vec::new();
    for pid in BTreeSet::from_iter(pids.iter().copied()) {
        let Some(process) = Process::open(pid) else {
            return refused(format!("there is no process {pid}; list them: ps -e"));
        };
        require_his(caller, &process)?;
        found.push(His { caller, process, left });
    }
    Ok(found)
}

fn require_his(caller: &Caller, process: &Process) -> Result<()> {
    match rights::touch(caller.uid, &process.users()) {
        true => Ok(()),
        false => refused(format!(
            "process {} is not yours alone; root may move it: sudo netnice ...",
            process.pid
        )),
    }
}

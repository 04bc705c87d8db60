// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections of running processes, in the background and out of it again, as far as they are the caller's.

use std::os::fd::OwnedFd;

use netnice_manager::moves::{self, Holder, Mandate};
use netnice_manager::Result;

use crate::caller::{Caller, Process};
use crate::protocol::{refused, Answer, Meant, Wanted, MOST_PIDS};
use crate::rights;

/// The most sockets of a process: the daemon serves nobody else meanwhile.
const SOCKETS: usize = 20_000;

pub fn attach(caller: &Caller, pids: &[i32], choice: &Wanted, meant: &Meant) -> Result<Answer> {
    let (choice, selection) = (choice.choice()?, meant.selection()?);
    let done = moves::attach(&all(caller, pids)?, &choice, &selection, &mandate(caller))?;
    Ok(Answer::Attached(done))
}

pub fn detach(caller: &Caller, pids: &[i32]) -> Result<Answer> {
    Ok(Answer::Detached(moves::detach(&all(caller, pids)?, &mandate(caller))?))
}

fn mandate(caller: &Caller) -> Mandate<impl Fn(Option<u32>) -> bool> {
    let uid = caller.uid;
    Mandate { uid, may: move |by| rights::change(uid, by) }
}

/// A process, as long as it is the caller's.
struct His<'a> {
    caller: &'a Caller,
    process: Process,
}

impl Holder for His<'_> {
    fn pid(&self) -> i32 {
        self.process.pid.cast_signed()
    }

    fn each_socket(&self, f: &mut dyn FnMut(OwnedFd) -> Result<()>) -> Result<()> {
        let His { caller, process } = self;
        let mut sockets = 0;
        process.each_socket(|held| {
            sockets += 1;
            if sockets > SOCKETS {
                return refused(format!("process {} has more than {SOCKETS} sockets", process.pid));
            }
            // it may run a program of another user by now, as sudo
            require_his(caller, process)?;
            f(held)
        })
    }
}

/// The processes with these numbers, which are all the caller's.
fn all<'a>(caller: &'a Caller, pids: &[i32]) -> Result<Vec<His<'a>>> {
    if pids.is_empty() || pids.len() > MOST_PIDS {
        return refused(format!("name 1 to {MOST_PIDS} processes"));
    }
    if !caller.process.shares("pid") {
        return refused("process ids of this container are not those of the daemon");
    }
    let mut found = Vec::new();
    for pid in pids {
        let Some(process) = Process::open(*pid) else {
            return refused(format!("there is no process {pid}; list them: ps -e"));
        };
        require_his(caller, &process)?;
        found.push(His { caller, process });
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

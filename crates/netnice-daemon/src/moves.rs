// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections of running processes, in the background and out of it again.

use std::os::fd::OwnedFd;

use netnice_manager::socket::{self, Mover, Removed, Remover};
use netnice_manager::system::System;
use netnice_manager::Result;

use crate::caller::{Caller, Process};
use crate::protocol::{refused, Answer, Attached, Detached, Meant, Wanted, MOST_PIDS};
use crate::rights;

/// The most sockets of a process: the daemon serves nobody else meanwhile.
const SOCKETS: usize = 20_000;

pub fn attach(caller: &Caller, pids: &[i32], choice: &Wanted, meant: &Meant) -> Result<Answer> {
    let (choice, selection) = (choice.choice()?, meant.selection()?);
    choice.require_fit(selection.only, false)?;
    let config = choice.config()?;
    let processes = all(caller, pids)?;
    let system = System::change()?;
    let mover =
        Mover::new(&system, &config, choice.tos())?.by(caller.uid).limit_to(selection.only)?;
    let mut done = Attached::default();
    let moved = processes.iter().try_for_each(|process| {
        each(caller, process, |held| {
            if !socket::is_meant(&held, &selection) {
                done.spared += 1;
            } else if mover.is_of_a_run(&held)? {
                done.kept += 1;
            } else if !rights::change(caller.uid, socket::put_by(&held)?) {
                done.others += 1;
            } else if mover.put(&held)? {
                done.moved += 1;
                done.multipath += usize::from(socket::is_multipath(&held));
            } else {
                done.kept += 1;
            }
            Ok(())
        })
    });
    drop(system);
    if done.moved == 0 || moved.is_err() {
        System::change()?; // takes the control off the kernel's list, if nobody else needs it
    }
    moved.map(|()| Answer::Attached(done))
}

pub fn detach(caller: &Caller, pids: &[i32]) -> Result<Answer> {
    let processes = all(caller, pids)?;
    let mut done = Detached::default();
    {
        let system = System::change()?;
        let remover = Remover::new(&system)?;
        for process in &processes {
            let default = socket::default_control(process.pid.cast_signed())?;
            each(caller, process, |held| {
                if !rights::change(caller.uid, socket::put_by(&held)?) {
                    done.kept += 1;
                    return Ok(());
                }
                match remover.take(&held, &default)? {
                    Removed::Done => done.done += 1,
                    Removed::OfARun => done.of_runs += 1,
                    Removed::Plain => {}
                }
                Ok(())
            })?;
        }
    }
    System::change()?; // as above
    Ok(Answer::Detached(done))
}

/// The processes with these numbers, which are all the caller's.
fn all(caller: &Caller, pids: &[i32]) -> Result<Vec<Process>> {
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
        found.push(process);
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

/// Calls `f` with each socket of a process, as long as it is the caller's.
fn each(
    caller: &Caller,
    process: &Process,
    mut f: impl FnMut(OwnedFd) -> Result<()>,
) -> Result<()> {
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

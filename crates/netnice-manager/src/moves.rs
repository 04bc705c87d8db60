// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The TCP sockets that processes have now: into the background, and out of it again.

use std::os::fd::OwnedFd;

use netnice_core::Config;
use serde::{Deserialize, Serialize};

use crate::choice::Choice;
use crate::error::refuse;
use crate::peer::Selection;
use crate::socket::{self, Mover, Opened, Removed, Remover};
use crate::system::System;
use crate::{Error, Result};

/// A process whose sockets are moved.
pub trait Holder {
    fn pid(&self) -> i32;

    /// Calls `f` with a copy of each TCP socket that it has.
    ///
    /// # Errors
    /// When it may not be looked into, and those of `f`.
    fn each_socket(&self, f: &mut dyn FnMut(OwnedFd) -> Result<()>) -> Result<()>;
}

impl Holder for Opened {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn each_socket(&self, f: &mut dyn FnMut(OwnedFd) -> Result<()>) -> Result<()> {
        self.each(f)
    }
}

/// Who wants it.
pub struct Mandate<F> {
    /// The user, who is noted at what is moved.
    pub uid: u32,
    /// Whether he may change a socket that this user put into the background; None: it is not there.
    pub may: F,
}

impl Mandate<fn(Option<u32>) -> bool> {
    /// Root's, who may all.
    pub fn of_root() -> Self {
        Mandate { uid: 0, may: |_| true }
    }
}

/// What became of the sockets that were to be attached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attached {
    pub moved: usize,
    /// Connections and listeners that are not meant.
    pub spared: usize,
    /// Those of a run.
    pub kept: usize,
    /// Those that somebody else put into the background.
    pub others: usize,
    /// Of those that were moved, those of MPTCP, which hands on no parameters.
    pub multipath: usize,
}

/// What became of those that were to be detached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Detached {
    pub done: usize,
    /// Those of a run.
    pub of_runs: usize,
    /// Those that somebody else put into the background.
    pub kept: usize,
}

/// Puts the sockets of processes into the background. Where none is meant, nothing is registered.
///
/// # Errors
/// When the choice makes no sense, or the kernel refuses. What was moved before stays so.
pub fn attach<F: Fn(Option<u32>) -> bool>(
    processes: &[impl Holder],
    choice: &Choice,
    selection: &Selection,
    mandate: &Mandate<F>,
) -> Result<Attached> {
    choice.require_fit(selection, false)?;
    if selection.udp_downloads {
        refuse!(
            "--udp-downloads is of all that is in a cgroup, not of processes; attach a --unit, a --cgroup or a \
             --container, or start it under netnice run"
        );
    }
    let config = choice.config()?;
    let mut done = Attached::default();
    let moved = put_all(processes, &config, choice.tos(), selection, mandate, &mut done);
    if done.moved == 0 || moved.is_err() {
        System::change()?; // takes the control off the kernel's list, if nobody else needs it
    }
    moved.map(|()| done)
}

fn put_all<F: Fn(Option<u32>) -> bool>(
    processes: &[impl Holder],
    config: &Config,
    tos: u8,
    selection: &Selection,
    mandate: &Mandate<F>,
    done: &mut Attached,
) -> Result<()> {
    let system = System::change()?;
    let mut made: Option<Mover<'_>> = None;
    for process in processes {
        process.each_socket(&mut |held| {
            if !socket::is_meant(&held, selection) {
                done.spared += 1;
                return Ok(());
            }
            let mover = match &mut made {
                Some(mover) => mover,
                none => none.insert(
                    Mover::new(&system, config, tos)?.by(mandate.uid).limit_to(selection.only)?,
                ),
            };
            let of_process = |error| in_process("cannot move a connection", process.pid(), &error);
            if mover.is_of_a_run(&held)? {
                done.kept += 1;
            } else if !(mandate.may)(socket::put_by(&held)?) {
                done.others += 1;
            } else if mover.put(&held).map_err(of_process)? {
                done.moved += 1;
                done.multipath += usize::from(socket::is_multipath(&held));
            } else {
                done.kept += 1;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Takes the sockets of processes out of the background that [`attach`], a program itself or a route put
/// there.
///
/// # Errors
/// When the kernel refuses. What was taken out before stays so.
pub fn detach<F: Fn(Option<u32>) -> bool>(
    processes: &[impl Holder],
    mandate: &Mandate<F>,
) -> Result<Detached> {
    let mut done = Detached::default();
    let taken = take_all(processes, mandate, &mut done);
    System::change()?; // as above
    taken.map(|()| done)
}

fn take_all<F: Fn(Option<u32>) -> bool>(
    processes: &[impl Holder],
    mandate: &Mandate<F>,
    done: &mut Detached,
) -> Result<()> {
    let system = System::change()?;
    let remover = Remover::new(&system)?;
    for process in processes {
        let pid = process.pid();
        let default = socket::default_control(pid)?;
        process.each_socket(&mut |held| {
            if !(mandate.may)(socket::put_by(&held)?) {
                done.kept += 1;
                return Ok(());
            }
            let of_process = |error| in_process("cannot take a connection out", pid, &error);
            match remover.take(&held, &default).map_err(of_process)? {
                Removed::Done => done.done += 1,
                Removed::OfARun => done.of_runs += 1,
                Removed::Plain => {}
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn in_process(what: &str, pid: i32, error: &Error) -> Error {
    Error::Refused(format!("{what} of process {pid}: {error}"))
}

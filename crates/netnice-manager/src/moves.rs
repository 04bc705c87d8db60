// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The TCP sockets that processes have now: into the background, and out of it again.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashSet};
use std::os::fd::OwnedFd;

use netnice_core::Config;
use rustix::fs::fstat;
use serde::{Deserialize, Serialize};

use crate::attached;
use crate::choice::Choice;
use crate::error::{io, refuse};
use crate::peer::Selection;
use crate::socket::{self, Mover, Opened, Removed, Remover};
use crate::system::{Change, System};
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
    /// Those of attached cgroups, by their paths.
    #[serde(default)]
    pub of_attached: BTreeMap<String, usize>,
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
    let moved = in_batches(processes, System::change, |system, sockets| {
        put_all(system, sockets, &config, choice.tos(), selection, mandate, &mut done)
    });
    if done.moved == 0 || moved.is_err() {
        System::change()?; // takes the control off the kernel's list, if nobody else needs it
    }
    moved.map(|()| done)
}

/// How many sockets are moved at a time. Then whoever waits for the system has it first.
const BATCH: usize = 256;

/// Calls `f` under the `lock` with the sockets of processes, some at a time, and with the number of the process
/// of each. What several have comes once: processes share it with those that they begin. Who waits for the lock
/// has one copy: it keeps a connection from its end.
fn in_batches<L>(
    processes: &[impl Holder],
    mut lock: impl FnMut() -> Result<L>,
    mut f: impl FnMut(&L, &[(i32, OwnedFd)]) -> Result<()>,
) -> Result<()> {
    let (mut seen, mut batch, mut locked) = (HashSet::new(), Vec::new(), None);
    for process in processes {
        process.each_socket(&mut |held| {
            let stat = fstat(&held).map_err(io("cannot look at a socket"))?;
            if !seen.insert(stat.st_ino) {
                return Ok(());
            }
            let by = match locked.take() {
                Some(by) => by,
                None => lock()?,
            };
            batch.push((process.pid(), held));
            if batch.len() < BATCH {
                locked = Some(by);
                return Ok(());
            }
            let done = f(&by, &batch);
            batch.clear();
            done
        })?;
    }
    locked.map_or(Ok(()), |by| f(&by, &batch))
}

fn put_all<F: Fn(Option<u32>) -> bool>(
    system: &Change,
    sockets: &[(i32, OwnedFd)],
    config: &Config,
    tos: u8,
    selection: &Selection,
    mandate: &Mandate<F>,
    done: &mut Attached,
) -> Result<()> {
    let mut made: Option<Mover<'_>> = None;
    for (pid, held) in sockets {
        if !socket::is_meant(held, selection) {
            done.spared += 1;
            continue;
        }
        let mover = match &mut made {
            Some(mover) => mover,
            none => {
                none.insert(Mover::new(system, config, tos)?.by(mandate.uid).limit_to(selection)?)
            }
        };
        let of_process = |error| in_process("cannot move a connection", *pid, &error);
        if mover.is_of_a_run(held)? {
            done.kept += 1;
        } else if !(mandate.may)(socket::put_by(held)?) {
            done.others += 1;
        } else if mover.put(held).map_err(of_process)? {
            done.moved += 1;
            done.multipath += usize::from(socket::is_multipath(held));
        } else {
            done.kept += 1;
        }
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
    let take = |system: &Change, sockets: &[_]| take_all(system, sockets, mandate, &mut done);
    let taken = in_batches(processes, System::change, take);
    System::change()?; // as above
    taken.map(|()| done)
}

fn take_all<F: Fn(Option<u32>) -> bool>(
    system: &Change,
    sockets: &[(i32, OwnedFd)],
    mandate: &Mandate<F>,
    done: &mut Detached,
) -> Result<()> {
    let remover = Remover::new(system)?;
    let attached = LazyCell::new(|| attached::all(system.hierarchy()).unwrap_or_default());
    let path =
        |run| attached.iter().find(|whole| Some(whole.id()) == run).map(attached::Whole::name);
    for of_one in sockets.chunk_by(|a, b| a.0 == b.0) {
        let pid = of_one[0].0;
        let default = socket::default_control(pid)?;
        for (_, held) in of_one {
            if !(mandate.may)(socket::put_by(held)?) {
                done.kept += 1;
                continue;
            }
            let of_process = |error| in_process("cannot take a connection out", pid, &error);
            match remover.take(held, &default).map_err(of_process)? {
                Removed::Done => done.done += 1,
                Removed::OfARun(run) => match path(run) {
                    Some(path) => *done.of_attached.entry(path.into()).or_default() += 1,
                    None => done.of_runs += 1,
                },
                Removed::Plain => {}
            }
        }
    }
    Ok(())
}

fn in_process(what: &str, pid: i32, error: &Error) -> Error {
    Error::Refused(format!("{what} of process {pid}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;
    use std::os::unix::net::UnixDatagram;

    /// One that has copies of these.
    struct Has<'a>(i32, &'a [UnixDatagram]);

    impl Holder for Has<'_> {
        fn pid(&self) -> i32 {
            self.0
        }

        fn each_socket(&self, f: &mut dyn FnMut(OwnedFd) -> Result<()>) -> Result<()> {
            self.1.iter().try_for_each(|held| f(held.try_clone().expect("a copy").into()))
        }
    }

    #[test]
    fn what_several_processes_share_is_moved_once_and_no_more_at_a_time_than_a_batch() {
        let sockets = iter::repeat_with(|| UnixDatagram::unbound().expect("a socket"));
        let all: Vec<_> = sockets.take(BATCH + 3).collect();
        let (mut locked, mut batches, mut of_second) = (0, Vec::new(), 0);
        let lock = || {
            locked += 1;
            Ok(())
        };
        in_batches(&[Has(1, &all[..BATCH + 1]), Has(2, &all)], lock, |&(), batch| {
            batches.push(batch.len());
            of_second += batch.iter().filter(|(pid, _)| *pid == 2).count();
            Ok(())
        })
        .expect("nothing fails");
        assert_eq!((locked, batches, of_second), (2, vec![BATCH, 3], 2));
    }
}

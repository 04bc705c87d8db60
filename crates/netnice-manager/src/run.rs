// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A run: a cgroup whose TCP connections are all in the background.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use netnice_bpf::Running;
use netnice_core::Config;
use rustix::process::getpid;

use crate::carrier::{self, Carrier};
use crate::cgroup::Group;
use crate::group::{self, Membership};
use crate::peer::{Only, Selection};
use crate::report::{self, moment, Report};
use crate::socket::{self, Runs};
use crate::system::{Change, System};
use crate::Result;

/// A run that is watched by another process than those that began it and are in it.
pub struct Kept {
    kept: netnice_bpf::Kept,
    listeners: u64,
}

impl Kept {
    /// The run of that id, if it is there; its figures stay as long as this, also when it has ended.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn find(id: u64) -> Result<Option<Kept>> {
        let found = Running::all()?.into_iter().find(|run| run.id() == id && !run.ended());
        Ok(found.map(Running::keep).transpose()?.flatten().map(|kept| Kept { kept, listeners: 0 }))
    }

    /// With what [`Run::listeners`] counted.
    #[must_use]
    pub fn with_listeners(self, listeners: u64) -> Kept {
        Kept { listeners, ..self }
    }

    /// What it did by now.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn report(&self) -> Result<Report> {
        let (totals, flows) = moment(|| Ok(vec![self.kept.totals()?]))?;
        let run = self.kept.running();
        let report = Report::of(&totals[0], &run.control(), &flows, false);
        let report = report.asked(Only::of_kernel(run.only()), run.tos(), run.pulls_datagrams());
        Ok(report.with_listeners(self.listeners))
    }

    /// The ids of those that have no open connection, by one look for all.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn closed(all: &[Arc<Kept>]) -> Result<HashSet<u64>> {
        if all.is_empty() {
            return Ok(HashSet::new());
        }
        let (totals, flows) = moment(|| all.iter().map(|run| Ok(run.kept.totals()?)).collect())?;
        let is_closed = |run: &u64| report::open(*run, &flows).next().is_none();
        Ok(totals.iter().map(|totals| totals.run).filter(is_closed).collect())
    }
}

/// Ends, with its cgroup, once no process is in it and this is dropped.
pub struct Run {
    programs: netnice_bpf::Run,
    cgroup: Group,
    adopted: usize,
    /// The connection that it took along; or would, which another run has.
    carrier: Option<Carrier>,
    awaited: Option<(Carrier, u64)>,
    /// Older than it is, and left alone.
    listeners: AtomicU64,
    selection: Selection,
}

impl Run {
    /// Makes a cgroup below that of this process, and puts all TCP connections that are opened or
    /// accepted in it under `config`. `tos` is the TOS octet of their packets (0: left alone).
    ///
    /// A run without a process is swept away by the next change of the system: put one into it
    /// while `system` is held.
    ///
    /// # Errors
    /// When the kernel refuses, or runs of the same group divide otherwise.
    pub fn begin(
        system: &Change,
        config: &Config,
        tos: u8,
        membership: Option<&Membership>,
    ) -> Result<Run> {
        Run::begin_in(system, config, tos, membership, |s| s.hierarchy().create())
    }

    /// As [`Run::begin`], in the cgroup that `make` makes once nothing is against it.
    ///
    /// # Errors
    /// As [`Run::begin`], and those of `make`. What it took is given back then.
    pub fn begin_in(
        system: &Change,
        config: &Config,
        tos: u8,
        membership: Option<&Membership>,
        make: impl FnOnce(&System) -> Result<Group>,
    ) -> Result<Run> {
        if let Some(membership) = membership {
            group::require_alike(system, membership, config.algorithm())?;
        }
        let register = || system.register(config.algorithm(), membership.is_some());
        let begun = || {
            register()?;
            let cgroup = make(system)?;
            let programs =
                netnice_bpf::Run::attach(cgroup.dir(), cgroup.id, config, tos, membership)?;
            // a netnice in another container, with a lock of its own, may have ended its last run meanwhile
            register()?;
            Ok(Run {
                programs,
                cgroup,
                adopted: 0,
                carrier: None,
                awaited: None,
                listeners: AtomicU64::new(0),
                selection: Selection::default(),
            })
        };
        system.or_sweep(begun())
    }

    /// Its cgroup.
    pub fn cgroup(&self) -> &Group {
        &self.cgroup
    }

    /// Makes it be for these connections only; all others stay as they are. Before [`Run::adopt`].
    ///
    /// # Errors
    /// When there are too many peers, or the kernel refuses.
    pub fn limit_to(self, system: &Change, selection: impl Into<Selection>) -> Result<Run> {
        system.or_sweep(self.choose(selection.into()))
    }

    fn choose(mut self, selection: Selection) -> Result<Run> {
        let to = selection.of_kernel()?;
        if selection.leaves_out() {
            let out = selection.left_out()?;
            self.programs = self.programs.leaving_out(self.cgroup.dir(), &out)?;
        }
        self.programs.limit_to(&to)?;
        self.programs.limit_to_direction(Only::to_kernel(selection.only))?;
        if selection.udp_downloads {
            self.programs.pull_datagrams()?;
        }
        Ok(Run { selection, ..self })
    }

    /// Puts the TCP sockets that this process holds already into it: a listener of a socket unit, a
    /// connection from inetd. If it holds none, the one of another process that carries what it
    /// writes to standard output ([`crate::carrier`]). The kernel counts them to the cgroup that
    /// made them, so only what is open of theirs is in the report.
    ///
    /// # Errors
    /// When the kernel refuses: then the run has ended.
    pub fn adopt(mut self, system: &Change) -> Result<Run> {
        let adopted = self.take_over();
        system.or_sweep(adopted.map(|()| self))
    }

    /// Puts TCP sockets of another process into it: those that `sockets` calls its argument with, but
    /// for those that are in the background already.
    ///
    /// # Errors
    /// When the kernel refuses: then the run has ended.
    pub fn adopt_plain(
        self,
        system: &Change,
        sockets: impl FnOnce(&mut dyn FnMut(OwnedFd) -> Result<()>) -> Result<()>,
    ) -> Result<Run> {
        let done = sockets(&mut |held| match socket::put_by(&held)? {
            None => self.put(&held).map(drop),
            Some(_) => Ok(()),
        });
        system.or_sweep(done.map(|()| self))
    }

    /// Its cgroup, which keeps the programs.
    pub fn into_cgroup(self) -> Group {
        self.cgroup
    }

    fn take_over(&mut self) -> Result<()> {
        for held in socket::of_process(getpid().as_raw_nonzero().get())? {
            self.adopted += usize::from(self.put(&held)?);
        }
        match self.adopted {
            0 => self.take_along(),
            _ => Ok(()),
        }
    }

    fn put(&self, socket: &impl AsFd) -> Result<bool> {
        let (control, tos) = (self.programs.control(), self.programs.tos());
        if !socket::is_meant(socket, &self.selection) {
            self.listeners.fetch_add(socket::listens(socket).into(), Relaxed);
            return Ok(false);
        }
        socket::put(socket, &control, tos, self.programs.settings())
    }

    /// Puts the connection of another process into it that carries what this one writes.
    fn take_along(&mut self) -> Result<()> {
        let Some((carrier, held)) = carrier::find() else { return Ok(()) };
        if !socket::is_meant(&held, &self.selection) {
            return Ok(());
        }
        self.adopted += 1; // if it is another run's, it is in the background all the same
        self.take(carrier, &held)
    }

    fn take(&mut self, carrier: Carrier, held: &OwnedFd) -> Result<()> {
        let runs = Runs::now()?;
        if let Some(run) = runs.that_took(held)? {
            self.awaited = Some((carrier, run));
        } else if !runs.have(held)? && self.put(held).is_ok() {
            self.carrier = Some(carrier);
        } // else a route fixes its control: the report says so
        Ok(())
    }

    /// Whether another run has the connection that carries what its command writes, and gives it back
    /// when it ends.
    pub fn awaits(&self) -> bool {
        self.awaited.is_some()
    }

    /// Takes that connection, if it was given back.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn look_again(&mut self) -> Result<()> {
        let Some((carrier, _)) = self.awaited.take() else { return Ok(()) };
        match carrier.again() {
            Some(held) => self.take(carrier, &held),
            None => Ok(()), // it is closed
        }
    }

    /// Whether its downloads alone are to yield.
    pub fn is_of_downloads(&self) -> bool {
        self.selection.only == Some(Only::Down)
    }

    /// How many listeners it was given that are older than it is, and that it left alone.
    pub fn listeners(&self) -> u64 {
        self.listeners.load(Relaxed)
    }

    /// Lets go of another process's connection, if [`Run::adopt`] took one: it has again what it had.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn give_back(&mut self) -> Result<()> {
        let Some(Carrier { pid, .. }) = self.carrier.take() else { return Ok(()) };
        // a process that has ended has no connection any more, and no other's is of this run
        let Ok(held) = socket::of_process(pid) else { return Ok(()) };
        for socket in held {
            let settings = netnice_bpf::settings(socket.as_fd())?;
            if settings.is_some_and(|s| s.run == self.cgroup.id) {
                socket::give_back(&socket, &socket::default_control(pid)?)?;
            }
        }
        Ok(())
    }

    /// Counts from now on the processes that leave it, as far as this kernel shows them.
    pub fn watch(&mut self) {
        self.programs.watch();
    }

    /// What it did by now.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn report(&self) -> Result<Report> {
        let (totals, flows) = moment(|| Ok(vec![self.programs.totals()?]))?;
        let adopted = self.adopted > 0;
        let mut report = Report::of(&totals[0], &self.programs.control(), &flows, adopted);
        report.carrier.clone_from(&self.carrier);
        if let Some((carrier, run)) = &self.awaited {
            (report.carrier, report.carried_by) = (Some(carrier.clone()), Some(*run));
        }
        let Selection { only, udp_downloads, .. } = self.selection;
        let report = report.asked(only, self.programs.tos(), udp_downloads);
        Ok(report.with_listeners(self.listeners()))
    }

    /// Waits until its connections have sent what their ended programs left them, a minute at most: a
    /// hold that ends with the run drops what waits.
    pub fn drain(&self) {
        for _ in 0..240 {
            if self.report().is_ok_and(|report| report.open == 0) {
                return;
            }
            thread::sleep(Duration::from_millis(250));
        }
    }

    /// Takes away what it needed, unless processes in it still do.
    ///
    /// # Errors
    /// When the system cannot be changed.
    pub fn finish(self) -> Result<()> {
        drop(self);
        System::change().map(drop)
    }
}

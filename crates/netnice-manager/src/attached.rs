// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A cgroup that was there before: a unit of systemd, a container. All of it in the background, and out
//! of it again.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use netnice_bpf::{Attached, Running, Settings};
use netnice_core::Config;
use rustix::fs::fstat;

use crate::cgroup::{below, id, is_run, mount, processes, Hierarchy};
use crate::error::{io, refuse};
use crate::hold;
use crate::peer::{Only, Selection};
use crate::process::each_holder;
use crate::socket::{self, Runs};
use crate::system::Change;
use crate::{Error, Result};
use around::Around;

mod around;

/// Such a cgroup.
pub struct Whole {
    /// As people know it: the name of a unit, a path.
    name: String,
    /// By which this process reaches it.
    path: PathBuf,
    dir: File,
    id: u64,
}

/// What was there already when a cgroup was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Connections and listening sockets that are in the background now.
    pub moved: usize,
    /// Those that are not meant.
    pub spared: usize,
    /// Those of a run, or of an attached cgroup inside.
    pub of_others: usize,
    /// Those to which the kernel refused it.
    pub refused: usize,
}

/// What became of what a cgroup had in the background.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Its connections and listening sockets.
    pub connections: usize,
    /// Who decides on them now: the nearest attached cgroup that this one is in, as people know it.
    pub to: Option<String>,
}

impl Whole {
    /// The cgroup at `path`, by which this process reaches it.
    pub(crate) fn at(path: PathBuf, name: String) -> Result<Whole> {
        let failed = |e| io(format!("cannot open the cgroup of {name}"))(e);
        let dir = match File::open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => refuse!("{name} has ended meanwhile"),
            opened => opened.map_err(failed)?,
        };
        let id = dir.metadata().map_err(failed)?.ino();
        Ok(Whole { name, path, dir, id })
    }

    /// As people know it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its processes, but for those in runs inside.
    pub fn processes(&self) -> Vec<i32> {
        processes(&self.path)
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Whether it is in the background now.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn is_attached(&self) -> Result<bool> {
        Ok(!Attached::at(self.dir())?.is_empty())
    }

    /// Whether it is still where it was.
    pub fn is_there(&self) -> bool {
        id(&self.path) == Some(self.id)
    }

    /// Puts all of it into the background: what is opened or accepted from now on, and what is there.
    /// If it is so already, it yields from now on as this says.
    ///
    /// # Errors
    /// When the kernel refuses, it has gone meanwhile, or only downloads are to yield and no device holds.
    /// Then it is as before.
    pub fn attach(
        &self,
        system: &Change,
        config: &Config,
        tos: u8,
        selection: &Selection,
    ) -> Result<Found> {
        hold::require_for(selection)?;
        let to = selection.of_kernel()?;
        let left_out = selection.left_out()?;
        let attached = || {
            system.register(config.algorithm(), false)?;
            let mut run = netnice_bpf::Run::select(self.id, config, tos, &left_out)?;
            run.limit_to(&to)?;
            run.limit_to_direction(Only::to_kernel(selection.only))?;
            if selection.udp_downloads {
                run.pull_datagrams()?;
            }
            let mut before = Attached::at(self.dir())?;
            let attached = self.exchange(&run, &mut before, selection);
            if attached.is_ok() {
                before.detach(self.dir())?;
            } else if self.is_there() {
                Attached::at(self.dir())?.without(&before).detach(self.dir())?;
                if before.is_empty() {
                    self.release()?;
                }
            }
            attached
        };
        let attached = attached();
        if !self.is_there() {
            // its programs have gone with it
            return system.or_sweep(Err(self.ended()));
        }
        system.or_sweep(attached)
    }

    fn ended(&self) -> Error {
        Error::Refused(format!("{} has ended meanwhile; nothing is attached", self.name))
    }

    /// Has `run` in the place of what was there `before`, which stays until the caller takes it away.
    fn exchange(
        &self,
        run: &netnice_bpf::Run,
        before: &mut Attached,
        selection: &Selection,
    ) -> Result<Found> {
        run.open(self.dir())?;
        // the guard comes last: it would keep this process from choosing, too
        before.unguard(self.dir())?;
        let found = self.take_over(run, selection)?;
        run.guard(self.dir())?;
        Ok(found)
    }

    /// Puts the sockets that are there into the run, whoever made them; also those of attached cgroups around
    /// this one.
    fn take_over(&self, run: &netnice_bpf::Run, selection: &Selection) -> Result<Found> {
        let runs = Runs::now()?;
        let (control, tos, settings) = (run.control(), run.tos(), run.settings());
        let around = Around::of(&self.path)?;
        let is_others =
            |s: Settings| s.run != self.id && runs.include(s.run) && !around.include(s.run);
        let mut seen = HashSet::new();
        let mut found = Found::default();
        for pid in processes(&self.path) {
            let Ok(sockets) = socket::of_process(pid) else { continue }; // it has ended
            for held in sockets {
                let inode = fstat(&held).map_err(io("cannot look at a socket"))?.st_ino;
                if !seen.insert(inode) {
                    continue;
                }
                if !socket::is_meant(&held, selection) {
                    found.spared += 1;
                } else if netnice_bpf::settings(held.as_fd())?.is_some_and(is_others) {
                    found.of_others += 1;
                } else {
                    match socket::put(&held, &control, tos, settings) {
                        Ok(true) => found.moved += 1,
                        Ok(false) => found.of_others += 1,
                        Err(_) => found.refused += 1, // by its route: netnice status says so
                    }
                }
            }
        }
        Ok(found)
    }

    /// Takes it out of the background, or leaves it to an attached cgroup that it is in.
    ///
    /// # Errors
    /// When it is not in the background as a whole, or the kernel refuses.
    pub fn detach(&self, _system: &Change) -> Result<Released> {
        let attached = Attached::at(self.dir())?;
        if attached.is_empty() {
            refuse!("{} is not attached; what is: netnice status", self.name);
        }
        attached.detach(self.dir())?;
        self.release()
    }

    /// Gives the sockets back that it has put into the background, whoever holds them; to the attached
    /// cgroups around it, if there are some.
    fn release(&self) -> Result<Released> {
        Running::end(self.id)?;
        let around = Around::of(&self.path)?;
        let ours = |s: Settings| s.run == self.id;
        let flows = netnice_bpf::flows_of_runs()?;
        let inodes: HashSet<u64> =
            flows.iter().filter(|r| ours(r.flow.settings)).map(|r| r.inode).collect();
        let first = processes(&self.path).into_iter().collect();
        let mut pids = Vec::new();
        each_holder(&inodes, &first, |pid, _| pids.push(pid));
        let mut connections = 0;
        for pid in pids {
            let Ok(sockets) = socket::of_process(pid) else { continue };
            for held in sockets {
                if netnice_bpf::settings(held.as_fd())?.is_some_and(ours) {
                    // an error is by its route: netnice status says so
                    if !around.take(&held).unwrap_or(true) {
                        socket::give_back(&held, &socket::default_control(pid)?)?;
                    }
                    connections += 1;
                }
            }
        }
        Ok(Released { connections, to: around.nearest().map(Into::into) })
    }
}

/// All that are in the background as a whole, as far as they are seen from here; before one comes what it
/// is in.
///
/// # Errors
/// When the kernel cannot be read.
pub fn all(hierarchy: &Hierarchy) -> Result<Vec<Whole>> {
    let ids = Running::all()?.iter().filter(|run| !run.ended()).map(Running::id).collect();
    let mut all: Vec<_> = seen(hierarchy, &ids).into_values().collect();
    all.retain(|whole| !is_run(&whole.path));
    all.sort_by_key(|whole| whole.path.components().count());
    Ok(all)
}

/// The cgroups with these ids, as far as they are seen from here.
pub(crate) fn seen(hierarchy: &Hierarchy, ids: &HashSet<u64>) -> HashMap<u64, Whole> {
    let root = hierarchy.path(Path::new(""));
    let mut found = HashMap::new();
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop().filter(|_| found.len() < ids.len()) {
        for path in below(&dir) {
            if let Some(id) = id(&path).filter(|id| ids.contains(id)) {
                let name = shown(path.strip_prefix(&root).unwrap_or(&path));
                found.extend(Whole::at(path.clone(), name).ok().map(|whole| (id, whole)));
            }
            dirs.push(path);
        }
    }
    found
}

/// The path of a cgroup as users write it.
pub(crate) fn shown(path: &Path) -> String {
    mount().join(path.strip_prefix("/").unwrap_or(path)).display().to_string()
}

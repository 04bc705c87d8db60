// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The attached cgroups that a cgroup is in.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use netnice_bpf::{Attached, LeftOut, Running};

use super::{shown, Whole};
use crate::cgroup::id;
use crate::peer::Selection;
use crate::socket;
use crate::Result;

/// One of them. While this is there, its guard lets this process change its sockets.
struct Outer {
    whole: Whole,
    run: Running,
    selection: Selection,
    guard: Attached,
}

impl Outer {
    fn of(whole: Whole, run: Running) -> Result<Outer> {
        let selection = Selection::of_run(&run, &LeftOut::by(run.id())?);
        let guard = Attached::at(whole.dir())?.unguard(whole.dir())?;
        Ok(Outer { whole, run, selection, guard })
    }

    /// Puts a socket that is there under what this one chose.
    fn take(&self, socket: &impl AsFd) -> Result<bool> {
        socket::put(socket, &self.run.control(), self.run.tos(), self.run.settings())
    }
}

impl Drop for Outer {
    fn drop(&mut self) {
        let _ = self.guard.attach(self.whole.dir()); // it was there before; else the cgroup has gone
    }
}

/// The nearest first.
pub(super) struct Around(Vec<Outer>);

impl Around {
    /// Those around the cgroup that this process reaches by `path`.
    pub(super) fn of(path: &Path) -> Result<Around> {
        let device = |path: &Path| fs::metadata(path).map(|of| of.dev()).ok();
        let own = device(path);
        // what the root is reached by is of another file system
        let above: Vec<_> = path.ancestors().skip(1).take_while(|p| device(p) == own).collect();
        let mut runs = Running::all()?;
        runs.retain(|run| !run.ended());
        let mut found = Vec::new();
        for cgroup in &above {
            // the newest: the kernel frees later what was there before it was attached again
            let newest = runs.iter().rposition(|run| Some(run.id()) == id(cgroup));
            let (Some(newest), Some(root)) = (newest, above.last()) else { continue };
            let name = shown(cgroup.strip_prefix(root).unwrap_or(cgroup));
            let whole = Whole::at(cgroup.to_path_buf(), format!("the cgroup {name}"))?;
            found.push(Outer::of(whole, runs.swap_remove(newest))?);
        }
        Ok(Around(found))
    }

    /// Whether the run with this id is one of them.
    pub(super) fn include(&self, run: u64) -> bool {
        self.0.iter().any(|outer| outer.run.id() == run)
    }

    /// What people call the nearest.
    pub(super) fn nearest(&self) -> Option<&str> {
        self.0.first().map(|outer| outer.whole.name())
    }

    /// Hands a socket to the nearest that means it. False: none does.
    pub(super) fn take(&self, socket: &impl AsFd) -> Result<bool> {
        let means = |outer: &&Outer| socket::is_meant(socket, &outer.selection);
        self.0.iter().find(means).map_or(Ok(false), |outer| outer.take(socket))
    }
}

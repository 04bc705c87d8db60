// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A process that got the number of the one that was meant, back to where it was.

use std::fs;
use std::path::{Path, PathBuf};

use super::{processes, Group, Hierarchy, PROCS};
use crate::Result;

impl Hierarchy {
    /// The cgroup where a process is, for [`Hierarchy::dismiss`].
    ///
    /// # Errors
    /// When there is no such process.
    pub fn place(&self, pid: u32) -> Result<PathBuf> {
        Ok(self.path(&Self::of(pid)?))
    }

    /// Moves what is in a cgroup back: to where its number was just before. If that is still where the
    /// one was that had the number, it has begun since, and so where its parent is.
    pub fn dismiss(&self, group: &Group, before: &Path) {
        for pid in processes(&group.path) {
            let parent = || parent_of(pid).and_then(|parent| self.place(parent).ok());
            let back = if before == group.before { parent() } else { Some(before.into()) };
            // one that has ended needs no place
            let _ = back.map(|at| fs::write(at.join(PROCS), pid.to_string()));
        }
    }
}

fn parent_of(pid: i32) -> Option<u32> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    line.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

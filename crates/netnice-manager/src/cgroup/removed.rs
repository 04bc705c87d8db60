// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Runs whose cgroup somebody has removed.

use std::collections::HashSet;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use netnice_bpf::Running;

use super::Hierarchy;
use crate::Result;

/// The inode of the first cgroup namespace (linux/proc_ns.h), in which all cgroups are seen.
const FIRST: u64 = 0xeffffffb;

/// Ends those that somebody has removed. The kernel keeps their programs as long as a socket is open that was
/// made there.
pub(crate) fn end_removed(hierarchy: &Hierarchy) -> Result<()> {
    let runs = Running::all()?;
    let ids: HashSet<u64> = runs.iter().filter(|run| !run.ended()).map(Running::id).collect();
    let sees_all = fs::metadata("/proc/self/ns/cgroup").is_ok_and(|of| of.ino() == FIRST);
    if ids.is_empty() || !sees_all {
        return Ok(());
    }
    match missing(hierarchy.path(Path::new("")), ids) {
        Ok(gone) => gone.into_iter().try_for_each(|id| Ok(Running::end(id)?)),
        Err(_) => Ok(()), // what cannot be read may be there: the next call looks again
    }
}

/// Of these ids those that no cgroup below `root` has.
fn missing(root: PathBuf, mut ids: HashSet<u64>) -> io::Result<HashSet<u64>> {
    let device = fs::metadata(&root)?.dev();
    let mut dirs = vec![root];
    while let Some(dir) = dirs.pop().filter(|_| !ids.is_empty()) {
        let entries = match below(&dir, device) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue, // removed meanwhile
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                ids.remove(&entry.ino());
                dirs.push(entry.path());
            }
        }
    }
    Ok(ids)
}

/// What is in a cgroup. What is mounted over one hides those below it: then they cannot be read.
fn below(dir: &Path, device: u64) -> io::Result<fs::ReadDir> {
    if fs::metadata(dir)?.dev() != device {
        return Err(ErrorKind::CrossesDevices.into());
    }
    fs::read_dir(dir)
}

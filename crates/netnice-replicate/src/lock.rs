// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The lock that lets one process at a time run a job.

use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{io, wrong};
use crate::Result;

/// Who runs, or last ran, a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Owner {
    pub pid: u32,
    /// The kernel's id of this boot: without it a number of a process says nothing.
    pub boot: String,
    /// The kernel's id of the cgroup of the last run that made one; 0: of none in this boot.
    pub cgroup: u64,
}

impl Owner {
    /// This process, after `before`: until it has a cgroup of its own, that of an earlier run is
    /// remembered, as transfers that must be ended may be in it.
    fn this(before: Option<Owner>) -> Owner {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boot = boot.trim().to_string();
        let cgroup = before.filter(|b| b.boot == boot).map_or(0, |b| b.cgroup);
        Owner { pid: std::process::id(), boot, cgroup }
    }
}

/// Held by the process that runs a job. The kernel lets go of it however that ends.
pub struct Lock {
    file: File,
    owner: Owner,
}

impl Lock {
    fn path(dir: &Path, job: &str) -> PathBuf {
        dir.join(format!("{job}.lock"))
    }

    /// # Errors
    /// With the process that runs the job, if one does.
    pub fn take(dir: &Path, job: &str) -> Result<Lock> {
        fs::create_dir_all(dir).map_err(io(format!("cannot make {}", dir.display())))?;
        let path = Self::path(dir, job);
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(io(format!("cannot open {}", path.display())))?;
        let taken = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let owner = read_owner(&mut file);
        match taken {
            Ok(()) => {
                let mut lock = Lock { file, owner: Owner::this(owner) };
                let _ = lock.record(); // the run records more, and says if it cannot
                Ok(lock)
            }
            Err(Errno::WOULDBLOCK) => Err(wrong!(
                "job {job} is being run by process {} already; see: netnice replicate status \
                 --job {job} (another job with the same source needs a name of its own: --job NAME)",
                owner.unwrap_or_default().pid
            )),
            Err(error) => Err(io(format!("cannot lock {}", path.display()))(error)),
        }
    }

    /// The cgroup in which an earlier run may have left transfers; 0: none.
    pub fn cgroup(&self) -> u64 {
        self.owner.cgroup
    }

    /// Notes the cgroup of this run.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn set_cgroup(&mut self, id: u64) -> Result<()> {
        self.owner.cgroup = id;
        self.record()
    }

    fn record(&mut self) -> Result<()> {
        let mut write = || -> std::io::Result<()> {
            let text = serde_json::to_vec(&self.owner)?;
            self.file.rewind()?;
            self.file.write_all(&text)?; // over what is there: that needs no room on a full disk
            self.file.set_len(text.len() as u64)
        };
        write().map_err(io("cannot note the number of this process"))
    }

    /// The process that runs a job now.
    pub fn holder(dir: &Path, job: &str) -> Option<u32> {
        let mut file = File::open(Self::path(dir, job)).ok()?;
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => read_owner(&mut file).map(|o| o.pid),
            _ => None,
        }
    }
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_locked_once_and_its_holder_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Lock::holder(dir.path(), "www"), None);
        let lock = Lock::take(dir.path(), "www").unwrap();
        assert_eq!(lock.cgroup(), 0);
        assert_eq!(Lock::holder(dir.path(), "www"), Some(std::process::id()));
        let error = Lock::take(dir.path(), "www").err().unwrap().to_string();
        assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
        Lock::take(dir.path(), "other").unwrap();
    }

    /// Takes the lock again, once it is free: a process that another test has just forked holds all
    /// files until it runs its program.
    fn take(dir: &Path) -> Lock {
        while Lock::holder(dir, "www").is_some() {
            std::thread::yield_now();
        }
        Lock::take(dir, "www").unwrap()
    }

    #[test]
    fn the_cgroup_of_an_earlier_run_is_known_until_there_is_a_later_one() {
        let dir = tempfile::tempdir().unwrap();
        take(dir.path()).set_cgroup(7).unwrap();
        drop(take(dir.path())); // a start that failed
        let mut lock = take(dir.path());
        assert_eq!(lock.cgroup(), 7);
        lock.set_cgroup(8).unwrap();
        drop(lock);
        let mut lock = take(dir.path());
        assert_eq!(lock.cgroup(), 8);
        lock.owner.boot = "another".into();
        lock.record().unwrap();
        drop(lock);
        assert_eq!(take(dir.path()).cgroup(), 0);
    }
}

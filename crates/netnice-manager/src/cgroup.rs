// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Control groups (v2): one below the caller's own for each run, so that the
//! limits and the service manager of the caller still hold for the command.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::thread;
use std::time::Duration;

use netnice_bpf::{Running, RUN_PREFIX};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::{retry_on_intr, Errno};

use crate::error::{io, refuse};
use crate::{owner, Error, Result};

mod dismiss;
mod removed;
mod root;

pub(crate) use removed::end_removed;

/// The file that has a cgroup's processes, and moves those into it that are written there.
const PROCS: &str = "cgroup.procs";

/// How many cgroups may have the name of one process: a user may make any in a cgroup of his.
const NAMES: u32 = 100;

/// Where users look for the hierarchy.
pub(crate) fn mount() -> PathBuf {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let of_v2 = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let place = fields.next()?;
        (fields.next()? == "cgroup2").then(|| place.into())
    };
    mounts.lines().find_map(of_v2).unwrap_or_else(|| "/sys/fs/cgroup".into())
}

/// The hierarchy of cgroup v2, reachable in any mount namespace.
pub struct Hierarchy {
    root: OwnedFd,
}

impl Hierarchy {
    /// # Errors
    /// Without cgroup v2 in the kernel, or the right to mount it.
    pub fn open() -> Result<Hierarchy> {
        root::open()
            .map(|root| Hierarchy { root })
            .map_err(io("cannot open cgroup v2, which keeps a run's connections together; \
             the kernel needs CONFIG_CGROUPS=y and CONFIG_CGROUP_BPF=y"))
    }

    /// The path by which this process reaches a cgroup.
    pub(crate) fn path(&self, cgroup: &Path) -> PathBuf {
        let below = cgroup.strip_prefix("/").unwrap_or(cgroup);
        Path::new("/proc/self/fd").join(self.root.as_raw_fd().to_string()).join(below)
    }

    /// The cgroup of a process, as a path from the root.
    fn of(pid: u32) -> Result<PathBuf> {
        let file = format!("/proc/{pid}/cgroup");
        let text = fs::read_to_string(&file).map_err(io(format!("cannot read {file}")))?;
        match text.lines().find_map(|l| l.strip_prefix("0::")) {
            Some(own) => Ok(own.into()),
            None => {
                refuse!("process {pid} is in no cgroup of version 2; boot with cgroup v2 mounted")
            }
        }
    }

    /// Makes the cgroup of a run of this process.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create(&self) -> Result<Group> {
        self.create_for(std::process::id())
    }

    /// Makes the cgroup of a run of a process.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn create_for(&self, pid: u32) -> Result<Group> {
        let mut own = Self::of(pid)?;
        if own.components().any(|c| c == Component::ParentDir) {
            own = "/".into(); // outside of what this cgroup namespace shows: its root is nearest
        }
        // a run inside a run is its sibling; from a cgroup below one it stays there, within its
        // limits, and the programs look which run is nearest
        let parent = own.ancestors().find(|p| !self.is_run(p)).unwrap_or(&own);
        // another run may have the number too: one that this process was in, one of another PID
        // namespace, or one whose processes outlive its own
        let mut number = 1;
        loop {
            let suffix = if number > 1 { format!(".{number}") } else { String::new() };
            let cgroup = parent.join(format!("{RUN_PREFIX}{pid}{suffix}"));
            match Group::make(self.path(&cgroup), self.path(&own), &cgroup) {
                Err(Error::Io { error, .. })
                    if error.kind() == io::ErrorKind::AlreadyExists && number < NAMES =>
                {
                    number += 1;
                }
                made => return made,
            }
        }
    }

    /// Removes the cgroups of runs that have no process left; returns how many still have one.
    pub fn sweep(&self) -> Result<usize> {
        let mut runs = self.runs();
        // one that has another in it can only go after that
        runs.sort_unstable_by_key(|path| std::cmp::Reverse(path.components().count()));
        Ok(runs.iter().filter(|path| !remove(path)).count())
    }

    /// Kills every process in the cgroup of a run (by its id) and removes it, if it still exists.
    ///
    /// # Errors
    /// When the processes do not end.
    pub fn kill(&self, id: u64) -> Result<()> {
        let is = |p: &PathBuf| fs::metadata(p).is_ok_and(|m| m.ino() == id);
        let Some(path) = self.runs().into_iter().find(is) else { return Ok(()) };
        fs::write(path.join("cgroup.kill"), "1")
            .map_err(io("cannot end the processes of a run"))?;
        for _ in 0..500 {
            if remove(&path) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(10)); // a killed process leaves when it is scheduled
        }
        refuse!("processes of a run that was killed do not end; see: ps -eo pid,cgroup,args")
    }

    /// The ids of all runs, and of the parts that a run is divided into.
    pub fn ids(&self) -> Vec<u64> {
        self.all().iter().filter_map(|path| id(path)).collect()
    }

    /// The processes in all runs, and in the parts that a run is divided into, by the ids of those;
    /// the first is the command itself, if it still runs.
    pub fn members(&self) -> HashMap<u64, Vec<i32>> {
        let members = |path: &PathBuf| {
            let mut pids = processes(path);
            let command = number(path);
            pids.sort_unstable_by_key(|pid| (Some(*pid) != command, *pid));
            pids.dedup();
            Some((id(path)?, pids))
        };
        self.all().iter().filter_map(members).collect()
    }

    /// The processes that began the runs and their parts, by the ids of those. They may have ended.
    pub fn founders(&self) -> HashMap<u64, i32> {
        self.all().iter().filter_map(|path| Some((id(path)?, number(path)?))).collect()
    }

    /// The id of the run that a process is in.
    pub fn run_of(&self, pid: u64) -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
        let cgroup = Path::new(text.lines().find_map(|l| l.strip_prefix("0::"))?);
        cgroup.ancestors().find(|p| self.is_run(p)).and_then(|run| id(&self.path(run)))
    }

    /// Whether this, a path from the root, is the cgroup of a run that netnice began.
    pub(crate) fn is_run(&self, cgroup: &Path) -> bool {
        is_registered(&self.path(cgroup))
    }

    /// The cgroups that a process is in, its own first: the ids, and the users to whom runs there
    /// belong.
    ///
    /// # Errors
    /// When there is no such process.
    pub fn above(&self, pid: u32) -> Result<Vec<Above>> {
        let own = Self::of(pid)?;
        let runs: HashSet<_> = Running::all()?.iter().map(Running::id).collect();
        let look = |cgroup: &Path| {
            let path = self.path(cgroup);
            let id = id(&path)?;
            Some(Above { id, is_run: runs.contains(&id), owner: owner::of(&path) })
        };
        Ok(own.ancestors().filter_map(look).collect())
    }

    /// The runs that belong to users, and to whom.
    pub fn owned(&self) -> Vec<(Group, u32)> {
        let found = self.runs().into_iter();
        found
            .filter_map(|path| Some((Group::open(path.clone()).ok()?, owner::of(&path)?)))
            .collect()
    }

    /// The ids of those, and to whom they belong.
    pub fn owners(&self) -> Vec<(u64, u32)> {
        self.runs().iter().filter_map(|path| Some((id(path)?, owner::of(path)?))).collect()
    }

    /// The cgroups of all runs.
    fn runs(&self) -> Vec<PathBuf> {
        let is_part = |path: &PathBuf| path.parent().is_some_and(is_run);
        self.all().into_iter().filter(|path| !is_part(path)).collect()
    }

    /// The cgroups of all runs, and those of their parts; a run comes before what is in it.
    fn all(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut dirs = vec![self.path(Path::new(""))];
        while let Some(dir) = dirs.pop() {
            for path in below(&dir) {
                if is_run(&path) {
                    found.push(path.clone());
                }
                dirs.push(path);
            }
        }
        found
    }
}

/// A cgroup that a process is in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Above {
    pub id: u64,
    /// What is in it is in the background.
    pub is_run: bool,
    /// The user to whom the run belongs; None: nobody, so root.
    pub owner: Option<u32>,
}

/// Whether a cgroup that is reached by this path is that of a run that netnice began, not one that
/// somebody else gave such a name. What the kernel does not tell is taken for one.
fn is_registered(path: &Path) -> bool {
    let began = |all: Vec<Running>| all.iter().any(|run| Some(run.id()) == id(path));
    is_run(path) && Running::all().map_or(true, began)
}

/// Whether this could be the path of a run's cgroup, by its name.
pub(crate) fn is_run(path: &Path) -> bool {
    path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(RUN_PREFIX))
}

/// The process id in the name of a run's cgroup.
fn number(path: &Path) -> Option<i32> {
    let name = path.file_name()?.to_str()?.strip_prefix(RUN_PREFIX)?;
    name.split(['.', '-']).next()?.parse().ok()
}

/// The processes in a cgroup and below it, but for those in runs there. Of threads alone, where the
/// kernel allows no more.
pub(crate) fn processes(cgroup: &Path) -> Vec<i32> {
    let procs = fs::read_to_string(cgroup.join(PROCS));
    let text = procs.or_else(|_| fs::read_to_string(cgroup.join("cgroup.threads")));
    let mut found: Vec<_> = text.unwrap_or_default().lines().flat_map(str::parse).collect();
    found.retain(|pid| *pid != 0); // not of this PID namespace
    for part in below(cgroup).filter(|p| !is_registered(p)) {
        found.extend(processes(&part));
    }
    found
}

/// The kernel's id of a cgroup, if it is there.
pub(crate) fn id(path: &Path) -> Option<u64> {
    Some(fs::metadata(path).ok()?.ino())
}

/// The cgroups in a cgroup. It may vanish while it is read: then there is nothing to do in it.
pub(crate) fn below(cgroup: &Path) -> impl Iterator<Item = PathBuf> {
    // each has a link to the one above: who has two has none below, and a user may make many of these
    let some = fs::metadata(cgroup).is_ok_and(|of| of.nlink() != 2);
    let entries = some.then(|| fs::read_dir(cgroup)).into_iter().flatten().flatten().flatten();
    entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())).map(|e| e.path())
}

/// Whether a process is in a cgroup or below it.
fn populated(cgroup: &Path) -> bool {
    fs::read_to_string(cgroup.join("cgroup.events")).is_ok_and(|text| text.contains("populated 1"))
}

/// Removes a cgroup and those in it; false, and nothing is removed, while a process is in one.
fn remove(path: &Path) -> bool {
    if populated(path) {
        return false;
    }
    below(path).for_each(|part| _ = remove(&part));
    let id = id(path);
    match fs::remove_dir(path) {
        Ok(()) => {
            // failed: other runs' controls stay until the kernel has freed its programs
            let _ = id.map(Running::end);
            true
        }
        Err(e) => e.kind() == io::ErrorKind::NotFound,
    }
}

const WAIT: &str = "cannot wait for the processes of the run";

/// The kernel tells of a change up to 10 ms late, and never if the cgroup was removed by then (by
/// another netnice, which sweeps): who waits looks again after this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What cgroup.events says, read by the descriptor that is waited for: the kernel says what
/// changed since then.
fn is_populated(events: &File) -> Result<bool> {
    let mut text = [0; 64];
    match events.read_at(&mut text, 0) {
        Err(e) if e.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => Ok(false), // removed
        read => {
            Ok(String::from_utf8_lossy(&text[..read.map_err(io(WAIT))?]).contains("populated 1"))
        }
    }
}

/// Waits until no process is in a cgroup, or for a time: false then.
fn empties(events: &File, most: Duration) -> Result<bool> {
    if is_populated(events)? {
        wait(events, PollFlags::PRI, most)?;
    }
    Ok(!is_populated(events)?)
}

/// Waits for what `wanted` says of a descriptor, or for a time: false then.
fn wait(fd: &impl AsFd, wanted: PollFlags, most: Duration) -> Result<bool> {
    let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
    let ready = retry_on_intr(|| poll(&mut [PollFd::new(fd, wanted)], Some(&most)));
    ready.map(|ready| ready > 0).map_err(io(WAIT))
}

/// Waits until a process has ended, or for a time: false then.
///
/// # Errors
/// When the system refuses.
pub fn wait_for(pidfd: BorrowedFd<'_>, most: Duration) -> Result<bool> {
    wait(&pidfd, PollFlags::IN, most)
}

/// The limit of a cgroup above that forbids one at `path`, and how to raise it; users know that one
/// as `named`.
fn limit_of(path: &Path, named: &Path) -> Option<String> {
    let number = |file: PathBuf| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let below = |cgroup: &Path| {
        let text = fs::read_to_string(cgroup.join("cgroup.stat")).ok()?;
        text.lines().find_map(|l| l.strip_prefix("nr_descendants "))?.parse::<u64>().ok()
    };
    let mut above = path.ancestors().zip(named.ancestors()).enumerate().skip(1);
    above.find_map(|(depth, (cgroup, name))| {
        let full = |file: &str, has: u64| {
            let most = number(cgroup.join(file)).filter(|most| has >= *most)?;
            let file = mount().join(name.strip_prefix("/").ok()?).join(file);
            let file = file.display();
            Some(format!("{file} allows {most}; raise it: echo max >{file}"))
        };
        let most = full("cgroup.max.descendants", below(cgroup)?);
        most.or_else(|| full("cgroup.max.depth", depth as u64 - 1))
    })
}

/// The cgroup of one run.
pub struct Group {
    path: PathBuf,
    before: PathBuf,
    dir: File,
    /// The kernel's id of the cgroup, which marks the run's connections.
    pub id: u64,
}

impl Group {
    /// Makes it at `path`; `before` is where its processes come from, `named` what users may see of
    /// the path.
    fn make(path: PathBuf, before: PathBuf, named: &Path) -> Result<Group> {
        let failed = |e| io(format!("cannot make the cgroup {}", named.display()))(e);
        if let Err(error) = fs::create_dir(&path) {
            let limited = error.kind() == io::ErrorKind::WouldBlock;
            if let Some(limit) = limited.then(|| limit_of(&path, named)).flatten() {
                refuse!("cannot make the cgroup {}: {limit}", named.display());
            }
            return Err(failed(error));
        }
        // whatever the umask: the service manager above reads what is in it
        fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(failed)?;
        // below a cgroup of threads only another one can have processes
        let kind = path.join("cgroup.type");
        if fs::read_to_string(&kind).is_ok_and(|text| text.trim() == "domain invalid") {
            fs::write(&kind, "threaded").map_err(failed)?;
        }
        let mut made = Group::open(path).map_err(failed)?;
        made.before = before;
        Ok(made)
    }

    /// One that is there.
    fn open(path: PathBuf) -> io::Result<Group> {
        let dir = File::open(&path)?;
        let id = dir.metadata()?.ino();
        Ok(Group { before: path.clone(), path, dir, id })
    }

    /// Says that it belongs to a user, as long as it is there.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn belongs_to(&self, uid: u32) -> Result<()> {
        owner::set(&self.dir, uid)
    }

    /// Moves a process into it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn admit(&self, pid: u32) -> Result<()> {
        fs::write(self.path.join(PROCS), pid.to_string())
            .map_err(io(format!("cannot move process {pid} into the cgroup of the run")))
    }

    /// Its directory, for attaching programs.
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Makes a part of it, with settings of its own. It stays while a process is in the whole.
    pub fn part(&self, name: &str) -> Result<Group> {
        let path = self.path.join(format!("{RUN_PREFIX}{}-{name}", std::process::id()));
        Group::make(path, self.path.clone(), name.as_ref())
    }

    /// Moves this process into it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn enter(&self) -> Result<()> {
        join(&self.path).map_err(io("cannot enter the cgroup of the run"))
    }

    /// Moves this process to where it was when the cgroup was made.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn leave(&self) -> Result<()> {
        join(&self.before).map_err(io("cannot leave the cgroup of the run again"))
    }

    /// Waits until no process is in it.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn wait_until_empty(&self) -> Result<()> {
        let events = self.events()?;
        while !empties(&events, LOOK_AGAIN)? {}
        Ok(())
    }

    /// Waits until no process is in it, or for a time: false then.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn is_empty_within(&self, most: Duration) -> Result<bool> {
        empties(&self.events()?, most)
    }

    fn events(&self) -> Result<File> {
        File::open(self.path.join("cgroup.events")).map_err(io(WAIT))
    }

    /// Whether a process is in it.
    pub fn is_populated(&self) -> bool {
        self.is_there() && populated(&self.path)
    }

    /// Whether it was not removed: another may have its name since.
    fn is_there(&self) -> bool {
        id(&self.path) == Some(self.id)
    }

    /// Calls `f` with this process inside the cgroup, so that the child that it starts is born in it.
    pub fn inside<T>(&self, f: impl FnOnce() -> T) -> Result<T> {
        self.enter()?;
        let result = f();
        self.leave()?;
        Ok(result)
    }
}

impl Drop for Group {
    /// Removes the cgroup unless processes that the command left are still in it.
    fn drop(&mut self) {
        if self.is_there() {
            remove(&self.path);
        }
    }
}

fn join(cgroup: &Path) -> io::Result<()> {
    fs::write(cgroup.join(PROCS), "0")
}

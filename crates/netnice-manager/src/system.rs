// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What all calls of netnice share: one lock, the marks of what is enabled, and
//! the sweep that takes away what no run needs any more.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::ops::Deref;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use netnice_bpf::{control_name, Running};
use netnice_core::Algorithm;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use rustix::fs::{flock, FlockOperation};
use rustix::process::geteuid;

use crate::cgroup::{end_removed, Hierarchy};
use crate::choice::Class;
use crate::error::io;
use crate::{Error, Result};

/// Cleared at boot, as the kernel's registrations are.
pub(crate) const DIR: &str = "/run/netnice";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Capabilities by number (linux/capability.h) that loading, cgroups and sockets need.
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Whether this process has the capabilities that netnice takes.
///
/// # Errors
/// With those that are missing, by name.
pub fn require_privileges() -> Result<()> {
    let file = "/proc/self/status";
    let status = fs::read_to_string(file).map_err(io(format!("cannot read {file}")))?;
    let field = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
    let effective = field.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    let missing = NEEDED.iter().filter(|(bit, _)| effective & (1 << bit) == 0);
    let missing: Vec<_> = missing.map(|(_, name)| *name).collect();
    match (missing.is_empty(), geteuid().is_root()) {
        (true, _) => Ok(()),
        (_, false) => Err(Error::Privileges(missing)),
        (_, true) => Err(Error::Bounded(missing)),
    }
}

/// What of netnice is in this system. While it is held, no other netnice changes that.
pub struct System {
    hierarchy: Hierarchy,
    _lock: Option<File>,
}

impl System {
    /// Looks at the system, and leaves it as it is.
    ///
    /// # Errors
    /// Without the privileges, or cgroup v2.
    pub fn look() -> Result<System> {
        require_privileges()?;
        let path = lock();
        let lock = match File::open(&path) {
            // nothing was ever changed; or a user may look who may change nothing
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => None,
            found => Some(found.map_err(io(format!("cannot open {}", path.display())))?),
        };
        if let Some(lock) = &lock {
            flock(lock, FlockOperation::LockShared).map_err(io(LOCK))?;
        }
        Ok(System { hierarchy: Hierarchy::open()?, _lock: lock })
    }

    /// Takes the system for a change, and cleans up after runs that were killed.
    ///
    /// # Errors
    /// Without the privileges, or cgroup v2.
    pub fn change() -> Result<Change> {
        require_privileges()?;
        let made = |path: &Path| io(cannot("make", path));
        for marks in [ENABLED, FOR_RUNS, HELD].map(|marks| Path::new(DIR).join(marks)) {
            make_folder(&marks).map_err(made(&marks))?;
        }
        let path = lock();
        let lock = make_lock(&path).map_err(made(&path))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(io(LOCK))?;
        let change = Change {
            system: System { hierarchy: Hierarchy::open()?, _lock: Some(lock) },
            whole: Some(Whole::new()?),
        };
        change.sweep()?;
        Ok(change)
    }

    /// The hierarchy of cgroups.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }
}

/// Signals that ask for an end wait until the change is made: half of it would stay behind.
struct Whole {
    before: SigSet,
    /// Each thread has a mask of its own.
    _here: PhantomData<*const ()>,
}

impl Whole {
    fn new() -> Result<Whole> {
        let ends = [Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM];
        let ends: SigSet = ends.into_iter().collect();
        let before =
            ends.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(io("cannot block signals"))?;
        Ok(Whole { before, _here: PhantomData })
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        let _ = self.before.thread_set_mask(); // fails for a mask that the kernel did not give
    }
}

/// A [`System`] that nobody else looks at or changes meanwhile. SIGHUP, SIGINT, SIGQUIT and SIGTERM
/// to this thread wait, and to a program that it begins: before that, [`Change::may_end`].
pub struct Change {
    system: System,
    whole: Option<Whole>,
}

impl Deref for Change {
    type Target = System;

    fn deref(&self) -> &System {
        &self.system
    }
}

impl Change {
    /// Lets go of the lock, and keeps the hierarchy reachable.
    pub fn unlock(self) -> Hierarchy {
        self.system.hierarchy
    }

    /// Has signals wait no longer; the lock stays. For when an end would leave nothing half done.
    pub fn may_end(&mut self) {
        self.whole = None;
    }

    /// Registers algorithms for the whole system, until [`Change::disable`] or a reboot;
    /// `for_all`: programs without privileges may choose them too.
    ///
    /// # Errors
    /// When the kernel refuses one.
    pub fn enable(&self, algorithms: &[Algorithm], for_all: bool) -> Result<()> {
        let names: Vec<_> = algorithms.iter().map(|a| control_name(*a, false)).collect();
        let fresh: Vec<_> = names.iter().filter(|n| !is_enabled(n)).collect();
        let done = self.enable_named(algorithms, &names, for_all);
        if done.is_err() {
            fresh.iter().try_for_each(|name| demote(name))?; // as if it was never asked
            self.sweep()?;
        }
        done
    }

    /// Registers an algorithm for runs, `grouped` as in [`control_name`], unless it is registered.
    ///
    /// # Errors
    /// When the kernel refuses it, or a run of another build uses its name.
    pub fn register(&self, algorithm: Algorithm, grouped: bool) -> Result<()> {
        let name = control_name(algorithm, grouped);
        remove_foreign(&name)?;
        forget(&mark(GOING, &name))?;
        if !netnice_bpf::registered()?.contains(&name) {
            put(&mark(FOR_RUNS, &name))?;
        }
        Ok(netnice_bpf::register(algorithm, grouped)?)
    }

    /// Registers what nearly every run needs, before there is one.
    ///
    /// # Errors
    /// As [`Change::register`].
    pub fn make_ready(&self) -> Result<()> {
        self.register(Class::default().algorithm(), false)
    }

    fn enable_named(&self, algorithms: &[Algorithm], names: &[String], all: bool) -> Result<()> {
        for (algorithm, name) in algorithms.iter().zip(names) {
            // the mark first: killed in between, the next call finds a mark without a control, not
            // a control that nobody owns
            put(&mark(ENABLED, name))?;
            forget(&mark(GOING, name))?;
            remove_foreign(name)?;
            netnice_bpf::register(*algorithm, false)?;
        }
        if all {
            let old = fs::read_to_string(ALLOWED).map_err(io(format!("cannot read {ALLOWED}")))?;
            fs::write(ALLOWED, format!("{} {}", old.trim(), names.join(" "))).map_err(io(
                format!("cannot let unprivileged programs choose: writing {ALLOWED} failed"),
            ))?;
        }
        Ok(())
    }

    /// Takes algorithms off the kernel's list, as far as nothing needs them; the others as soon as
    /// nothing does, unless they are registered anew.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disable(&self, algorithms: &[Algorithm]) -> Result<Left> {
        let both = |a: &Algorithm| [false, true].map(|grouped| control_name(*a, grouped));
        let names: Vec<_> = algorithms.iter().flat_map(both).collect();
        for name in &names {
            demote(name)?;
            // also one whose marks are gone, as those of a container are: this is asked for by name
            put(&mark(FOR_RUNS, name))?;
        }
        let going = Path::new(DIR).join(GOING);
        make_folder(&going).map_err(io(cannot("make", &going)))?;
        names.iter().try_for_each(|name| put(&mark(GOING, name)))?;
        let runs = self.sweep()?;
        let registered = netnice_bpf::registered()?;
        let (controls, gone): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| registered.contains(name));
        // who registers one of these later, also in a container, does not ask for its end
        gone.iter().try_for_each(|name| forget(&mark(GOING, name)).map(drop))?;
        Ok(Left { runs, controls })
    }

    /// What was made, or why it was not; then nothing is left that it took.
    pub(crate) fn or_sweep<T>(&self, made: Result<T>) -> Result<T> {
        if made.is_err() {
            let _ = self.sweep(); // a failure here says less than the first one
        }
        made
    }

    /// Removes cgroups of ended runs, and the controls that this netnice registered for runs and that
    /// none uses any more: neither one here nor one in a container, whose cgroup and marks are not
    /// seen. The one that stays ready is removed if that was asked for. Returns how many runs are
    /// left here.
    fn sweep(&self) -> Result<usize> {
        let live = self.hierarchy().sweep()?;
        end_removed(self.hierarchy())?;
        self.release_unused()?;
        for name in netnice_bpf::registered()? {
            let (for_runs, going) = (mark(FOR_RUNS, &name), mark(GOING, &name));
            let stays = name == ready() && !going.exists();
            if for_runs.exists() && !stays && !is_enabled(&name) && !is_used(&name)? {
                netnice_bpf::unregister(&name)?;
                forget(&for_runs)?;
                forget(&going)?;
            }
        }
        Ok(live)
    }
}

/// The control that stays registered when the last run has ended, until it is disabled: nearly every
/// run has it, and most of what a run takes to begin is the verifier's time.
fn ready() -> String {
    control_name(Class::default().algorithm(), false)
}

/// Whether a run chooses a control (name with prefix) for its connections, or may.
fn is_used(name: &str) -> Result<bool> {
    Ok(Running::controls()?.is_none_or(|used| used.iter().any(|u| u == name)))
}

/// Takes a control (name with prefix) of another build away, unless a run uses it. Connections that
/// it serves keep it.
fn remove_foreign(name: &str) -> Result<()> {
    if netnice_bpf::is_foreign(name)? && !is_used(name)? {
        netnice_bpf::unregister(name)?;
    }
    Ok(())
}

/// What keeps controls registered.
pub struct Left {
    /// How many there are that this netnice can see.
    pub runs: usize,
    /// Of the controls that were to go, those that did not.
    pub controls: Vec<String>,
}

/// Makes a folder, and what is missing above it, that every user may look into, whatever the umask.
///
/// # Errors
/// When the system refuses.
pub fn make_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    fs::create_dir_all(path)?;
    let mut made = missing.iter().filter(|folder| !folder.as_os_str().is_empty());
    made.try_for_each(|folder| fs::set_permissions(folder, Permissions::from_mode(0o755)))
}

/// Whoever may open the lock can keep all others from any change: nobody but its owner may.
fn make_lock(path: &Path) -> io::Result<File> {
    const OWN: u32 = 0o600;
    let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(OWN).open(path)?;
    lock.set_permissions(Permissions::from_mode(OWN))?;
    Ok(lock)
}

const LOCK: &str = "cannot lock the state of netnice";

fn lock() -> PathBuf {
    Path::new(DIR).join("lock")
}

/// The marks of controls that were enabled, and of those that were registered for runs.
const ENABLED: &str = "enabled";
const FOR_RUNS: &str = "for-runs";
/// Those of controls that are to go once nothing uses them, also one that would stay ready.
const GOING: &str = "going";
/// Those of devices that hold for runs.
pub(crate) const HELD: &str = "held";

/// The file that says of a control (name with prefix) what it was registered for.
fn mark(marks: &str, name: &str) -> PathBuf {
    Path::new(DIR).join(marks).join(name)
}

fn cannot(what: &str, path: &Path) -> String {
    format!("cannot {what} {}", path.display())
}

pub(crate) fn put(mark: &Path) -> Result<()> {
    File::create(mark).map(drop).map_err(io(cannot("make", mark)))
}

/// Removes a mark, if it is there.
pub(crate) fn forget(mark: &Path) -> Result<bool> {
    match fs::remove_file(mark) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(io(cannot("remove", mark))(e)),
    }
}

/// Makes of a control (name with prefix) that was enabled one that is registered for runs.
fn demote(name: &str) -> Result<()> {
    let enabled = mark(ENABLED, name);
    match fs::rename(&enabled, mark(FOR_RUNS, name)) {
        Err(e) if e.kind() != ErrorKind::NotFound => Err(io(cannot("remove", &enabled))(e)),
        _ => Ok(()),
    }
}

/// Whether a control (name with prefix) is registered for the whole system.
pub fn is_enabled(name: &str) -> bool {
    mark(ENABLED, name).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_but_its_owner_may_open_the_lock_also_one_that_an_older_netnice_made() {
        let place = std::env::temp_dir().join(format!("netnice-lock-{}", std::process::id()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        make_folder(&place.join("a/b")).unwrap();
        let lock = place.join("lock");
        File::create(&lock).unwrap().set_permissions(Permissions::from_mode(0o644)).unwrap();
        make_lock(&lock).unwrap();
        assert_eq!(mode(&lock), 0o600);
        assert_eq!((mode(&place), mode(&place.join("a/b"))), (0o755, 0o755));
        // one that is there is somebody's
        fs::set_permissions(&place, Permissions::from_mode(0o700)).unwrap();
        make_folder(&place.join("c")).unwrap();
        assert_eq!((mode(&place), mode(&place.join("c"))), (0o700, 0o755));
        fs::remove_dir_all(&place).unwrap();
    }
}

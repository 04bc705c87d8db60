// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What all calls of netnice share: one lock, the marks of what is enabled, and
//! the sweep that takes away what no run needs any more.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use netnice_bpf::control_name;
use netnice_core::Algorithm;
use rustix::fs::{flock, FlockOperation};

use crate::cgroup::Hierarchy;
use crate::cli::{DisableArgs, EnableArgs};

/// Cleared at boot, as the kernel's registrations are.
const DIR: &str = "/run/netnice";
const ALLOWED: &str = "/proc/sys/net/ipv4/tcp_allowed_congestion_control";

/// Capabilities by number (linux/capability.h) that loading, cgroups and sockets need.
const NEEDED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (21, "CAP_SYS_ADMIN")];

/// Fails with the missing capabilities' names.
pub fn require_privileges() -> Result<()> {
    let status =
        fs::read_to_string("/proc/self/status").context("cannot read /proc/self/status")?;
    let effective = status
        .lines()
        .find_map(|l| l.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .context("/proc/self/status has no line CapEff")?;
    let missing: Vec<_> = NEEDED
        .iter()
        .filter(|(bit, _)| effective & (1 << bit) == 0)
        .map(|(_, name)| *name)
        .collect();
    if !missing.is_empty() {
        bail!("this needs {}; run it as root: sudo netnice ...", missing.join(" and "));
    }
    Ok(())
}

/// Held while the system's state is changed: one netnice at a time.
pub struct System {
    hierarchy: Hierarchy,
    _lock: File,
}

impl System {
    /// Takes the lock and cleans up after runs that were killed.
    pub fn open() -> Result<System> {
        require_privileges()?;
        let enabled = Path::new(DIR).join("enabled");
        fs::create_dir_all(&enabled)
            .with_context(|| format!("cannot make {}", enabled.display()))?;
        let path = Path::new(DIR).join("lock");
        let lock =
            File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        flock(&lock, FlockOperation::LockExclusive).context("cannot lock the state of netnice")?;
        let system = System { hierarchy: Hierarchy::open()?, _lock: lock };
        system.sweep()?;
        Ok(system)
    }

    /// The hierarchy of cgroups.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// Lets go of the lock, and keeps the hierarchy reachable.
    pub fn unlock(self) -> Hierarchy {
        self.hierarchy
    }

    /// Removes cgroups of ended runs, and, when no run is left, the controls that only runs used.
    /// Returns how many runs are left.
    pub fn sweep(&self) -> Result<usize> {
        let live = self.hierarchy.sweep()?;
        if live == 0 {
            for name in netnice_bpf::registered()?.iter().filter(|n| !mark(n).exists()) {
                netnice_bpf::unregister(name)?;
            }
        }
        Ok(live)
    }
}

/// The file that says that a control (name with prefix) was enabled.
fn mark(name: &str) -> PathBuf {
    Path::new(DIR).join("enabled").join(name)
}

/// Whether a control (name with prefix) is registered for the whole system.
pub fn is_enabled(name: &str) -> bool {
    mark(name).exists()
}

/// The named algorithms, or all of them.
fn chosen(names: &[String]) -> Result<Vec<Algorithm>> {
    match names {
        [] => Ok(Algorithm::all().collect()),
        names => Ok(names.iter().map(|n| Algorithm::by_name(n)).collect::<Result<_, _>>()?),
    }
}

fn kernel_name(algorithm: Algorithm) -> String {
    control_name(algorithm, false)
}

/// `netnice enable`.
pub fn enable(args: &EnableArgs) -> Result<()> {
    let algorithms = chosen(&args.algorithms)?;
    let _system = System::open()?;
    for algorithm in &algorithms {
        // the mark first: killed in between, the next call finds a mark without a control, not a
        // control that nobody owns
        File::create(mark(&kernel_name(*algorithm)))?;
        netnice_bpf::register(*algorithm, false)?;
    }
    if args.allow_all {
        let names: Vec<_> = algorithms.iter().map(|a| kernel_name(*a)).collect();
        let old = fs::read_to_string(ALLOWED).with_context(|| format!("cannot read {ALLOWED}"))?;
        fs::write(ALLOWED, format!("{} {}", old.trim(), names.join(" "))).with_context(|| {
            format!("cannot let unprivileged programs choose: writing {ALLOWED} failed")
        })?;
    }
    Ok(())
}

/// `netnice disable`.
pub fn disable(args: &DisableArgs) -> Result<()> {
    let algorithms = chosen(&args.algorithms)?;
    let both = |a: &Algorithm| [false, true].map(|grouped| control_name(*a, grouped));
    let names: Vec<_> = algorithms.iter().flat_map(both).collect();
    let system = System::open()?;
    for name in &names {
        if let Err(error) = fs::remove_file(mark(name)) {
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error)
                    .with_context(|| format!("cannot remove {}", mark(name).display()));
            }
        }
    }
    let live = system.sweep()?;
    let left: Vec<_> =
        netnice_bpf::registered()?.into_iter().filter(|n| names.contains(n)).collect();
    if live > 0 && !left.is_empty() {
        eprintln!(
            "netnice: {} stays until the {live} running `netnice run` end: see netnice status",
            left.join(", ")
        );
    }
    Ok(())
}

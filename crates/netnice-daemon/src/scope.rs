// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A scope of the user's own systemd for a run, as `systemd-run --user --scope` makes one.
//!
//! The run's cgroup is below it then: where the user's limits hold, and where systemd leaves what it
//! did not make alone (`Delegate=yes`).

use std::env;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use netnice_manager::tool::tool;
use rustix::io::Errno;

/// How long systemd may take to move this process.
const PATIENCE: Duration = Duration::from_secs(2);

/// Moves this process into a scope of its own, if its user has a systemd that does so. Else it stays
/// where it is, and the run is there.
pub fn enter() {
    let Some(runtime) = env::var_os("XDG_RUNTIME_DIR") else { return };
    if !Path::new(&runtime).join("systemd").exists() {
        return;
    }
    let unit = format!("netnice-{}.scope", std::process::id());
    let asked = tool("busctl")
        .args(words(&unit, std::process::id()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match asked {
        Ok(status) if status.success() => {}
        // the caller ignores SIGCHLD, and nobody sees the status
        Err(error) if error.raw_os_error() == Some(Errno::CHILD.raw_os_error()) => {}
        _ => return,
    }
    let since = Instant::now();
    while !is_in(&unit) && since.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(5)); // systemd answers before it moves the process
    }
}

/// The call of systemd's D-Bus interface, in the words of busctl(1).
fn words(unit: &str, pid: u32) -> Vec<String> {
    let call = [
        "--user",
        "--timeout=2",
        "call",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "StartTransientUnit",
        "ssa(sv)a(sa(sv))",
    ];
    let (count, pid) = ("4", pid.to_string());
    let properties = [
        &["PIDs", "au", "1", &pid][..],
        &["Delegate", "b", "true"],
        &["CollectMode", "s", "inactive-or-failed"],
        &["Description", "s", "Transfers in the background (netnice run)"],
    ];
    let no_others = "0";
    let words = call.into_iter().chain([unit, "fail", count]);
    words.chain(properties.concat()).chain([no_others]).map(String::from).collect()
}

/// Whether this process is in a unit's cgroup.
fn is_in(unit: &str) -> bool {
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    cgroups.lines().any(|line| line.starts_with("0::") && line.ends_with(unit))
}

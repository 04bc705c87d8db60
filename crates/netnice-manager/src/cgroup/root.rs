// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The root of cgroup v2: where it is mounted whole and may be written to, else a mount for this
//! process alone, at no path (`ip netns exec` hides /sys/fs/cgroup).
//!
//! To mount takes the kernel a grace period of RCU, 10 ms: it is done once at most.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

use rustix::fs::{major, minor};
use rustix::mount::{fsconfig_create, fsmount, fsopen, FsMountFlags, FsOpenFlags, MountAttrFlags};

/// What this process has found.
static FOUND: OnceLock<OwnedFd> = OnceLock::new();

/// The directory at the root of this cgroup namespace.
pub fn open() -> io::Result<OwnedFd> {
    if let Some(found) = FOUND.get() {
        return found.try_clone();
    }
    let root = mounted().map_or_else(mount, Ok)?;
    let _ = FOUND.set(root.try_clone()?); // another thread found the same
    Ok(root)
}

fn mount() -> io::Result<OwnedFd> {
    let fs = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(fs.as_fd())?;
    Ok(fsmount(fs.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?)
}

fn mounted() -> Option<OwnedFd> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let (device, place) = whole(&mounts)?;
    let root = File::open(place).ok()?;
    let dev = root.metadata().ok()?.dev();
    // not what is mounted over it
    (format!("{}:{}", major(dev), minor(dev)) == device).then(|| root.into())
}

/// The device and the place of the mount that shows all of this cgroup namespace, if it can be
/// written to.
fn whole(mounts: &str) -> Option<(&str, &str)> {
    let last = mounts.lines().rev().find(|line| line.contains(" - cgroup2 "))?;
    let fields: Vec<&str> = last.split(' ').collect();
    let [_, _, device, "/", place, options, ..] = fields[..] else { return None };
    options.split(',').any(|option| option == "rw").then_some((device, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mount_of_the_whole_that_can_be_written_to_will_do() {
        let line = |root: &str, options: &str| {
            format!(
                "25 1 8:1 / / rw - ext4 /dev/root rw\n\
                 31 25 0:27 {root} /sys/fs/cgroup {options} shared:4 - cgroup2 cgroup2 rw\n\
                 40 25 0:30 / /tmp rw - tmpfs none rw\n"
            )
        };
        assert_eq!(whole(&line("/", "rw,nosuid")), Some(("0:27", "/sys/fs/cgroup")));
        assert_eq!(whole(&line("/", "ro,nosuid")), None);
        assert_eq!(whole(&line("/system.slice", "rw")), None);
        assert_eq!(whole(&line("/../..", "rw")), None);
        assert_eq!(whole(""), None);
    }
}

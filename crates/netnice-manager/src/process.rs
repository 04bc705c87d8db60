// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Processes, and the sockets that they hold.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;

use serde::{Deserialize, Serialize};

/// So much of a command is told, bytes: its program may write there what it wants.
const COMMAND: u64 = 256;

/// A process as people know it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    pub pid: i32,
    /// The kernel's, at most 15 bytes.
    pub name: String,
    /// Its words, with a space between them; a long one is cut.
    pub command: String,
}

impl Process {
    /// None: it has ended.
    pub fn read(pid: i32) -> Option<Process> {
        let file = |name: &str| {
            let mut text = Vec::new();
            let file = File::open(format!("/proc/{pid}/{name}")).ok()?;
            file.take(COMMAND).read_to_end(&mut text).ok().map(|_| text)
        };
        let name = String::from_utf8_lossy(&file("comm")?).trim_end_matches('\n').to_string();
        let command = words(&file("cmdline")?);
        Some(Process {
            pid,
            command: if command.is_empty() { name.clone() } else { command },
            name,
        })
    }
}

/// The words that end with a zero each.
fn words(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).trim_end_matches('\0').replace('\0', " ")
}

/// Tells of each process that holds some of these sockets which, by their inodes: of the processes
/// `first`, and of all others only if those do not have them all. What may not be looked into has none.
pub(crate) fn each_holder(
    sockets: &HashSet<u64>,
    first: &HashSet<i32>,
    mut tell: impl FnMut(i32, &HashSet<u64>),
) {
    let mut found = HashSet::new();
    let mut look = |pid, found: &mut HashSet<u64>| {
        let held = held(pid, sockets);
        if !held.is_empty() {
            tell(pid, &held);
            found.extend(held);
        }
    };
    if sockets.is_empty() {
        return;
    }
    first.iter().for_each(|pid| look(*pid, &mut found));
    if found.len() < sockets.len() {
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(pid) = pid.filter(|pid| !first.contains(pid)) {
                look(pid, &mut found);
            }
        }
    }
}

/// Those of the sockets that a process holds.
fn held(pid: i32, sockets: &HashSet<u64>) -> HashSet<u64> {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()); // or closed in between
    links.filter_map(|link| inode(link.to_str()?).filter(|i| sockets.contains(i))).collect()
}

/// The inode of a socket, from what a descriptor is a link to.
fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_process_has_its_name_and_its_words() {
        assert_eq!(words(b"rsync\0-a\0a dir\0"), "rsync -a a dir");
        let own = Process::read(std::process::id() as i32).expect("this process runs");
        assert!(!own.name.is_empty() && own.command.contains("manager"), "{own:?}");
        assert_eq!(Process::read(-1), None);
    }

    #[test]
    fn a_long_command_is_cut() {
        let long = "x".repeat(4000);
        let mut child = Command::new("cat")
            .args(["-", &long])
            .stdin(Stdio::piped())
            .spawn()
            .expect("cat is there");
        let command = || Process::read(child.id().cast_signed()).expect("it runs").command;
        let cut = (0..1000).map(|_| command()).find(|command| command.starts_with("cat - x"));
        child.kill().expect("it is ours");
        child.wait().expect("it ended");
        assert_eq!(cut.expect("its command").len() as u64, COMMAND);
    }

    #[test]
    fn who_holds_a_socket_is_found_also_outside_of_where_it_is_looked_for_first() {
        let held = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let _copy = held.try_clone().expect("another descriptor");
        let link =
            fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd())).expect("it is open");
        let inode = inode(link.to_str().expect("socket:[N]")).expect("a socket");
        let own = std::process::id() as i32;
        for first in [HashSet::new(), HashSet::from([own])] {
            let mut found = Vec::new();
            each_holder(&HashSet::from([inode]), &first, |pid, held| {
                found.push((pid, held.clone()));
            });
            assert_eq!(found, [(own, HashSet::from([inode]))]);
        }
        each_holder(&HashSet::from([u64::MAX]), &HashSet::new(), |pid, _| panic!("{pid}"));
    }
}

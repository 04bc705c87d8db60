// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Processes of users: who asks, and whom it is about.

use std::cell::Cell;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;

use netnice_manager::{socket, Result};
use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::{PeerCredentials, PeerPidfd};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::protocol::refused;

/// A process, and not another one that gets its number later.
pub struct Process {
    pub pid: u32,
    pidfd: OwnedFd,
}

impl Process {
    /// None: there is none.
    pub fn open(pid: i32) -> Option<Process> {
        let number = Pid::from_raw(pid).filter(|_| pid > 0)?;
        let pidfd = pidfd_open(number, PidfdFlags::empty()).ok()?;
        Some(Process { pid: number.as_raw_nonzero().get().unsigned_abs(), pidfd })
    }

    /// Whether it has not ended. What was read of /proc before that is its own then: no other process
    /// had its number meanwhile.
    pub fn lives(&self) -> bool {
        const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ended = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&NOW));
        matches!(ended, Ok(0))
    }

    /// Its users: real, effective, saved, of files. None: it has ended.
    pub fn users(&self) -> Vec<u32> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let users = users(&status);
        if self.lives() {
            users
        } else {
            Vec::new()
        }
    }

    /// Whether it is in this process's namespace of a kind, as `net`.
    pub fn shares(&self, namespace: &str) -> bool {
        let of = |process: &str| {
            fs::metadata(format!("/proc/{process}/ns/{namespace}")).map(|m| (m.dev(), m.ino())).ok()
        };
        let ours = of("self");
        ours.is_some() && of(&self.pid.to_string()) == ours && self.lives()
    }

    /// Calls `f` with a copy of each of its TCP sockets; `left` is how many descriptors may be looked at.
    ///
    /// # Errors
    /// When it may not be looked into, or has more, and those of `f`.
    pub fn each_socket(
        &self,
        left: &Cell<usize>,
        f: impl FnMut(OwnedFd) -> Result<()>,
    ) -> Result<()> {
        socket::each_of(self.pid.cast_signed(), self.pidfd.as_fd(), left, f)
    }
}

/// The users in a process's status of /proc.
fn users(status: &str) -> Vec<u32> {
    let line = status.lines().find_map(|l| l.strip_prefix("Uid:")).unwrap_or_default();
    line.split_whitespace().flat_map(str::parse).collect()
}

/// Who is at the other end of a connection.
pub struct Caller {
    pub uid: u32,
    pub process: Process,
}

impl Caller {
    /// None: it has ended.
    pub fn of(stream: &UnixStream) -> Option<Caller> {
        let peer = getsockopt(stream, PeerCredentials).ok()?;
        // before Linux 6.5 by number: if another process has that by now, its user is compared below
        let process = match getsockopt(stream, PeerPidfd) {
            Ok(pidfd) => Process { pid: u32::try_from(peer.pid()).ok()?, pidfd },
            Err(_) => Process::open(peer.pid())?,
        };
        let of_process = process.users();
        (of_process.first() == Some(&peer.uid())).then(|| Caller { uid: peer.uid(), process })
    }

    /// # Errors
    /// When it has ended: nobody waits for what it asked for, and another process may have its number.
    pub fn require_alive(&self) -> Result<()> {
        match self.process.lives() {
            true => Ok(()),
            false => refused("the caller has ended"),
        }
    }
}

/// The user at the other end of a connection.
pub fn uid(stream: &UnixStream) -> Option<u32> {
    getsockopt(stream, PeerCredentials).ok().map(|peer| peer.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_of_a_process_are_read() {
        let status = "Name:\tUid: 7\nState:\tR\nUid:\t1000\t0\t0\t0\nGid:\t1\t1\t1\t1\n";
        assert_eq!(users(status), [1000, 0, 0, 0]);
        assert_eq!(users(""), [0; 0]);
    }

    #[test]
    fn a_process_that_ended_has_no_users_also_while_its_number_is_there() {
        let mut child =
            std::process::Command::new("sleep").arg("60").spawn().expect("sleep is there");
        let process = Process::open(child.id() as i32).expect("it runs");
        assert_eq!(process.users(), Process::open(std::process::id() as i32).expect("us").users());
        child.kill().expect("it is ours");
        while process.lives() {}
        assert_eq!(process.users(), [0; 0]); // not waited for: /proc still has it
        child.wait().expect("it ended");
        assert!(Process::open(-1).is_none());
    }

    #[test]
    fn no_more_descriptors_of_processes_are_looked_at_than_a_request_may_have() {
        let _socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a socket");
        let us = Process::open(std::process::id() as i32).expect("us");
        let (left, mut sockets) = (Cell::new(10_000), 0);
        let mut look = |left: &Cell<usize>| {
            us.each_socket(left, |_| {
                sockets += 1;
                Ok(())
            })
        };
        look(&left).expect("there are fewer");
        // the process after it has what this one left
        left.set(1);
        let why = look(&left).expect_err("it has standard input and output, too").to_string();
        assert!(why.contains("more open files"), "{why}");
        assert_eq!(left.get(), 0);
        assert!(sockets >= 1);
    }

    #[test]
    fn the_caller_is_known_by_the_connection() {
        let (here, _there) = UnixStream::pair().expect("sockets");
        let caller = Caller::of(&here).expect("it is this process");
        assert_eq!(caller.process.pid, std::process::id());
        assert_eq!(uid(&here), Some(caller.uid));
        assert!(caller.process.shares("net") && caller.process.shares("pid"));
    }
}

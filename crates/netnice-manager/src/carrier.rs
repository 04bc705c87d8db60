// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The connection that carries what a command writes to standard output, where another process
//! holds it: sshd's, of a command that somebody starts from another host.
//!
//! Such a command has a pipe or a pair of Unix sockets; what it writes there leaves this host over
//! the connection of the server that started it. That server is the nearest ancestor with exactly
//! one connection that it accepted. A person at a terminal has one too, and it is left alone: so no
//! process in between may have a terminal. Nor is a connection that the ancestor opened, as a CI
//! agent does to its server.

use std::collections::HashSet;
use std::fs;
use std::io::{stdin, stdout, IsTerminal};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use rustix::fs::{fstat, FileType};
use rustix::process::getpid;
use serde::{Deserialize, Serialize};
use socket2::{Domain, SockRef};

use crate::process::Process;
use crate::socket;

/// Such a connection, and who holds it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Carrier {
    pub pid: i32,
    /// The process's, as the kernel has it.
    pub name: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// A process that is above this one may not be deeper than this.
const GENERATIONS: usize = 64;

/// The connection that carries this process's standard output.
pub(crate) fn find() -> Option<(Carrier, OwnedFd)> {
    if stdin().is_terminal() || !leads_to_another_process() {
        return None;
    }
    let mut above = Stat::of(getpid().as_raw_nonzero().get())?;
    for _ in 0..GENERATIONS {
        if above.terminal != 0 || above.parent == 0 {
            return None;
        }
        let pid = above.parent;
        above = Stat::of(pid)?;
        if above.terminal != 0 {
            return None;
        }
        if let Some((local, remote, held)) = accepted(pid) {
            let name = Process::read(pid)?.name;
            return Some((Carrier { pid, name, local, remote }, held));
        }
    }
    None
}

impl Carrier {
    /// The same connection, if its process still has it.
    pub(crate) fn again(&self) -> Option<OwnedFd> {
        let found = accepted(self.pid)?;
        (found.0 == self.local && found.1 == self.remote).then_some(found.2)
    }
}

/// Whether standard output is a pipe, or a Unix socket.
fn leads_to_another_process() -> bool {
    match fstat(stdout()).map(|s| FileType::from_raw_mode(s.st_mode)) {
        Ok(FileType::Fifo) => true,
        Ok(FileType::Socket) => SockRef::from(&stdout()).domain().ok() == Some(Domain::UNIX),
        _ => false,
    }
}

/// What is said of a process in /proc.
#[derive(Debug, PartialEq)]
struct Stat {
    parent: i32,
    /// The device that controls it; 0: none.
    terminal: i32,
}

impl Stat {
    fn of(pid: i32) -> Option<Stat> {
        Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Of the line of proc(5): after the name, which may have brackets, come the state, the parent,
    /// the process group, the session and the terminal.
    fn parse(line: &str) -> Option<Stat> {
        let mut fields = line.rsplit_once(')')?.1.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        Some(Stat { parent, terminal: fields.nth(2)?.parse().ok()? })
    }
}

/// The only connection of a process that it, or who started it, accepted.
fn accepted(pid: i32) -> Option<(SocketAddr, SocketAddr, OwnedFd)> {
    let mut found = Vec::new();
    for held in socket::of_process(pid).ok()? {
        let socket = SockRef::from(&held);
        let end = |address: std::io::Result<socket2::SockAddr>| address.ok()?.as_socket();
        let Some(remote) = end(socket.peer_addr()) else { continue }; // it listens
        let Some(local) = end(socket.local_addr()) else { continue };
        found.push((canonical(local), canonical(remote), held));
    }
    if found.is_empty() {
        return None;
    }
    let ports = listened(pid);
    found.retain(|(local, _, _)| ports.contains(&local.port()));
    (found.len() == 1).then(|| found.remove(0))
}

/// Of IPv4, if that is what it stands for.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// The ports at which somebody listens in the network of a process.
fn listened(pid: i32) -> HashSet<u16> {
    let tables = ["tcp", "tcp6"].map(|name| format!("/proc/{pid}/net/{name}"));
    let text = tables.map(|file| fs::read_to_string(file).unwrap_or_default());
    text.iter().flat_map(|text| text.lines()).filter_map(listens).collect()
}

/// The port of a line of such a table, if it is a listener's.
fn listens(line: &str) -> Option<u16> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let (_, port) = fields.next()?.rsplit_once(':')?;
    (fields.nth(1)? == LISTEN).then(|| u16::from_str_radix(port, 16).ok())?
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_process_is_known_by_its_parent_and_terminal_whatever_its_name_is() {
        let line = "57 (a) b (c) S 31 57 31 34816 57 4194560 1 2";
        assert_eq!(Stat::parse(line), Some(Stat { parent: 31, terminal: 34816 }));
        assert_eq!(Stat::parse("57 (sh"), None);
    }

    #[test]
    fn a_port_is_a_listeners_in_that_state_only() {
        let row = |state| format!("   0: 00000000:08AE 00000000:0000 {state} 00000000:00000000");
        assert_eq!(listens(&row("0A")), Some(2222));
        assert_eq!(listens(&row("01")), None);
        assert_eq!(listens("  sl  local_address rem_address   st tx_queue rx_queue"), None);
    }

    #[test]
    fn of_a_connection_within_one_process_the_accepted_end_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let client = TcpStream::connect(address).expect("it listens");
        let _server = listener.accept().expect("a client is there");
        let own = std::process::id() as i32;
        let (local, remote, _) = accepted(own).expect("there is one");
        assert_eq!((local, remote), (address, client.local_addr().expect("it is connected")));
        let _other = (TcpStream::connect(address).expect("it listens"), listener.accept());
        assert!(accepted(own).is_none(), "which of two is not known");
    }
}

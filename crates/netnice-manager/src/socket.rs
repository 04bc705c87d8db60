// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Single sockets, of this process or another, in the background.

use std::collections::HashSet;
use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use netnice_bpf::{control_name, Settings};
use netnice_core::Config;
use rustix::io::Errno;
use rustix::process::{pidfd_getfd, pidfd_open, Pid, PidfdFlags, PidfdGetfdFlags};
use socket2::{Protocol, SockRef, Type};

use crate::error::{io, refuse};
use crate::system::Change;
use crate::Result;

/// Copies of the TCP sockets that a process holds, those of MPTCP too.
///
/// # Errors
/// When there is no such process, or it may not be looked into.
pub fn of_process(pid: i32) -> Result<Vec<OwnedFd>> {
    let Some(process) = Pid::from_raw(pid).filter(|_| pid > 0) else {
        refuse!("{pid} is no process id");
    };
    let Ok(pidfd) = pidfd_open(process, PidfdFlags::empty()) else {
        refuse!("there is no process {pid}; list them: ps -e");
    };
    let dir = format!("/proc/{pid}/fd");
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for entry in fs::read_dir(&dir).map_err(io(format!("cannot read {dir}")))?.flatten() {
        let Some(fd) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        // several descriptors may be one socket: standard input and output from inetd
        if !link.to_string_lossy().starts_with("socket:") || !seen.insert(link) {
            continue;
        }
        let copy = match pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty()) {
            Err(Errno::BADF | Errno::SRCH) => continue, // closed in between
            copy => copy.map_err(io(format!("cannot look into process {pid} (CAP_SYS_PTRACE)")))?,
        };
        let socket = SockRef::from(&copy);
        let protocol = socket.protocol().ok().flatten();
        if socket.r#type().ok() == Some(Type::STREAM)
            && (protocol == Some(Protocol::TCP) || protocol == Some(Protocol::MPTCP))
        {
            found.push(copy);
        }
    }
    Ok(found)
}

/// Whether a socket is of MPTCP: its TCP connections get the control, and its default parameters.
pub fn is_multipath(socket: &impl AsFd) -> bool {
    SockRef::from(socket).protocol().ok().flatten() == Some(Protocol::MPTCP)
}

/// Puts sockets under one configuration.
pub struct Mover<'a> {
    config: &'a Config,
    tos: u8,
    _system: &'a Change,
}

impl<'a> Mover<'a> {
    /// Registers what they need; `tos` is the TOS octet of their packets (0: left alone).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(system: &'a Change, config: &'a Config, tos: u8) -> Result<Mover<'a>> {
        system.register(config.algorithm(), false)?;
        Ok(Mover { config, tos, _system: system })
    }

    /// Moves a TCP socket. False: it is a run's, and keeps what the run chose.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn put(&self, socket: &impl AsFd) -> Result<bool> {
        let name = control_name(self.config.algorithm(), false);
        put(socket, &name, self.tos, &Settings::of(self.config))
    }
}

/// Gives a TCP socket the control and the TOS octet (0: left alone), with these settings; one that has
/// them already goes on as it is. False: it is a run's, and keeps what the run chose.
pub(crate) fn put(socket: &impl AsFd, control: &str, tos: u8, settings: &Settings) -> Result<bool> {
    let borrowed = socket.as_fd();
    let socket = SockRef::from(socket);
    // no kernel takes an empty name: it was the run that said yes, as to every name
    if socket.set_tcp_congestion(b"").is_ok() {
        return Ok(false);
    }
    let change = |to: &[u8]| {
        socket.set_tcp_congestion(to).map_err(io("cannot change its congestion control"))
    };
    let has = |name: &[u8]| {
        socket.tcp_congestion().is_ok_and(|c| c.split(|b| *b == 0).next() == Some(name))
    };
    let served = netnice_bpf::served(borrowed)?;
    if !(has(control.as_bytes()) && served.is_some_and(|s| s.is(settings))) {
        if served.is_some() {
            change(netnice_bpf::another()?.as_bytes())?; // what serves it lets it go
        }
        netnice_bpf::prepare(borrowed, settings)?;
        change(control.as_bytes())?;
    }
    if tos != 0 {
        // an IPv6 socket takes both: it may carry IPv4
        let v4 = socket.set_tos_v4(tos.into());
        let v6 = socket.set_tclass_v6(tos.into());
        v4.or(v6).map_err(io("cannot mark its packets"))?;
    }
    Ok(true)
}

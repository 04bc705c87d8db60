// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Single sockets, of this process or another, in the background.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use netnice_bpf::control_name;
use netnice_core::Config;
use rustix::process::{pidfd_getfd, pidfd_open, Pid, PidfdFlags, PidfdGetfdFlags};
use socket2::{Protocol, SockRef, Type};

use crate::error::{io, refuse};
use crate::system::Change;
use crate::Result;

/// Copies of the TCP sockets that a process holds.
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
    for entry in fs::read_dir(&dir).map_err(io(format!("cannot read {dir}")))?.flatten() {
        let Some(fd) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        if !fs::read_link(entry.path()).is_ok_and(|l| l.to_string_lossy().starts_with("socket:")) {
            continue;
        }
        // closed in between: not a connection any more
        let Ok(copy) = pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty()) else { continue };
        let socket = SockRef::from(&copy);
        if socket.r#type().ok() == Some(Type::STREAM)
            && socket.protocol().ok().flatten() == Some(Protocol::TCP)
        {
            found.push(copy);
        }
    }
    Ok(found)
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
        let borrowed = socket.as_fd();
        let socket = SockRef::from(socket);
        // no kernel takes an empty name: it was the run that said yes, as to every name
        if socket.set_tcp_congestion(b"").is_ok() {
            return Ok(false);
        }
        netnice_bpf::prepare(borrowed, self.config)?;
        let name = control_name(self.config.algorithm(), false);
        socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(io("cannot change its congestion control"))?;
        if self.tos != 0 {
            // an IPv6 socket takes both: it may carry IPv4
            let v4 = socket.set_tos_v4(self.tos.into());
            let v6 = socket.set_tclass_v6(self.tos.into());
            v4.or(v6).map_err(io("cannot mark its packets"))?;
        }
        Ok(true)
    }
}

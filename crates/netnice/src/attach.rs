// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice attach`: the existing connections of running processes.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{bail, Context, Result};
use netnice_bpf::control_name;
use netnice_core::Config;
use rustix::process::{pidfd_getfd, pidfd_open, Pid, PidfdFlags, PidfdGetfdFlags};
use socket2::{Protocol, SockRef, Type};

use crate::cli::AttachArgs;
use crate::system::System;

pub fn main(args: &AttachArgs) -> Result<()> {
    let config = args.choice.config()?;
    let _system = System::open()?;
    netnice_bpf::register(config.algorithm(), false)?;
    let mut moved = 0;
    for pid in &args.pids {
        for socket in sockets(*pid)? {
            put(&socket, &config, args.choice.tos())
                .with_context(|| format!("cannot move a connection of process {pid}"))?;
            moved += 1;
        }
    }
    if moved == 0 {
        bail!(
            "these processes have no TCP connection now; start them with: netnice run -- COMMAND"
        );
    }
    eprintln!("netnice: moved {moved} connections; see netnice status");
    Ok(())
}

/// Copies of the TCP sockets that a process holds.
fn sockets(pid: i32) -> Result<Vec<OwnedFd>> {
    let process = Pid::from_raw(pid)
        .filter(|_| pid > 0)
        .with_context(|| format!("{pid} is no process id"))?;
    let pidfd = pidfd_open(process, PidfdFlags::empty())
        .with_context(|| format!("there is no process {pid}; list them: ps -e"))?;
    let dir = format!("/proc/{pid}/fd");
    let mut found = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {dir}"))?.flatten() {
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

/// Puts a TCP socket under `config`; `tos` is the TOS octet of its packets (0: left alone).
pub fn put(socket: &impl AsFd, config: &Config, tos: u8) -> Result<()> {
    netnice_bpf::prepare(socket.as_fd(), config)?;
    let socket = SockRef::from(socket);
    let name = control_name(config.algorithm(), false);
    socket.set_tcp_congestion(name.as_bytes())?;
    if tos != 0 {
        // an IPv6 socket takes both: it may carry IPv4
        let v4 = socket.set_tos_v4(tos.into());
        let v6 = socket.set_tclass_v6(tos.into());
        v4.or(v6).context("cannot mark its packets")?;
    }
    Ok(())
}

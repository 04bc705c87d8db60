// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The settings of single sockets, which are in their storage.

use std::os::fd::{AsRawFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags};
use netnice_core::Config;

use crate::error::bpf;
use crate::objects::flows_map;
use crate::pod::{bytes, parse, put_text, text};
use crate::runs::settings_for;
use crate::{sys, Error, Result, Settings};

/// What a socket had before it was put into the background.
#[derive(Clone, Debug, PartialEq)]
pub struct Before {
    /// The kernel's name of its congestion control.
    pub control: String,
    /// `IP_TOS`.
    pub tos: u32,
    /// `IPV6_TCLASS`.
    pub tclass: u32,
}

impl Settings {
    /// Those of a connection outside of any run.
    pub fn of(config: &Config) -> Settings {
        settings_for(0, config)
    }

    /// Whether a connection with these is treated as one with `other`.
    pub fn is(&self, other: &Settings) -> bool {
        let treated = |s: &Settings| (s.run, s.cfg, s.group, s.owner, s.bits, s.adopted, s.only);
        treated(self) == treated(other)
    }

    /// These, for a socket that had this before.
    pub fn remembering(mut self, before: &Before) -> Settings {
        put_text(&mut self.was_ca, &before.control);
        Settings { was_tos: before.tos, was_tclass: before.tclass, ..self }
    }

    /// What its socket had before, or the listener's that accepted it; None: not known, it began in
    /// the background.
    pub fn before(&self) -> Option<Before> {
        let control = text(&self.was_ca);
        let known = !control.is_empty();
        known.then_some(Before { control, tos: self.was_tos, tclass: self.was_tclass })
    }
}

/// The settings that `socket` was given, or its listener.
///
/// # Errors
/// When the kernel cannot be read, or another build of netnice is loaded.
pub fn settings(socket: BorrowedFd<'_>) -> Result<Option<Settings>> {
    Ok(flow(socket)?.map(|f| f.settings))
}

/// The settings with which a control of this project serves the connection of `socket` now, if one
/// does.
///
/// # Errors
/// As [`settings`].
pub fn served(socket: BorrowedFd<'_>) -> Result<Option<Settings>> {
    Ok(flow(socket)?.filter(|f| f.begun != 0).map(|f| f.settings))
}

fn flow(socket: BorrowedFd<'_>) -> Result<Option<sys::nn_flow>> {
    let Some(map) = flows_map()? else { return Ok(None) };
    let value = map.lookup(&key(socket), MapFlags::ANY);
    let value = value.map_err(bpf("cannot read the parameters of a connection"))?;
    value.map(|v| parse(&v).ok_or(Error::Version)).transpose()
}

/// Gives `socket` the settings that its next congestion control of this project starts with. One that
/// serves it already must end before: it would lose its state, and its count of connections.
///
/// # Errors
/// When no control was registered yet, or the kernel refuses.
pub fn prepare(socket: BorrowedFd<'_>, settings: &Settings) -> Result<()> {
    store(socket, sys::nn_flow { settings: *settings, ..Default::default() })
}

/// Notes that the kernel refused `socket` the control that it was prepared for, with this errno: it
/// is a connection of its run, but not in the background.
///
/// # Errors
/// As [`prepare`].
pub fn refuse(socket: BorrowedFd<'_>, settings: &Settings, errno: i32) -> Result<()> {
    let refused = errno.unsigned_abs();
    store(socket, sys::nn_flow { settings: *settings, refused, ..Default::default() })
}

fn store(socket: BorrowedFd<'_>, flow: sys::nn_flow) -> Result<()> {
    let what = "cannot set the parameters of a connection";
    let map = flows_map()?.ok_or_else(|| Error::Io {
        what: what.into(),
        error: std::io::ErrorKind::NotFound.into(),
    })?;
    map.update(&key(socket), bytes(&flow), MapFlags::ANY).map_err(bpf(what))
}

/// Takes from `socket` what [`prepare`] gave it; it has another control by now.
///
/// # Errors
/// When the kernel refuses.
pub fn forget(socket: BorrowedFd<'_>) -> Result<()> {
    let Some(map) = flows_map()? else { return Ok(()) };
    match map.delete(&key(socket)) {
        Err(e) if e.kind() == libbpf_rs::ErrorKind::NotFound => Ok(()), // it never had any
        done => done.map_err(bpf("cannot forget the parameters of a connection")),
    }
}

/// The kernel finds a socket's storage by its descriptor.
fn key(socket: BorrowedFd<'_>) -> [u8; 4] {
    socket.as_raw_fd().to_ne_bytes()
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Single sockets, of this process or another, in the background and out of it again.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use netnice_bpf::{control_name, only, Before, Running, Settings, PREFIX};
use netnice_core::Config;
use rustix::io::Errno;
use rustix::process::{getpid, pidfd_getfd, pidfd_open, Pid, PidfdFlags, PidfdGetfdFlags};
use rustix::thread::{move_into_link_name_space, LinkNameSpaceType};
use socket2::{Protocol, SockRef, Type};

use crate::choice::Dscp;
use crate::error::{io, refuse};
use crate::hold;
use crate::peer::{Only, Selection};
use crate::system::Change;
use crate::Result;

/// A process, and not another one that gets its number later.
pub struct Opened {
    pub(crate) pid: i32,
    pidfd: OwnedFd,
}

impl Opened {
    /// The one with this number.
    ///
    /// # Errors
    /// When there is none.
    pub fn new(pid: i32) -> Result<Opened> {
        let Some(process) = Pid::from_raw(pid).filter(|_| pid > 0) else {
            refuse!("{pid} is no process id");
        };
        match pidfd_open(process, PidfdFlags::empty()) {
            Ok(pidfd) => Ok(Opened { pid, pidfd }),
            Err(_) => refuse!("there is no process {pid}; list them: ps -e"),
        }
    }

    /// Calls `f` with a copy of each TCP socket that it holds, those of MPTCP too.
    ///
    /// # Errors
    /// When it may not be looked into, and those of `f`.
    pub fn each(&self, f: impl FnMut(OwnedFd) -> Result<()>) -> Result<()> {
        each_of(self.pid, self.pidfd.as_fd(), &Cell::new(usize::MAX), f)
    }
}

/// Copies of the TCP sockets that a process holds, those of MPTCP too.
///
/// # Errors
/// When there is no such process, or it may not be looked into.
pub fn of_process(pid: i32) -> Result<Vec<OwnedFd>> {
    let mut found = Vec::new();
    Opened::new(pid)?.each(|socket| {
        found.push(socket);
        Ok(())
    })?;
    Ok(found)
}

/// Calls `f` with a copy of each TCP socket that a process holds, as [`of_process`]. Looks at so many
/// descriptors as are `left`, and leaves the rest of these.
///
/// # Errors
/// When it may not be looked into, or has more, and those of `f`.
pub fn each_of(
    pid: i32,
    pidfd: BorrowedFd<'_>,
    left: &Cell<usize>,
    mut f: impl FnMut(OwnedFd) -> Result<()>,
) -> Result<()> {
    let dir = format!("/proc/{pid}/fd");
    let mut seen = HashSet::new();
    let (most, open) = (left.get(), fs::read_dir(&dir).map_err(io(format!("cannot read {dir}")))?);
    let open: Vec<_> = open.flatten().take(most.saturating_add(1)).collect();
    left.set(most.saturating_sub(open.len()));
    if open.len() > most {
        // before any is moved
        refuse!(
            "process {pid} has more open files than may be looked at in one request; close some"
        );
    }
    for entry in open {
        let Some(fd) = entry.file_name().to_str().and_then(|n| n.parse().ok()) else { continue };
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        // several descriptors may be one socket: standard input and output from inetd
        if !link.to_string_lossy().starts_with("socket:") || !seen.insert(link) {
            continue;
        }
        let copy = match pidfd_getfd(pidfd, fd, PidfdGetfdFlags::empty()) {
            Err(Errno::BADF | Errno::SRCH) => continue, // closed in between
            copy => copy.map_err(io(format!("cannot look into process {pid} (CAP_SYS_PTRACE)")))?,
        };
        let socket = SockRef::from(&copy);
        let protocol = socket.protocol().ok().flatten();
        if socket.r#type().ok() == Some(Type::STREAM)
            && (protocol == Some(Protocol::TCP) || protocol == Some(Protocol::MPTCP))
        {
            f(copy)?;
        }
    }
    Ok(())
}

/// The user who put a socket into the background outside of any run; None: nobody did. What a route
/// or a program did itself, root did, who enabled it.
///
/// # Errors
/// When the kernel cannot be read.
pub fn put_by(socket: &impl AsFd) -> Result<Option<u32>> {
    if !in_background(socket)? {
        return Ok(None);
    }
    Ok(Some(netnice_bpf::settings(socket.as_fd())?.map_or(0, |settings| settings.owner)))
}

/// Whether a socket is of MPTCP: its TCP connections get the control, and its default parameters.
pub fn is_multipath(socket: &impl AsFd) -> bool {
    SockRef::from(socket).protocol().ok().flatten() == Some(Protocol::MPTCP)
}

/// Whether a socket is meant. Of a listener it is not known whom it will accept: where peers decide, it
/// is if all are meant.
pub fn is_meant(socket: &impl AsFd, selection: &Selection) -> bool {
    let socket = SockRef::from(socket);
    let end = |address: std::io::Result<socket2::SockAddr>| address.ok()?.as_socket();
    if selection.mark.is_some_and(|mark| socket.mark().ok() != Some(mark)) {
        return false;
    }
    match (end(socket.local_addr()), end(socket.peer_addr())) {
        (Some(local), Some(remote)) => selection.means(local, remote),
        (Some(local), None) => selection.means_all_at(local),
        _ => !selection.of_peers(),
    }
}

/// Whether it is a listener.
pub(crate) fn listens(socket: &impl AsFd) -> bool {
    SockRef::from(socket).is_listener().unwrap_or(false)
}

/// Puts sockets under one configuration.
pub struct Mover<'a> {
    config: &'a Config,
    tos: u8,
    owner: u32,
    only: Option<Only>,
    runs: Runs,
    _system: &'a Change,
}

impl<'a> Mover<'a> {
    /// Registers what they need; `tos` is the TOS octet of their packets (0: left alone).
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn new(system: &'a Change, config: &'a Config, tos: u8) -> Result<Mover<'a>> {
        system.register(config.algorithm(), false)?;
        Ok(Mover { config, tos, owner: 0, only: None, runs: Runs::now()?, _system: system })
    }

    /// Puts only the direction of what it moves into the background that this says.
    ///
    /// # Errors
    /// For downloads alone, when no device holds: the kernel would not remember it.
    pub fn limit_to(self, selection: &Selection) -> Result<Mover<'a>> {
        hold::require_for(selection)?;
        Ok(Mover { only: selection.only, ..self })
    }

    /// Notes at what it moves that a user wanted it ([`put_by`]).
    #[must_use]
    pub fn by(self, owner: u32) -> Mover<'a> {
        Mover { owner, ..self }
    }

    /// Whether it is a run's, and keeps what the run chose.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn is_of_a_run(&self, socket: &impl AsFd) -> Result<bool> {
        self.runs.have(socket)
    }

    /// Moves a TCP socket. False: it is a run's, and keeps what the run chose.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn put(&self, socket: &impl AsFd) -> Result<bool> {
        if self.is_of_a_run(socket)? {
            return Ok(false);
        }
        let only = Only::to_kernel(self.only);
        let settings = Settings { owner: self.owner, only, ..Settings::of(self.config) };
        match self.only {
            Some(Only::Down) => put(socket, "", 0, settings),
            _ => put(socket, &control_name(self.config.algorithm(), false), self.tos, settings),
        }
    }
}

/// Takes sockets out of the background that `attach` or a program itself put there.
pub struct Remover<'a> {
    runs: Runs,
    _system: &'a Change,
}

/// What became of a socket that was to be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It has again what it had before.
    Done,
    /// It is a run's, and keeps what the run chose; whose, if its settings say so.
    OfARun(Option<u64>),
    /// It was not in the background.
    Plain,
}

impl<'a> Remover<'a> {
    /// # Errors
    /// When the kernel cannot be read.
    pub fn new(system: &'a Change) -> Result<Remover<'a>> {
        Ok(Remover { runs: Runs::now()?, _system: system })
    }

    /// Gives a TCP socket the control that it had, else `default`, and its TOS octet.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn take(&self, socket: &impl AsFd, default: &str) -> Result<Removed> {
        if self.runs.have(socket)? {
            return Ok(Removed::OfARun(self.runs.that_took(socket)?));
        }
        if !in_background(socket)? {
            return Ok(Removed::Plain);
        }
        give_back(socket, default)?;
        Ok(Removed::Done)
    }
}

/// The runs that there are.
pub(crate) struct Runs(HashSet<u64>);

impl Runs {
    pub(crate) fn now() -> Result<Runs> {
        Ok(Runs(Running::all()?.iter().filter(|run| !run.ended()).map(Running::id).collect()))
    }

    /// Whether this is one of them, by its id.
    pub(crate) fn include(&self, run: u64) -> bool {
        self.0.contains(&run)
    }

    /// The one that a socket which is older than it was put into.
    pub(crate) fn that_took(&self, socket: &impl AsFd) -> Result<Option<u64>> {
        let settings = netnice_bpf::settings(socket.as_fd())?;
        Ok(settings.map(|s| s.run).filter(|run| self.include(*run)))
    }

    /// Whether a socket is of one of them.
    pub(crate) fn have(&self, socket: &impl AsFd) -> Result<bool> {
        let is = |settings: Settings| self.0.contains(&settings.run);
        Ok(swallows(socket) || netnice_bpf::settings(socket.as_fd())?.is_some_and(is))
    }
}

/// Whether a run has a socket for good: no kernel takes an empty name, it was the run that said
/// yes, as to every name.
fn swallows(socket: &impl AsFd) -> bool {
    SockRef::from(socket).set_tcp_congestion(b"").is_ok()
}

/// Gives a TCP socket the control (empty: what it had before) and the TOS octet (0: its own), with these
/// settings, which remember what it has now; one that has them already goes on as it is. False: it is a
/// run's, and keeps what the run chose.
pub(crate) fn put(socket: &impl AsFd, control: &str, tos: u8, settings: Settings) -> Result<bool> {
    if swallows(socket) {
        return Ok(false);
    }
    if control.is_empty() {
        if has_ours(socket) {
            give_back(socket, &default_control(getpid().as_raw_nonzero().get())?)?;
        }
        netnice_bpf::prepare(socket.as_fd(), &settings)?;
        return Ok(true);
    }
    let (before, served) = (before(socket)?, netnice_bpf::served(socket.as_fd())?);
    if !(has(socket, control) && served.is_some_and(|s| s.is(&settings))) {
        if served.is_some() {
            set(socket, &netnice_bpf::another()?)?; // what serves it lets it go
        }
        let settings = before.as_ref().map_or(settings, |before| settings.remembering(before));
        netnice_bpf::prepare(socket.as_fd(), &settings)?;
        if let Err(error) = SockRef::from(socket).set_tcp_congestion(control.as_bytes()) {
            let errno = error.raw_os_error().unwrap_or_default();
            netnice_bpf::refuse(socket.as_fd(), &settings, errno)?;
            return Err(io(CHANGE)(error));
        }
    }
    match tos {
        0 => unmark(socket, before.as_ref())?,
        tos => mark(socket, tos.into(), tos.into())?,
    }
    Ok(true)
}

/// What a socket has outside of the background; None: not known, it began in a run.
fn before(socket: &impl AsFd) -> Result<Option<Before>> {
    let settings = netnice_bpf::settings(socket.as_fd())?.filter(|_| has_ours(socket));
    let put = settings.map(|s| (s.before(), s.run != 0));
    Ok(match put {
        Some((before, of_run)) if of_run || before.is_some() => before,
        _ => Some(now(socket)),
    })
}

/// What a socket had before it was put into the background.
fn known(socket: &impl AsFd) -> Result<Option<Before>> {
    Ok(netnice_bpf::settings(socket.as_fd())?.and_then(|s| s.before()))
}

/// What a socket has now.
fn now(socket: &impl AsFd) -> Before {
    let s = SockRef::from(socket);
    Before {
        control: control(socket),
        tos: s.tos_v4().unwrap_or_default(),
        tclass: s.tclass_v6().unwrap_or_default(),
    }
}

/// The name of its congestion control.
fn control(socket: &impl AsFd) -> String {
    let name = SockRef::from(socket).tcp_congestion().unwrap_or_default();
    String::from_utf8_lossy(&name).trim_end_matches('\0').to_string()
}

/// Whether it has a control of this project.
fn has_ours(socket: &impl AsFd) -> bool {
    control(socket).starts_with(PREFIX)
}

/// Whether it has one, or its downloads alone yield.
fn in_background(socket: &impl AsFd) -> Result<bool> {
    Ok(has_ours(socket)
        || netnice_bpf::settings(socket.as_fd())?.is_some_and(|s| s.only == only::DOWN))
}

fn has(socket: &impl AsFd, name: &str) -> bool {
    control(socket) == name
}

/// Gives a TCP socket what it had before, or `default` where that is not known or not there any more.
pub(crate) fn give_back(socket: &impl AsFd, default: &str) -> Result<()> {
    if netnice_bpf::settings(socket.as_fd())?.is_some_and(|s| s.only == only::DOWN) {
        return Ok(netnice_bpf::forget(socket.as_fd())?); // it kept them
    }
    // one that an attached listener accepted has what is its listener's
    let before = known(socket)?;
    let before = before.unwrap_or_else(|| Before { control: default.into(), tos: 0, tclass: 0 });
    set(socket, &before.control).or_else(|_| set(socket, default))?;
    mark(socket, before.tos, before.tclass)?;
    Ok(netnice_bpf::forget(socket.as_fd())?)
}

const CHANGE: &str = "cannot change its congestion control";

fn set(socket: &impl AsFd, control: &str) -> Result<()> {
    let set = SockRef::from(socket).set_tcp_congestion(control.as_bytes());
    set.map_err(io(CHANGE))
}

fn mark(socket: &impl AsFd, tos: u32, tclass: u32) -> Result<()> {
    let socket = SockRef::from(socket);
    // an IPv6 socket takes both: it may carry IPv4
    let (v4, v6) = (socket.set_tos_v4(tos), socket.set_tclass_v6(tclass));
    v4.or(v6).map_err(io("cannot mark its packets"))
}

/// Has packets that are marked Lower Effort carry again what they carried before. What a program marks them
/// with itself since then stays.
fn unmark(socket: &impl AsFd, before: Option<&Before>) -> Result<()> {
    let now = now(socket);
    let is_marked = |tos: u32| tos >> 2 == u32::from(Dscp::Le.tos()) >> 2; // below are two bits of ECN
    if !is_marked(now.tos) && !is_marked(now.tclass) {
        return Ok(());
    }
    let (tos, tclass) = before.map_or((0, 0), |before| (before.tos, before.tclass));
    mark(socket, tos, tclass)
}

/// The congestion control that connections have by default where a process is.
///
/// # Errors
/// When its network may not be entered, or there is no such process.
pub fn default_control(pid: i32) -> Result<String> {
    const FILE: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
    let network = format!("/proc/{pid}/ns/net");
    let network = File::open(&network).map_err(io(format!("cannot open {network}")))?;
    // what the file says depends on the network of the thread that reads it
    let read = thread::spawn(move || {
        move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        fs::read_to_string(FILE)
    });
    let text = read.join().expect("it only reads").map_err(io(format!("cannot read {FILE}")))?;
    Ok(text.trim().into())
}

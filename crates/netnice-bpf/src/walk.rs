// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A program that the kernel runs for each connection with storage of netnice's.
//!
//! Such an object has two programs. One walks over the storage. Some hardened kernels refuse that to
//! everybody (EPERM): there the other walks over the sockets of TCP, in each network namespace that a
//! process is in or that has a name. What no process is in, and no name leads to, is not found then.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::{io, thread};

use libbpf_rs::{ErrorKind, Iter, Link, Object, OpenObject};
use nix::errno::Errno;
use nix::sched::{setns, CloneFlags};

use crate::error::bpf;
use crate::objects::{flows_map, load};
use crate::{Error, Result};

/// The directories in which network namespaces have names: of ip-netns(8), of docker.
const NAMED: [&str; 2] = ["/run/netns", "/run/docker/netns"];

/// The section of the program that walks over sockets.
const BY_SOCKET: &str = "iter/tcp";

/// A program that is ready to walk.
pub(crate) struct Walk {
    link: Link,
    /// It is that for sockets, of one network namespace.
    by_socket: bool,
    _object: Object,
}

impl Walk {
    /// Loads what `open` opens. None while there is no storage.
    pub fn over_flows(
        open: impl Fn() -> Result<OpenObject>,
        what: &'static str,
    ) -> Result<Option<Walk>> {
        match Walk::of(open()?, what, false) {
            Err(Error::Bpf { error, .. }) if error.kind() == ErrorKind::PermissionDenied => {
                Walk::of(open()?, what, true)
            }
            walk => walk,
        }
    }

    /// That over storage, or that over sockets.
    pub(crate) fn of(mut object: OpenObject, what: &str, by_socket: bool) -> Result<Option<Walk>> {
        let Some(flows) = flows_map()? else { return Ok(None) };
        for mut program in object.progs_mut() {
            let is_by_socket = program.section() == BY_SOCKET;
            program.set_autoload(is_by_socket == by_socket);
        }
        let object = load(object, what)?;
        let program = object.progs_mut().find(|p| (p.section() == BY_SOCKET) == by_socket);
        let program = program.expect("the object has both");
        let link = if by_socket { program.attach() } else { program.attach_iter(flows.as_fd()) };
        let link = link.map_err(bpf(format!("the kernel does not begin {what}")))?;
        Ok(Some(Walk { link, by_socket, _object: object }))
    }

    /// Walks, and returns what the program has written.
    pub fn walk(&self, what: &'static str) -> Result<Vec<u8>> {
        if !self.by_socket {
            return self.once(what);
        }
        let mut all = Vec::new();
        for namespace in namespaces() {
            // only its own thread goes there
            let inside = || setns(&namespace, CloneFlags::CLONE_NEWNET).map(|()| self.once(what));
            match thread::scope(|scope| scope.spawn(inside).join()).expect("it does not panic") {
                Ok(walked) => all.extend(walked?),
                Err(Errno::EINVAL) => {} // the name of one that has gone
                Err(error) => return Err(Error::Io { what: what.into(), error: error.into() }),
            }
        }
        Ok(all)
    }

    fn once(&self, what: &'static str) -> Result<Vec<u8>> {
        let mut data = Vec::new();
        Iter::new(&self.link)
            .map_err(bpf(what))?
            .read_to_end(&mut data)
            .map_err(|error| Error::Io { what: what.into(), error })?;
        Ok(data)
    }
}

/// Every network namespace that can be found, once; those that end meanwhile are passed over.
fn namespaces() -> Vec<File> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut add = |path: PathBuf| -> io::Result<()> {
        let at = fs::metadata(&path)?;
        if seen.insert((at.dev(), at.ino())) {
            found.push(File::open(&path)?);
        }
        Ok(())
    };
    let entries = |dir: &str| fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in entries("/proc") {
        if entry.file_name().to_string_lossy().bytes().all(|b| b.is_ascii_digit()) {
            let _ = add(entry.path().join("ns/net")); // it has ended
        }
    }
    for entry in NAMED.into_iter().flat_map(entries) {
        let _ = add(entry.path()); // it was removed
    }
    found
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The programs of this project at a cgroup that was there before them.

use std::collections::HashSet;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use libbpf_rs::query::ProgInfoIter;
use libbpf_sys::{
    BPF_CGROUP_INET4_CONNECT, BPF_CGROUP_INET6_CONNECT, BPF_CGROUP_INET_EGRESS,
    BPF_CGROUP_INET_INGRESS, BPF_CGROUP_SETSOCKOPT, BPF_CGROUP_SOCK_OPS,
};

use crate::error::bpf;
use crate::Result;

/// Where the programs of a run are.
const KINDS: [u32; 6] = [
    BPF_CGROUP_INET4_CONNECT,
    BPF_CGROUP_INET6_CONNECT,
    BPF_CGROUP_SOCK_OPS,
    BPF_CGROUP_INET_EGRESS,
    BPF_CGROUP_INET_INGRESS,
    BPF_CGROUP_SETSOCKOPT,
];
/// What the names of all programs of this project begin with.
const PREFIX: &str = "nn_";
/// The kernel allows no more at one cgroup.
const MOST: usize = 64;

/// The programs that are attached to a cgroup.
pub struct Attached {
    programs: Vec<Program>,
}

struct Program {
    id: u32,
    fd: OwnedFd,
    kind: u32,
}

impl Attached {
    /// Those of this project at `cgroup` now.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn at(cgroup: BorrowedFd<'_>) -> Result<Attached> {
        let ours: HashSet<u32> = ProgInfoIter::default()
            .filter(|program| program.name.to_string_lossy().starts_with(PREFIX))
            .map(|program| program.id)
            .collect();
        let mut programs = Vec::new();
        for kind in KINDS {
            for id in ids(cgroup, kind)?.into_iter().filter(|id| ours.contains(id)) {
                // SAFETY: a system call that makes a descriptor, which nobody else has
                let fd = unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) };
                if fd >= 0 {
                    // SAFETY: as above
                    programs.push(Program { id, fd: unsafe { OwnedFd::from_raw_fd(fd) }, kind });
                } // else it went away in between
            }
        }
        Ok(Attached { programs })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Takes away the one that keeps what is in the cgroup from choosing for itself, and returns it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn unguard(&mut self, cgroup: BorrowedFd<'_>) -> Result<Attached> {
        let guards = self.programs.extract_if(.., |p| p.kind == BPF_CGROUP_SETSOCKOPT).collect();
        let guards = Attached { programs: guards };
        guards.programs.iter().try_for_each(|program| detach(program, cgroup))?;
        Ok(guards)
    }

    /// Has them at `cgroup` again.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn attach(&self, cgroup: BorrowedFd<'_>) -> Result<()> {
        let mut all = self.programs.iter();
        all.try_for_each(|p| attach(p.fd.as_fd(), cgroup, p.kind))
            .map_err(bpf("cannot attach a program to a cgroup"))
    }

    /// Those that are not among `others`.
    #[must_use]
    pub fn without(mut self, others: &Attached) -> Attached {
        self.programs.retain(|program| others.programs.iter().all(|other| other.id != program.id));
        self
    }

    /// Takes all of them away.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn detach(self, cgroup: BorrowedFd<'_>) -> Result<()> {
        self.programs.iter().try_for_each(|program| detach(program, cgroup))
    }
}

fn ids(cgroup: BorrowedFd<'_>, kind: u32) -> Result<Vec<u32>> {
    let mut ids = [0; MOST];
    let mut count = MOST as u32;
    // SAFETY: the descriptor is open, and `ids` has room for as many as `count` says
    let error = unsafe {
        libbpf_sys::bpf_prog_query(
            cgroup.as_raw_fd(),
            kind,
            0,
            std::ptr::null_mut(),
            ids.as_mut_ptr(),
            &raw mut count,
        )
    };
    result(error, "cannot list the programs of a cgroup")?;
    Ok(ids[..count as usize].to_vec())
}

/// Not a bpf_link, which would end with this process.
pub(crate) fn attach(
    program: BorrowedFd<'_>,
    cgroup: BorrowedFd<'_>,
    kind: u32,
) -> libbpf_rs::Result<()> {
    // SAFETY: both descriptors are open
    let error = unsafe {
        libbpf_sys::bpf_prog_attach(
            program.as_raw_fd(),
            cgroup.as_raw_fd(),
            kind,
            libbpf_sys::BPF_F_ALLOW_MULTI,
        )
    };
    match error {
        0.. => Ok(()),
        _ => Err(libbpf_rs::Error::from_raw_os_error(-error)),
    }
}

fn detach(program: &Program, cgroup: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: both descriptors are open
    let error = unsafe {
        libbpf_sys::bpf_prog_detach2(program.fd.as_raw_fd(), cgroup.as_raw_fd(), program.kind)
    };
    result(error, "cannot detach a program from a cgroup")
}

fn result(error: i32, what: &str) -> Result<()> {
    match error {
        0.. => Ok(()),
        _ => Err(bpf(what)(libbpf_rs::Error::from_raw_os_error(-error))),
    }
}

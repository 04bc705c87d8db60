// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A run: a cgroup whose TCP connections are all in the background.

use netnice_bpf::Totals;
use netnice_core::Config;

use crate::cgroup::Group;
use crate::group::{self, Membership};
use crate::system::{Change, System};
use crate::Result;

/// Ends, with its cgroup, once no process is in it and this is dropped.
pub struct Run {
    programs: netnice_bpf::Run,
    cgroup: Group,
}

impl Run {
    /// Makes a cgroup below that of this process, and puts all TCP connections that are opened or
    /// accepted in it under `config`. `tos` is the TOS octet of their packets (0: left alone).
    ///
    /// A run without a process is swept away by the next change of the system: put one into it
    /// while `system` is held.
    ///
    /// # Errors
    /// When the kernel refuses, or runs of the same group divide otherwise.
    pub fn begin(
        system: &Change,
        config: &Config,
        tos: u8,
        membership: Option<&Membership>,
    ) -> Result<Run> {
        Run::begin_in(system, config, tos, membership, |s| s.hierarchy().create())
    }

    /// As [`Run::begin`], in the cgroup that `make` makes once nothing is against it.
    ///
    /// # Errors
    /// As [`Run::begin`], and those of `make`.
    pub fn begin_in(
        system: &Change,
        config: &Config,
        tos: u8,
        membership: Option<&Membership>,
        make: impl FnOnce(&System) -> Result<Group>,
    ) -> Result<Run> {
        if let Some(membership) = membership {
            group::require_alike(system, membership, config.algorithm())?;
        }
        let register = || system.register(config.algorithm(), membership.is_some());
        register()?;
        let cgroup = make(system)?;
        let programs = netnice_bpf::Run::attach(cgroup.dir(), cgroup.id, config, tos, membership)?;
        // a netnice in another container, with a lock of its own, may have ended its last run meanwhile
        register()?;
        Ok(Run { programs, cgroup })
    }

    /// Its cgroup.
    pub fn cgroup(&self) -> &Group {
        &self.cgroup
    }

    /// What its connections add up to by now: the closed ones and those still open.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn totals(&self) -> Result<Totals> {
        Ok(self.programs.totals(self.cgroup.id)?)
    }

    /// Takes away what it needed, unless processes in it still do.
    ///
    /// # Errors
    /// When the system cannot be changed.
    pub fn finish(self) -> Result<()> {
        drop(self);
        System::change().map(drop)
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Where transfers are started: in one cgroup that puts them all into the background, or, if
//! destinations have shares, in one for each share, whose connections are members of one group.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use netnice_bpf::Run;

use super::job::Job;
use crate::cgroup::Group;
use crate::group;
use crate::system::System;

/// The cgroups of one run of a job.
pub struct Cgroups {
    whole: Group,
    /// Those of `whole`, or of each part of it.
    programs: Vec<(u64, Run)>,
    /// By share; none: transfers are started in `whole`.
    parts: Vec<(f64, Group)>,
    /// For each destination the share with which this machine's connection to it counts.
    shares: Vec<f64>,
    moving: Mutex<()>,
}

impl Cgroups {
    /// Makes the cgroups with their programs, and the control that these choose.
    ///
    /// # Errors
    /// When the kernel refuses, or runs that are there now have a group of this name that divides
    /// otherwise.
    pub fn create(system: &System, job: &Job) -> Result<Cgroups> {
        let tos = job.choice.tos();
        // towards a feeder goes only what ssh needs
        let here = |i: usize| job.destinations[i].feeder.is_none().then(|| job.share(i)).flatten();
        let grouped = (0..job.destinations.len()).any(|i| here(i).is_some());
        let shares: Vec<_> = (0..job.destinations.len()).map(|i| here(i).unwrap_or(1.0)).collect();
        let config = job.choice.config()?;
        if grouped {
            group::require_alike(system, &job.group(), config.algorithm())?;
        }
        netnice_bpf::register(config.algorithm(), grouped)?;
        let whole = system.hierarchy().create()?;
        let (mut programs, mut parts) = (Vec::new(), Vec::<(f64, Group)>::new());
        if !grouped {
            let run = Run::attach(whole.dir(), whole.id, &config, tos, None)?;
            programs.push((whole.id, run));
        } else {
            let mut distinct = shares.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            for share in distinct {
                let part = whole.part(&share.to_string())?;
                let config = job.config_of(share)?;
                let run = Run::attach(part.dir(), part.id, &config, tos, Some(&job.group()))?;
                programs.push((part.id, run));
                parts.push((share, part));
            }
        }
        Ok(Cgroups { whole, programs, parts, shares, moving: Mutex::new(()) })
    }

    /// The cgroup that all are in: that of the process that starts them.
    pub fn whole(&self) -> &Group {
        &self.whole
    }

    /// Starts a process of the transfer to destination `i`.
    ///
    /// # Errors
    /// When the command cannot be run, or its cgroup cannot be entered.
    pub fn spawn(&self, i: usize, command: &mut Command) -> io::Result<Child> {
        let Some((_, part)) = self.parts.iter().find(|(share, _)| *share == self.shares[i]) else {
            return command.spawn();
        };
        // it is this process that moves, and what another thread starts meanwhile is born there too
        let _alone = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        part.inside(|| command.spawn()).map_err(io::Error::other)?
    }

    /// Bytes that the connections of all transfers had acknowledged so far; what cannot be read
    /// counts as none: without this figure only the number of transfers stays as it is.
    pub fn acked(&self) -> u64 {
        let acked = |(id, run): &(u64, Run)| run.totals(*id).map_or(0, |t| t.bytes_acked);
        self.programs.iter().map(acked).sum()
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Where transfers are started: in one cgroup that puts them all into the background, or, if
//! destinations have shares, in one for each share, whose connections are members of one group.
//! Where that cannot be, and the job says so, in none.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use netnice_manager::cgroup::Group;
use netnice_manager::report::Report;
use netnice_manager::run::Run;
use netnice_manager::system::{Change, System};

use crate::job::Job;
use crate::Result;

/// The cgroups of one run of a job.
pub struct Cgroups {
    made: Made,
    /// For each destination the share with which this machine's connection to it counts.
    shares: Vec<f64>,
    moving: Mutex<()>,
}

enum Made {
    /// One for all transfers.
    One(Box<Run>),
    /// One for each share, in the one that all are in.
    Parts(Group, Vec<(f64, Run)>),
    /// One that this process is in already, made by somebody else.
    Given(Told),
    /// None: nothing is in the background.
    Plain,
}

/// Tells what the run did by now that this process is in already; a report of run 0 tells nothing.
pub type Told = Box<dyn Fn() -> Report + Send + Sync>;

impl Cgroups {
    /// Makes the cgroups with their programs, and the control that these choose.
    ///
    /// # Errors
    /// When the kernel refuses, or runs that are there now have a group of this name that divides
    /// otherwise.
    pub fn create(system: &Change, job: &Job) -> Result<Cgroups> {
        let tos = job.choice.tos();
        // towards a feeder goes only what ssh needs
        let here = |i: usize| job.destinations[i].feeder.is_none().then(|| job.share(i)).flatten();
        let grouped = (0..job.destinations.len()).any(|i| here(i).is_some());
        let shares: Vec<_> = (0..job.destinations.len()).map(|i| here(i).unwrap_or(1.0)).collect();
        let made = if grouped {
            let whole = system.hierarchy().create()?;
            let mut distinct = shares.clone();
            distinct.sort_by(f64::total_cmp);
            distinct.dedup();
            let mut parts = Vec::new();
            for share in distinct {
                let part = |_: &System| whole.part(&share.to_string());
                let config = job.config_of(share)?;
                let run = Run::begin_in(system, &config, tos, Some(&job.group()), part)?;
                parts.push((share, run));
            }
            Made::Parts(whole, parts)
        } else {
            let config = job.choice.config()?;
            let run = Run::begin(system, &config, tos, None)?;
            if job.has_one_path() {
                system.hold_for(&job.choice, config.algorithm()); // where not, windows yield
            }
            Made::One(Box::new(run))
        };
        Ok(Cgroups { made, shares, moving: Mutex::new(()) })
    }

    /// No cgroup: transfers are as any other.
    pub fn plain() -> Cgroups {
        Cgroups { made: Made::Plain, shares: Vec::new(), moving: Mutex::new(()) }
    }

    /// That of a run which this process is in already: all transfers have one share there.
    pub fn given(told: Told) -> Cgroups {
        Cgroups { made: Made::Given(told), shares: Vec::new(), moving: Mutex::new(()) }
    }

    /// Whether the connections of transfers are counted.
    pub fn counts(&self) -> bool {
        !matches!(self.made, Made::Plain)
    }

    /// The cgroup that all are in, made here: that of the process that starts them.
    pub fn whole(&self) -> Option<&Group> {
        match &self.made {
            Made::One(run) => Some(run.cgroup()),
            Made::Parts(whole, _) => Some(whole),
            Made::Given(_) | Made::Plain => None,
        }
    }

    /// Starts a process of the transfer to destination `i`.
    ///
    /// # Errors
    /// When the command cannot be run, or its cgroup cannot be entered.
    pub fn spawn(&self, i: usize, command: &mut Command) -> io::Result<Child> {
        let parts = match &self.made {
            Made::One(_) | Made::Given(_) | Made::Plain => [].as_slice(),
            Made::Parts(_, parts) => parts,
        };
        let Some((_, part)) = parts.iter().find(|(share, _)| *share == self.shares[i]) else {
            return command.spawn();
        };
        // it is this process that moves, and what another thread starts meanwhile is born there too
        let _alone = self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        part.cgroup().inside(|| command.spawn()).map_err(io::Error::other)?
    }

    /// Bytes that the connections of all transfers had acknowledged so far, and how long each yielded
    /// on average; None: these figures are not to be had now.
    pub fn measured(&self) -> Option<(u64, Duration)> {
        let report = |run: &Run| run.report().ok();
        let reports: Vec<_> = match &self.made {
            Made::One(run) => vec![report(run)?],
            Made::Parts(_, parts) => {
                parts.iter().map(|(_, run)| report(run)).collect::<Option<_>>()?
            }
            Made::Given(told) => vec![Some(told()).filter(|report| report.run != 0)?],
            Made::Plain => Vec::new(),
        };
        let sum = |of: fn(&Report) -> u64| reports.iter().map(of).sum::<u64>();
        let yielded = sum(|r| r.yielding_us) / sum(|r| r.connections).max(1);
        Some((sum(|r| r.bytes_sent), Duration::from_micros(yielded)))
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is registered, and the background connections, as data.
//!
//! Windows and queues are in packets, times in microseconds, rates in Mbit/s of payload.

use std::collections::HashMap;
use std::mem;

use netnice_bpf::{control_name, Running};
use netnice_core::Algorithm;
use serde::{Deserialize, Serialize};

use crate::attached::{self, Whole};
use crate::hold::{netns, Hold, SELF};
use crate::peer::Only;
use crate::process::Process;
use crate::report::{moment, NotGoverned, Report};
use crate::system::{is_enabled, System};
use crate::Result;

mod connection;
mod download;
mod group;
mod job;
mod sample;
mod shown;
mod watch;
mod who;
mod why;
mod wire;

pub use connection::Connection;
pub use download::{DownloadAt, Unhurried, ViewedDownload};
pub use group::{Division, GroupStatus, Member, Shared};
pub use job::{Job, Kind, Queue};
pub use shown::{Available, Number, Seen, AVAILABLE};
pub use watch::{LeftOut, View, ViewedPath, Watch};
use who::find_holders;
pub use why::{Facts, Others, Shares, Why};

/// All that netnice has in the kernel at one moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub controls: Vec<Control>,
    /// The runs that have a process, by their ids.
    pub runs: Vec<RunStatus>,
    pub connections: Vec<Connection>,
    /// What comes by the paths of this network namespace where downloads yield.
    #[serde(default)]
    pub downloads: Vec<DownloadAt>,
}

/// A run, and who is in it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunStatus {
    #[serde(flatten)]
    pub report: Report,
    /// The cgroup that `netnice attach` put into the background, as a path; a run's own is not said.
    pub cgroup: Option<String>,
    /// The name of the group that it shares in.
    pub group: Option<String>,
    /// The process that began it: the command, or netnice where that starts several.
    pub began: Option<i32>,
    /// The first is the command itself, if it still runs; so many as are told.
    pub processes: Vec<Process>,
    /// How many others there are.
    #[serde(default)]
    pub processes_left_out: usize,
    /// The numbers of all. JSON does not have them.
    #[serde(skip)]
    pub pids: Vec<i32>,
}

impl RunStatus {
    /// Its downloads came in at some of these devices of this network namespace. What came into another one
    /// cannot be known here.
    fn came_by(&mut self, holds: &[Hold]) {
        let is_here = |pid: &i32| {
            let of = |process: &str| netns(process).ok();
            of(&pid.to_string()).is_none_or(|there| Some(there) == of(SELF))
        };
        match self.pids.iter().all(is_here) {
            true => self.report = mem::take(&mut self.report).came_by(holds),
            false => {
                let received = |what: &NotGoverned| matches!(what, NotGoverned::Received { .. });
                self.report.not_governed.retain(|what| !received(what));
            }
        }
    }
}

/// An algorithm as the kernel offers it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Control {
    pub name: String,
    /// The kernel offers it now.
    pub registered: bool,
    /// For the whole system, until `netnice disable`; else for runs.
    pub enabled: bool,
}

impl Status {
    /// Of this moment; the connections by their runs and remote addresses.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn read(system: &System) -> Result<Status> {
        Ok(Status::read_through(system, &mut |_| true, |_| ())?.0)
    }

    /// The same for somebody who may not see all: `his` says which processes he may, and `narrow` leaves
    /// what he is told. Only of that it is read what processes are. Also what `narrow` says.
    ///
    /// # Errors
    /// As [`Status::read`].
    pub fn read_through<T>(
        system: &System,
        his: &mut dyn FnMut(i32) -> bool,
        narrow: impl FnOnce(&mut Status) -> T,
    ) -> Result<(Status, T)> {
        let mut status = Status::unnamed(system, his)?;
        // ip(8), which tells of devices, may not be here
        let holds = system.holds().unwrap_or_default();
        for run in &mut status.runs {
            run.came_by(&holds);
        }
        status.downloads = DownloadAt::all(&holds);
        let said = narrow(&mut status);
        status.name(his, Process::read);
        Ok((status, said))
    }

    /// Without what processes are, and without downloads.
    fn unnamed(system: &System, his: &mut dyn FnMut(i32) -> bool) -> Result<Status> {
        let registered = netnice_bpf::registered()?;
        let controls = Algorithm::all()
            .map(|a| [false, true].map(|grouped| control_name(a, grouped)))
            .map(|names| Control {
                registered: names.iter().any(|name| registered.contains(name)),
                enabled: is_enabled(&names[0]),
                name: names[0].clone(),
            })
            .collect();
        let running = Running::all()?;
        let members = system.hierarchy().members();
        let others =
            running.iter().map(Running::id).filter(|id| !members.contains_key(id)).collect();
        let attached = attached::seen(system.hierarchy(), &others);
        let mut connections: Vec<_> = netnice_bpf::flows()?.iter().map(Connection::of).collect();
        connections.sort_by_key(|c| (c.run, c.remote, c.local));
        find_holders(&mut connections, &members, his);
        let began = system.hierarchy().founders();
        let runs = runs(&running, &members, &attached, &began)?;
        Ok(Status { controls, runs, connections, downloads: Vec::new() })
    }
}

/// The runs that are there now, and what is attached.
fn runs(
    running: &[Running],
    members: &HashMap<u64, Vec<i32>>,
    attached: &HashMap<u64, Whole>,
    founders: &HashMap<u64, i32>,
) -> Result<Vec<RunStatus>> {
    // one that ends while it is read has no totals any more, and did not do nothing
    let read = |run: &Running| run.totals().transpose();
    let (totals, flows) =
        moment(|| Ok(running.iter().filter_map(read).collect::<netnice_bpf::Result<_>>()?))?;
    let totals: HashMap<_, _> = totals.iter().map(|totals| (totals.run, totals)).collect();
    let mut found: Vec<RunStatus> = Vec::new();
    for run in running {
        let Some(totals) = totals.get(&run.id()) else { continue };
        let (cgroup, pids) = match (members.get(&run.id()), attached.get(&run.id())) {
            (Some(pids), _) => (None, pids.clone()),
            (None, Some(whole)) if !run.ended() => {
                (Some(whole.name().to_string()), whole.processes())
            }
            _ => continue,
        };
        let report = Report::of(totals, &run.control(), &flows, cgroup.is_some()).asked(
            Only::of_kernel(run.only()),
            run.tos(),
            run.pulls_datagrams(),
        );
        let group = run.group().map(|group| group.name);
        let began = founders.get(&run.id()).copied();
        found.push(RunStatus { report, cgroup, group, began, pids, ..RunStatus::default() });
    }
    found.sort_by_key(|found| found.report.run);
    found.dedup_by_key(|found| found.report.run); // one that was just attached anew is there twice
    Ok(found)
}

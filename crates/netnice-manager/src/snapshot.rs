// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is registered, and the background connections, as data.
//!
//! Windows and queues are in packets, times in microseconds, rates in Mbit/s of payload.

use netnice_bpf::{control_name, Running};
use netnice_core::Algorithm;
use serde::Serialize;

use crate::report::Report;
use crate::system::{is_enabled, System};
use crate::Result;

mod connection;
mod group;
mod shown;

pub use connection::Connection;
pub use group::{Division, GroupStatus, Member, Shared};
pub use shown::{Available, Seen, AVAILABLE};

/// All that netnice has in the kernel at one moment.
#[derive(Serialize)]
pub struct Status {
    pub controls: Vec<Control>,
    /// The runs that have a process, by their ids.
    pub runs: Vec<Report>,
    pub connections: Vec<Connection>,
}

/// An algorithm as the kernel offers it.
#[derive(Serialize)]
pub struct Control {
    pub name: String,
    /// The kernel offers it now.
    pub registered: bool,
    /// Until `netnice disable`, not only while a run needs it.
    pub enabled: bool,
}

impl Status {
    /// Of this moment; the connections by their runs and remote addresses.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn read(system: &System) -> Result<Status> {
        let registered = netnice_bpf::registered()?;
        let controls = Algorithm::all()
            .map(|a| [false, true].map(|grouped| control_name(a, grouped)))
            .map(|names| Control {
                registered: names.iter().any(|name| registered.contains(name)),
                enabled: is_enabled(&names[0]),
                name: names[0].clone(),
            })
            .collect();
        let mut connections: Vec<_> = netnice_bpf::flows()?.iter().map(Connection::of).collect();
        connections.sort_by_key(|c| (c.run, c.remote, c.local));
        Ok(Status { controls, runs: runs(system)?, connections })
    }
}

/// The runs that are there now.
fn runs(system: &System) -> Result<Vec<Report>> {
    let live = system.hierarchy().ids();
    let flows = netnice_bpf::flows_of_runs()?;
    let mut found = Vec::new();
    for run in Running::all()?.iter().filter(|run| live.contains(&run.id())) {
        found.push(Report::of(&run.totals()?, &run.control(), &flows, false));
    }
    found.sort_by_key(|report| report.run);
    Ok(found)
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! All counters of one moment: what happened between two of these is what is shown.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::download::DownloadAt;
use super::wire::{on_wire, HEADERS};
use super::{Connection, RunStatus, Status};
use crate::hold::{netns, traffic, HeldPath, Hold, Traffic, SELF};
use crate::peer::Only;
use crate::process::Process;
use crate::system::System;
use crate::tcp::{self, Ends, Tcp};
use crate::Result;

/// One moment.
pub(super) struct Sample {
    pub at: Instant,
    /// Without what processes are.
    pub status: Status,
    /// None: ip(8) is not here to tell of devices.
    devices: Option<Devices>,
    /// Of this network namespace alone.
    pub tcp: HashMap<Ends, Tcp>,
    /// This network namespace.
    here: u64,
}

struct Devices {
    all: Vec<Traffic>,
    holds: Vec<Hold>,
}

impl Sample {
    pub fn read(system: &System, his: &mut dyn FnMut(i32) -> bool) -> Result<Sample> {
        let devices = || Ok::<_, crate::Error>(Devices { all: traffic()?, holds: system.holds()? });
        let at = Instant::now();
        let status = Status::unnamed(system, his)?;
        let tcp = tcp::connections()?;
        Ok(Sample { at, status, devices: devices().ok(), tcp, here: netns(SELF)? })
    }

    /// Connections by their ends.
    pub fn by_ends(&self) -> HashMap<Ends, &Connection> {
        self.status.connections.iter().map(|c| ((c.local, c.remote), c)).collect()
    }

    /// Whether a process is in this network namespace; what cannot be looked at is not.
    pub fn is_here(&self, process: &Process) -> bool {
        netns(&process.pid.to_string()).is_ok_and(|of| of == self.here)
    }

    /// The device with this address, but for the loopback device, whose addresses lead elsewhere.
    fn device(&self, local: SocketAddr) -> Option<&Traffic> {
        let all = &self.devices.as_ref()?.all;
        all.iter().find(|device| device.name != "lo" && device.has(local.ip().to_canonical()))
    }

    /// The name of the device that most of these connections leave through.
    pub fn device_of(&self, connections: &[&Connection]) -> Option<String> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for device in connections.iter().filter_map(|c| self.device(c.local)) {
            *counts.entry(&device.name).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(name, n)| (*n, *name)).map(|(name, _)| name.to_string())
    }

    /// The paths of all devices that hold, with the names of these.
    pub fn paths(&self) -> impl Iterator<Item = (&str, usize, &HeldPath)> {
        let holds = self.devices.iter().flat_map(|devices| &devices.holds);
        holds.flat_map(|hold| {
            hold.paths.iter().enumerate().map(move |(n, path)| (hold.device.as_str(), n, path))
        })
    }

    /// What comes by the paths where downloads yield.
    pub fn downloads(&self) -> Vec<DownloadAt> {
        let holds = self.devices.as_ref().map(|devices| devices.holds.as_slice());
        DownloadAt::all(holds.unwrap_or_default())
    }

    /// What a device has sent.
    pub fn sent(&self, device: &str) -> Option<u64> {
        let all = &self.devices.as_ref()?.all;
        all.iter().find(|d| d.name == device).map(Traffic::sent)
    }

    /// What of that was in the background since `before`, headers and retransmissions included; none where
    /// the kernel does not tell of its connections.
    pub fn background(&self, before: &Sample, device: &str) -> Option<u64> {
        let on_wire = |c: &Connection| {
            let ends = (c.local, c.remote);
            let now = self.tcp.get(&ends)?;
            let was = before.tcp.get(&ends).copied().unwrap_or_default();
            let headers = if c.local.is_ipv4() { HEADERS.0 } else { HEADERS.1 };
            let packets = now.packets.saturating_sub(was.packets);
            Some(now.sent.saturating_sub(was.sent) + u64::from(packets) * headers)
        };
        let sends = |c: &&Connection| c.only != Some(Only::Down);
        let there =
            |c: &&Connection| sends(c) && self.device(c.local).is_some_and(|d| d.name == device);
        let open = self.status.connections.iter().filter(there).filter_map(on_wire).sum::<u64>();
        (!self.tcp.is_empty()).then(|| open + self.closed(before))
    }

    /// What connections of runs sent that have closed since `before`, in full packets.
    fn closed(&self, before: &Sample) -> u64 {
        let past = before.by_ends();
        let of_run = |now: &RunStatus| {
            let run = now.report.run;
            let was = before.status.runs.iter().find(|was| was.report.run == run)?;
            let acked = |c: &Connection| {
                let was = past.get(&(c.local, c.remote)).map_or(0, |was| was.bytes_acked);
                c.bytes_acked.saturating_sub(was)
            };
            if now.report.only == Some(Only::Down) {
                return None;
            }
            let own = self.status.connections.iter().filter(|c| c.run == run);
            let all = now.report.bytes_sent.saturating_sub(was.report.bytes_sent);
            Some(all.saturating_sub(own.map(acked).sum()))
        };
        on_wire(self.status.runs.iter().filter_map(of_run).sum())
    }

    /// The time since an earlier one.
    pub fn since(&self, before: &Sample) -> Duration {
        self.at.duration_since(before.at)
    }
}

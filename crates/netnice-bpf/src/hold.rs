// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Holding background packets at the device that they leave through, until the path has room.

use libbpf_rs::{MapCore, MapFlags, MapType, TC_EGRESS, TC_INGRESS};

use crate::devices::{attach_to, detach_from, paths_of, Devices};
use crate::error::{bpf, quiet};
use crate::objects::{self, load, maps, open, walked};
use crate::pod::{bytes, parse};
use crate::sys::{nn_hold, nn_hop};
use crate::Result;

/// The map of a hold's paths, and that of its devices.
const HOPS: &str = "nn_hops";
const HOLD: &str = "nn_hold";

const READ: &str = "cannot read what is held";
const WHAT: &str = "the programs that hold packets";

/// The first of a device's programs: what waits has not been seen by the others.
const PRIORITY: u32 = 1;

/// A path of a hold, as its programs know it now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// Rate of the bottleneck, bytes/s; 0: not known yet.
    pub rate: u64,
    /// The virtual queue at the bottleneck, bytes.
    pub queue: u64,
    /// Packets in the background leave while that is below this, bytes.
    pub slack: u64,
    /// The part of the rate that the background may have, because of other hosts; 0 to 1.
    pub part: f64,
    /// The least RTT, nanoseconds; 0: none yet.
    pub rtt_ns: u64,
    /// What delays vary by although nothing waits, nanoseconds.
    pub jitter_ns: u64,
    /// Nothing is held until this clock (CLOCK_MONOTONIC, nanoseconds): the foreground does not pass
    /// this bottleneck, or it is too fast.
    pub away_until_ns: u64,
    /// Packets that wait now.
    pub waiting: u64,
    /// Packets that waited; and that did not, because the waiting devices gave nothing back.
    pub held: u64,
    pub unheld: u64,
    /// Packets of UDP that were dropped: too many of their own socket waited.
    pub dropped: u64,
    /// Bytes that left, and the foreground's of them.
    pub sent: u64,
    pub foreground: u64,
}

/// Loads the programs and attaches them to the devices. They stay there until [`detach`], or until the
/// devices go away.
///
/// # Errors
/// When the kernel refuses.
pub fn attach(devices: &Devices) -> Result<()> {
    let object = open(objects::HOLD, "netnice_hold")?;
    let object = load(object, WHAT)?;
    let hold = devices.told();
    let map = object.maps().find(|m| m.name() == HOLD).expect("hold.bpf.c defines it");
    map.update(&0u32.to_ne_bytes(), bytes(&hold), MapFlags::ANY)
        .map_err(bpf(format!("cannot set up {WHAT}")))?;
    // the one that sends packets to the others last
    for (program, device, at) in [
        ("nn_back", devices.wait.1, TC_INGRESS),
        ("nn_back", devices.cut.1, TC_INGRESS),
        ("nn_ack", devices.out, TC_INGRESS),
        ("nn_leave", devices.out, TC_EGRESS),
    ] {
        attach_to(&object, program, device, at, PRIORITY)?;
    }
    Ok(())
}

/// Takes the programs off the device that leads out. Those on the waiting devices end with these.
///
/// # Errors
/// When the kernel refuses; programs that are not there are no error.
pub fn detach(device: u32) -> Result<()> {
    quiet();
    detach_from(device, PRIORITY)
}

/// How many instructions the kernel's verifier walked in each of the programs.
///
/// # Errors
/// When the kernel does not accept them.
pub fn instructions() -> Result<Vec<(String, u32)>> {
    Ok(walked(&load(open(objects::HOLD, "netnice_hold")?, WHAT)?))
}

/// Whether a device of a network namespace holds.
///
/// # Errors
/// When a map of the kernel cannot be read.
pub fn any(netns: u64) -> Result<bool> {
    for map in maps(HOLD, MapType::Array) {
        let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(bpf(READ))?;
        if value.and_then(|v| parse::<nn_hold>(&v)).is_some_and(|hold| hold.netns == netns) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// All holds of a network namespace, each with its device's ifindex and its paths.
///
/// # Errors
/// When a map of the kernel cannot be read.
pub fn holds(netns: u64) -> Result<Vec<(u32, Vec<Hop>)>> {
    let hold = |hop: &nn_hop| (hop.used != 0).then_some(hop.hold);
    paths_of(HOPS, netns, hold, |hop| Hop::from(hop))
}

impl From<&nn_hop> for Hop {
    fn from(hop: &nn_hop) -> Hop {
        const UNIT: u64 = crate::sys::NN_PATH_S as u64;
        let path = &hop.path;
        let slack = path.mu.saturating_mul(crate::sys::NN_PATH_SLACK_NS.into()) / UNIT;
        Hop {
            rate: path.mu,
            queue: path.v / UNIT,
            slack: slack.max(crate::sys::NN_PATH_SLACK.into()), // nn_path_slack()
            part: f64::from(path.part) / f64::from(crate::sys::NN_ONE),
            rtt_ns: path.rtt,
            jitter_ns: path.jitter,
            away_until_ns: path.away_until,
            waiting: hop.waiting.into(),
            held: hop.held,
            unheld: hop.unheld,
            dropped: hop.dropped,
            sent: path.c,
            foreground: path.f - hop.datagrams.min(path.f),
        }
    }
}

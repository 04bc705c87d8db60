// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Letting downloads yield: the windows that the background tells its peers, at the device that they
//! leave through.

use std::thread;
use std::time::Duration;

use libbpf_rs::{MapCore, MapFlags, MapType, TC_EGRESS, TC_INGRESS};
use netnice_core::{Class, Config};

use crate::devices::{attach_to, detach_from, paths_of, Devices};
use crate::error::bpf;
use crate::objects::{self, load, maps, open, walked};
use crate::pod::{bytes, parse};
use crate::sys::{nn_down_hop, nn_hold};
use crate::Result;

const HOPS: &str = "nn_down_hops";
const HOLD: &str = "nn_down_hold";
const KEY: [u8; 4] = [0; 4];

const READ: &str = "cannot read how downloads yield";
const WHAT: &str = "the programs by which downloads yield";

/// After those that hold: these see what leaves.
const PRIORITY: u32 = 2;

/// An ACK or a datagram that waits looks again within this time, mostly.
const WAITS: Duration = Duration::from_millis(100);

/// A path that the background downloads through, as its programs know it now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Source {
    /// Rate of the bottleneck, bytes/s.
    pub rate: u64,
    /// What was asked for and has not come, bytes, of all on this host.
    pub queue: u64,
    /// The least RTT, nanoseconds; 0: none yet.
    pub rtt_ns: u64,
    /// The window of the background together, packets; and that it last kept them from more at this
    /// clock (CLOCK_MONOTONIC, nanoseconds).
    pub window: f64,
    pub limited_at_ns: u64,
    /// A path above this rate is left alone, bytes/s.
    pub fastest: u64,
    /// Connections of the background that are open.
    pub flows: u32,
    /// Bytes that came, and the background's of them.
    pub came: u64,
    pub background: u64,
    /// Windows that were made smaller.
    pub kept: u64,
    /// Datagrams of the background that wait.
    pub waiting: u32,
    /// Datagrams of the background that were dropped: too many waited.
    pub dropped: u64,
    /// Windows are the kernel's until this clock (CLOCK_MONOTONIC, nanoseconds).
    pub open_until_ns: u64,
    /// If they are, it is because the path is faster than `fastest`.
    pub is_fast: bool,
}

/// Loads the programs and attaches them beside those that hold.
///
/// # Errors
/// When the kernel refuses.
pub fn attach(devices: &Devices) -> Result<()> {
    let mut object = open(objects::DOWN, "netnice_down")?;
    let config = Config::new(Class::default().algorithm());
    let mut cfg = [0u32; netnice_core::sys::NN_PARAMS_MAX as usize];
    cfg[..config.values().len()].copy_from_slice(config.values());
    object
        .maps_mut()
        .find(|m| m.name().to_string_lossy().ends_with(".data.cfg"))
        .expect("down.bpf.c defines it")
        .set_initial_value(bytes(&cfg))
        .map_err(bpf("cannot set the parameters"))?;
    let object = load(object, WHAT)?;
    let map = object.maps().find(|m| m.name() == HOLD).expect("down.bpf.c defines it");
    map.update(&KEY, bytes(&devices.told()), MapFlags::ANY)
        .map_err(bpf(format!("cannot set up {WHAT}")))?;
    // the one that has ACKs wait last
    for (program, device, at) in [
        ("nn_turn", devices.wait.1, TC_INGRESS),
        ("nn_came", devices.out, TC_INGRESS),
        ("nn_ask", devices.out, TC_EGRESS),
    ] {
        attach_to(&object, program, device, at, PRIORITY)?;
    }
    Ok(())
}

/// Opens all windows, and takes the programs off the device that leads out.
///
/// # Errors
/// When the kernel refuses; programs that are not there are no error.
pub fn detach(device: u32, netns: u64) -> Result<()> {
    let is_ours = |hold: &nn_hold| (hold.device, hold.netns) == (device, netns);
    for map in maps(HOLD, MapType::Array) {
        let value = map.lookup(&KEY, MapFlags::ANY).map_err(bpf(READ))?;
        let Some(hold) = value.and_then(|v| parse::<nn_hold>(&v)).filter(is_ours) else { continue };
        map.update(&KEY, bytes(&nn_hold { closing: 1, ..hold }), MapFlags::ANY)
            .map_err(bpf("cannot open the windows of downloads"))?;
    }
    // a peer whose window is closed hears of it by an ACK that waits, or not for long
    if sources(netns)?
        .iter()
        .any(|(of, sources)| *of == device && sources.iter().any(|s| s.flows > 0 || s.waiting > 0))
    {
        thread::sleep(WAITS);
    }
    detach_from(device, PRIORITY)
}

/// All paths of a network namespace that something in the background downloads through, by their
/// device's ifindex.
///
/// # Errors
/// When a map of the kernel cannot be read.
pub fn sources(netns: u64) -> Result<Vec<(u32, Vec<Source>)>> {
    let hold = |hop: &nn_down_hop| (hop.used != 0).then_some(hop.hold);
    paths_of(HOPS, netns, hold, |hop| Source::from(hop))
}

/// How many instructions the kernel's verifier walked in each of the programs.
///
/// # Errors
/// When the kernel does not accept them.
pub fn instructions() -> Result<Vec<(String, u32)>> {
    Ok(walked(&load(open(objects::DOWN, "netnice_down")?, WHAT)?))
}

impl From<&nn_down_hop> for Source {
    fn from(hop: &nn_down_hop) -> Source {
        let path = &hop.path;
        Source {
            rate: path.mu,
            queue: path.v / u64::from(crate::sys::NN_PATH_S),
            rtt_ns: path.rtt,
            window: path.ctl.cwnd_q16 as f64 / f64::from(crate::sys::NN_ONE),
            limited_at_ns: path.limited_at,
            fastest: hop.hold.fastest,
            flows: path.flows,
            came: hop.came_all,
            background: hop.came,
            kept: hop.kept,
            waiting: path.datagrams.next.wrapping_sub(path.datagrams.head),
            dropped: hop.dropped,
            open_until_ns: hop.open_until,
            is_fast: hop.fast != 0,
        }
    }
}

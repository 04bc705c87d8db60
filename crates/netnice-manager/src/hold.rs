// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Holding what is in the background in this host, at the device that it leaves through.

mod device;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netnice_bpf::control_name;
use netnice_bpf::down::{self, Source};
use netnice_bpf::hold::{self, Hop};
use netnice_core::Algorithm;
use rustix::time::{clock_gettime, ClockId};
use serde::{Deserialize, Serialize};

use crate::choice::{Choice, Class};
use crate::error::{io, refuse};
use crate::peer::{Only, Selection};
use crate::system::{forget, put, Change, System, DIR, HELD};
use crate::{Error, Result};
use device::Device;
pub(crate) use device::{traffic, Traffic};

const NO_FQ: &str = "this kernel cannot hold packets: it lacks sch_fq (CONFIG_NET_SCH_FQ)";

/// What a run does by default where packets cannot wait; behind why they cannot.
pub(crate) const INSTEAD: &str = "; netnice run yields by its window, as ever";

/// What connections under this control do where packets cannot wait, behind why they cannot. Nothing, unless it
/// is the default: others may not yield.
pub fn instead(control: &str) -> &'static str {
    let by_default = control_name(Class::default().algorithm(), false);
    if control == by_default {
        INSTEAD
    } else {
        ""
    }
}

/// Paths above this rate are left alone: each packet that waits costs what four do that pass, and
/// what waits behind it looks again with it.
pub const FASTEST_MBIT: u32 = 100;

/// For what ends sooner nothing holds: to begin takes longer, and keeps other runs from beginning.
pub const SOON: Duration = Duration::from_millis(100);

/// This process, as /proc names it.
pub(crate) const SELF: &str = "self";

/// A device whose background packets wait in this host until their path has room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hold {
    /// Its name.
    pub device: String,
    /// Its paths: one to each next hop that something in the background was sent to.
    pub paths: Vec<HeldPath>,
    /// The same paths, the other way: what comes.
    pub downloads: Vec<Download>,
}

/// A path, as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeldPath {
    /// Rate of its bottleneck as it was measured, bits/s; none: not known yet.
    pub rate_bits: Option<u64>,
    /// Bytes that wait at the bottleneck.
    pub queue_bytes: u64,
    /// Packets in the background leave while it is below this.
    pub queue_limit_bytes: u64,
    /// The part of the rate that the background may have, because of what other hosts send: 0 to 1.
    pub part: f64,
    /// The least RTT, microseconds; none: none yet.
    pub rtt_us: Option<u64>,
    /// What its delays vary by although nothing waits, microseconds.
    pub jitter_us: u64,
    /// For so many seconds to come nothing is held: what else this host sends does not pass this
    /// bottleneck, or it is too fast. None: packets are held.
    pub away_s: Option<u64>,
    /// Packets that wait in this host now.
    pub waiting: u64,
    /// Packets that have waited.
    pub held: u64,
    /// Packets in the background that were not held, since nothing came out of the waiting devices.
    pub unheld: u64,
    /// Packets of UDP in the background that were dropped, since 50 ms of the rate waited of their socket.
    pub dropped: u64,
    /// Bytes that left, in the background and in all.
    pub background_bytes: u64,
    pub sent_bytes: u64,
}

/// What comes by a path in which downloads yield, as it is now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Download {
    /// Rate of its bottleneck as it was measured, bits/s.
    pub rate_bits: u64,
    /// Where it is above this, downloads do not yield.
    pub fastest_bits: u64,
    /// Bytes that this host has asked for, and that have not passed the bottleneck.
    pub queue_bytes: u64,
    /// The least RTT, microseconds; none: none yet.
    pub rtt_us: Option<u64>,
    /// Packets that those in the background may have under way, because of what other hosts load.
    pub window_packets: f64,
    /// In the last second that kept them from more.
    pub window_limits: bool,
    /// Connections in the background that are open.
    pub connections: u32,
    /// Bytes that came, in the background and in all.
    pub background_bytes: u64,
    pub received_bytes: u64,
    /// Windows that were told smaller than they were.
    pub narrowed: u64,
    /// Packets of UDP in the background that were dropped, since too many waited.
    #[serde(default)]
    pub dropped: u64,
    /// For so many seconds to come nothing yields: the path is faster than it was asked for, or nothing
    /// came out of the waiting device. None: downloads yield.
    pub away_s: Option<u64>,
    /// Nothing yields because the path was faster than `fastest_bits`; it may be slower by now.
    #[serde(default)]
    pub too_fast: bool,
}

impl From<&Source> for Download {
    fn from(source: &Source) -> Download {
        Download {
            rate_bits: source.rate * 8,
            fastest_bits: source.fastest * 8,
            queue_bytes: source.queue,
            rtt_us: (source.rtt_ns > 0).then_some(source.rtt_ns / 1000),
            window_packets: source.window,
            window_limits: seconds_until(source.limited_at_ns + SECOND).is_some(),
            connections: source.flows,
            background_bytes: source.background,
            received_bytes: source.came,
            narrowed: source.kept,
            dropped: source.dropped,
            away_s: seconds_until(source.open_until_ns),
            too_fast: source.is_fast && seconds_until(source.open_until_ns).is_some(),
        }
    }
}

const SECOND: u64 = 1_000_000_000;

/// From now until a clock in nanoseconds; none: it is past.
fn seconds_until(clock_ns: u64) -> Option<u64> {
    let clock = clock_gettime(ClockId::Monotonic);
    let now = clock.tv_sec as u64 * SECOND + clock.tv_nsec as u64;
    let left = clock_ns.saturating_sub(now).div_ceil(SECOND);
    (left > 0).then_some(left)
}

impl From<&Hop> for HeldPath {
    fn from(hop: &Hop) -> HeldPath {
        let known = |value: u64| (value > 0).then_some(value);
        HeldPath {
            rate_bits: known(hop.rate * 8),
            queue_bytes: hop.queue,
            queue_limit_bytes: hop.slack,
            part: hop.part,
            rtt_us: known(hop.rtt_ns / 1000),
            jitter_us: hop.jitter_ns / 1000,
            away_s: seconds_until(hop.away_until_ns),
            waiting: hop.waiting,
            held: hop.held,
            unheld: hop.unheld,
            dropped: hop.dropped,
            background_bytes: hop.sent - hop.foreground.min(hop.sent),
            sent_bytes: hop.sent,
        }
    }
}

/// Where the packets of a run wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// At these devices.
    pub devices: Vec<String>,
    /// Not at the others that lead out, and why, in a sentence each.
    pub why_not: Vec<String>,
    /// It is in another network namespace: the devices of this one know nothing of it.
    #[serde(skip)]
    pub elsewhere: bool,
}

impl Held {
    /// Nowhere, and why.
    pub fn nowhere(why: impl Into<String>) -> Held {
        Held { why_not: vec![why.into()], ..Held::default() }
    }
}

/// Whether a device of this network namespace holds.
///
/// # Errors
/// When the kernel cannot be read.
pub fn any() -> Result<bool> {
    Ok(hold::any(netns(SELF)?)?)
}

/// Downloads that alone are to yield, or those of UDP, do so nowhere else: nothing is claimed of them where
/// no device holds.
///
/// # Errors
/// When none does, or the kernel cannot be read.
pub(crate) fn require_for(selection: &Selection) -> Result<()> {
    let of_held = selection.only == Some(Only::Down) || selection.udp_downloads;
    if of_held && !any()? {
        refuse!("downloads yield where a device holds, and none does; first: netnice hold DEVICE");
    }
    Ok(())
}

impl System {
    /// The devices of this network namespace that hold, and their paths.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn holds(&self) -> Result<Vec<Hold>> {
        let paths = hold::holds(netns(SELF)?)?;
        let sources = down::sources(netns(SELF)?)?;
        let mut found = Vec::new();
        let all = device::all()?;
        for device in all.iter().filter(|d| d.holds(&all)) {
            // the newest of a device that held before
            let of = paths.iter().rev().find(|(of, _)| *of == device.index);
            let paths = of.map(|(_, hops)| hops.iter().map(HeldPath::from).collect());
            let of = sources.iter().rev().find(|(of, _)| *of == device.index);
            let downloads = of.map(|(_, sources)| sources.iter().map(Download::from).collect());
            found.push(Hold {
                device: device.name.clone(),
                paths: paths.unwrap_or_default(),
                downloads: downloads.unwrap_or_default(),
            });
        }
        Ok(found)
    }
}

impl Change {
    /// Holds from now on what is in the background and leaves through a device of this network
    /// namespace, until [`Change::release`]; one that holds for runs too. Paths above `fastest_mbit`
    /// (Mbit/s) are left alone: a device that holds begins anew with it. None: [`FASTEST_MBIT`], or as it
    /// holds.
    ///
    /// # Errors
    /// When the device cannot be held, or the kernel lacks what it takes; nothing is left then.
    pub fn hold(&self, device: &str, fastest_mbit: Option<u32>) -> Result<()> {
        let all = device::all()?;
        let device = device::find(&all, device)?;
        let for_runs = forget(&mark(device.index)?)?;
        match (device.holds(&all), fastest_mbit) {
            (true, None) if for_runs => Ok(()),
            (true, None) => refuse!("{} holds already; see: netnice hold", device.name),
            (true, Some(mbit)) => device.end(&all).and_then(|()| begin(device, mbit)),
            (false, mbit) => {
                begin(device, mbit.unwrap_or(FASTEST_MBIT)).map_err(|error| match error {
                    Error::Refused(why) => Error::Refused(why + INSTEAD),
                    other => other,
                })
            }
        }
    }

    /// Holds what such a run has in the background, at the devices of this network namespace that lead
    /// out (of default routes), until no run has a process in it any more.
    pub fn hold_for(&self, choice: &Choice, algorithm: Algorithm) -> Held {
        if let Some(why) = choice.why_not_held(algorithm) {
            return Held::nowhere(why);
        }
        let mut held = Held::default();
        match hold_ways_out(&mut held.devices) {
            Ok(why_not) => held.why_not = why_not,
            Err(error) => held.why_not.push(error.to_string()),
        }
        held
    }

    /// Has the next [`Change::hold_for`] find out again whether the kernel has fq.
    ///
    /// # Errors
    /// When the mark that it has none cannot be removed.
    pub fn look_for_fq_again(&self) -> Result<()> {
        forget(&lacks_fq()).map(drop)
    }

    /// Ends the holds of this network namespace whose device is gone, and those that runs began once no
    /// process of a run is in it. A failure is no reason to refuse what netnice was called for: the next
    /// call tries again.
    pub(crate) fn release_unused(&self) -> Result<()> {
        let _ = device::end_strays();
        let here = netns(SELF)?;
        let marks: Vec<_> = fs::read_dir(dir()).into_iter().flatten().flatten().collect();
        let index = |mark: &fs::DirEntry| {
            mark.file_name().to_str()?.strip_prefix(&format!("{here}-"))?.parse::<u32>().ok()
        };
        let held: Vec<_> = marks.iter().filter_map(index).collect();
        let is_here = |pid: &i32| netns(&pid.to_string()).is_ok_and(|of| of == here);
        if held.is_empty() || self.hierarchy().members().values().flatten().any(is_here) {
            return Ok(());
        }
        let ended = device::all().and_then(|all| {
            let mut ours = all.iter().filter(|d| held.contains(&d.index) && d.holds(&all));
            ours.try_for_each(|device| device.end(&all))
        });
        match ended {
            Ok(()) => held.into_iter().try_for_each(|index| forget(&mark(index)?).map(drop)),
            Err(_) => Ok(()),
        }
    }

    /// Lets everything leave through a device as it comes, from now on. What waits is sent again by its
    /// TCP.
    ///
    /// # Errors
    /// When the kernel refuses, or the device does not hold.
    pub fn release(&self, device: &str) -> Result<()> {
        let all = device::all()?;
        let device = device::find(&all, device)?;
        forget(&mark(device.index)?)?;
        if !device.holds(&all) {
            refuse!("{} does not hold; see: netnice hold", device.name);
        }
        device.end(&all)
    }
}

/// Holds at the devices that lead out, and adds the names of all that hold; why others do not.
fn hold_ways_out(devices: &mut Vec<String>) -> Result<Vec<String>> {
    if lacks_fq().exists() {
        return Ok(vec![NO_FQ.into()]); // it was tried since the boot
    }
    let all = device::all()?;
    let mut why_not = Vec::new();
    let ways_out = device::ways_out(&all)?;
    let is_meant = |d: &&Device| d.holds(&all) || ways_out.iter().any(|way| way.index == d.index);
    for device in all.iter().filter(is_meant) {
        let held = if device.holds(&all) { Ok(()) } else { begin_for_runs(device) };
        match held {
            Ok(()) => devices.push(device.name.clone()),
            Err(error) => why_not.push(error.to_string()),
        }
    }
    if devices.is_empty() && why_not.is_empty() {
        why_not.push("there is no default route".into());
    }
    Ok(why_not)
}

fn begin_for_runs(device: &Device) -> Result<()> {
    let mark = mark(device.index)?;
    put(&mark)?; // first: what holds without one would stay
    begin(device, FASTEST_MBIT).or_else(|error| {
        forget(&mark)?;
        Err(error)
    })
}

fn begin(device: &Device, fastest_mbit: u32) -> Result<()> {
    let name = &device.name;
    if !device.is_ethernet() {
        refuse!("{name} is no Ethernet device, and only there packets can be held");
    }
    let begun = device.begin(netns(SELF)?, u64::from(fastest_mbit) * 1_000_000 / 8);
    if begun.is_err() {
        let _ = device::all().and_then(|all| device.end(&all)); // this says less than the first one
    }
    match begun? {
        true => forget(&lacks_fq()).map(drop),
        false => {
            put(&lacks_fq())?;
            refuse!("{NO_FQ}")
        }
    }
}

/// The marks of what holds for runs.
fn dir() -> PathBuf {
    Path::new(DIR).join(HELD)
}

fn mark(index: u32) -> Result<PathBuf> {
    Ok(dir().join(format!("{}-{index}", netns(SELF)?)))
}

/// There if a device could not hold since the boot, because the kernel lacks fq.
fn lacks_fq() -> PathBuf {
    Path::new(DIR).join("lacks-fq")
}

/// The inode of the network namespace that a process is in.
pub(crate) fn netns(process: &str) -> Result<u64> {
    let file = format!("/proc/{process}/ns/net");
    Ok(fs::metadata(&file).map_err(io(format!("cannot read {file}")))?.ino())
}

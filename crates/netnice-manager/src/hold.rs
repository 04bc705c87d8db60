// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Holding what is in the background in this host, at the device that it leaves through.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use netnice_bpf::hold::{self, Devices, Hop};
use serde::{Deserialize, Serialize};

use crate::error::{io, refuse};
use crate::system::{Change, System};
use crate::Result;

/// What waits goes into the first of each pair and comes out of the second; the ifindex of the device
/// that leads out follows the names.
const WAIT: (&str, &str) = ("nnwait", "nnback");
const CUT: (&str, &str) = ("nncut", "nnsegs");

/// What has no room on a slow path for minutes: 20,000 packets, 2000 of a connection.
const FQ: [&str; 6] = ["fq", "limit", "20000", "flow_limit", "2000", "nopacing"];

/// A device whose background packets wait in this host until their path has room.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hold {
    /// Its name.
    pub device: String,
    /// Its paths: one to each next hop that something in the background was sent to.
    pub paths: Vec<HeldPath>,
}

/// A path, as it is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldPath {
    /// Rate of its bottleneck as it was measured, bits/s; none: not known yet.
    pub rate_bits: Option<u64>,
    /// Bytes that wait at the bottleneck.
    pub queue_bytes: u64,
    /// The part of the rate that the background may have, because of what other hosts send: 0 to 1.
    pub part: f64,
    /// The least RTT, microseconds; none: none yet.
    pub rtt_us: Option<u64>,
    /// What its delays vary by although nothing waits, microseconds.
    pub jitter_us: u64,
    /// Packets that wait in this host now.
    pub waiting: u64,
    /// Packets that have waited.
    pub held: u64,
    /// Packets in the background that were not held, since nothing came out of the waiting devices.
    pub unheld: u64,
    /// Bytes that left, in the background and in all.
    pub background_bytes: u64,
    pub sent_bytes: u64,
}

impl From<&Hop> for HeldPath {
    fn from(hop: &Hop) -> HeldPath {
        let known = |value: u64| (value > 0).then_some(value);
        HeldPath {
            rate_bits: known(hop.rate * 8),
            queue_bytes: hop.queue,
            part: hop.part,
            rtt_us: known(hop.rtt_ns / 1000),
            jitter_us: hop.jitter_ns / 1000,
            waiting: hop.waiting,
            held: hop.held,
            unheld: hop.unheld,
            background_bytes: hop.sent - hop.foreground.min(hop.sent),
            sent_bytes: hop.sent,
        }
    }
}

/// Whether a device of this network namespace holds.
///
/// # Errors
/// When the kernel cannot be read.
pub fn any() -> Result<bool> {
    Ok(hold::any(netns()?)?)
}

impl System {
    /// The devices of this network namespace that hold, and their paths.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn holds(&self) -> Result<Vec<Hold>> {
        let paths = hold::holds(netns()?)?;
        let mut found = Vec::new();
        let all = devices()?;
        for device in &all {
            if !all.iter().any(|d| d.ifname == named(WAIT.0, device)) {
                continue;
            }
            // the newest of a device that held before
            let of = paths.iter().rev().find(|(of, _)| *of == device.ifindex);
            let paths = of.map(|(_, hops)| hops.iter().map(HeldPath::from).collect());
            found.push(Hold { device: device.ifname.clone(), paths: paths.unwrap_or_default() });
        }
        Ok(found)
    }
}

impl Change {
    /// Holds from now on what is in the background and leaves through a device of this network
    /// namespace.
    ///
    /// # Errors
    /// When the device cannot be held, or the kernel lacks what it takes; nothing is left then.
    pub fn hold(&self, device: &str) -> Result<()> {
        let device = find(device)?;
        let name = &device.ifname;
        if device.link_type != "ether" {
            refuse!(
                "{name} is no Ethernet device, and only there packets can be held; netnice run \
                 yields by its window there, as ever"
            );
        }
        if there(&named(WAIT.0, &device))?.is_some() {
            refuse!("{name} holds already; see: netnice hold");
        }
        let made = make(&device);
        if made.is_err() {
            let _ = self.release(name); // a failure here says less than the first one
        }
        made
    }

    /// Lets everything leave through a device as it comes, from now on. What waits is sent again by its
    /// TCP.
    ///
    /// # Errors
    /// When the kernel refuses, or the device does not hold.
    pub fn release(&self, device: &str) -> Result<()> {
        let device = find(device)?;
        let mut held = false;
        hold::detach(device.ifindex)?;
        for name in [WAIT.0, CUT.0].map(|prefix| named(prefix, &device)) {
            if there(&name)?.is_some() {
                held = true;
                run("ip", &["link", "del", &name])?;
            }
        }
        let name = &device.ifname;
        if !held {
            refuse!("{name} does not hold; see: netnice hold");
        }
        let filters = |at| run("tc", &["filter", "show", "dev", name, at]);
        if filters("ingress")?.is_empty() && filters("egress")?.is_empty() {
            run("tc", &["qdisc", "del", "dev", name, "clsact"])?;
        }
        Ok(())
    }
}

fn make(device: &Device) -> Result<()> {
    let mtu = device.mtu.to_string();
    let mut ends = Vec::new();
    for (near, far) in [WAIT, CUT].map(|(n, f)| (named(n, device), named(f, device))) {
        // a GSO packet is cut on its way into a device that takes one segment at a time
        #[rustfmt::skip]
        run("ip", &[
            "link", "add", &near, "mtu", &mtu, "gso_max_segs", "1",
            "type", "veth", "peer", "name", &far, "mtu", &mtu,
        ])?;
        for name in [&near, &far] {
            let of_v6 = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            let _ = fs::write(of_v6, "1"); // a kernel without IPv6 has no such file
            run("ip", &["link", "set", name, "promisc", "on", "up"])?;
        }
        ends.push((find(&near)?.ifindex, find(&far)?.ifindex));
    }
    let wait = named(WAIT.0, device);
    let words: Vec<_> = ["qdisc", "replace", "dev", &wait, "root"].into_iter().chain(FQ).collect();
    if let Err(error) = run("tc", &words) {
        refuse!(
            "this kernel cannot hold packets: it lacks sch_fq (CONFIG_NET_SCH_FQ); netnice run yields \
             by its window, as ever ({error})"
        );
    }
    let netns = netns()?;
    Ok(hold::attach(&Devices { out: device.ifindex, wait: ends[0], cut: ends[1], netns })?)
}

/// A device as `ip -json link` tells of it. /sys would show those of the namespace that mounted it.
#[derive(Debug, Deserialize)]
struct Device {
    ifindex: u32,
    ifname: String,
    mtu: u32,
    link_type: String,
}

fn devices() -> Result<Vec<Device>> {
    let text = run("ip", &["-json", "link"])?;
    let what = "ip -json link says what netnice does not understand; is iproute2 5.0 or later?";
    serde_json::from_str(&text).map_err(io(what))
}

fn there(name: &str) -> Result<Option<Device>> {
    Ok(devices()?.into_iter().find(|device| device.ifname == name))
}

fn find(name: &str) -> Result<Device> {
    match there(name)? {
        Some(device) => Ok(device),
        None => refuse!("there is no device {name} here; see: ip link"),
    }
}

fn named(prefix: &str, device: &Device) -> String {
    format!("{prefix}{}", device.ifindex)
}

fn netns() -> Result<u64> {
    const FILE: &str = "/proc/self/ns/net";
    Ok(fs::metadata(FILE).map_err(io(format!("cannot read {FILE}")))?.ino())
}

/// Runs a tool to its end, and returns what it said.
fn run(tool: &str, words: &[&str]) -> Result<String> {
    let done = Command::new(tool)
        .args(words)
        .output()
        .map_err(io(format!("cannot run {tool} (package iproute2)")))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        refuse!("{tool} {} failed: {}", words.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

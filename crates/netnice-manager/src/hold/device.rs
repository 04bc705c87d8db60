// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The devices of this network namespace, and those beside one that holds: by ip(8) and tc(8).

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::process::Stdio;

use netnice_bpf::{down, hold, Devices};
use nix::net::if_::{if_nameindex, Interface};
use serde::Deserialize;

use crate::error::{io, refuse};
use crate::{tool, Result};

/// What waits goes into the first of each pair and comes out of the second; the ifindex of the device
/// that leads out follows the names.
const WAIT: (&str, &str) = ("nnwait", "nnback");
const CUT: (&str, &str) = ("nncut", "nnsegs");

/// What has no room on a slow path for minutes: 20,000 packets, 2000 of a connection.
const FQ: [&str; 6] = ["fq", "limit", "20000", "flow_limit", "2000", "nopacing"];

/// As `ip -json link` tells of it. /sys would show those of the namespace that mounted it.
#[derive(Debug, Deserialize)]
pub struct Device {
    #[serde(rename = "ifindex")]
    pub index: u32,
    #[serde(rename = "ifname")]
    pub name: String,
    mtu: u32,
    link_type: String,
}

/// What has left through a device, with its addresses.
#[derive(Clone, Debug, Deserialize)]
pub struct Traffic {
    #[serde(rename = "ifname")]
    pub name: String,
    #[serde(default, rename = "addr_info")]
    addresses: Vec<Address>,
    #[serde(rename = "stats64")]
    counted: Counted,
}

#[derive(Clone, Debug, Deserialize)]
struct Address {
    local: Option<IpAddr>,
}

#[derive(Clone, Debug, Deserialize)]
struct Counted {
    tx: Sent,
}

#[derive(Clone, Debug, Deserialize)]
struct Sent {
    bytes: u64,
}

impl Traffic {
    /// Whether it has this address.
    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.local == Some(address))
    }

    /// Bytes that have left through it.
    pub fn sent(&self) -> u64 {
        self.counted.tx.bytes
    }
}

/// That of all of them.
pub fn traffic() -> Result<Vec<Traffic>> {
    parse(&run("ip", &["-json", "-statistics", "address"], "")?)
}

/// All of them.
pub fn all() -> Result<Vec<Device>> {
    parse(&run("ip", &["-json", "link"], "")?)
}

/// The one of that name.
pub fn find<'a>(all: &'a [Device], name: &str) -> Result<&'a Device> {
    match all.iter().find(|device| device.name == name) {
        Some(device) => Ok(device),
        None => refuse!("there is no device {name} here; see: ip link"),
    }
}

/// A route as `ip -json route` tells of it.
#[derive(Debug, Deserialize)]
struct Route {
    dev: Option<String>,
    #[serde(default)]
    nexthops: Vec<Route>,
}

impl Route {
    fn devices(self) -> Vec<String> {
        self.dev.into_iter().chain(self.nexthops.into_iter().flat_map(Route::devices)).collect()
    }
}

/// Those of default routes.
pub fn ways_out(all: &[Device]) -> Result<Vec<&Device>> {
    let mut names = BTreeSet::new();
    for family in ["-4", "-6"] {
        let routes: Vec<Route> =
            parse(&run("ip", &[family, "-json", "route", "show", "default"], "")?)?;
        names.extend(routes.into_iter().flat_map(Route::devices));
    }
    Ok(all.iter().filter(|device| names.contains(&device.name)).collect())
}

/// Takes away what was beside devices that are gone: a hold ends with its device. Costs nothing where
/// there is no such.
pub fn end_strays() -> Result<()> {
    let all = if_nameindex().map_err(io("cannot list the devices"))?;
    let named = |device: &Interface| (device.index(), device.name().to_string_lossy().into_owned());
    let all: Vec<_> = all.iter().map(named).collect();
    let mut strays = strays(&all);
    strays.try_for_each(|name| run("ip", &["link", "del", name], "").map(drop))
}

/// The first ends of pairs beside a device that is not there, among devices by index and name.
fn strays(all: &[(u32, String)]) -> impl Iterator<Item = &str> {
    let of = |name: &str| {
        let number = [WAIT.0, CUT.0].iter().find_map(|near| name.strip_prefix(near))?;
        number.parse::<u32>().ok()
    };
    let is_gone = |of: u32| all.iter().all(|(index, _)| *index != of);
    all.iter().map(|(_, name)| name.as_str()).filter(move |name| of(name).is_some_and(is_gone))
}

impl Device {
    pub fn is_ethernet(&self) -> bool {
        self.link_type == "ether"
    }

    /// Whether the devices beside it are there.
    pub fn holds(&self, all: &[Device]) -> bool {
        [WAIT.0, CUT.0].iter().any(|near| find(all, &self.beside(near)).is_ok())
    }

    fn beside(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.index)
    }

    /// Makes the devices beside it, and loads the programs, for paths of up to `fastest` bytes/s. False: the kernel lacks fq.
    pub fn begin(&self, netns: u64, fastest: u64) -> Result<bool> {
        let pairs = [WAIT, CUT].map(|(near, far)| (self.beside(near), self.beside(far)));
        let names = || pairs.iter().flat_map(|(near, far)| [near, far]);
        let mtu = self.mtu;
        // a GSO packet is cut on its way into a device that takes one segment at a time
        let add = pairs.each_ref().map(|(near, far)| {
            format!(
                "link add {near} mtu {mtu} gso_max_segs 1 type veth peer name {far} mtu {mtu}\n"
            )
        });
        run("ip", &["-batch", "-"], &add.concat())?;
        for name in names() {
            let of_v6 = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
            let _ = fs::write(of_v6, "1"); // a kernel without IPv6 has no such file
        }
        let up: String = names().map(|name| format!("link set {name} promisc on up\n")).collect();
        run("ip", &["-batch", "-"], &up)?;
        let words = ["qdisc", "replace", "dev", &pairs[0].0, "root"];
        if let Err(error) = run("tc", &[&words[..], &FQ[..]].concat(), "") {
            let said = error.to_string();
            let unknown = ["is unknown", "No such file"].iter().any(|text| said.contains(text));
            return if unknown { self.end(&all()?).map(|()| false) } else { Err(error) };
        }
        let all = all()?;
        let index = |name: &String| find(&all, name).map(|device| device.index);
        let ends =
            |(near, far): &(String, String)| Ok::<_, crate::Error>((index(near)?, index(far)?));
        let (wait, cut) = (ends(&pairs[0])?, ends(&pairs[1])?);
        let devices = Devices { out: self.index, wait, cut, netns, fastest };
        hold::attach(&devices)?;
        down::attach(&devices)?;
        Ok(true)
    }

    /// Takes the programs and the devices beside it away.
    pub fn end(&self, all: &[Device]) -> Result<()> {
        down::detach(self.index, super::netns(super::SELF)?)?;
        hold::detach(self.index)?;
        for name in [WAIT.0, CUT.0].map(|prefix| self.beside(prefix)) {
            if find(all, &name).is_ok() {
                run("ip", &["link", "del", &name], "")?;
            }
        }
        let none = |at| {
            Ok::<_, crate::Error>(
                run("tc", &["filter", "show", "dev", &self.name, at], "")?.is_empty(),
            )
        };
        let clsact = run("tc", &["qdisc", "show", "dev", &self.name], "")?.contains("clsact");
        if clsact && none("ingress")? && none("egress")? {
            run("tc", &["qdisc", "del", "dev", &self.name, "clsact"], "")?;
        }
        Ok(())
    }
}

/// What a tool said, as JSON; nothing is an empty list.
fn parse<T: for<'a> Deserialize<'a>>(text: &str) -> Result<Vec<T>> {
    const STRANGE: &str =
        "ip -json says what netnice does not understand; is iproute2 5.0 or later?";
    let text = if text.trim().is_empty() { "[]" } else { text };
    serde_json::from_str(text).map_err(io(STRANGE))
}

/// Runs a tool to its end with that input, and returns what it said.
fn run(name: &str, words: &[&str], input: &str) -> Result<String> {
    let failed = || format!("cannot run {name} (package iproute2)");
    let mut child = tool::tool(name)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io(failed()))?;
    // a tool that does not read it says why
    let _ = child.stdin.take().map(|mut stdin| stdin.write_all(input.as_bytes()));
    let done = child.wait_with_output().map_err(io(failed()))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        refuse!("{name} {} failed: {}", words.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_a_device_that_is_gone_is_a_stray_and_nothing_else_is() {
        let of =
            |number: u32| ["nnwait", "nnback", "nncut", "nnsegs"].map(|n| format!("{n}{number}"));
        let others = ["nnwait", "nnwaiting", "nncut-7", "wait7", "nnwait7x"].map(String::from);
        let beside = [of(2), of(7)].concat();
        let mut all = vec![(1, "lo".to_string()), (2, "eth0".into())];
        all.extend((100..).zip(beside.into_iter().chain(others)));
        assert_eq!(strays(&all).collect::<Vec<_>>(), ["nnwait7", "nncut7"]);
    }
}

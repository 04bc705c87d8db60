// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The traffic of a scenario: foreground, backgrounds, and what else flows.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{default, Queue};

/// Fetches: a client behind the bottleneck connects, asks for a size and receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreground {
    /// Congestion control of the server. Default cubic.
    #[serde(default = "default::control")]
    pub control: String,
    /// When flows start. Default poisson.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How large flows are. Default pareto; for `arrivals = "log"` the log's own sizes; for
    /// `arrivals = "periodic"` fixed.
    pub sizes: Option<Sizes>,
    /// Shape of the Pareto distribution, above 1. Default 1.5.
    #[serde(default = "default::shape")]
    pub shape: f64,
    /// Mean size in bytes before truncation (pareto, exponential), or the size (fixed).
    /// Default 30000.
    #[serde(default = "default::mean_bytes")]
    pub mean_bytes: u64,
    /// Larger flows are cut to this size, in bytes. The arrival rate accounts for it, so that the
    /// offered load stays `load`. Default 10000000.
    #[serde(default = "default::max_bytes")]
    pub max_bytes: u64,
    /// Offered load as a share of the rate of the slowest link on the path of the data. 0: no flows.
    /// Default 0.5.
    #[serde(default = "default::load")]
    pub load: f64,
    /// Whether a fetch goes over a connection of its two ends that is idle, if there is one, and none
    /// ends (HTTP's keep-alive). Default false: each has its own.
    #[serde(default)]
    pub keep_alive: bool,
    /// Whether it fetches over HTTP/3, so over QUIC. Default false: over TCP.
    #[serde(default)]
    pub quic: bool,
    /// Milliseconds between UDP echo probes. Default: no probes.
    pub probe_interval_ms: Option<f64>,
    /// Greatest window that the receivers offer, in packets. Default: never in the way.
    pub window_packets: Option<u32>,
    /// The node that data comes from, or `[[hosts]]`: each fetch is from one of them, at random.
    /// Default "a"; with `[[link]]` required.
    pub from: Option<String>,
    /// The node that data goes to, or `[[hosts]]`. Default "b"; with `[[link]]` required.
    pub to: Option<String>,
    /// The host that the senders are on, by any name: it counts its flows, and they leave it by one
    /// egress. Default: the one host of all traffic that names none.
    pub host: Option<String>,
    /// The flows are dealt in turn to so many hosts: "HOST 1", "HOST 2", ... Default: all are on `host`.
    pub senders: Option<u32>,
}

impl Foreground {
    /// The distribution of sizes, with the default filled in.
    pub fn sizes(&self) -> Sizes {
        self.sizes.unwrap_or(match self.arrivals {
            Arrivals::Poisson => Sizes::Pareto,
            Arrivals::Log => Sizes::Empirical,
            Arrivals::Periodic => Sizes::Fixed,
        })
    }

    /// Whether the web request log is needed.
    pub fn needs_log(&self) -> bool {
        self.sizes() == Sizes::Empirical
    }
}

/// When foreground flows start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// A Poisson process.
    #[default]
    Poisson,
    /// The web request log in its order, compressed in time.
    Log,
    /// Constant gaps.
    Periodic,
}

/// How large foreground flows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Pareto with `shape` and `mean_bytes`.
    Pareto,
    /// Exponential with `mean_bytes`.
    Exponential,
    /// Drawn from the web request log.
    Empirical,
    /// All `mean_bytes`.
    Fixed,
}

/// One variant of background traffic: bulk flows across the same network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Name in tables; unique.
    pub name: String,
    /// Congestion control of the senders.
    pub control: String,
    /// Number of flows. Default 1.
    #[serde(default = "default::flows")]
    pub flows: u32,
    /// Bytes of each flow; 0 is endless. Default 0.
    #[serde(default)]
    pub bytes: u64,
    /// Start of the first flow in seconds. Default 0.
    #[serde(default)]
    pub start_s: f64,
    /// Seconds between the starts of flows. Default 0.
    #[serde(default)]
    pub stagger_s: f64,
    /// Algorithm parameters, checked by whoever sets them. Default: the algorithm's own.
    #[serde(default)]
    pub set: BTreeMap<String, Parameter>,
    /// A queue for this variant instead of that of every link with a rate. Default: the links' own.
    pub queue: Option<Queue>,
    /// Greatest window that the receivers offer, in packets. Default: never in the way.
    pub window_packets: Option<u32>,
    /// When the flows that have not ended do, in seconds since the start. Default: with the run.
    pub stop_s: Option<f64>,
    /// Seconds between the stops of flows, from `stop_s` on: the last to start is the first to stop.
    /// Default 0.
    #[serde(default)]
    pub stop_stagger_s: f64,
    /// The node that data comes from. Default: the foreground's.
    pub from: Option<String>,
    /// The node that data goes to. Default: the foreground's.
    pub to: Option<String>,
    /// The host that the senders are on, by any name: it counts its flows, and they leave it by one
    /// egress. Default: the one host of all traffic that names none.
    pub host: Option<String>,
    /// The flows are dealt in turn to so many hosts: "HOST 1", "HOST 2", ... Default: all are on `host`.
    pub senders: Option<u32>,
    /// Packets of data wait in their host while the path is busy, after their transport.
    /// Default false.
    #[serde(default)]
    pub hold: bool,
    /// With `hold`: the rate of the path in Mbit/s, as an administrator types it in. Default: the
    /// host measures it.
    pub hold_rate_mbit: Option<f64>,
    /// With `hold`: the host is told of its path, `[background.oracle]`. Default: it measures.
    pub oracle: Option<Oracle>,
    /// A download: the host that receives lets the senders yield, whatever they send by.
    /// Default false.
    #[serde(default)]
    pub pull: bool,
    /// Whether it sends over HTTP/3, so over QUIC: by a control of netnice, or quinn's own, which is
    /// CUBIC. Default false: over TCP.
    #[serde(default)]
    pub quic: bool,
    /// The group whose windows the flows share, by any name. Default: each is on its own.
    pub group: Option<String>,
    /// What each flow gets of its group, in the order of their starts: the parameter `share` of
    /// each. Default: that of `set`, or the algorithm's own.
    pub shares: Option<Vec<f64>>,
    /// Changes of the shares, `[[background.change]]` each. Default: none.
    #[serde(default)]
    pub change: Vec<ShareChange>,
}

impl Background {
    /// When the flow of that index stops, in seconds since the start. `None`: with the run.
    pub fn flow_stop_s(&self, flow: u32) -> Option<f64> {
        let later = f64::from(self.flows.saturating_sub(flow + 1));
        self.stop_s.map(|stop_s| stop_s + later * self.stop_stagger_s)
    }
}

/// What a host may know that is told everything about the bottleneck, but late.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oracle {
    /// How strict it is: what it sends, as a share of the link's rate, while it expects nobody.
    /// Default 1: all.
    #[serde(default = "default::part")]
    pub part: f64,
    /// Milliseconds by which it knows late what passed the bottleneck. Default: `rtt_ms`.
    pub late_ms: Option<f64>,
    /// Packets of others that it expects for each full one that has left. Default 2.
    #[serde(default = "default::brings")]
    pub brings: u32,
    /// Whether it is told of connections that open, before their first data. Default false.
    #[serde(default)]
    pub openings: bool,
}

/// A change of the shares in a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareChange {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// The shares from then on, one for each flow.
    pub shares: Vec<f64>,
}

/// Other traffic in the class of the foreground.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cross {
    /// Unique name.
    pub name: String,
    /// What it sends.
    pub kind: CrossKind,
    /// Number of flows. Default 1.
    #[serde(default = "default::flows")]
    pub flows: u32,
    /// Congestion control of the senders (tcp). Default cubic.
    #[serde(default = "default::control")]
    pub control: String,
    /// Bytes of each flow (tcp); 0 is endless. Default 0.
    #[serde(default)]
    pub bytes: u64,
    /// Greatest window that the receivers offer, in packets (tcp). Default: never in the way.
    pub window_packets: Option<u32>,
    /// Rate of one flow while it sends, in Mbit/s on the wire (of UDP; required there).
    pub rate_mbit: Option<f64>,
    /// Length of its packets in bytes on the wire (of UDP). Default 1024.
    #[serde(default = "default::packet_bytes")]
    pub packet_bytes: u32,
    /// Mean length of a burst in milliseconds (onoff). Default 250.
    #[serde(default = "default::on_off_ms")]
    pub on_ms: f64,
    /// Mean time between bursts in milliseconds (onoff). Default 250.
    #[serde(default = "default::on_off_ms")]
    pub off_ms: f64,
    /// Shape of the Pareto distribution of both, above 1 (onoff). Default 1.5.
    #[serde(default = "default::shape")]
    pub shape: f64,
    /// Start of the first flow in seconds. Default 0.
    #[serde(default)]
    pub start_s: f64,
    /// Seconds between the starts of flows. Default 0.
    #[serde(default)]
    pub stagger_s: f64,
    /// When the flows that have not ended do, in seconds since the start. Default: with the run.
    pub stop_s: Option<f64>,
    /// The node that data comes from. Default: the foreground's.
    pub from: Option<String>,
    /// The node that data goes to. Default: the foreground's.
    pub to: Option<String>,
    /// The host that the senders are on, by any name: it counts its flows, and they leave it by one
    /// egress. Default: the one host of all traffic that names none.
    pub host: Option<String>,
    /// The flows are dealt in turn to so many hosts: "HOST 1", "HOST 2", ... Default: all are on `host`.
    pub senders: Option<u32>,
    /// Algorithm parameters (tcp). Default: the algorithm's own.
    #[serde(default)]
    pub set: BTreeMap<String, Parameter>,
    /// As of a background (tcp).
    pub group: Option<String>,
    /// As of a background (tcp).
    pub shares: Option<Vec<f64>>,
}

/// What other traffic sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrossKind {
    /// Bulk flows of TCP.
    Tcp,
    /// UDP at a constant rate.
    Cbr,
    /// UDP at times of a Poisson process.
    Poisson,
    /// UDP at a constant rate in bursts; Pareto distributed are the bursts and the times between.
    Onoff,
}

/// Value of an algorithm parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A whole number.
    Integer(i64),
    /// A decimal number.
    Number(f64),
    /// A word.
    Text(String),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => number.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

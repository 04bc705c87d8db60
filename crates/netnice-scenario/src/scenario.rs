// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Scenario files (TOML): what flows, where, for how long.
//!
//! Every default is documented at its field.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{default, Background, Bottleneck, Cross, Foreground, Hosts, Link, Queue, Route};

/// One experiment: a network, foreground flows, other traffic, and backgrounds to compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, also of the files that results go to: it names no path.
    pub name: String,
    /// One line that a reader understands. Default: empty.
    #[serde(default)]
    pub title: String,
    /// Seconds before flows count. Default 3.
    #[serde(default = "default::warmup_s")]
    pub warmup_s: f64,
    /// Seconds in which starting flows count; none start later. Default 30.
    #[serde(default = "default::measure_s")]
    pub measure_s: f64,
    /// Seconds that counted flows may still take after that to finish. Default 30.
    #[serde(default = "default::drain_s")]
    pub drain_s: f64,
    /// TCP of the end hosts. Default linux.
    #[serde(default)]
    pub profile: Profile,
    /// Whether receivers delay ACKs (RFC 1122, 4.2.3.2). Default: the profile's.
    pub delayed_acks: Option<bool>,
    /// Whether senders pace packets over the round trip, as below Linux' queue fq. Default false.
    #[serde(default)]
    pub pacing: bool,
    /// Before they send something new, senders wait for a random time of up to so many milliseconds,
    /// and then send what the window allows: ns-2's overhead. Default 0.
    #[serde(default)]
    pub overhead_ms: f64,
    /// Payload of a full packet in bytes. Default: see [`Scenario::mss_bytes`].
    pub mss_bytes: Option<u32>,
    /// What links carry beside the payload, in bytes. Default: see [`Scenario::header_bytes`].
    pub header_bytes: Option<u32>,
    /// The shared link; this or `[[link]]`.
    pub bottleneck: Option<Bottleneck>,
    /// Any other network, `[[link]]` each.
    #[serde(default)]
    pub link: Vec<Link>,
    /// Hosts with links of their own, that the foreground's data comes from or goes to, `[[hosts]]`
    /// each. Default: none.
    #[serde(default)]
    pub hosts: Vec<Hosts>,
    /// Paths that are not those with the fewest links, `[[route]]` each. Default: none.
    #[serde(default)]
    pub route: Vec<Route>,
    /// The flows whose completion times matter. Default: none.
    pub foreground: Option<Foreground>,
    /// The variants to compare, `[[background]]` each. Default: none.
    #[serde(default)]
    pub background: Vec<Background>,
    /// Other traffic in the class of the foreground, the same beside every background,
    /// `[[cross]]` each. Default: none.
    #[serde(default)]
    pub cross: Vec<Cross>,
    /// The strict-priority reference. Default: see [`Ideal`].
    #[serde(default)]
    pub ideal: Ideal,
}

/// TCP of the end hosts, but for the congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// As in Linux: an initial window of 10 packets, SACK, RACK-TLP, delayed ACKs, a retransmission
    /// timeout of at least 200 ms, a handshake and a request before the data.
    #[default]
    Linux,
    /// As in the papers of 2002 to 2012: an initial window of 2 packets, NewReno without SACK, one
    /// ACK per packet, a retransmission timeout of at least 1 s, no handshake.
    Ns2,
}

impl Profile {
    /// Payload of a full packet in bytes: what fits into an Ethernet frame beside the time stamps
    /// (linux), or 1024 (ns2).
    pub fn mss_bytes(self) -> u32 {
        match self {
            Self::Linux => 1448,
            Self::Ns2 => 1024,
        }
    }
}

/// What is run once: the scenario with one of its backgrounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variant {
    /// Name in tables.
    pub name: String,
    /// The background. `None`: no background.
    pub background: Option<Background>,
    /// The queue of every link that has a rate, instead of the link's own. `None`: the links' own.
    pub queue: Option<Queue>,
}

/// The strict-priority reference: bulk flows in the low band of a priority queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ideal {
    /// Congestion control of the senders. Default cubic.
    pub control: String,
    /// Number of flows. Default 16.
    pub flows: u32,
}

impl Default for Ideal {
    fn default() -> Self {
        Self { control: default::control(), flows: 16 }
    }
}

/// The variant without a background.
pub const NONE: &str = "none";

/// The variant that others are measured by.
pub const IDEAL: &str = "strict priority";

impl Scenario {
    /// End of the time in which foreground flows start, in seconds.
    pub fn arrivals_end_s(&self) -> f64 {
        self.warmup_s + self.measure_s
    }

    /// End of the experiment, in seconds.
    pub fn end_s(&self) -> f64 {
        self.arrivals_end_s() + self.drain_s
    }

    /// The rate in bytes per second that loads are shares of: that of [`Scenario::slowest_link`],
    /// infinity without one.
    pub fn rate_bytes(&self) -> f64 {
        let rate_mbit = self.slowest_link().and_then(|index| self.network()[index].rate_mbit);
        rate_mbit.map_or(f64::INFINITY, |rate_mbit| rate_mbit * 1e6 / 8.0)
    }

    /// Payload of a full packet in bytes. By default [`Profile::mss_bytes`].
    pub fn mss_bytes(&self) -> u32 {
        self.mss_bytes.unwrap_or(self.profile.mss_bytes())
    }

    /// What links carry beside the payload, in bytes. By default the headers of Ethernet, IPv4 and
    /// TCP with time stamps, which is what Linux counts (linux), or those of IPv4 and TCP (ns2).
    pub fn header_bytes(&self) -> u32 {
        self.header_bytes.unwrap_or(match self.profile {
            Profile::Linux => 66,
            Profile::Ns2 => 40,
        })
    }

    /// What to run: no background, strict priority, then each background.
    ///
    /// The bulk flows of strict priority go where those of the first background do.
    pub fn variants(&self) -> Vec<Variant> {
        let first = self.background.first();
        let ideal = Background {
            name: IDEAL.into(),
            control: self.ideal.control.clone(),
            flows: self.ideal.flows,
            bytes: 0,
            start_s: 0.0,
            stagger_s: 0.0,
            set: BTreeMap::new(),
            queue: Some(Queue::Priority),
            window_packets: None,
            stop_s: None,
            stop_stagger_s: 0.0,
            from: first.and_then(|b| b.from.clone()),
            to: first.and_then(|b| b.to.clone()),
            host: first.and_then(|b| b.host.clone()),
            senders: first.and_then(|b| b.senders),
            hold: false,
            hold_rate_mbit: None,
            oracle: None,
            pull: false,
            quic: false,
            group: None,
            shares: None,
            change: Vec::new(),
        };
        let none = Variant { name: NONE.into(), background: None, queue: None };
        let others = std::iter::once(&ideal).chain(&self.background).map(|background| Variant {
            name: background.name.clone(),
            background: Some(background.clone()),
            queue: background.queue,
        });
        std::iter::once(none).chain(others).collect()
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The network of a scenario: one shared link, or any topology of directed links.
//!
//! `[bottleneck]` is short for two links, so a simulator only has to know links: see
//! [`crate::Scenario::network`].

use rand::Rng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use crate::{default, pattern, Trace};

/// The shared link of two nodes, "a" (where data comes from) and "b".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Rate in Mbit/s.
    pub rate_mbit: f64,
    /// Two-way propagation time in milliseconds.
    pub rtt_ms: f64,
    /// Queue discipline. Default drop-tail.
    #[serde(default)]
    pub queue: Queue,
    /// Room in the queue, in packets. Default: unlimited, if there is `limit_bytes`.
    pub limit_packets: Option<u32>,
    /// Room in the queue, in bytes on the wire. Default: unlimited, if there is `limit_packets`.
    pub limit_bytes: Option<u64>,
    /// Probability that a packet in the direction of the data is lost at random. Default 0.
    #[serde(default)]
    pub loss: f64,
    /// Whether the queue marks packets that are capable of ECN instead of dropping them, and TCP
    /// uses ECN (RFC 3168). Default false.
    #[serde(default)]
    pub ecn: bool,
    /// The propagation time of each packet in the direction of the data is longer by up to so many
    /// milliseconds, uniformly; the order is kept. Default 0.
    #[serde(default)]
    pub jitter_ms: f64,
    /// Probability that a packet overtakes, which is that neither `jitter_ms` nor `reorder_ms`
    /// delays it. Default 0.
    #[serde(default)]
    pub reorder: f64,
    /// Milliseconds by which all packets but those that overtake are delayed. Default 0.
    #[serde(default)]
    pub reorder_ms: f64,
    /// When packets leave, instead of `rate_mbit`, which stays the nominal rate. Default: no trace.
    pub trace: Option<Trace>,
    /// What changes during the run. Default: nothing.
    #[serde(default)]
    pub change: Vec<Change>,
}

/// A change of the bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// The rate from then on, in Mbit/s. Default: as before.
    pub rate_mbit: Option<f64>,
    /// The two-way propagation time from then on, in milliseconds. Default: as before.
    pub rtt_ms: Option<f64>,
}

/// A link from one node to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Unique name.
    pub name: String,
    /// The node where it starts; nodes exist by being named.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// Rate in Mbit/s. Default: infinitely fast, without a queue.
    pub rate_mbit: Option<f64>,
    /// One-way propagation time in milliseconds. Default 0.
    #[serde(default)]
    pub delay_ms: f64,
    /// Queue discipline. Default drop-tail.
    #[serde(default)]
    pub queue: Queue,
    /// Room in the queue, in packets. Default: unlimited, if there is `limit_bytes`.
    pub limit_packets: Option<u32>,
    /// Room in the queue, in bytes on the wire. Default: unlimited, if there is `limit_packets`.
    pub limit_bytes: Option<u64>,
    /// Probability that a packet is lost at random. Default 0.
    #[serde(default)]
    pub loss: f64,
    /// As in [`Bottleneck::ecn`]. Default false.
    #[serde(default)]
    pub ecn: bool,
    /// As in [`Bottleneck::jitter_ms`], in milliseconds. Default 0.
    #[serde(default)]
    pub jitter_ms: f64,
    /// As in [`Bottleneck::reorder`]. Default 0.
    #[serde(default)]
    pub reorder: f64,
    /// As in [`Bottleneck::reorder_ms`], in milliseconds. Default 0.
    #[serde(default)]
    pub reorder_ms: f64,
    /// As in [`Bottleneck::trace`]. Default: no trace.
    pub trace: Option<Trace>,
    /// Whether a link of the same kind leads back; it has the name with a prime. Default false.
    #[serde(default)]
    pub duplex: bool,
    /// What changes during the run. Default: nothing.
    #[serde(default)]
    pub change: Vec<LinkChange>,
}

/// A change of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkChange {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// The rate from then on, in Mbit/s. Default: as before.
    pub rate_mbit: Option<f64>,
    /// The one-way propagation time from then on, in milliseconds. Default: as before.
    pub delay_ms: Option<f64>,
}

/// Hosts at a node, each with a link of its own there and back, whose rate and delay are drawn
/// uniformly. The draw is the same with every seed, as all of the network is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hosts {
    /// Unique name, for the foreground's `from` or `to`; the links are "NAME 1", "NAME 2", ...
    pub name: String,
    /// The node that they are linked with.
    pub at: String,
    /// Number of hosts.
    pub count: u32,
    /// Least and greatest rate of a link in Mbit/s.
    pub rate_mbit: [f64; 2],
    /// Least and greatest one-way propagation time of a link in milliseconds.
    pub delay_ms: [f64; 2],
    /// Room in the queue of each link, drop-tail, in packets. Default 1000.
    #[serde(default = "default::limit_packets")]
    pub limit_packets: u32,
}

impl Hosts {
    /// Links to and from each host in turn; `group` is the index of these hosts in the scenario.
    pub(crate) fn links(&self, group: usize) -> Vec<Link> {
        let mut random = Pcg64::new(u128::from(pattern::mix(1)), group as u128);
        let mut between = |[least, most]: [f64; 2]| least + (most - least) * random.random::<f64>();
        (1..=self.count)
            .flat_map(|number| {
                let name = format!("{} {number}", self.name);
                let link = Link {
                    rate_mbit: Some(between(self.rate_mbit)),
                    limit_packets: Some(self.limit_packets),
                    ..Link::plain(&name, &self.at, &name, between(self.delay_ms))
                };
                [link.clone(), link.back()]
            })
            .collect()
    }
}

/// Queue discipline of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    #[default]
    #[serde(rename = "drop-tail")]
    DropTail,
    /// Random early detection.
    Red,
    /// Controlled delay (RFC 8289).
    Codel,
    /// Fair queueing with controlled delay (RFC 8290).
    FqCodel,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Common applications kept enhanced.
    Cake,
    /// Strict priority of the foreground.
    Priority,
}

impl Queue {
    /// Whether it can mark packets instead of dropping them.
    pub fn marks(self) -> bool {
        matches!(self, Self::Red | Self::Codel | Self::FqCodel | Self::Pie)
    }
}

impl Bottleneck {
    /// A link on which packets only wait.
    pub(crate) fn plain(rate_mbit: f64, rtt_ms: f64) -> Self {
        Self {
            rate_mbit,
            rtt_ms,
            queue: Queue::DropTail,
            limit_packets: None,
            limit_bytes: None,
            loss: 0.0,
            ecn: false,
            jitter_ms: 0.0,
            reorder: 0.0,
            reorder_ms: 0.0,
            trace: None,
            change: Vec::new(),
        }
    }

    pub(crate) fn links(&self) -> [Link; 2] {
        let rates = self.change.iter().filter(|change| change.rate_mbit.is_some());
        let delays = self.change.iter().filter(|change| change.rtt_ms.is_some());
        let there = Link {
            rate_mbit: Some(self.rate_mbit),
            queue: self.queue,
            limit_packets: self.limit_packets,
            limit_bytes: self.limit_bytes,
            loss: self.loss,
            ecn: self.ecn,
            jitter_ms: self.jitter_ms,
            reorder: self.reorder,
            reorder_ms: self.reorder_ms,
            trace: self.trace.clone(),
            change: rates
                .map(|c| LinkChange { at_s: c.at_s, rate_mbit: c.rate_mbit, delay_ms: None })
                .collect(),
            ..Link::plain("bottleneck", "a", "b", 0.0)
        };
        let back = Link {
            change: delays
                .map(|c| LinkChange { at_s: c.at_s, rate_mbit: None, delay_ms: c.rtt_ms })
                .collect(),
            ..Link::plain("back", "b", "a", self.rtt_ms)
        };
        [there, back]
    }
}

impl Link {
    /// An infinitely fast link.
    pub(crate) fn plain(name: &str, from: &str, to: &str, delay_ms: f64) -> Self {
        Self {
            name: name.into(),
            from: from.into(),
            to: to.into(),
            rate_mbit: None,
            delay_ms,
            queue: Queue::DropTail,
            limit_packets: None,
            limit_bytes: None,
            loss: 0.0,
            ecn: false,
            jitter_ms: 0.0,
            reorder: 0.0,
            reorder_ms: 0.0,
            trace: None,
            duplex: false,
            change: Vec::new(),
        }
    }

    /// A link of the same kind in the other direction; its name has a prime.
    pub(crate) fn back(&self) -> Self {
        Self {
            name: format!("{}'", self.name),
            from: self.to.clone(),
            to: self.from.clone(),
            ..self.clone()
        }
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The network of a scenario: one shared link, or any topology of directed links.
//!
//! `[bottleneck]` is short for two links, so a simulator only has to know links: see
//! [`Scenario::network`].

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use rand::Rng;
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::{default, Scenario};
use crate::{pattern, Error};

/// The shared link of two nodes, "a" (where data comes from) and "b".
#[skip_serializing_none]
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
#[skip_serializing_none]
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
#[skip_serializing_none]
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
#[skip_serializing_none]
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
    fn links(&self, group: usize) -> Vec<Link> {
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

/// The links that packets between two nodes take, instead of the fewest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The node where it starts.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// Names of links, in the order in which they are crossed; the second one of a duplex link has
    /// a prime.
    pub via: Vec<String>,
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

/// A rate trace in Mahimahi's format: each line is a millisecond at which 1500 bytes may leave.
///
/// After its last line it repeats; that line is also its length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Trace {
    file: String,
    opportunities_ms: Arc<[u64]>,
}

impl From<String> for Trace {
    fn from(file: String) -> Self {
        Self { file, opportunities_ms: Arc::default() }
    }
}

impl From<Trace> for String {
    fn from(trace: Trace) -> Self {
        trace.file
    }
}

impl Trace {
    /// The file as the scenario names it, relative to the scenario's own.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// When 1500 bytes may leave, in milliseconds: at least one time, not decreasing, the last one
    /// above 0.
    pub fn opportunities_ms(&self) -> &[u64] {
        &self.opportunities_ms
    }

    /// Reads the file; `directory` is the scenario's.
    pub(super) fn load(&mut self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(&self.file);
        let text = std::fs::read_to_string(&path)
            .map_err(|reason| Error::Trace { path: path.clone(), reason })?;
        self.opportunities_ms = opportunities(&text).map_err(|(line, what)| Error::Scenario {
            place: format!("{}, line {line}", path.display()),
            what,
        })?;
        Ok(())
    }
}

/// The times in a trace; or the line that is wrong, and what is wrong with it.
fn opportunities(text: &str) -> Result<Arc<[u64]>, (usize, String)> {
    let mut times: Vec<u64> = Vec::new();
    for (line, word) in (1..).zip(text.lines()) {
        let time = word.trim().parse().map_err(|_| {
            let what = format!("{word:?} is not a whole number of milliseconds; correct the line.");
            (line, what)
        })?;
        if let Some(&last) = times.last().filter(|&&last| last > time) {
            let what = format!("{time} follows {last}; times in a trace must not decrease.");
            return Err((line, what));
        }
        times.push(time);
    }
    match times.last() {
        None => Err((1, "the trace is empty; it needs at least one line.".into())),
        Some(0) => Err((
            times.len(),
            "the last time is the length of the trace, so it must be above 0.".into(),
        )),
        Some(_) => Ok(times.into()),
    }
}

impl Scenario {
    /// The links of the network; a simulator needs no other description of it.
    ///
    /// `[bottleneck]` becomes "bottleneck" from "a" to "b", with its queue, rate, loss and jitter
    /// and without delay, and "back" from "b" to "a", infinitely fast, with the whole two-way
    /// propagation time. A duplex link becomes two. Those of `[[hosts]]` follow the others.
    pub fn network(&self) -> Vec<Link> {
        let hosts = self.hosts.iter().enumerate().flat_map(|(group, hosts)| hosts.links(group));
        self.links().into_iter().chain(hosts).collect()
    }

    /// The links that have names of their own: all but those of `[[hosts]]`. The first ones of
    /// [`Scenario::network`].
    pub fn links(&self) -> Vec<Link> {
        if let Some(bottleneck) = &self.bottleneck {
            return bottleneck.links().into();
        }
        self.link
            .iter()
            .flat_map(|link| {
                let there = Link { duplex: false, ..link.clone() };
                let back = link.duplex.then(|| there.back());
                [Some(there), back].into_iter().flatten()
            })
            .collect()
    }

    /// The links from one node to another, as indexes of [`Scenario::network`]: those of its
    /// `[[route]]`, or else the fewest; of several such paths the one whose links are named first.
    /// `[[hosts]]` stand for the node that they are at.
    ///
    /// # Errors
    /// [`Error::Scenario`] if no path leads there.
    pub fn path(&self, from: &str, to: &str) -> Result<Vec<usize>, Error> {
        self.path_in(&self.links(), from, to)
            .map_err(|what| Error::Scenario { place: self.name.clone(), what })
    }

    /// The paths of the foreground, there and back, as indexes of [`Scenario::network`]: one for
    /// each pair of hosts, or that between its two nodes.
    ///
    /// # Errors
    /// As [`Scenario::path`].
    pub fn foreground_paths(&self) -> Result<Vec<[Vec<usize>; 2]>, Error> {
        let ends = self.ends(None, None);
        let (there, back) = (self.path(ends.0, ends.1)?, self.path(ends.1, ends.0)?);
        let mut paths = Vec::new();
        for [to_server, from_server] in self.last_links(ends.0) {
            for [to_client, from_client] in self.last_links(ends.1) {
                paths.push([
                    [&from_server, there.as_slice(), &to_client].concat(),
                    [&from_client, back.as_slice(), &to_server].concat(),
                ]);
            }
        }
        Ok(paths)
    }

    /// The node of that name, or the one that the hosts of that name are at.
    fn node<'a>(&'a self, name: &'a str) -> &'a str {
        self.hosts.iter().find(|hosts| hosts.name == name).map_or(name, |hosts| &hosts.at)
    }

    /// For each host of that name the link to it and the one from it; for a node a pair of none.
    fn last_links(&self, name: &str) -> Vec<[Vec<usize>; 2]> {
        let mut first = self.links().len();
        for hosts in &self.hosts {
            let next = first + 2 * hosts.count as usize;
            if hosts.name == name {
                return (first..next).step_by(2).map(|link| [vec![link], vec![link + 1]]).collect();
            }
            first = next;
        }
        vec![Default::default()]
    }

    /// Where data flows from and to, unless `from` or `to` say otherwise: as the foreground's does,
    /// and that by default from "a" to "b".
    pub fn ends<'a>(&'a self, from: Option<&'a str>, to: Option<&'a str>) -> (&'a str, &'a str) {
        let foreground = self.foreground.as_ref();
        let from = from.or_else(|| foreground.and_then(|f| f.from.as_deref()));
        let to = to.or_else(|| foreground.and_then(|f| f.to.as_deref()));
        (from.unwrap_or("a"), to.unwrap_or("b"))
    }

    /// The link that the offered load refers to, as an index of [`Scenario::network`]: the slowest
    /// one on the path of [`Scenario::ends`] by default, links of `[[hosts]]` aside. `None`: none of
    /// them has a rate.
    pub fn slowest_link(&self) -> Option<usize> {
        let network = self.links();
        let (from, to) = self.ends(None, None);
        self.path_in(&network, from, to)
            .ok()?
            .into_iter()
            .filter(|&index| network[index].rate_mbit.is_some())
            .min_by(|&x, &y| network[x].rate_mbit.partial_cmp(&network[y].rate_mbit).unwrap())
    }

    /// As [`Scenario::path`]; the error is the sentence alone.
    pub(super) fn path_in(
        &self,
        network: &[Link],
        from: &str,
        to: &str,
    ) -> Result<Vec<usize>, String> {
        let (from, to) = (self.node(from), self.node(to));
        match self.route.iter().find(|route| route.from == from && route.to == to) {
            Some(route) => route.links(network),
            None => fewest(network, from, to).ok_or_else(|| {
                format!(
                    "no route from \"{from}\" to \"{to}\": add a [[link]] or a [[route]], or choose \
                     among the nodes {}.",
                    nodes(network).join(", ")
                )
            }),
        }
    }
}

impl Bottleneck {
    fn links(&self) -> [Link; 2] {
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
    fn plain(name: &str, from: &str, to: &str, delay_ms: f64) -> Self {
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
    fn back(&self) -> Self {
        Self {
            name: format!("{}'", self.name),
            from: self.to.clone(),
            to: self.from.clone(),
            ..self.clone()
        }
    }
}

impl Route {
    /// Its links as indexes of the network, or what is wrong with them as a sentence.
    pub(super) fn links(&self, network: &[Link]) -> Result<Vec<usize>, String> {
        let (mut at, mut path) = (self.from.as_str(), Vec::new());
        for name in &self.via {
            let Some(index) = network.iter().position(|link| link.name == *name) else {
                let names: Vec<&str> = network.iter().map(|link| link.name.as_str()).collect();
                return Err(format!(
                    "the [[route]] from \"{}\" to \"{}\" goes via \"{name}\", which is no link; \
                     there are {}.",
                    self.from,
                    self.to,
                    names.join(", ")
                ));
            };
            if network[index].from != at {
                break;
            }
            at = &network[index].to;
            path.push(index);
        }
        if path.len() < self.via.len() || at != self.to || path.is_empty() {
            return Err(format!(
                "the [[route]] from \"{}\" to \"{}\" breaks off at \"{at}\"; each link in `via` must \
                 start where the one before ends.",
                self.from, self.to
            ));
        }
        Ok(path)
    }
}

/// The path with the fewest links, by breadth-first search in their order.
fn fewest(network: &[Link], from: &str, to: &str) -> Option<Vec<usize>> {
    let mut reached: Vec<(&str, Vec<usize>)> = vec![(from, Vec::new())];
    let mut next = VecDeque::from([0]);
    while let Some(place) = next.pop_front() {
        let (node, path) = reached[place].clone();
        if node == to && !path.is_empty() {
            return Some(path);
        }
        for (index, link) in network.iter().enumerate().filter(|(_, link)| link.from == node) {
            if !reached.iter().any(|(known, _)| *known == link.to) {
                next.push_back(reached.len());
                reached.push((&link.to, [path.as_slice(), &[index]].concat()));
            }
        }
    }
    None
}

/// All nodes, in the order of their first naming.
fn nodes(network: &[Link]) -> Vec<&str> {
    let mut nodes = Vec::new();
    for node in network.iter().flat_map(|link| [link.from.as_str(), link.to.as_str()]) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    nodes
}

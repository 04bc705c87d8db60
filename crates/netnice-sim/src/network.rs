// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The network of a run: links, and the paths over them.

use netnice_scenario::{LinkChange, Scenario, Variant};

use crate::agenda::{Agenda, Event};
use crate::link::{nanos, Link, Transmitter};
use crate::packet::{Nanos, Packet};
use crate::trace::Sink;
use crate::Error;

/// The way of data and the way back, as numbers of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paths {
    pub(crate) there: u16,
    pub(crate) back: u16,
}

/// Links and paths.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) links: Vec<Link>,
    /// Of the links that are traced: the first ones.
    names: Vec<String>,
    changes: Vec<Vec<LinkChange>>,
    /// Propagation of each link in nanoseconds.
    propagation: Vec<Nanos>,
    paths: Vec<Vec<usize>>,
    /// Whether a queue marks packets.
    pub(crate) ecn: bool,
}

impl Network {
    /// The links of a scenario, and no path yet; `window` is the measured one.
    pub(crate) fn new(
        scenario: &Scenario,
        variant: &Variant,
        transmitter: Transmitter,
        window: (Nanos, Nanos),
        seed: u64,
    ) -> Result<Self, Error> {
        let network = scenario.network();
        let bytes = scenario.mss_bytes() + scenario.header_bytes();
        let mut links = Vec::with_capacity(network.len());
        for (index, link) in network.iter().enumerate() {
            let made = Link::new(link, variant.queue, transmitter, bytes, window, seed, index);
            links.push(made.map_err(|reason| Error::Queue {
                place: format!("{}, link \"{}\"", scenario.name, link.name),
                reason,
            })?);
        }
        Ok(Self {
            links,
            names: scenario.links().into_iter().map(|link| link.name).collect(),
            changes: network.iter().map(|link| link.change.clone()).collect(),
            propagation: network.iter().map(|link| nanos(link.delay_ms)).collect(),
            paths: Vec::new(),
            ecn: network.iter().any(|link| link.ecn),
        })
    }

    /// The number of a path, which may be a new one.
    pub(crate) fn path(&mut self, path: Vec<usize>) -> u16 {
        let known = self.paths.iter().position(|p| *p == path);
        known.map_or_else(|| self.new_path(path), |known| known as u16)
    }

    /// The number of a new path.
    pub(crate) fn new_path(&mut self, path: Vec<usize>) -> u16 {
        self.paths.push(path);
        self.paths.len() as u16 - 1
    }

    /// Propagation of a path in nanoseconds, without queues.
    pub(crate) fn delay(&self, path: u16) -> Nanos {
        self.paths[usize::from(path)].iter().map(|link| self.propagation[*link]).sum()
    }

    /// The link that packets of a path take first.
    #[inline]
    pub(crate) fn first_link(&self, path: u16) -> usize {
        self.paths[usize::from(path)][0]
    }

    /// When links change.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (f64, Event)> + '_ {
        self.changes.iter().enumerate().flat_map(|(link, changes)| {
            let event = move |index| Event::Change { link, index };
            changes.iter().enumerate().map(move |(index, change)| (change.at_s, event(index)))
        })
    }

    /// A link changes.
    pub(crate) fn change(&mut self, link: usize, index: usize) {
        self.links[link].change(&self.changes[link][index]);
    }

    /// Puts a packet on the next link of its path.
    #[inline]
    pub(crate) fn forward(&mut self, packet: Packet, agenda: &mut Agenda) {
        let link = self.paths[usize::from(packet.path)][usize::from(packet.hop)];
        let schedule = self.links[link].push(packet, agenda.now);
        agenda.link(link, schedule);
    }

    /// A packet may leave a link.
    #[inline]
    pub(crate) fn depart(&mut self, link: usize, agenda: &mut Agenda) {
        let schedule = self.links[link].depart(agenda.now);
        agenda.link(link, schedule);
    }

    /// What has crossed a link goes on to the next one; the packet, if it was the last of its path.
    #[inline]
    pub(crate) fn arrive(&mut self, link: usize, agenda: &mut Agenda) -> Option<Packet> {
        let (packet, next) = self.links[link].arrive(agenda.now);
        if let Some(at) = next {
            agenda.at(at, Event::Arrival(link));
        }
        let mut packet = packet?;
        packet.hop += 1;
        if usize::from(packet.hop) == self.paths[usize::from(packet.path)].len() {
            return Some(packet);
        }
        self.forward(packet, agenda);
        None
    }

    /// Tells of the links that have names.
    pub(crate) fn sample(&self, now: Nanos, sink: &mut dyn Sink) {
        for (name, link) in self.names.iter().zip(&self.links) {
            sink.link(now, name, link.waiting(), link.left_bytes(), link.dropped());
        }
    }
}

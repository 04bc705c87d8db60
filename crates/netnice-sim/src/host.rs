// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Hosts: what the senders on one machine know of each other, and where their packets leave it.
//!
//! A scenario says which traffic is whose (`host` and `senders`); all traffic that it says nothing
//! of is of one host. A receiver only acknowledges; what it sends by a link before which its
//! sender's host holds packets counts there, as if both were one machine.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::egress::Line;
use crate::intake::Intake;
use crate::outcome::{Egress, HostOutcome};
use crate::packet::{Nanos, Packet};

/// The connections of one host under one algorithm: each has a clone, and the host has one.
#[derive(Debug, Clone, Default)]
pub struct Peers(Rc<()>);

impl Peers {
    /// How many connections they are.
    pub fn count(&self) -> u32 {
        u32::try_from(Rc::strong_count(&self.0) - 1).unwrap_or(u32::MAX)
    }
}

/// A machine that sends.
#[derive(Debug, Default)]
pub(crate) struct Host {
    name: String,
    peers: BTreeMap<&'static str, Peers>,
    egress: Egress,
    /// Where its background waits, if it is held.
    pub(crate) line: Option<Box<Line>>,
    /// What comes in, if it lets downloads yield.
    pub(crate) intake: Option<Box<Intake>>,
}

impl Host {
    /// Its connections under the algorithm of that name.
    pub(crate) fn peers(&mut self, algorithm: &'static str) -> &Peers {
        self.peers.entry(algorithm).or_default()
    }

    /// A packet that waits for nothing leaves the host by a link.
    #[inline]
    pub(crate) fn leave(&mut self, packet: &Packet, link: usize, now: Nanos) {
        self.count(packet);
        self.acknowledge(packet, link, now);
    }

    /// One of its receivers sends a packet by a link.
    #[inline]
    pub(crate) fn acknowledge(&mut self, packet: &Packet, link: usize, now: Nanos) {
        if let Some(line) = &mut self.line {
            line.pass(packet, link, now);
        }
    }

    /// A packet leaves the host.
    #[inline]
    pub(crate) fn count(&mut self, packet: &Packet) {
        let bytes = u64::from(packet.bytes);
        self.egress.packets += 1;
        self.egress.bytes += bytes;
        self.egress.background_bytes += if packet.low { bytes } else { 0 };
    }
}

/// All hosts of a run.
#[derive(Debug, Default)]
pub(crate) struct Hosts(Vec<Host>);

impl Hosts {
    /// The number of the host of that name.
    pub(crate) fn number(&mut self, name: &str) -> usize {
        self.0.iter().position(|host| host.name == name).unwrap_or_else(|| {
            self.0.push(Host { name: name.into(), ..Host::default() });
            self.0.len() - 1
        })
    }

    /// A host by its number.
    #[inline]
    pub(crate) fn get(&mut self, number: usize) -> &mut Host {
        &mut self.0[number]
    }

    /// What each of them did.
    pub(crate) fn outcome(self) -> Vec<HostOutcome> {
        let outcome = |host: Host| HostOutcome {
            name: host.name,
            egress: host.egress,
            rate: match (host.line, host.intake) {
                (Some(line), _) => line.path().rate(),
                (_, Some(intake)) => intake.rate(),
                _ => 0,
            },
        };
        self.0.into_iter().map(outcome).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_counted_by_host_and_algorithm() {
        let mut hosts = Hosts::default();
        let [x, y] = ["x", "y"].map(|name| hosts.number(name));
        assert_eq!((x, y, hosts.number("x")), (0, 1, 0));
        let mut open = |host: usize, algorithm| hosts.get(host).peers(algorithm).clone();
        let one = open(x, "nice");
        let two = open(x, "nice");
        let others = [open(y, "nice"), open(x, "reno")];
        assert_eq!((one.count(), two.count()), (2, 2));
        assert_eq!(others.map(|peers| peers.count()), [1, 1]);
        drop(two); // it has closed
        assert_eq!(one.count(), 1);
    }
}

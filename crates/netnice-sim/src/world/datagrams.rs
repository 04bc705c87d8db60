// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! UDP: what sources send, and the probes of the foreground.

use super::World;
use crate::agenda::Event;
use crate::link::nanos;
use crate::network::Paths;
use crate::packet::{Body, Nanos, Packet};

/// Bytes of a probe on the wire; its payload is as `netnice-load` sends it.
const PROBE_BYTES: u32 = 64 + 42;

/// `Packet::flow` of a probe; its number is in `Packet::generation`.
pub(super) const PROBE: u32 = u32::MAX;

/// A packet of UDP that leaves at `sent_ns`.
fn udp_packet((flow, generation): (u32, u32), bytes: u32, path: u16, sent_ns: Nanos) -> Packet {
    Packet {
        flow,
        generation,
        bytes,
        path,
        hop: 0,
        low: false,
        ect: false,
        ce: false,
        enqueued_ns: 0,
        body: Body::Udp { sent_ns },
    }
}

impl World<'_, '_> {
    pub(super) fn send_udp(&mut self, index: usize) {
        let now = self.agenda.now;
        let source = &mut self.sources[index];
        let Some(next) = source.due(now) else { return };
        self.agenda.at(next, Event::Udp(index));
        let packets = &mut self.outcome.cross[source.cross];
        if (self.window.0..self.window.1).contains(&now) {
            packets.sent += 1;
            packets.lost += 1; // until it arrives
        }
        let packet = udp_packet((index as u32, 0), source.bytes, source.paths.there, now);
        let link = self.network.first_link(packet.path);
        self.hosts.get(source.host).leave(&packet, link, now);
        self.network.forward(packet, &mut self.agenda);
    }

    pub(super) fn receive_udp(&mut self, packet: Packet, sent: Nanos) {
        let now = self.agenda.now;
        let source = &self.sources[packet.flow as usize];
        let packets = &mut self.outcome.cross[source.cross];
        if (self.window.0..self.window.1).contains(&sent) {
            packets.lost -= 1;
            let back = self.network.delay(source.paths.back);
            packets.rtt_us.push(((now - sent + back) / 1000) as u32);
        }
        if (self.window.0..self.window.1).contains(&now) {
            packets.window_bytes += u64::from(packet.bytes);
        }
    }

    /// The paths of probes.
    fn probed(&self) -> Paths {
        self.fetches.as_ref().expect("only a foreground probes").pairs[0]
    }

    pub(super) fn send_probe(&mut self, number: u32) {
        let now = self.agenda.now;
        let foreground = self.scenario.foreground.as_ref().expect("only a foreground probes");
        let interval = nanos(foreground.probe_interval_ms.unwrap_or(100.0));
        if now + interval < self.window.1 {
            self.agenda.at(now + interval, Event::Probe(number + 1));
        }
        self.outcome.probes.push(None);
        let packet = udp_packet((PROBE, number), PROBE_BYTES, self.probed().back, now);
        self.network.forward(packet, &mut self.agenda);
    }

    pub(super) fn echo(&mut self, packet: Packet, sent_ns: Nanos) {
        let path = self.probed().there;
        let echo = Packet { path, hop: 0, body: Body::Echo { sent_ns }, ..packet };
        let host = self.fetches.as_ref().expect("only a foreground probes").hosts[0];
        let link = self.network.first_link(path);
        self.hosts.get(host).acknowledge(&echo, link, self.agenda.now);
        self.network.forward(echo, &mut self.agenda);
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections of the background whose packets wait in their host while its path is busy.

use super::World;
use crate::packet::Body;

impl World<'_, '_> {
    /// A connection sends what its host has room for.
    pub(super) fn transmit_held(&mut self, flow: u32) {
        let host = self.slots.get(flow).host;
        self.fill(flow);
        self.open(host);
    }

    /// Puts packets of a connection into its host's line.
    fn fill(&mut self, flow: u32) {
        let now = self.agenda.now;
        let generation = self.slots.generation(flow);
        let Some(connection) = self.slots.find(flow) else { return };
        let Some(sender) = &mut connection.sender else { return };
        let Some(line) = &self.hosts.get(connection.host).line else { return };
        let mut steps = std::mem::take(&mut self.steps);
        sender.held = !line.away(now);
        sender.transmit_some(&self.profile, now, line.room((flow, generation), now), &mut steps);
        let (host, there) = (connection.host, connection.paths.there);
        let (packets, last) = (connection.packets, connection.last_bytes);
        for step in steps.drain(..) {
            let payload = if step.seq + 1 == packets { last } else { self.mss };
            let body = Body::Data { seq: step.seq, sent_ns: now, cwr: step.cwr };
            let packet = self.packet(flow, there, payload + self.header, body);
            if let Some(line) = &mut self.hosts.get(host).line {
                line.put(packet);
            }
        }
        self.steps = steps;
        self.schedule(flow);
    }

    /// Lets leave what may leave a host; each makes room for another of its connection.
    pub(super) fn open(&mut self, number: usize) {
        loop {
            let host = self.hosts.get(number);
            let Some(line) = &mut host.line else { return };
            let seen = self.network.links[line.link()].seen();
            let Some(packet) = line.next(number, seen, &mut self.agenda) else { return };
            host.count(&packet);
            self.network.forward(packet, &mut self.agenda);
            if self.slots.generation(packet.flow) == packet.generation {
                self.fill(packet.flow);
            }
        }
    }
}

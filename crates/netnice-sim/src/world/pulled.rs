// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Downloads that their receiver's host lets yield, and what of its foreground it sees.

use super::World;
use crate::agenda::Event;
use crate::packet::{Ack, Body, Nanos, Packet, Seq};

impl World<'_, '_> {
    /// A receiver acknowledges; its host says up to where a download may go on.
    pub(super) fn acknowledge(&mut self, flow: u32, ack: Ack) {
        let now = self.agenda.now;
        let of = (flow, self.slots.generation(flow));
        let connection = self.slots.get(flow);
        let (pull, is_fetch, back) =
            (connection.pull, connection.is_fetch(), connection.paths.back);
        let intake = self.hosts.get(connection.host).intake.as_deref_mut();
        let body = match intake {
            Some(intake) if pull => {
                let (edge, again) = intake.offer(of, now, ack.next);
                self.ask_again(of, again);
                Body::Windowed(ack, edge)
            }
            Some(intake) if is_fetch => {
                intake.acknowledges(of, now, ack.next);
                Body::Ack(ack)
            }
            _ => Body::Ack(ack),
        };
        self.send(flow, back, self.header, body);
    }

    fn ask_again(&mut self, (flow, generation): (u32, u32), at: Option<u64>) {
        if let Some(at) = at {
            self.agenda.at(at, Event::Turn { flow, generation });
        }
    }

    /// A host looks again whether a download may go on.
    pub(super) fn turn(&mut self, flow: u32, generation: u32) {
        let now = self.agenda.now;
        if self.slots.generation(flow) != generation {
            return;
        }
        let connection = self.slots.get(flow);
        let back = connection.paths.back;
        let intake = self.hosts.get(connection.host).intake.as_deref_mut();
        let Some((edge, again, tells)) = intake.and_then(|i| i.turn((flow, generation), now))
        else {
            return;
        };
        self.ask_again((flow, generation), again);
        if tells {
            self.send(flow, back, self.header, Body::Window(edge));
        }
    }

    /// The foreground asks for something.
    pub(super) fn announce(&mut self, flow: u32, payload: u32) {
        let now = self.agenda.now;
        let of = (flow, self.slots.generation(flow));
        let host = self.slots.get(flow).host;
        if let Some(intake) = &mut self.hosts.get(host).intake {
            intake.asks(of, now, payload);
        }
    }

    /// Data comes to a host.
    pub(super) fn take_in(&mut self, packet: &Packet, seq: Seq, sent: Nanos) {
        let now = self.agenda.now;
        let of = (packet.flow, packet.generation);
        let connection = self.slots.get(packet.flow);
        let (pull, is_fetch) = (connection.pull, connection.is_fetch());
        let last = seq + 1 == connection.packets;
        let short = connection.last_bytes < self.mss;
        let fin = last && !self.keeps(packet.flow);
        let connection = self.slots.get(packet.flow);
        let Some(intake) = &mut self.hosts.get(connection.host).intake else { return };
        intake.count(now, packet.bytes, !pull && !is_fetch);
        if pull {
            intake.downloaded(of, now, seq, sent, last);
        } else if is_fetch {
            // of what goes on, a response's end is seen by a short packet
            intake.fetched(of, now, packet.bytes - self.header, last && (fin || short), fin);
        }
    }

    /// A sender learns up to where it may send.
    pub(super) fn allow(&mut self, flow: u32, edge: Seq) {
        if let Some(sender) = &mut self.slots.get(flow).sender {
            sender.edge = sender.edge.max(edge);
        }
    }
}

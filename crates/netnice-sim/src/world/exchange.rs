// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the two ends of a connection say to each other.

use rand::Rng;

use super::World;
use crate::agenda::{seconds, Event};
use crate::connection::{retry_at, Class, Connection, FlowPlan, Phase};
use crate::intake::AT_FIRST;
use crate::network::Paths;
use crate::packet::{Ack, Body, Nanos, Packet};
use crate::tcp::{Marks, Sender};

/// Bytes on the wire, beside `header_bytes`, of the packets that open a connection: TCP's options.
const OPEN_BYTES: u32 = 8;

/// Payload of the request of a fetch, in bytes; as `netnice-load` sends it.
const REQUEST_BYTES: u32 = 24;

impl World<'_, '_> {
    pub(super) fn connect(&mut self, plan: FlowPlan) {
        let (now, mss) = (self.agenda.now, u64::from(self.mss));
        let flow = self.slots.put(Connection::new(plan, &self.profile, mss, self.ect, now));
        if self.profile.handshake {
            self.call(flow);
            self.schedule(flow);
        } else {
            self.begin(flow, 0);
        }
    }

    /// Sends a packet of a connection on its way.
    pub(super) fn send(&mut self, flow: u32, path: u16, bytes: u32, body: Body) {
        let packet = self.packet(flow, path, bytes, body);
        let (link, now) = (self.network.first_link(path), self.agenda.now);
        let connection = self.slots.get(flow);
        let host = self.hosts.get(connection.host);
        if path == connection.paths.there {
            host.leave(&packet, link, now);
        } else {
            host.acknowledge(&packet, link, now);
        }
        self.network.forward(packet, &mut self.agenda);
    }

    /// A packet of a connection.
    pub(super) fn packet(&mut self, flow: u32, path: u16, bytes: u32, body: Body) -> Packet {
        let generation = self.slots.generation(flow);
        let connection = self.slots.get(flow);
        Packet {
            flow,
            generation,
            bytes,
            path,
            hop: 0,
            low: connection.low(),
            ect: connection.ect && matches!(body, Body::Data { .. }),
            ce: false,
            enqueued_ns: 0,
            body,
        }
    }

    /// The client's first packet: the receiver of a fetch asks, the sender of a bulk flow calls.
    fn call(&mut self, flow: u32) {
        let connection = self.slots.get(flow);
        let Paths { there, back } = connection.paths;
        let path = if connection.is_fetch() { back } else { there };
        self.send(flow, path, self.header + OPEN_BYTES, Body::Syn);
    }

    pub(super) fn receive_syn(&mut self, flow: u32) {
        let now = self.agenda.now;
        let connection = self.slots.get(flow);
        let Paths { there, back } = connection.paths;
        let path = if connection.is_fetch() { there } else { back };
        connection.answered = (now, connection.answered.1 + 1);
        self.send(flow, path, self.header + OPEN_BYTES, Body::SynAck);
    }

    pub(super) fn receive_syn_ack(&mut self, flow: u32) {
        let now = self.agenda.now;
        let connection = self.slots.get(flow);
        let Phase::Opening { since, tries } = connection.phase else { return };
        if connection.is_fetch() {
            connection.phase = Phase::Requested { since: now, tries: 0 };
            self.request(flow);
            self.schedule(flow);
        } else {
            self.begin(flow, if tries == 0 { now - since } else { 0 });
        }
    }

    pub(super) fn request(&mut self, flow: u32) {
        let back = self.slots.get(flow).paths.back;
        self.announce(flow, REQUEST_BYTES);
        self.send(flow, back, self.header + REQUEST_BYTES, Body::Request);
    }

    pub(super) fn receive_request(&mut self, flow: u32) {
        let now = self.agenda.now;
        let connection = self.slots.get(flow);
        if connection.sender.is_some() {
            return self.serve_again(flow);
        }
        let rtt = if connection.answered.1 == 1 { now - connection.answered.0 } else { 0 };
        let packets = connection.packets;
        self.bare(flow); // a connection begins with quick ACKs
        self.begin(flow, rtt);
        if packets <= self.profile.initial_window && !self.keeps(flow) {
            // all was sent before the server ended: no packet is left to carry that
            self.bare(flow);
        }
    }

    /// A packet without data on the way of the data.
    fn bare(&mut self, flow: u32) {
        let there = self.slots.get(flow).paths.there;
        self.send(flow, there, self.header, Body::Bare);
    }

    /// Data flows from now on.
    fn begin(&mut self, flow: u32, rtt: Nanos) {
        let now = self.agenda.now;
        let profile = self.profile;
        let connection = self.slots.get(flow);
        let config = &self.configs[connection.config];
        let (packets, window) = (connection.packets, connection.window);
        let peers = self.hosts.get(connection.host).peers(config.algorithm().name());
        let control = (config, connection.group.as_ref(), peers);
        let first = self.random.random();
        let mut sender = Sender::new(&profile, control, packets, first, window, rtt, now);
        sender.held = connection.hold;
        if connection.pull {
            sender.edge = AT_FIRST;
        }
        connection.sender = Some(sender);
        connection.receiver.opened(&profile, rtt);
        if !connection.is_fetch() || !profile.handshake {
            connection.phase = Phase::Open;
        }
        self.transmit(flow);
    }

    pub(super) fn receive_data(&mut self, packet: Packet) -> bool {
        let now = self.agenda.now;
        let profile = self.profile;
        let Body::Data { seq, sent_ns, cwr } = packet.body else { return false };
        self.take_in(&packet, seq, sent_ns);
        let connection = self.slots.get(packet.flow);
        connection.phase = Phase::Open;
        let marks = Marks { ce: packet.ce, cwr };
        let last = seq + 1 == connection.packets;
        let reply = connection.receiver.data(&profile, seq, sent_ns, marks, last, now);
        let complete = connection.receiver.next() == connection.packets;
        let mut bytes = u64::from(reply.readable) * u64::from(self.mss);
        if complete && reply.readable > 0 {
            bytes -= u64::from(self.mss - connection.last_bytes);
        }
        let counts = (self.window.0..self.window.1).contains(&now);
        let (mut ended, mut idle) = (false, false);
        match connection.class {
            Class::Foreground(index) => {
                let fetch = &mut self.outcome.fetches[index];
                self.outcome.foreground.window_bytes += if counts { bytes } else { 0 };
                if complete && fetch.fct_s.is_none() {
                    fetch.fct_s = Some((now - seconds(fetch.start_s)) as f64 / 1e9);
                    ended = fetch.counted;
                    idle = true;
                }
            }
            Class::Background(index) => {
                let bulk = &mut self.outcome.background[index];
                bulk.bytes += bytes;
                bulk.window_bytes += if counts { bytes } else { 0 };
            }
            Class::Cross(index, _) => {
                self.outcome.cross[index].window_bytes += if counts { bytes } else { 0 };
            }
        }
        if idle && self.keeps(packet.flow) {
            self.idle.push(packet.flow);
        }
        match reply.ack {
            Some(ack) => self.acknowledge(packet.flow, ack),
            None => self.schedule(packet.flow),
        }
        ended
    }

    pub(super) fn receive_ack(&mut self, packet: Packet, ack: Ack) {
        let now = self.agenda.now;
        let connection = self.slots.get(packet.flow);
        let Some(sender) = &mut connection.sender else { return };
        if let Some(line) = &mut self.hosts.get(connection.host).line {
            line.ack((packet.flow, packet.generation), &ack, now);
        }
        let (from, to) = self.window;
        let packets = match connection.class {
            Class::Foreground(_) => Some(&mut self.outcome.foreground),
            Class::Cross(index, _) => Some(&mut self.outcome.cross[index]),
            Class::Background(_) => None,
        };
        match packets {
            Some(packets) => sender.ack(&self.profile, &ack, now, |first| {
                if (from..to).contains(&first) {
                    packets.rtt_us.push(((now - first) / 1000) as u32);
                }
            }),
            None => sender.ack(&self.profile, &ack, now, |_| {}),
        }
        if let Some(sink) = self.trace.as_mut() {
            let (class, flow) = connection.class.traced();
            if sender.measured_rtt() > 0 {
                sink.rtt(now, class, flow, sender.measured_rtt());
            }
            let shown = sender.show();
            for (i, value) in shown.iter().enumerate() {
                if value.is_known() && connection.shown.get(i) != Some(value) {
                    sink.shown(now, class, flow, value, self.mss + self.header);
                }
            }
            connection.shown = shown;
        }
        if sender.done() && !self.keeps(packet.flow) {
            self.close(packet.flow);
        } else {
            self.transmit(packet.flow);
        }
    }

    pub(super) fn transmit(&mut self, flow: u32) {
        let now = self.agenda.now;
        let connection = self.slots.get(flow);
        if connection.hold {
            return self.transmit_held(flow);
        }
        let Some(sender) = &mut connection.sender else { return };
        let mut steps = std::mem::take(&mut self.steps);
        sender.transmit(&self.profile, now, &mut steps);
        let (there, packets, last) =
            (connection.paths.there, connection.packets, connection.last_bytes);
        for step in steps.drain(..) {
            let payload = if step.seq + 1 == packets { last } else { self.mss };
            let body = Body::Data { seq: step.seq, sent_ns: now, cwr: step.cwr };
            self.send(flow, there, payload + self.header, body);
        }
        self.steps = steps;
        self.schedule(flow);
    }

    /// Does what is due at a connection.
    pub(super) fn wake(&mut self, flow: u32, generation: u32) {
        let now = self.agenda.now;
        let profile = self.profile;
        if self.slots.generation(flow) != generation {
            return;
        }
        let Some(connection) = self.slots.find(flow) else { return };
        if connection.wake != now {
            return; // a timer came nearer; its own event is in the heap
        }
        connection.wake = Nanos::MAX;
        if connection.stop.is_some_and(|stop| stop <= now) {
            connection.stop = None;
            match &mut connection.sender {
                Some(sender) => sender.stop(),
                None => return self.close(flow),
            }
        }
        let (mut reopen, mut request) = (false, false);
        match &mut connection.phase {
            Phase::Opening { since, tries } if now >= retry_at(*since, *tries) => {
                (*since, *tries, reopen) = (now, *tries + 1, true);
            }
            Phase::Requested { since, tries } if now >= retry_at(*since, *tries) => {
                (*since, *tries, request) = (now, *tries + 1, true);
            }
            _ => {}
        }
        let ack = (connection.receiver.ack_at <= now)
            .then(|| connection.receiver.acknowledge(false, now));
        let done = connection.sender.as_mut().is_some_and(|sender| {
            sender.wake(&profile, now);
            sender.done()
        });
        if reopen {
            self.call(flow);
        }
        if request {
            self.request(flow);
        }
        if let Some(ack) = ack {
            self.acknowledge(flow, ack);
        }
        if done && !self.keeps(flow) {
            self.close(flow);
        } else {
            self.transmit(flow);
            self.schedule(flow);
        }
    }

    /// Sees to it that a connection is woken in time.
    pub(super) fn schedule(&mut self, flow: u32) {
        let generation = self.slots.generation(flow);
        let Some(connection) = self.slots.find(flow) else { return };
        let due = connection.due().max(self.agenda.now);
        if due < connection.wake {
            connection.wake = due;
            self.agenda.at(due, Event::Wake { flow, generation });
        }
    }

    fn close(&mut self, flow: u32) {
        if self.profile.handshake && self.slots.get(flow).is_fetch() {
            self.bare(flow); // the client's end is acknowledged
        }
        let generation = self.slots.generation(flow);
        if let Some(mut connection) = self.slots.take(flow) {
            if let Some(sender) = &mut connection.sender {
                sender.close(self.agenda.now);
            }
            connection.account(&mut self.outcome);
            let host = self.hosts.get(connection.host);
            if let Some(line) = &mut host.line {
                line.end((flow, generation));
            }
            if let Some(intake) = &mut host.intake {
                intake.end((flow, generation));
            }
        }
    }
}

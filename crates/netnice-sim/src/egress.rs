// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Where packets of the background wait in their host while its path is busy (`core/host/path.h`).
//!
//! ```text
//! transport --> [ line: one connection after the other ] --> gate --> link
//! the host's other packets --------------------------------------^
//! ```
//!
//! Connections leave in turns (`core/host/line.h`); before a rate is known, and where the host is told, packets
//! leave as they came. All that the host sends on that link enters the path's virtual queue. What waits is data of the
//! background alone, below its transport: any congestion control will do, and its RTTs hold the wait.
//! The ACKs of what left tell the path of the queue at the bottleneck. A host that is told of that
//! (`told`) does not ask the path.

pub(crate) mod told;

use std::collections::{BTreeMap, VecDeque};

use netnice_core::{Base, Line as Turns, Path, Place, Sent};

use crate::agenda::{Agenda, Event};
use crate::link::seen::Seen;
use crate::packet::{Ack, Body, Nanos, Packet, Seq};
use told::Told;

/// Packets of a connection that may wait in the host: two buffers (TCP small queues) of two packets
/// each, as Linux builds them at low rates. In pairs each has its ACK at once, from a receiver that
/// acknowledges every second packet: single packets of many connections in turn would be acknowledged
/// by none, and then by all.
const WAITING_MAX: u32 = 4;
const PAIR: u32 = 2;

/// A connection: its place, and how many had that before.
pub(crate) type Key = (u32, u32);

/// A full packet that left, until its ACK.
#[derive(Debug)]
struct Record {
    seq: Seq,
    /// Its time stamp.
    stamp: Nanos,
    /// `None`: it left more than once, and an ACK does not say which of them arrived (Karn).
    sent: Option<Sent>,
}

/// A connection whose packets wait here.
#[derive(Debug, Default)]
struct Held {
    place: Place,
    base: Base,
    /// By their numbers.
    records: VecDeque<Record>,
    /// All packets below it came to the line once; left it once; are acknowledged.
    came: Seq,
    left: Seq,
    acked: Seq,
    /// Whether the last ACK told of a gap: then the next one comes late.
    gap: bool,
    /// Packets beyond the gap that the path knows to be delivered.
    beyond: u32,
}

impl Held {
    fn new((flow, generation): Key) -> Held {
        let place = Place::new(u64::from(generation) << 32 | u64::from(flow));
        Held { place, ..Held::default() }
    }
}

/// The line of a host before one link.
#[derive(Debug)]
pub(crate) struct Line {
    link: usize,
    /// Payload of a full packet, and what links carry beside it.
    mss: u32,
    header: u32,
    path: Path,
    told: Option<Told>,
    turns: Turns,
    packets: VecDeque<Packet>,
    connections: BTreeMap<Key, Held>,
    /// When the gate said that it opens; it was not asked since.
    opens: Nanos,
}

impl Line {
    /// A line before a link of which nothing is known but what the host is told.
    pub(crate) fn new(link: usize, mss: u32, header: u32, told: Option<Told>) -> Self {
        Self {
            link,
            mss,
            header,
            path: Path::new(0),
            told,
            turns: Turns::default(),
            packets: VecDeque::new(),
            connections: BTreeMap::new(),
            opens: 0,
        }
    }

    /// The link.
    pub(crate) fn link(&self) -> usize {
        self.link
    }

    /// What the host has measured of the path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing is held now: what waits leaves, and what comes passes.
    pub(crate) fn away(&self, now: Nanos) -> bool {
        self.told.is_none() && self.path.away(now)
    }

    /// How many packets a connection may put here: none but pairs.
    pub(crate) fn room(&self, of: Key, now: Nanos) -> u32 {
        if self.away(now) {
            return u32::MAX;
        }
        let waiting = self.connections.get(&of).map_or(0, |held| held.place.waits());
        if waiting + PAIR > WAITING_MAX {
            return 0;
        }
        WAITING_MAX - waiting
    }

    /// A packet comes that has to wait. One that waits already does not come again.
    pub(crate) fn put(&mut self, packet: Packet) {
        let Body::Data { seq, .. } = packet.body else { return };
        let key = (packet.flow, packet.generation);
        let held = self.connections.entry(key).or_insert_with(|| Held::new(key));
        let same = |other: &Packet| {
            (other.flow, other.generation) == key
                && matches!(other.body, Body::Data { seq: its, .. } if its == seq)
        };
        if seq < held.came && self.packets.iter().any(same) {
            return;
        }
        held.came = held.came.max(seq + 1);
        self.turns.put(&mut held.place);
        self.packets.push_back(packet);
    }

    /// A packet leaves by a link, without having waited.
    #[inline]
    pub(crate) fn pass(&mut self, packet: &Packet, link: usize, now: Nanos) {
        if link == self.link {
            self.path.left(now, packet.bytes, false);
            if let Some(told) = &mut self.told {
                told.left(packet, now);
            }
        }
    }

    /// The first packet, if it may leave now; else the host is woken when it may. `seen`: what its link
    /// has seen.
    pub(crate) fn next(
        &mut self,
        host: usize,
        seen: &[Seen],
        agenda: &mut Agenda,
    ) -> Option<Packet> {
        let now = agenda.now;
        if self.packets.is_empty() || now < self.opens {
            return None;
        }
        let closed = match &mut self.told {
            Some(told) => told.gate(now, seen),
            None => self.path.gate(now),
        };
        if let Some(at) = closed {
            self.opens = at.max(now + 1);
            agenda.at(self.opens, Event::Gate { host });
            return None;
        }
        let packet = self.packets.remove(self.first())?;
        let sent = self.path.left(now, packet.bytes, !self.away(now));
        if let Some(told) = &mut self.told {
            told.left(&packet, now);
        }
        self.remember(&packet, sent, now);
        Some(packet)
    }

    /// The place of the packet that leaves next.
    fn first(&self) -> usize {
        if self.told.is_some() || self.path.rate() == 0 {
            return 0;
        }
        let waiting = self.connections.iter().filter(|(_, held)| held.place.waits() > 0);
        let next = waiting.min_by_key(|(_, held)| self.turns.before(&held.place));
        let of = |key: &Key| self.packets.iter().position(|p| (p.flow, p.generation) == *key);
        next.and_then(|(key, _)| of(key)).unwrap_or(0) // what waits of one that has ended still leaves
    }

    fn remember(&mut self, packet: &Packet, sent: Option<Sent>, now: Nanos) {
        let Body::Data { seq, sent_ns: stamp, .. } = packet.body else { return };
        // one that has ended is not there any more
        let Some(held) = self.connections.get_mut(&(packet.flow, packet.generation)) else {
            return;
        };
        self.turns.leave(&mut held.place);
        if seq < held.left {
            self.path.again(now);
            if let Ok(index) = held.records.binary_search_by_key(&seq, |record| record.seq) {
                held.records[index].sent = None;
            }
            return;
        }
        held.left = seq + 1;
        if packet.bytes == self.mss + self.header {
            held.records.push_back(Record { seq, stamp, sent });
        }
    }

    /// An ACK comes to the host.
    pub(crate) fn ack(&mut self, of: Key, ack: &Ack, now: Nanos) {
        let Some(held) = self.connections.get_mut(&of) else { return };
        let sacks = ack.sacks.iter().any(|(from, to)| from < to);
        let full = u64::from(self.mss + self.header);
        if ack.next <= held.acked {
            // with a packet beyond the gap, which the ACK that fills it will acknowledge once more
            held.gap = true;
            held.beyond += u32::from(sacks);
            self.path.delivered(u64::from(sacks) * full);
            return;
        }
        let acked = ack.next - std::mem::replace(&mut held.acked, ack.next);
        let known = held.beyond.min(acked);
        held.beyond = if sacks { held.beyond - known } else { 0 };
        self.path.delivered(u64::from(acked - known) * full);
        let acked = u64::from(acked);
        let gap = std::mem::replace(&mut held.gap, sacks) || sacks;
        let older = held.records.partition_point(|record| record.seq < ack.next);
        let last = held.records.drain(..older).next_back();
        let Some(Record { seq, stamp, sent: Some(sent) }) = last else { return };
        // an ACK that echoes something newer came when a gap was filled, whose duplicates were lost
        if !gap && seq + 1 == ack.next && ack.echo_ns <= stamp {
            self.path.ack(&mut held.base, now, &sent, acked * u64::from(self.mss), ack.stamp);
        }
    }

    /// A connection has ended. What waits of it still leaves.
    pub(crate) fn end(&mut self, of: Key) {
        self.connections.remove(&of);
    }
}

#[cfg(test)]
mod tests;

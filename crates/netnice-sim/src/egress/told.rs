// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a host may be told of its path, where it does not measure it: the rate, as somebody typed it
//! in, or by an oracle all that has passed the bottleneck, but late.
//!
//! What cannot be known is what others sent since then. The oracle is not better than this:
//!
//! - At `late` ago it knows the work that was before the link, to the byte. Since then its host's own
//!   packets have come, at times that it knows.
//! - A full packet of others that left the bottleneck has its ACK, and so brings others a round trip
//!   later, two of them in slow start, unless the last one of its connection has been seen, which is not
//!   full.
//! - Connections that open in between are not foreseen, unless it is told of their first packets.
//!   Against them it keeps to a part of the rate: this is how strict it is.
//!
//! A packet of the background may leave if it would be sent at once, as far as that is known.

use std::collections::{BTreeSet, VecDeque};

use super::Key;
use crate::link::seen::{Seen, What};
use crate::packet::{Nanos, Packet};

/// Time that a link needs for what is before it.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    at: Nanos,
    ns: f64,
}

impl Work {
    fn left(&self, now: Nanos) -> f64 {
        (self.ns - now.saturating_sub(self.at) as f64).max(0.0)
    }

    fn add(&mut self, now: Nanos, ns: f64) {
        *self = Self { at: now, ns: self.left(now) + ns };
    }
}

/// What is known of a path.
#[derive(Debug)]
pub(crate) struct Told {
    /// Nanoseconds that the link takes for each byte.
    per_byte: f64,
    /// Bytes of a full packet, and of what the link lets leave at once after a rest.
    full: u32,
    burst: u32,
    /// Before the link, as far as that is known for certain.
    work: Work,
    oracle: Option<Oracle>,
}

/// How an oracle knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knowing {
    /// By how much late, and the round trip.
    pub(crate) late: Nanos,
    pub(crate) rtt: Nanos,
    /// What it sends while it expects nobody, of the link's rate.
    pub(crate) part: f64,
    /// Packets that it expects for each full one, and for each connection that opens.
    pub(crate) brings: u32,
    pub(crate) opening: u32,
}

/// An oracle.
#[derive(Debug)]
struct Oracle {
    knowing: Knowing,
    /// How much of what was seen is known.
    known: usize,
    /// What the host sent that is not among it, and connections of its own.
    sent: VecDeque<(Nanos, u32)>,
    own: BTreeSet<Key>,
    /// Packets of others that are expected, and connections that have sent their last one.
    expected: VecDeque<(Nanos, Key)>,
    ended: BTreeSet<Key>,
    /// The background's own, at its part of the rate.
    taken: Work,
}

impl Oracle {
    /// One that has seen nothing yet.
    fn new(knowing: Knowing) -> Self {
        Self {
            knowing,
            known: 0,
            sent: VecDeque::new(),
            own: BTreeSet::new(),
            expected: VecDeque::new(),
            ended: BTreeSet::new(),
            taken: Work::default(),
        }
    }

    /// Learns what was seen until `until`; gives the last of it.
    fn learn<'s>(&mut self, seen: &'s [Seen], until: Nanos) -> Option<&'s Seen> {
        let new = seen[self.known..].iter().take_while(|seen| seen.at <= until);
        let mut last = None;
        for event in new {
            self.known += 1;
            last = Some(event);
            if self.own.contains(&event.of) {
                continue;
            }
            let again = match event.what {
                What::Left if !self.ended.contains(&event.of) => self.knowing.brings,
                What::Opens => self.knowing.opening,
                What::Ends => {
                    self.ended.insert(event.of);
                    self.expected.retain(|(_, of)| *of != event.of);
                    0
                }
                _ => 0,
            };
            self.expected.extend((0..again).map(|_| (event.at + self.knowing.rtt, event.of)));
        }
        while self.sent.front().is_some_and(|(at, _)| *at <= until) {
            self.sent.pop_front();
        }
        while self.expected.front().is_some_and(|(at, _)| *at <= until) {
            self.expected.pop_front();
        }
        last
    }
}

impl Told {
    /// Of a link of this rate, by an oracle or else by nobody who sees more than the host itself.
    pub(crate) fn new(rate_mbit: f64, full: u32, burst: u32, oracle: Option<Knowing>) -> Self {
        let (work, oracle) = (Work::default(), oracle.map(Oracle::new));
        Self { per_byte: 8e3 / rate_mbit, full, burst, work, oracle }
    }

    /// A packet leaves the host.
    pub(crate) fn left(&mut self, packet: &Packet, now: Nanos) {
        let ns = f64::from(packet.bytes) * self.per_byte;
        let Some(oracle) = &mut self.oracle else { return self.work.add(now, ns) };
        oracle.sent.push_back((now, packet.bytes));
        oracle.own.insert((packet.flow, packet.generation));
        if packet.low {
            oracle.taken.add(now, ns / oracle.knowing.part);
        }
    }

    /// `None` if a packet of the background may leave, otherwise when to ask again.
    pub(crate) fn gate(&mut self, now: Nanos, seen: &[Seen]) -> Option<Nanos> {
        let packet = f64::from(self.full) * self.per_byte;
        let room = f64::from(self.burst.saturating_sub(self.full)) * self.per_byte;
        let mut wait = self.before(now, seen) - room;
        if let Some(oracle) = &self.oracle {
            wait = wait.max(oracle.taken.left(now));
        }
        // what was expected may turn out not to come
        (wait > 0.0).then(|| now + wait.min(packet).ceil() as Nanos)
    }

    /// The work before the link, as it is to be expected now.
    fn before(&mut self, now: Nanos, seen: &[Seen]) -> f64 {
        let Some(oracle) = &mut self.oracle else { return self.work.left(now) };
        let until = now.saturating_sub(oracle.knowing.late);
        if let Some(last) = oracle.learn(seen, until) {
            self.work = Work { at: last.at, ns: last.work as f64 };
            self.per_byte = last.per_byte;
        }
        let (mut work, full) = (self.work, self.full);
        let mut others = oracle.expected.iter().take_while(|(at, _)| *at <= now).peekable();
        for (at, bytes) in &oracle.sent {
            while let Some((at, _)) = others.next_if(|(theirs, _)| theirs <= at) {
                work.add(*at, f64::from(full) * self.per_byte);
            }
            work.add(*at, f64::from(*bytes) * self.per_byte);
        }
        for (at, _) in others {
            work.add(*at, f64::from(full) * self.per_byte);
        }
        work.left(now)
    }
}

#[cfg(test)]
mod tests;

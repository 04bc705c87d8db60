// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A link: packets wait in its queue, leave at its rate, and arrive after its delay.
//!
//! When the next packet may leave is one number, `free_at`, which each packet moves on by the time
//! that it takes at the link's rate:
//!
//! - A transmitter lets a packet leave at `free_at`, and it is at the other end when its last bit
//!   is: it arrives that time later.
//! - A token bucket (the shaper of the kernel lab) is full at `free_at`. A packet leaves once the
//!   bucket holds its length, and is there: after a rest a bucketful leaves at once, and under load
//!   each packet comes its own time after the one before it, however short that one was. A full
//!   queue is sensitive to that order (a phase effect): with the pause after a packet instead of
//!   before it, two places become free at once behind a short packet, and fetches in overload take
//!   5 to 25 % less time.
//!
//! Under a rate trace a packet leaves at an opportunity; the last packet of one may be longer than
//! what is left of it.

pub(crate) mod seen;

use std::collections::VecDeque;
use std::sync::Arc;

use netnice_scenario as scenario;
use rand::Rng;
use rand_pcg::Pcg64;

use crate::packet::{Body, Nanos, Packet};
use crate::queue::{self, Limits, Queue};
use crate::random::{self, Stream};
use seen::{Seen, What};

/// What the transmitter is like.
#[derive(Debug, Clone, Copy)]
pub enum Transmitter {
    /// One packet after the other.
    Serial,
    /// A token bucket with room for so many bytes: at least a full packet.
    TokenBucket(u32),
}

/// What a link did.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkStats {
    /// Packets that left.
    pub packets: u64,
    /// Bytes that left.
    pub bytes: u64,
    /// Of the packets, those of TCP's data.
    pub data: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets times nanoseconds of waiting in the measured window.
    pub area: f64,
    /// Packets that left, and how long they had waited, in the measured window.
    pub waited: (u64, Nanos),
    /// Greatest number of packets waiting.
    pub most: usize,
}

/// A directed link.
#[derive(Debug)]
pub struct Link {
    /// `None`: infinitely fast.
    sending: Option<Sending>,
    delay: Nanos,
    loss: f64,
    jitter: Nanos,
    reorder: f64,
    reorder_delay: Nanos,
    random: Pcg64,
    /// Packets under way, in the order of their arrival.
    line: VecDeque<(Nanos, Packet)>,
    window: (Nanos, Nanos),
    stats: LinkStats,
    /// Bytes of a full packet.
    full: u32,
    /// What was seen, if somebody watches.
    seen: Option<Vec<Seen>>,
}

#[derive(Debug)]
struct Sending {
    queue: Queue,
    clock: Clock,
    free_at: Nanos,
    /// Bytes that a token bucket holds.
    bucket: Option<u32>,
    /// Whether a departure is scheduled.
    scheduled: bool,
    /// When `LinkStats::area` was last brought up to date.
    counted: Nanos,
}

#[derive(Debug)]
enum Clock {
    /// Nanoseconds for each byte.
    Rate(f64),
    /// Opportunities of so many bytes each; what is left of the one at `Sending::free_at`.
    Trace { opportunities: Opportunities, bytes: u32, left: u32 },
}

/// When the world must call a link again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Schedule {
    /// [`Link::depart`].
    pub departure: Option<Nanos>,
    /// [`Link::arrive`].
    pub arrival: Option<Nanos>,
}

impl Link {
    /// The link of a scenario.
    ///
    /// `full`: bytes of a full packet; `window`: the measured window; `queue` replaces its own.
    ///
    /// # Errors
    /// If the simulator does not have the queue.
    pub fn new(
        link: &scenario::Link,
        queue: Option<scenario::Queue>,
        transmitter: Transmitter,
        full: u32,
        window: (Nanos, Nanos),
        seed: u64,
        index: usize,
    ) -> Result<Self, queue::Error> {
        let mut random = random::stream(seed, Stream::Link(index));
        let sending = match link.rate_mbit {
            None => None,
            Some(mbit) => {
                let limits = Limits { packets: link.limit_packets, bytes: link.limit_bytes };
                let kind = queue.unwrap_or(link.queue);
                let queue = Queue::new(kind, limits, mbit * 1e6, link.ecn, random.random())?;
                let per_byte = 8e3 / mbit;
                let bucket = match transmitter {
                    Transmitter::Serial => None,
                    Transmitter::TokenBucket(bytes) => Some(bytes),
                };
                let clock = match &link.trace {
                    None => Clock::Rate(per_byte),
                    Some(trace) => Clock::Trace {
                        opportunities: Opportunities {
                            times_ms: trace.opportunities_ms().into(),
                            next: 0,
                        },
                        bytes: full,
                        left: 0,
                    },
                };
                Some(Sending { queue, clock, free_at: 0, bucket, scheduled: false, counted: 0 })
            }
        };
        Ok(Self {
            sending,
            delay: nanos(link.delay_ms),
            loss: link.loss,
            jitter: nanos(link.jitter_ms),
            reorder: link.reorder,
            reorder_delay: nanos(link.reorder_ms),
            random,
            line: VecDeque::new(),
            window,
            stats: LinkStats::default(),
            full,
            seen: None,
        })
    }

    /// Takes a packet; says when to call again, where that is not already said.
    pub fn push(&mut self, packet: Packet, now: Nanos) -> Schedule {
        if self.loss > 0.0 && self.random.random::<f64>() < self.loss {
            self.stats.lost += 1;
            return Schedule::default();
        }
        let Some(sending) = &mut self.sending else {
            return Schedule { departure: None, arrival: self.send(packet, now) };
        };
        sending.count(&mut self.stats, self.window, now);
        sending.queue.push(packet, now);
        self.stats.most = self.stats.most.max(sending.queue.packets());
        let waits = sending.scheduled;
        self.see(&packet, false, now);
        if waits {
            return Schedule::default();
        }
        self.serve(now)
    }

    /// Somebody watches from now on.
    pub(crate) fn watch(&mut self) {
        self.seen.get_or_insert_default();
    }

    /// All that was seen.
    pub(crate) fn seen(&self) -> &[Seen] {
        self.seen.as_deref().unwrap_or_default()
    }

    /// Bytes that may leave at once after a rest.
    pub(crate) fn burst(&self) -> u32 {
        self.sending.as_ref().and_then(|sending| sending.bucket).unwrap_or(0)
    }

    #[inline]
    fn see(&mut self, packet: &Packet, left: bool, now: Nanos) {
        let (Some(seen), Some(sending)) = (&mut self.seen, &self.sending) else { return };
        let Clock::Rate(per_byte) = sending.clock else { return };
        let waiting = (sending.queue.bytes() as f64 * per_byte) as Nanos;
        seen.push(Seen {
            at: now,
            of: (packet.flow, packet.generation),
            what: What::of(packet, left, self.full),
            work: waiting + sending.free_at.saturating_sub(now),
            per_byte,
        });
    }

    /// Lets leave what may; to be called at the time that was asked for.
    pub fn depart(&mut self, now: Nanos) -> Schedule {
        let Some(sending) = &mut self.sending else { return Schedule::default() };
        sending.scheduled = false;
        sending.count(&mut self.stats, self.window, now);
        self.serve(now)
    }

    /// Gives the packet that arrives now, if any, and says when to call again. (A packet that has
    /// overtaken others leaves the call that was meant for them without a packet.)
    pub fn arrive(&mut self, now: Nanos) -> (Option<Packet>, Option<Nanos>) {
        if self.line.front().is_none_or(|(at, _)| *at != now) {
            return (None, None);
        }
        let packet = self.line.pop_front().map(|(_, packet)| packet);
        (packet, self.line.front().map(|(at, _)| *at))
    }

    /// Applies a change of rate or delay.
    pub fn change(&mut self, change: &scenario::LinkChange) {
        if let Some(ms) = change.delay_ms {
            self.delay = nanos(ms);
        }
        if let (Some(sending), Some(mbit)) = (&mut self.sending, change.rate_mbit) {
            if let Clock::Rate(per_byte) = &mut sending.clock {
                *per_byte = 8e3 / mbit;
            }
        }
    }

    /// Packets waiting.
    pub fn waiting(&self) -> usize {
        self.sending.as_ref().map_or(0, |s| s.queue.packets())
    }

    /// Bytes that have left.
    pub fn left_bytes(&self) -> u64 {
        self.stats.bytes
    }

    /// What it did; `now` ends the accounts.
    pub fn stats(&mut self, now: Nanos) -> (LinkStats, queue::Stats) {
        let Some(sending) = &mut self.sending else {
            return (self.stats, queue::Stats::default());
        };
        sending.count(&mut self.stats, self.window, now);
        (self.stats, sending.queue.stats())
    }

    /// Packets that its queue has dropped, or that were lost at random.
    pub fn dropped(&self) -> u64 {
        self.stats.lost + self.sending.as_ref().map_or(0, |s| s.queue.stats().drops)
    }

    /// Lets packets leave as long as they may, and says when the next one may.
    fn serve(&mut self, now: Nanos) -> Schedule {
        let mut schedule = Schedule::default();
        loop {
            let Some(sending) = &mut self.sending else { return schedule };
            if sending.queue.packets() == 0 {
                return schedule;
            }
            if let Some(at) = sending.not_before(now) {
                sending.scheduled = true;
                schedule.departure = Some(at);
                return schedule;
            }
            let Some(packet) = sending.queue.pop(now) else { return schedule };
            let there = sending.take(packet.bytes, now);
            self.see(&packet, true, now);
            let (from, to) = self.window;
            if (from..to).contains(&now) {
                self.stats.waited.0 += 1;
                self.stats.waited.1 += now - packet.enqueued_ns;
            }
            let arrival = self.send(packet, there);
            schedule.arrival = schedule.arrival.or(arrival);
        }
    }

    /// Puts a packet on the line; the time of its arrival if it is the next to arrive.
    fn send(&mut self, packet: Packet, now: Nanos) -> Option<Nanos> {
        self.stats.packets += 1;
        self.stats.bytes += u64::from(packet.bytes);
        self.stats.data += u64::from(matches!(packet.body, Body::Data { .. }));
        let mut at = now + self.delay;
        let overtakes = self.reorder > 0.0 && self.random.random::<f64>() < self.reorder;
        if !overtakes {
            at += self.reorder_delay;
            if self.jitter > 0 {
                at += (self.random.random::<f64>() * self.jitter as f64) as Nanos;
            }
            at = at.max(self.line.back().map_or(0, |(last, _)| *last));
            self.line.push_back((at, packet));
            return (self.line.len() == 1).then_some(at);
        }
        let place = self.line.partition_point(|(arrival, _)| *arrival <= at);
        self.line.insert(place, (at, packet));
        (place == 0).then_some(at)
    }
}

impl Sending {
    /// `None` if a packet may leave now, otherwise when.
    fn not_before(&mut self, now: Nanos) -> Option<Nanos> {
        let at = match &mut self.clock {
            Clock::Rate(per_byte) => {
                let beside = self.bucket.map_or(0, |bytes| {
                    bytes.saturating_sub(self.queue.next_bytes().unwrap_or(bytes))
                });
                let ahead = (f64::from(beside) * *per_byte).round() as Nanos;
                self.free_at.saturating_sub(ahead)
            }
            Clock::Trace { left, .. } if *left > 0 && self.free_at == now => now,
            Clock::Trace { opportunities, bytes, left } => {
                let at = opportunities.first_from(now);
                if at == now {
                    opportunities.next += 1;
                    (self.free_at, *left) = (now, *bytes);
                }
                at
            }
        };
        (at > now).then_some(at)
    }

    /// Moves `free_at` on for a packet that leaves; when the packet is at the end of the wire.
    fn take(&mut self, length: u32, now: Nanos) -> Nanos {
        match &mut self.clock {
            Clock::Rate(per_byte) => {
                let time = (f64::from(length) * *per_byte).round() as Nanos;
                self.free_at = self.free_at.max(now) + time;
                if self.bucket.is_none() {
                    self.free_at
                } else {
                    now
                }
            }
            Clock::Trace { left, .. } => {
                *left = left.saturating_sub(length);
                now
            }
        }
    }

    /// Brings the time integral of the queue's length up to date.
    fn count(&mut self, stats: &mut LinkStats, window: (Nanos, Nanos), now: Nanos) {
        let (from, to) = (self.counted.max(window.0), now.min(window.1));
        if to > from {
            stats.area += self.queue.packets() as f64 * (to - from) as f64;
        }
        self.counted = now;
    }
}

/// The times of a rate trace, over and over; the last of them is its period.
#[derive(Debug)]
struct Opportunities {
    times_ms: Arc<[u64]>,
    /// The number of the first one that is not used, counted over all repetitions.
    next: u64,
}

impl Opportunities {
    /// Passes over those before `now`, which are lost, and says when the next one is.
    fn first_from(&mut self, now: Nanos) -> Nanos {
        let count = self.times_ms.len() as u64;
        let period = self.times_ms.last().copied().unwrap_or(1) * 1_000_000;
        if let Some(before) = now.checked_sub(1) {
            let (passed, within) = (before / period, before % period);
            let lost = self.times_ms.partition_point(|ms| ms * 1_000_000 <= within) as u64;
            self.next = self.next.max(passed * count + lost);
        }
        self.next / count * period + self.times_ms[(self.next % count) as usize] * 1_000_000
    }
}

/// Milliseconds as whole nanoseconds.
pub fn nanos(ms: f64) -> Nanos {
    (ms * 1e6).round() as Nanos
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Queues in front of links: what waits, what is dropped, what is marked.
//!
//! A discipline is a variant of an enumeration, not a trait object: the event loop calls it for each
//! packet. None of them allocates per packet; room grows to the longest queue seen and stays.

mod codel;
mod fifo;
mod fq_codel;
mod pie;
mod priority;
mod red;

use netnice_scenario::{self as scenario, pattern};
use rand_pcg::Pcg64;

use crate::packet::{Nanos, Packet};
use codel::Codel;
use fifo::{DropTail, Fifo};
use fq_codel::FqCodel;
use pie::Pie;
use priority::Priority;
use red::Red;

/// Bytes of a full Ethernet frame: the quantum of fair queueing, and what a packet of `packets`
/// counts where a discipline reckons in bytes.
const FULL_PACKET: u32 = 1514;

/// Room in a queue; whichever is reached first. `None`: endless.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// In packets.
    pub packets: Option<u32>,
    /// In bytes on the wire.
    pub bytes: Option<u64>,
}

impl Limits {
    /// Whether there is room for one more packet of `bytes` beside what waits in `queue`.
    fn admit(&self, queue: &Fifo, bytes: u32) -> bool {
        self.packets.is_none_or(|most| queue.packets() < most as usize)
            && self.bytes.is_none_or(|most| queue.bytes() + u64::from(bytes) <= most)
    }
}

/// What a queue did to packets since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets dropped.
    pub drops: u64,
    /// Packets marked instead (ECN, RFC 3168).
    pub marks: u64,
}

/// Why there can be no such queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Only the kernel has it.
    #[error("The simulator has no cake queue. Choose drop-tail, red, codel, fq_codel, pie or priority, or run the scenario on the kernel with --engine kernel.")]
    Cake,
    /// Thresholds are shares of a limit.
    #[error("A red queue needs a limit, of which its thresholds are shares. Give limit_packets or limit_bytes.")]
    NoLimit,
}

/// What a queue does with packets.
trait Discipline {
    /// Takes a packet; it, or another one, may be dropped for that.
    fn push(&mut self, packet: Packet, now: Nanos, stats: &mut Stats);

    /// Gives the packet to send; others may be dropped for that.
    fn pop(&mut self, now: Nanos, stats: &mut Stats) -> Option<Packet>;

    /// Where packets wait: the list that is served next comes first.
    fn lists(&self) -> impl Iterator<Item = &Fifo>;

    /// Bytes of the packet that would leave now.
    fn next_bytes(&self) -> Option<u32> {
        self.lists().find_map(Fifo::next_bytes)
    }

    /// Packets waiting.
    fn packets(&self) -> usize {
        self.lists().map(Fifo::packets).sum()
    }

    /// Bytes waiting.
    fn bytes(&self) -> u64 {
        self.lists().map(Fifo::bytes).sum()
    }
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    kind: Kind,
    stats: Stats,
}

#[derive(Debug)]
enum Kind {
    DropTail(DropTail),
    Red(Red),
    Codel(Codel),
    FqCodel(FqCodel),
    Pie(Pie),
    Priority(Priority),
}

/// Does the same with whatever discipline a queue has.
macro_rules! each {
    ($kind:expr, $queue:ident => $what:expr) => {
        match $kind {
            Kind::DropTail($queue) => $what,
            Kind::Red($queue) => $what,
            Kind::Codel($queue) => $what,
            Kind::FqCodel($queue) => $what,
            Kind::Pie($queue) => $what,
            Kind::Priority($queue) => $what,
        }
    };
}

impl Queue {
    /// An empty queue of a kind.
    ///
    /// `rate_bits_per_s` is the nominal rate of the link behind it; `ecn` lets it mark packets that
    /// are capable ([`Packet::ect`]) where it would drop them early; `seed` feeds its random numbers.
    ///
    /// # Errors
    /// [`Error::Cake`], and [`Error::NoLimit`] for RED without one.
    pub fn new(
        kind: scenario::Queue,
        limits: Limits,
        rate_bits_per_s: f64,
        ecn: bool,
        seed: u64,
    ) -> Result<Queue, Error> {
        let random = || Pcg64::new(u128::from(pattern::mix(seed)), 0);
        let kind = match kind {
            scenario::Queue::DropTail => Kind::DropTail(DropTail::new(limits)),
            scenario::Queue::Red if limits == Limits::default() => return Err(Error::NoLimit),
            scenario::Queue::Red => Kind::Red(Red::new(limits, rate_bits_per_s, ecn, random())),
            scenario::Queue::Codel => Kind::Codel(Codel::new(limits, ecn)),
            scenario::Queue::FqCodel => Kind::FqCodel(FqCodel::new(limits, ecn, seed)),
            scenario::Queue::Pie => Kind::Pie(Pie::new(limits, ecn, random())),
            scenario::Queue::Priority => Kind::Priority(Priority::new(limits)),
            scenario::Queue::Cake => return Err(Error::Cake),
        };
        Ok(Queue { kind, stats: Stats::default() })
    }

    /// Takes a packet at `now`; it, or another one, may be dropped for that.
    pub fn push(&mut self, mut packet: Packet, now: Nanos) {
        packet.enqueued_ns = now;
        each!(&mut self.kind, queue => queue.push(packet, now, &mut self.stats));
    }

    /// Gives the packet to send at `now`; `None` if no packet waits. Others may be dropped for that.
    pub fn pop(&mut self, now: Nanos) -> Option<Packet> {
        each!(&mut self.kind, queue => queue.pop(now, &mut self.stats))
    }

    /// Bytes on the wire of the packet that would leave now; `None` if no packet waits. A queue that
    /// drops from its head (`CoDel`) may yet give the next one.
    pub fn next_bytes(&self) -> Option<u32> {
        each!(&self.kind, queue => queue.next_bytes())
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        each!(&self.kind, queue => queue.packets())
    }

    /// Bytes on the wire of the packets waiting.
    pub fn bytes(&self) -> u64 {
        each!(&self.kind, queue => queue.bytes())
    }

    /// What it did since the start.
    pub fn stats(&self) -> Stats {
        self.stats
    }
}

#[cfg(test)]
mod tests;

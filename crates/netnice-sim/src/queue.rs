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

/// A queue.
#[derive(Debug)]
pub struct Queue {
    discipline: Discipline,
    stats: Stats,
}

#[derive(Debug)]
enum Discipline {
    DropTail(DropTail),
    Red(Red),
    Codel(Codel),
    FqCodel(FqCodel),
    Pie(Pie),
    Priority(Priority),
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
        let discipline = match kind {
            scenario::Queue::DropTail => Discipline::DropTail(DropTail::new(limits)),
            scenario::Queue::Red if limits == Limits::default() => return Err(Error::NoLimit),
            scenario::Queue::Red => {
                Discipline::Red(Red::new(limits, rate_bits_per_s, ecn, random()))
            }
            scenario::Queue::Codel => Discipline::Codel(Codel::new(limits, ecn)),
            scenario::Queue::FqCodel => Discipline::FqCodel(FqCodel::new(limits, ecn, seed)),
            scenario::Queue::Pie => Discipline::Pie(Pie::new(limits, ecn, random())),
            scenario::Queue::Priority => Discipline::Priority(Priority::new(limits)),
            scenario::Queue::Cake => return Err(Error::Cake),
        };
        Ok(Queue { discipline, stats: Stats::default() })
    }

    /// Takes a packet at `now`; it, or another one, may be dropped for that.
    pub fn push(&mut self, mut packet: Packet, now: Nanos) {
        packet.enqueued_ns = now;
        let stats = &mut self.stats;
        match &mut self.discipline {
            Discipline::DropTail(queue) => queue.push(packet, stats),
            Discipline::Red(queue) => queue.push(packet, now, stats),
            Discipline::Codel(queue) => queue.push(packet, stats),
            Discipline::FqCodel(queue) => queue.push(packet, stats),
            Discipline::Pie(queue) => queue.push(packet, now, stats),
            Discipline::Priority(queue) => queue.push(packet, stats),
        }
    }

    /// Gives the packet to send at `now`; `None` if no packet waits. Others may be dropped for that.
    pub fn pop(&mut self, now: Nanos) -> Option<Packet> {
        let stats = &mut self.stats;
        match &mut self.discipline {
            Discipline::DropTail(queue) => queue.pop(),
            Discipline::Red(queue) => queue.pop(now),
            Discipline::Codel(queue) => queue.pop(now, stats),
            Discipline::FqCodel(queue) => queue.pop(now, stats),
            Discipline::Pie(queue) => queue.pop(now),
            Discipline::Priority(queue) => queue.pop(),
        }
    }

    /// Bytes on the wire of the packet that would leave now; `None` if no packet waits. A queue that
    /// drops from its head (`CoDel`) may yet give the next one.
    pub fn next_bytes(&self) -> Option<u32> {
        match &self.discipline {
            Discipline::DropTail(queue) => queue.next_bytes(),
            Discipline::Red(queue) => queue.next_bytes(),
            Discipline::Codel(queue) => queue.next_bytes(),
            Discipline::FqCodel(queue) => queue.next_bytes(),
            Discipline::Pie(queue) => queue.next_bytes(),
            Discipline::Priority(queue) => queue.next_bytes(),
        }
    }

    /// Packets waiting.
    pub fn packets(&self) -> usize {
        match &self.discipline {
            Discipline::DropTail(queue) => queue.packets(),
            Discipline::Red(queue) => queue.packets(),
            Discipline::Codel(queue) => queue.packets(),
            Discipline::FqCodel(queue) => queue.packets(),
            Discipline::Pie(queue) => queue.packets(),
            Discipline::Priority(queue) => queue.packets(),
        }
    }

    /// Bytes on the wire of the packets waiting.
    pub fn bytes(&self) -> u64 {
        match &self.discipline {
            Discipline::DropTail(queue) => queue.bytes(),
            Discipline::Red(queue) => queue.bytes(),
            Discipline::Codel(queue) => queue.bytes(),
            Discipline::FqCodel(queue) => queue.bytes(),
            Discipline::Pie(queue) => queue.bytes(),
            Discipline::Priority(queue) => queue.bytes(),
        }
    }

    /// What it did since the start.
    pub fn stats(&self) -> Stats {
        self.stats
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Fair queueing with controlled delay (RFC 8290): a queue for each flow, each under CoDel, served
//! in turn by deficit round robin, new flows first.
//!
//! Flows are hashed into 1024 queues, so two may share one. When the whole is full, the queue with
//! the most bytes loses half of them from its head, at most 64 packets at once (4.1). Where the RFC
//! leaves it open this follows Linux: CoDel spares packets by what waits in all queues together, and
//! counts the packets lost to overflow.

use std::collections::VecDeque;

use netnice_scenario::pattern;

use super::codel::Control;
use super::fifo::Fifo;
use super::{Discipline, Limits, Stats, FULL_PACKET};
use crate::packet::{Nanos, Packet};

/// Queues that flows are hashed into (RFC 8290, 5.2.2).
const QUEUES: usize = 1024;

/// Bytes that a queue may send in its turn (RFC 8290, 5.2.4).
const QUANTUM: i64 = FULL_PACKET as i64;

/// Greatest number of packets dropped at once when full (RFC 8290, 4.1).
const BATCH: u32 = 64;

/// The queues of all flows.
#[derive(Debug)]
pub(super) struct FqCodel {
    flows: Vec<Flow>,
    /// Bytes in each queue, apart from the queues so that the fattest is found fast.
    bytes: Vec<u64>,
    total: u64,
    packets: usize,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    limits: Limits,
    ecn: bool,
    seed: u64,
}

#[derive(Debug, Default)]
struct Flow {
    fifo: Fifo,
    control: Control,
    /// Bytes that it may still send in this turn.
    credit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

impl FqCodel {
    pub(super) fn new(limits: Limits, ecn: bool, seed: u64) -> FqCodel {
        FqCodel {
            flows: (0..QUEUES).map(|_| Flow::default()).collect(),
            bytes: vec![0; QUEUES],
            total: 0,
            packets: 0,
            new: VecDeque::with_capacity(QUEUES),
            old: VecDeque::with_capacity(QUEUES),
            limits,
            ecn,
            seed,
        }
    }

    fn queue_of(&self, packet: &Packet) -> usize {
        let connection = u64::from(packet.generation) << 32 | u64::from(packet.flow);
        (pattern::derive(self.seed, connection) % QUEUES as u64) as usize
    }

    fn full(&self) -> bool {
        self.limits.packets.is_some_and(|most| self.packets > most as usize)
            || self.limits.bytes.is_some_and(|most| self.total > most)
    }

    /// Moves the first queue of a list to the end of the old ones.
    fn rotate(&mut self, fresh: bool, index: u16) {
        if fresh { &mut self.new } else { &mut self.old }.pop_front();
        self.old.push_back(index);
    }

    /// Takes note of what has changed in a queue that had `before` packets.
    fn account(&mut self, index: usize, before: usize) {
        let fifo = &self.flows[index].fifo;
        self.packets = self.packets - before + fifo.packets();
        self.total = self.total - self.bytes[index] + fifo.bytes();
        self.bytes[index] = fifo.bytes();
    }

    fn drop_from_the_fattest(&mut self, stats: &mut Stats) {
        let most = self.bytes.iter().copied().max().unwrap_or_default();
        let index = self.bytes.iter().position(|&b| b == most).unwrap_or_default();
        let flow = &mut self.flows[index];
        let before = flow.fifo.packets();
        let mut dropped = 0;
        while dropped < BATCH && flow.fifo.bytes() > most / 2 {
            flow.fifo.pop();
            dropped += 1;
        }
        flow.control.overflow(dropped);
        stats.drops += u64::from(dropped);
        self.account(index, before);
    }
}

impl Discipline for FqCodel {
    fn push(&mut self, packet: Packet, _: Nanos, stats: &mut Stats) {
        let index = self.queue_of(&packet);
        let flow = &mut self.flows[index];
        let before = flow.fifo.packets();
        flow.fifo.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.credit = QUANTUM;
            self.new.push_back(index as u16);
        }
        self.account(index, before);
        while self.full() {
            self.drop_from_the_fattest(stats);
        }
    }

    fn pop(&mut self, now: Nanos, stats: &mut Stats) -> Option<Packet> {
        loop {
            let fresh = !self.new.is_empty();
            let index = *if fresh { self.new.front() } else { self.old.front() }?;
            let flow = &mut self.flows[usize::from(index)];
            if flow.credit <= 0 {
                flow.credit += QUANTUM;
                self.rotate(fresh, index);
                continue;
            }
            let (others, before) = (self.total - flow.fifo.bytes(), flow.fifo.packets());
            let packet = flow.control.pop(&mut flow.fifo, others, now, self.ecn, stats);
            flow.credit -= packet.map_or(0, |p| i64::from(p.bytes));
            self.account(usize::from(index), before);
            if packet.is_some() {
                return packet;
            }
            if fresh {
                // Lest it be new again at once, and starve the old ones.
                self.rotate(true, index);
            } else {
                self.old.pop_front();
                self.flows[usize::from(index)].listed = false;
            }
        }
    }

    fn lists(&self) -> impl Iterator<Item = &Fifo> {
        let listed = self.new.iter().chain(&self.old);
        listed.map(|index| &self.flows[usize::from(*index)].fifo)
    }

    fn packets(&self) -> usize {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{limited, packet, MS};
    use super::*;

    fn filled(limit: u32, flows: &[u32]) -> (FqCodel, Stats) {
        let (mut q, mut stats) = (FqCodel::new(limited(limit), false, 1), Stats::default());
        flows.iter().for_each(|&flow| q.push(packet(flow), 0, &mut stats));
        (q, stats)
    }

    fn take(q: &mut FqCodel, n: usize) -> Vec<u32> {
        (0..n).map(|_| q.pop(MS, &mut Stats::default()).unwrap().flow).collect()
    }

    #[test]
    fn flows_take_turns() {
        let (mut q, _) = filled(100, &[1, 1, 1, 2, 2, 2, 3]);
        assert_eq!((q.packets(), q.bytes()), (7, 7 * 1514));
        assert_eq!(take(&mut q, 7), [1, 2, 3, 1, 2, 1, 2]);
        assert!(q.pop(MS, &mut Stats::default()).is_none());
        assert_eq!((q.packets(), q.bytes()), (0, 0));
    }

    #[test]
    fn a_new_flow_goes_first() {
        let (mut q, mut stats) = filled(100, &[1, 1, 1, 2, 2, 2]);
        assert_eq!(take(&mut q, 3), [1, 2, 1]);
        q.push(packet(3), 0, &mut stats);
        assert_eq!(take(&mut q, 4), [3, 2, 1, 2]);
    }

    #[test]
    fn a_flow_that_ran_empty_is_not_new_again_before_the_old_ones_had_their_turn() {
        let (mut q, mut stats) = filled(100, &[1, 1, 1]);
        assert_eq!(take(&mut q, 1), [1]);
        q.push(packet(3), 0, &mut stats);
        assert_eq!(take(&mut q, 2), [3, 1]);
        q.push(packet(3), 0, &mut stats); // still listed, now among the old
        q.push(packet(4), 0, &mut stats);
        assert_eq!(take(&mut q, 3), [4, 3, 1]);
    }

    #[test]
    fn a_quantum_holds_many_small_packets() {
        // 1514 bytes of credit last for 23 packets of 66 (1518): the last may overdraw.
        let (mut q, mut stats) = filled(100, &[]);
        (0..30).for_each(|_| q.push(Packet { bytes: 66, ..packet(1) }, 0, &mut stats));
        (0..2).for_each(|_| q.push(packet(2), 0, &mut stats));
        let order = take(&mut q, 32);
        assert_eq!(order.iter().position(|&flow| flow == 2), Some(23));
    }

    #[test]
    fn a_full_queue_drops_half_of_the_fattest_flow_from_its_head() {
        // The 13th packet is one too many: flow 1 has 10 x 1514 bytes, and loses five packets.
        let (mut q, mut stats) = filled(12, &[2, 2]);
        for seconds in 0..10 {
            q.push(Packet { enqueued_ns: seconds, ..packet(1) }, 0, &mut stats);
        }
        assert_eq!(stats.drops, 0);
        q.push(packet(3), 0, &mut stats);
        assert_eq!((stats.drops, q.packets()), (5, 8));
        let left: Vec<_> = std::iter::from_fn(|| q.pop(9, &mut stats)).collect();
        assert_eq!(left.iter().filter(|p| p.flow == 2).count(), 2);
        let kept: Vec<Nanos> = left.iter().filter(|p| p.flow == 1).map(|p| p.enqueued_ns).collect();
        assert_eq!(kept, [5, 6, 7, 8, 9]);
    }

    #[test]
    fn at_most_64_packets_are_dropped_at_once() {
        let (q, stats) = filled(200, &[1; 201]);
        assert_eq!((stats.drops, q.packets()), (64, 137));
    }

    #[test]
    fn flows_spread_over_the_queues() {
        // 1024 flows in 1024 queues at random fill 1024 (1 - 1/e) = 647 of them, give or take 16.
        let (q, _) = filled(10_000, &(0..1024).collect::<Vec<_>>());
        let used = q.bytes.iter().filter(|&&b| b > 0).count();
        assert!((600..700).contains(&used), "{used}");
    }

    #[test]
    fn each_flow_has_its_own_controlled_delay() {
        // Flow 1 waits 6 ms throughout, flow 2 not at all: only flow 1 loses, at 100 ms first.
        let (mut q, mut stats) = filled(100, &[]);
        let mut lost_ms = Vec::new();
        for ms in 10..150 {
            (0..2).for_each(|_| {
                q.push(Packet { enqueued_ns: (ms - 6) * MS, ..packet(1) }, 0, &mut stats)
            });
            q.push(Packet { enqueued_ns: ms * MS, ..packet(2) }, 0, &mut stats);
            let drops = stats.drops;
            let sent: Vec<u32> = (0..2).map(|_| q.pop(ms * MS, &mut stats).unwrap().flow).collect();
            assert!(sent.contains(&2) || ms < 12, "{ms} {sent:?}");
            lost_ms.extend((drops..stats.drops).map(|_| ms));
        }
        assert_eq!(lost_ms.first(), Some(&110));
    }
}

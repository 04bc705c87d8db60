// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! First in, first out: the list below every discipline, and drop-tail.

use std::collections::VecDeque;

use super::{Discipline, Limits, Stats};
use crate::packet::{Nanos, Packet};

/// Packets in their order, and how many bytes they have.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    waiting: VecDeque<Packet>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, packet: Packet) {
        self.bytes += u64::from(packet.bytes);
        self.waiting.push_back(packet);
    }

    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    pub(super) fn next_bytes(&self) -> Option<u32> {
        self.waiting.front().map(|packet| packet.bytes)
    }

    pub(super) fn packets(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Drops what does not fit.
#[derive(Debug)]
pub(super) struct DropTail {
    fifo: Fifo,
    limits: Limits,
}

impl DropTail {
    pub(super) fn new(limits: Limits) -> Self {
        Self { fifo: Fifo::default(), limits }
    }
}

impl Discipline for DropTail {
    fn push(&mut self, packet: Packet, _: Nanos, stats: &mut Stats) {
        if self.limits.admit(&self.fifo, packet.bytes) {
            self.fifo.push(packet);
        } else {
            stats.drops += 1;
        }
    }

    fn pop(&mut self, _: Nanos, _: &mut Stats) -> Option<Packet> {
        self.fifo.pop()
    }

    fn lists(&self) -> impl Iterator<Item = &Fifo> {
        std::iter::once(&self.fifo)
    }
}

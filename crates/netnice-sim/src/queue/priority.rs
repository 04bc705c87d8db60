// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Strict priority: the background is served only while no foreground packet waits.
//!
//! This is the router that all of the background's algorithms imitate (TCP Nice, 4.2). Each class
//! has a drop-tail queue with the whole of the limit, so that neither takes the other's room.

use super::fifo::DropTail;
use super::{Limits, Stats};
use crate::packet::Packet;

/// The two classes' queues.
#[derive(Debug)]
pub(super) struct Priority {
    foreground: DropTail,
    background: DropTail,
}

impl Priority {
    pub(super) fn new(limits: Limits) -> Self {
        Self { foreground: DropTail::new(limits), background: DropTail::new(limits) }
    }

    pub(super) fn push(&mut self, packet: Packet, stats: &mut Stats) {
        let band = if packet.low { &mut self.background } else { &mut self.foreground };
        band.push(packet, stats);
    }

    pub(super) fn pop(&mut self) -> Option<Packet> {
        self.foreground.pop().or_else(|| self.background.pop())
    }

    pub(super) fn next_bytes(&self) -> Option<u32> {
        self.foreground.next_bytes().or_else(|| self.background.next_bytes())
    }

    pub(super) fn packets(&self) -> usize {
        self.foreground.packets() + self.background.packets()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.foreground.bytes() + self.background.bytes()
    }
}

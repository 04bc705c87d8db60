// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Strict priority: the background is served only while no foreground packet waits.
//!
//! This is the router that all of the background's algorithms imitate (TCP Nice, 4.2). Each class
//! has a drop-tail queue with the whole of the limit, so that neither takes the other's room.

use super::fifo::{DropTail, Fifo};
use super::{Discipline, Limits, Stats};
use crate::packet::{Nanos, Packet};

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
}

impl Discipline for Priority {
    fn push(&mut self, packet: Packet, now: Nanos, stats: &mut Stats) {
        let band = if packet.low { &mut self.background } else { &mut self.foreground };
        band.push(packet, now, stats);
    }

    fn pop(&mut self, now: Nanos, stats: &mut Stats) -> Option<Packet> {
        self.foreground.pop(now, stats).or_else(|| self.background.pop(now, stats))
    }

    fn lists(&self) -> impl Iterator<Item = &Fifo> {
        self.foreground.lists().chain(self.background.lists())
    }
}

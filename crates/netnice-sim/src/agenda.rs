// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What time it is, and what is to come.
//!
//! Everything that happens is an event of a heap, ordered by time and then by the order in which it
//! was scheduled.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::link::Schedule;
use crate::packet::Nanos;

/// What is to happen; numbers are indexes of what the run has planned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Departure(usize),
    Arrival(usize),
    Wake { flow: u32, generation: u32 },
    Fetch(usize),
    Bulk(usize),
    Udp(usize),
    Probe(u32),
    Change { link: usize, index: usize },
    Shares { flow: usize, config: usize },
    Gate { host: usize },
    Turn { flow: u32, generation: u32 },
    Sample,
}

/// An event in the heap; the smallest comes first.
#[derive(Debug)]
struct Entry {
    key: (Nanos, u64),
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// The time line of a run.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    pub(crate) now: Nanos,
    scheduled: u64,
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Agenda {
    #[inline]
    pub(crate) fn at(&mut self, time: Nanos, event: Event) {
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { key: (time, self.scheduled), event }));
    }

    /// What a link does next.
    #[inline]
    pub(crate) fn link(&mut self, index: usize, schedule: Schedule) {
        if let Some(at) = schedule.departure {
            self.at(at, Event::Departure(index));
        }
        if let Some(at) = schedule.arrival {
            self.at(at, Event::Arrival(index));
        }
    }

    /// The next event, with its time; `now` is for the caller to set.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(Nanos, Event)> {
        self.heap.pop().map(|Reverse(Entry { key: (time, _), event })| (time, event))
    }
}

/// Seconds as whole nanoseconds.
pub(crate) fn seconds(s: f64) -> Nanos {
    (s * 1e9).round() as Nanos
}

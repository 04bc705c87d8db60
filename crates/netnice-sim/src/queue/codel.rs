// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Controlled delay (RFC 8289): drops from the head once packets have waited too long for too long.
//!
//! When packets have waited more than 5 ms throughout 100 ms, one is dropped; the next drop follows
//! after 100 ms, and then after 100 ms / sqrt(n) each, until the wait falls below 5 ms. Where the
//! RFC is silent on marking this follows Linux: a marked packet counts as a dropped one, and goes.

use super::fifo::Fifo;
use super::{Discipline, Limits, Stats, FULL_PACKET};
use crate::packet::{Nanos, Packet};

/// The wait that is acceptable throughout (RFC 8289, 4.4).
const TARGET: Nanos = 5_000_000;

/// How long it may be exceeded: a large round-trip time (RFC 8289, 4.3).
const INTERVAL: Nanos = 100_000_000;

/// The state of the control law; the packets are elsewhere.
#[derive(Debug, Default)]
pub(super) struct Control {
    /// When the wait will have been above the target for an interval.
    first_above: Option<Nanos>,
    /// When to drop next, while dropping.
    drop_next: Nanos,
    /// Drops since dropping began.
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
    dropping: bool,
}

impl Control {
    /// The next packet of `fifo` to send, after dropping those in its way.
    ///
    /// `others` is how many bytes wait elsewhere for the same link: no more than a full packet
    /// waiting in all is never too much.
    pub(super) fn pop(
        &mut self,
        fifo: &mut Fifo,
        others: u64,
        now: Nanos,
        ecn: bool,
        stats: &mut Stats,
    ) -> Option<Packet> {
        let (mut packet, mut late) = self.head(fifo, others, now);
        if self.dropping {
            self.dropping = late;
            while self.dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                let marked = mark(&mut packet, ecn, stats);
                if !marked {
                    (packet, late) = self.head(fifo, others, now);
                    self.dropping = late;
                }
                if self.dropping {
                    self.drop_next = self.after(self.drop_next);
                }
                if marked {
                    break;
                }
            }
        } else if late {
            self.begin(now);
            if !mark(&mut packet, ecn, stats) {
                (packet, _) = self.head(fifo, others, now);
            }
        }
        packet
    }

    /// Counts packets dropped because the queue was full.
    pub(super) fn overflow(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Begins to drop: where it left off, if that was not long ago (RFC 8289, 5.4).
    fn begin(&mut self, now: Nanos) {
        let since = self.count.saturating_sub(self.last_count);
        let recently = now.saturating_sub(self.drop_next) < 16 * INTERVAL;
        self.count = if since > 1 && recently { since } else { 1 };
        self.last_count = self.count;
        self.drop_next = self.after(now);
        self.dropping = true;
    }

    /// The control law: when to drop after a drop at `time`.
    fn after(&self, time: Nanos) -> Nanos {
        time + (INTERVAL as f64 / f64::from(self.count).sqrt()) as Nanos
    }

    /// Takes the first packet; whether the wait has been too long for an interval.
    fn head(&mut self, fifo: &mut Fifo, others: u64, now: Nanos) -> (Option<Packet>, bool) {
        let packet = fifo.pop();
        let high = packet.as_ref().is_some_and(|p| now - p.enqueued_ns >= TARGET)
            && fifo.bytes() + others > u64::from(FULL_PACKET);
        if !high {
            self.first_above = None;
            return (packet, false);
        }
        let due = *self.first_above.get_or_insert(now + INTERVAL);
        (packet, now >= due)
    }
}

/// Marks a packet, or counts it as dropped; whether it was marked.
fn mark(packet: &mut Option<Packet>, ecn: bool, stats: &mut Stats) -> bool {
    match packet {
        Some(p) if ecn && p.ect => {
            p.ce = true;
            stats.marks += 1;
            true
        }
        _ => {
            stats.drops += 1;
            false
        }
    }
}

/// One queue under controlled delay.
#[derive(Debug)]
pub(super) struct Codel {
    fifo: Fifo,
    limits: Limits,
    control: Control,
    ecn: bool,
}

impl Codel {
    pub(super) fn new(limits: Limits, ecn: bool) -> Codel {
        Codel { fifo: Fifo::default(), limits, control: Control::default(), ecn }
    }
}

impl Discipline for Codel {
    fn push(&mut self, packet: Packet, _: Nanos, stats: &mut Stats) {
        if self.limits.admit(&self.fifo, packet.bytes) {
            self.fifo.push(packet);
        } else {
            stats.drops += 1;
        }
    }

    fn pop(&mut self, now: Nanos, stats: &mut Stats) -> Option<Packet> {
        self.control.pop(&mut self.fifo, 0, now, self.ecn, stats)
    }

    fn lists(&self) -> impl Iterator<Item = &Fifo> {
        std::iter::once(&self.fifo)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{limited, packet, MS};
    use super::*;

    const NEVER: [u64; 0] = [];

    /// The times in milliseconds at which a queue drops or marks from which one packet is taken
    /// each millisecond from 0 on, where all have waited `wait_ms`.
    fn signals(
        codel: &mut Codel,
        ect: bool,
        wait_ms: u64,
        times: std::ops::Range<u64>,
    ) -> Vec<u64> {
        let mut stats = Stats::default();
        let mut signals = Vec::new();
        for ms in times {
            // Full again, with packets that have waited as long as is wanted.
            codel.fifo = Fifo::default();
            let enqueued_ns = (1000 + ms - wait_ms) * MS;
            (0..9).for_each(|flow| codel.fifo.push(Packet { ect, enqueued_ns, ..packet(flow) }));
            let before = stats;
            codel.pop((1000 + ms) * MS, &mut stats).unwrap();
            let n = stats.drops + stats.marks - before.drops - before.marks;
            assert_eq!(if ect { stats.drops } else { stats.marks }, 0);
            signals.extend((0..n).map(|_| ms));
        }
        signals
    }

    #[test]
    fn the_first_drop_comes_after_one_interval_and_the_nth_next_after_interval_over_sqrt_n() {
        // Above the target from 0 on: first drop at 100 ms. Then + 100/sqrt(1) = 200,
        // + 100/sqrt(2) = 270.7, + 100/sqrt(3) = 328.4, + 100/sqrt(4) = 378.4, + 100/sqrt(5) =
        // 423.2, each seen at the next whole millisecond.
        let mut codel = Codel::new(limited(100), false);
        assert_eq!(signals(&mut codel, false, 6, 0..450), [100, 200, 271, 329, 379, 424]);
    }

    #[test]
    fn with_ecn_marks_come_when_drops_would() {
        let mut codel = Codel::new(limited(100), true);
        assert_eq!(signals(&mut codel, true, 6, 0..450), [100, 200, 271, 329, 379, 424]);
    }

    #[test]
    fn a_wait_below_the_target_is_never_punished() {
        let mut codel = Codel::new(limited(100), false);
        assert_eq!(signals(&mut codel, false, 4, 0..1000), NEVER);
    }

    #[test]
    fn one_short_wait_begins_the_interval_anew() {
        let mut codel = Codel::new(limited(100), false);
        assert_eq!(signals(&mut codel, false, 6, 0..99), NEVER);
        assert_eq!(signals(&mut codel, false, 4, 99..100), NEVER);
        assert_eq!(signals(&mut codel, false, 6, 100..250), [200]);
    }

    #[test]
    fn dropping_that_begins_again_soon_goes_on_at_nearly_the_same_rate() {
        // Five drops by 379 ms (see above): count 5, where dropping began at 1. Dropping that begins
        // again at 500 ms therefore starts at count 5 - 1 = 4: the second drop after 100/sqrt(4).
        let mut codel = Codel::new(limited(100), false);
        assert_eq!(signals(&mut codel, false, 6, 0..380).len(), 5);
        assert_eq!(signals(&mut codel, false, 4, 380..400), NEVER);
        assert_eq!(signals(&mut codel, false, 6, 400..560), [500, 550]);
    }

    #[test]
    fn no_more_than_one_packet_waiting_is_never_punished() {
        let (mut codel, mut stats) = (Codel::new(limited(100), false), Stats::default());
        for ms in 0..1000 {
            // Two wait for a second; one is left when the other is taken.
            (0..2).for_each(|flow| codel.push(packet(flow), 0, &mut stats));
            codel.pop((1000 + ms) * MS, &mut stats).unwrap();
            codel.fifo = Fifo::default();
        }
        assert_eq!(stats, Stats::default());
    }

    #[test]
    fn a_full_queue_drops_what_comes() {
        let (mut codel, mut stats) = (Codel::new(limited(3), true), Stats::default());
        (0..5).for_each(|flow| codel.push(Packet { ect: true, ..packet(flow) }, 0, &mut stats));
        assert_eq!((codel.packets(), stats), (3, Stats { drops: 2, marks: 0 }));
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which packets are out, delivered, or lost: SACK and RACK (RFC 2018, 8985), or duplicate ACKs
//! without them (RFC 6582).

use super::{Sender, State};
use crate::packet::{Ack, Nanos, Seq};
use crate::tcp::Profile;

/// Duplicate acknowledgements that mean a loss (RFC 5681).
pub(super) const DUP_THRESHOLD: u32 = 3;

/// A packet between `una` and `nxt`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) first_ns: Nanos,
    pub(super) sent_ns: Nanos,
    /// The window of the flow's group that it was sent through; 0: none, or that has been told.
    pub(super) tag: u32,
    pub(super) flags: u8,
}

pub(super) const SACKED: u8 = 1;
pub(super) const LOST: u8 = 2;
/// A retransmission is on its way.
pub(super) const RETRANS: u8 = 4;
/// It was sent more than once: its RTT is ambiguous (Karn).
pub(super) const AGAIN: u8 = 8;

/// What one acknowledgement newly delivered.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    /// Packets, SACKed ones included.
    pub(super) packets: u32,
    /// Of these, SACKed.
    pub(super) sacked: u32,
    /// Of these, taken for lost before.
    pub(super) repaired: u32,
    /// Whether one that was sent again is among those acknowledged in order.
    pub(super) again: bool,
    /// RTT of the last packet that was sent once; 0: none.
    pub(super) rtt: Nanos,
    /// RTT of the first one acknowledged in order; 0: none.
    pub(super) first_rtt: Nanos,
}

impl Sender {
    /// Marks packets as SACKed.
    pub(super) fn sack(
        &mut self,
        from: Seq,
        to: Seq,
        now: Nanos,
        got: &mut Delivered,
        delivered: &mut impl FnMut(Nanos),
    ) {
        let (from, to) = (from.max(self.una), to.min(self.nxt));
        for seq in from..to {
            let index = (seq - self.una) as usize;
            if self.segments[index].flags & SACKED != 0 {
                continue;
            }
            self.deliver(seq, index, now, got, delivered);
            got.sacked += 1;
            self.sacked += 1;
            self.segments[index].flags = SACKED | self.segments[index].flags & AGAIN;
        }
    }

    /// Takes the first packet off: it is acknowledged.
    pub(super) fn acknowledge(
        &mut self,
        now: Nanos,
        got: &mut Delivered,
        delivered: &mut impl FnMut(Nanos),
    ) {
        let segment = self.segments[0];
        got.again |= segment.flags & AGAIN != 0;
        if segment.flags & SACKED != 0 {
            self.sacked -= 1;
        } else {
            self.deliver(self.una, 0, now, got, delivered);
            if segment.flags & AGAIN == 0 && got.first_rtt == 0 {
                got.first_rtt = now - segment.sent_ns;
            }
        }
        self.segments.pop_front();
        self.una += 1;
    }

    /// Counts a packet that has just been found delivered.
    pub(super) fn deliver(
        &mut self,
        seq: Seq,
        index: usize,
        now: Nanos,
        got: &mut Delivered,
        delivered: &mut impl FnMut(Nanos),
    ) {
        let segment = self.segments[index];
        if let Some(group) = self.control.tagging().filter(|_| segment.tag != 0) {
            group.acked(segment.tag);
            self.segments[index].tag = 0;
        }
        let rtt = now - segment.sent_ns;
        got.packets += 1;
        delivered(segment.first_ns);
        if segment.flags & LOST != 0 {
            self.lost -= 1;
            got.repaired += 1;
            if segment.flags & RETRANS == 0 {
                self.waiting -= 1;
            }
        }
        if segment.flags & RETRANS != 0 {
            self.retrans -= 1;
        }
        if segment.flags & AGAIN == 0 {
            got.rtt = rtt.max(1);
            if seq < self.highest {
                self.reordering = true;
            }
        } else if rtt < self.rtt.least {
            return; // the original's, not the retransmission's
        }
        self.highest = self.highest.max(seq);
        if (segment.sent_ns, seq) >= self.rack {
            self.rack = (segment.sent_ns, seq);
            self.rack_rtt = rtt;
        }
    }

    /// Without SACK: each duplicate ACK is a packet that has left the network (RFC 6582).
    pub(super) fn count_duplicates(&mut self, advanced: u32, got: &mut Delivered) {
        if advanced > 0 {
            got.packets = got.packets.saturating_sub(self.sacked); // counted as duplicates came
            self.sacked = self.sacked.saturating_sub(advanced - 1);
            if self.state == State::Open {
                self.sacked = 0;
            }
        } else if !self.segments.is_empty() {
            got.packets += 1;
            self.sacked += 1;
        }
        self.sacked = self.sacked.min((self.segments.len() as u32).saturating_sub(self.lost));
    }

    /// Without SACK: the first packet is lost, unless it was already sent again.
    pub(super) fn mark_head(&mut self, now: Nanos) {
        if self.state == State::Open && self.una < self.high {
            return; // duplicates of what a timeout sent again (RFC 6582, 4.1)
        }
        let Some(head) = self.segments.front_mut().filter(|s| s.flags & (LOST | RETRANS) == 0)
        else {
            return;
        };
        head.flags |= LOST;
        self.lost += 1;
        self.waiting += 1;
        self.waiting_from = self.una;
        self.charge(0, now);
        self.sacked = self.sacked.min((self.segments.len() as u32).saturating_sub(self.lost));
    }

    pub(super) fn sample(
        &mut self,
        profile: &Profile,
        ack: &Ack,
        advanced: u32,
        got: &Delivered,
        now: Nanos,
    ) {
        // the first packet of several that one ACK covers: the timeout must survive delayed ACKs
        let sample = if got.first_rtt > 0 {
            got.first_rtt
        } else if profile.sack && advanced > 0 && ack.echo_ns > 0 {
            now - ack.echo_ns
        } else {
            got.rtt
        };
        if sample > 0 {
            self.rtt.sample(sample);
        }
        if advanced > 0 {
            self.rtt.backoff = 0;
        }
    }

    /// How much later than its successors a packet may arrive (RFC 8985, 6.2).
    pub(super) fn reordering_window(&self) -> Nanos {
        let in_recovery = matches!(self.state, State::Recovery | State::Loss);
        if !self.reordering && (in_recovery || self.sacked >= DUP_THRESHOLD) {
            return 0;
        }
        (self.rtt.least / 4).min(self.rtt.smoothed / 8)
    }

    /// Whether RACK takes the packet for lost `at`, or when it will.
    pub(super) fn verdict(&self, index: usize, window: Nanos) -> Option<Nanos> {
        let segment = &self.segments[index];
        let out = segment.flags & SACKED == 0
            && (segment.flags & LOST == 0 || segment.flags & RETRANS != 0);
        let before = (segment.sent_ns, self.una + index as Seq) < self.rack;
        (out && before).then(|| segment.sent_ns + self.rack_rtt + window)
    }

    /// Marks what is lost (RFC 8985, 6.2): sent a reordering window before something delivered.
    pub(super) fn detect(&mut self, now: Nanos) {
        if self.sacked + self.retrans == 0 {
            return;
        }
        let window = self.reordering_window();
        for index in 0..self.segments.len() {
            if self.verdict(index, window).is_none_or(|at| at > now) {
                continue;
            }
            let segment = self.segments[index];
            if segment.flags & RETRANS != 0 {
                self.retrans -= 1;
            }
            if segment.flags & LOST == 0 {
                self.lost += 1;
            }
            self.waiting += 1;
            self.waiting_from = self.waiting_from.min(self.una + index as Seq);
            self.segments[index].flags = LOST | segment.flags & AGAIN;
            self.charge(index, now);
        }
    }

    /// A packet is taken for lost, the algorithm to be told.
    pub(super) fn charge(&mut self, index: usize, now: Nanos) {
        self.lost_ever += 1;
        let tag = std::mem::take(&mut self.segments[index].tag);
        if let Some(group) = self.control.tagging().filter(|_| tag != 0) {
            group.lost(tag, &self.facts(now));
        }
    }
}

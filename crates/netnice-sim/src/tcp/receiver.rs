// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The receiving end: what has arrived, and when to say so.

use super::rtt::Rtt;
use super::{Profile, MS};
use crate::packet::{Ack, Nanos, Seq};

/// What the receiver does about a packet.
#[derive(Debug, Clone, Copy)]
pub struct Reply {
    /// The acknowledgement to send now, if any.
    pub ack: Option<Ack>,
    /// Packets that became readable, in order.
    pub readable: u32,
}

/// What clocks show at first; they wrap in the first minute.
const CLOCK_AT_0: u32 = u32::MAX - 50_000;

/// The time stamp of a packet that leaves then (RFC 7323), in milliseconds.
pub fn stamp(now: Nanos) -> u32 {
    CLOCK_AT_0.wrapping_add((now / MS) as u32)
}

/// One receiving end.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// First packet not yet received.
    next: Seq,
    /// Packets received beyond that: disjoint ranges in ascending order.
    beyond: Vec<(Seq, Seq)>,
    /// The range that changed last, which the next ACK reports first (RFC 2018, 4).
    latest: Option<(Seq, Seq)>,
    /// Packets since the last ACK.
    unacknowledged: u32,
    /// ACKs that are still sent at once: at the start, and after a rest of a timeout's length.
    quick: u32,
    /// When data arrived last, and the rest after which ACKs are quick again: its own timeout.
    heard_ns: Nanos,
    rest_ns: Nanos,
    /// What the last ACK said of `next`.
    said: Seq,
    /// Time stamp to be echoed: that of the first packet that the next ACK covers (RFC 7323, 4.3).
    echo_ns: Nanos,
    /// Whether a mark is echoed until the sender says that it knows (RFC 3168, 6.1.3).
    ece: bool,
    /// When a delayed ACK leaves; `Nanos::MAX`: none waits.
    pub ack_at: Nanos,
}

impl Receiver {
    /// A receiver that waits for packet 0.
    pub fn new(profile: &Profile) -> Self {
        Self {
            next: 0,
            beyond: Vec::new(),
            latest: None,
            unacknowledged: 0,
            quick: profile.quick_acks,
            heard_ns: 0,
            rest_ns: Rtt::default().timeout(profile),
            said: 0,
            echo_ns: 0,
            ece: false,
            ack_at: Nanos::MAX,
        }
    }

    /// The handshake took `rtt`; 0: that is ambiguous.
    pub fn opened(&mut self, profile: &Profile, rtt: Nanos) {
        let mut estimate = Rtt::default();
        if rtt > 0 {
            estimate.sample(rtt);
        }
        self.rest_ns = estimate.timeout(profile);
    }

    /// Packets received in order.
    pub fn next(&self) -> Seq {
        self.next
    }

    /// Takes a packet. `last`: nothing follows it, so the reader answers.
    pub fn data(
        &mut self,
        profile: &Profile,
        seq: Seq,
        sent_ns: Nanos,
        marks: Marks,
        last: bool,
        now: Nanos,
    ) -> Reply {
        if now - std::mem::replace(&mut self.heard_ns, now) > self.rest_ns {
            self.quick = profile.quick_acks;
        }
        if marks.cwr {
            self.ece = false;
        }
        self.ece |= marks.ce;
        if seq <= self.said {
            self.echo_ns = sent_ns;
        }
        self.unacknowledged += 1;
        let before = self.next;
        let gap_before = !self.beyond.is_empty();
        let duplicate = !self.store(seq);
        let in_order = seq == before;
        let at_once = profile.delayed_ack_ns == 0
            || !in_order
            || gap_before // a gap was filled, at least in part (RFC 5681, 4.2)
            || self.unacknowledged >= 2
            || self.quick > 0
            || marks.ce
            || last;
        let ack = at_once.then(|| self.acknowledge(duplicate, now));
        if ack.is_none() {
            self.ack_at = self.ack_at.min(now + profile.delayed_ack_ns);
        }
        Reply { ack, readable: self.next - before }
    }

    /// The acknowledgement that is due, of all that has arrived.
    pub fn acknowledge(&mut self, duplicate: bool, now: Nanos) -> Ack {
        self.unacknowledged = 0;
        self.said = self.next;
        self.quick = self.quick.saturating_sub(1);
        self.ack_at = Nanos::MAX;
        let mut sacks = [(0, 0); 3];
        let others = self.beyond.iter().rev().filter(|r| Some(**r) != self.latest);
        for (slot, range) in sacks.iter_mut().zip(self.latest.iter().chain(others)) {
            *slot = *range;
        }
        let stamp = stamp(now);
        Ack { next: self.next, echo_ns: self.echo_ns, stamp, sacks, ece: self.ece, duplicate }
    }

    /// Stores a packet; false if it was there already.
    fn store(&mut self, seq: Seq) -> bool {
        if seq < self.next {
            return false;
        }
        if seq == self.next {
            self.next += 1;
            if self.beyond.first().is_some_and(|r| r.0 == self.next) {
                self.next = self.beyond.remove(0).1;
            }
            if self.latest.is_some_and(|r| r.0 < self.next) {
                self.latest = None;
            }
            return true;
        }
        let at = self.beyond.partition_point(|r| r.1 < seq);
        let range = match self.beyond.get_mut(at) {
            Some(r) if r.0 <= seq && seq < r.1 => return false,
            Some(r) if r.1 == seq => {
                r.1 += 1;
                if let Some(&(start, end)) = self.beyond.get(at + 1) {
                    if start == seq + 1 {
                        self.beyond[at].1 = end;
                        self.beyond.remove(at + 1);
                    }
                }
                self.beyond[at]
            }
            Some(r) if r.0 == seq + 1 => {
                r.0 = seq;
                *r
            }
            _ => {
                self.beyond.insert(at, (seq, seq + 1));
                (seq, seq + 1)
            }
        };
        self.latest = Some(range);
        true
    }
}

/// The ECN bits of a packet of data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks {
    /// A queue has marked it.
    pub ce: bool,
    /// The sender has reduced its window.
    pub cwr: bool,
}

#[cfg(test)]
mod tests {
    use netnice_scenario as scenario;

    use super::*;
    use crate::tcp::MS;

    fn linux(quick: u32) -> (Profile, Receiver) {
        let profile = Profile { quick_acks: quick, ..Profile::of(scenario::Profile::Linux) };
        (profile, Receiver::new(&profile))
    }

    fn give(r: &mut Receiver, p: &Profile, seq: Seq, now: Nanos) -> Reply {
        r.data(p, seq, now, Marks::default(), false, now)
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_a_lone_one_after_the_delay() {
        let (p, mut r) = linux(0);
        assert!(give(&mut r, &p, 0, 0).ack.is_none());
        assert_eq!(r.ack_at, 40 * MS);
        let ack = give(&mut r, &p, 1, MS).ack.unwrap();
        // The echo is that of the first packet covered: the delay counts in the sender's timeout.
        assert_eq!((ack.next, ack.echo_ns, r.ack_at), (2, 0, Nanos::MAX));
    }

    #[test]
    fn the_first_acks_are_quick() {
        let (p, mut r) = linux(2);
        let acks: Vec<bool> = (0..5).map(|i| give(&mut r, &p, i, 0).ack.is_some()).collect();
        assert_eq!(acks, [true, true, false, true, false]);
    }

    #[test]
    fn after_a_rest_acks_are_quick_again() {
        let (p, mut r) = linux(1);
        r.opened(&p, 50 * MS); // its timeout: 50 + 200 ms
        for (now, quick) in [(0, true), (MS, false), (252 * MS, true), (502 * MS, false)] {
            let seq = r.next();
            assert_eq!(give(&mut r, &p, seq, now).ack.is_some(), quick, "{now}");
        }
    }

    #[test]
    fn packets_out_of_order_are_acknowledged_at_once_with_the_latest_range_first() {
        let (p, mut r) = linux(0);
        let sacks = |reply: Reply| reply.ack.unwrap().sacks;
        assert_eq!(sacks(give(&mut r, &p, 2, 0)), [(2, 3), (0, 0), (0, 0)]);
        assert_eq!(sacks(give(&mut r, &p, 5, 0)), [(5, 6), (2, 3), (0, 0)]);
        assert_eq!(sacks(give(&mut r, &p, 3, 0)), [(2, 4), (5, 6), (0, 0)]);
        // 4 joins the two
        assert_eq!(sacks(give(&mut r, &p, 4, 0)), [(2, 6), (0, 0), (0, 0)]);
        // 0, then 1 fills the gap: all six are there
        assert_eq!(give(&mut r, &p, 0, 0).readable, 1);
        let reply = give(&mut r, &p, 1, 0);
        assert_eq!((reply.readable, reply.ack.unwrap().next), (5, 6));
        assert_eq!(sacks(give(&mut r, &p, 9, 0)), [(9, 10), (0, 0), (0, 0)]);
    }

    #[test]
    fn a_packet_received_before_is_reported() {
        let (p, mut r) = linux(0);
        give(&mut r, &p, 0, 0);
        assert!(give(&mut r, &p, 0, 0).ack.unwrap().duplicate);
        assert!(!give(&mut r, &p, 4, 0).ack.unwrap().duplicate);
        assert!(give(&mut r, &p, 4, 0).ack.unwrap().duplicate);
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reduced_its_window() {
        let (p, mut r) = linux(0);
        let marked = Marks { ce: true, cwr: false };
        assert!(r.data(&p, 0, 0, marked, false, 0).ack.unwrap().ece);
        give(&mut r, &p, 1, 0);
        assert!(give(&mut r, &p, 2, 0).ack.unwrap().ece);
        give(&mut r, &p, 3, 0);
        let reduced = Marks { ce: false, cwr: true };
        assert!(!r.data(&p, 4, 0, reduced, false, 0).ack.unwrap().ece);
    }
}

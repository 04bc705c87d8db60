// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The sending end: what is lost, what may be sent, and what congestion control is told.
//!
//! The order in which the algorithm hears of an ACK, and how its window becomes the host's, follow
//! the kernel's host (`bpf/cc.bpf.c`), so that the same algorithm meets the same life on both:
//!
//! - an ACK in recovery, or one that acknowledges nothing new in order, comes with `NN_ACK_HOLD`;
//! - a loss is an event before the window falls; proportional rate reduction (RFC 6937) then heads
//!   for the window that the algorithm answered, and at the end of recovery stands there;
//! - a gap allows one burst at a time, and once armed runs out.

mod obey;
mod recovery;
mod scoreboard;
mod timers;

use std::collections::VecDeque;

use netnice_core::{sys, Ack as Facts, Config, Flow, Group, Value, ONE};

use super::rtt::Rtt;
use super::Profile;
use crate::host::Peers;
use crate::packet::{Ack, Nanos, Seq};
use scoreboard::{Delivered, Segment, AGAIN, DUP_THRESHOLD, LOST, RETRANS, SACKED};
use timers::Timer;

/// A packet that is to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its number.
    pub seq: Seq,
    /// Whether it says that the window was reduced (ECN's CWR).
    pub cwr: bool,
}

/// What congestion control believes of the path (RFC 5681 and the states of Linux).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// All is well; packets may be SACKed beyond a gap that is not yet a loss.
    Open,
    /// The window falls for an ECN mark.
    Reduced,
    /// The window falls for a loss, until all sent before it is acknowledged.
    Recovery,
    /// The retransmission timer has fired.
    Loss,
}

/// One sending end.
#[derive(Debug, Clone)]
pub struct Sender {
    control: Flow,
    peers: Peers,
    state: State,
    segments: VecDeque<Segment>,
    una: Seq,
    nxt: Seq,
    /// Packets to send in all.
    end: Seq,
    /// What the algorithm is told beside: the sequence number of packet 0, and bytes of a packet.
    first: u32,
    mss: u32,
    /// The receiver's window in packets.
    offered: u32,
    /// Up to this packet it may send, as it was told; `Seq::MAX`: nobody told it.
    pub(crate) edge: Seq,
    rtt: Rtt,

    // packets between una and nxt: SACKed (or, without SACK, duplicate ACKs), lost, sent again,
    // lost and not yet sent again
    sacked: u32,
    lost: u32,
    retrans: u32,
    waiting: u32,
    /// No packet below is lost and waits.
    waiting_from: Seq,

    cwnd: u32,
    ssthresh: u32,
    /// What was sent below this is accounted for when it is acknowledged: the end of a recovery.
    high: Seq,
    prior_cwnd: u32,
    prr_delivered: u32,
    prr_out: u32,
    /// When the first retransmission since all was well was sent; 0: none. A loss is undone if the
    /// answer is to something older.
    retransmitted_ns: Nanos,
    tell_cwr: bool,

    // RACK (RFC 8985): the latest sent of what was delivered, with its number; its RTT; the highest
    // number delivered
    rack: (Nanos, Seq),
    rack_rtt: Nanos,
    highest: Seq,
    reordering: bool,
    /// Whether a tail loss probe is due.
    probe_due: bool,
    /// `nxt` when the tail loss probe that is out was sent; 0: none is out.
    probe_end: Seq,
    /// Whether that was a packet sent again, not a new one.
    probe_again: bool,

    timer: Timer,
    timer_at: Nanos,
    /// When the gap between bursts, or between paced packets, ends.
    gap_until: Nanos,
    gap_at: Nanos,
    /// When a wait before something new is sent ends; `Nanos::MAX`: none was begun.
    overhead_until: Nanos,

    /// Whether the window was what kept the sender from sending (RFC 7661).
    window_limited: bool,
    greatest_out: u32,
    usage_end: Seq,

    /// The RTT that the last ACK measured; 0: none.
    measured: Nanos,
    /// Packets sent, and of these sent again.
    sent: u64,
    retransmits: u64,
    /// Packets taken for lost, and of these those that the algorithm was told of.
    lost_ever: u32,
    lost_told: u32,
    /// The host holds its packets until the path has room.
    pub(crate) held: bool,
    /// When something new was sent last.
    new_ns: Nanos,
    /// The last packet's tag.
    last_tag: u32,
}

impl Sender {
    /// A connection that is just open. `packets`: how many it will send; `Seq::MAX` is without end.
    /// `first`: the initial sequence number, as the algorithm sees it (RFC 6528). `rtt`: what the
    /// handshake took; 0 without one.
    pub fn new(
        profile: &Profile,
        (config, group, peers): (&Config, Option<&Group>, &Peers),
        packets: Seq,
        first: u32,
        offered: Option<u32>,
        rtt: Nanos,
        now: Nanos,
    ) -> Self {
        let peers = peers.clone();
        let start = Facts {
            flows: peers.count(),
            now_us: now / 1000,
            una: first,
            nxt: first,
            mss: profile.mss,
            ..Facts::default()
        };
        let control = match group {
            None => Flow::new(config, &start, profile.initial_window),
            Some(group) => Flow::join(config, group, &start, profile.initial_window),
        };
        let mut sender = Self {
            control,
            peers,
            state: State::Open,
            segments: VecDeque::new(),
            una: 0,
            nxt: 0,
            end: packets,
            first,
            mss: profile.mss,
            offered: offered.unwrap_or(u32::MAX),
            edge: Seq::MAX,
            rtt: Rtt::default(),
            sacked: 0,
            lost: 0,
            retrans: 0,
            waiting: 0,
            waiting_from: 0,
            cwnd: 0,
            ssthresh: u32::MAX,
            high: 0,
            prior_cwnd: 0,
            prr_delivered: 0,
            prr_out: 0,
            retransmitted_ns: 0,
            tell_cwr: false,
            rack: (0, 0),
            rack_rtt: 0,
            highest: 0,
            reordering: false,
            probe_due: false,
            probe_end: 0,
            probe_again: false,
            timer: Timer::Off,
            timer_at: Nanos::MAX,
            gap_until: 0,
            gap_at: Nanos::MAX,
            overhead_until: Nanos::MAX,
            window_limited: false,
            greatest_out: 0,
            usage_end: 0,
            measured: 0,
            sent: 0,
            retransmits: 0,
            lost_ever: 0,
            lost_told: 0,
            held: false,
            new_ns: now,
            last_tag: 0,
        };
        if rtt > 0 {
            sender.rtt.sample(rtt);
        }
        sender.apply();
        sender
    }

    /// When [`Sender::wake`] wants to be called; `Nanos::MAX`: not at all.
    pub fn wake_at(&self) -> Nanos {
        self.timer_at.min(self.gap_at)
    }

    /// Whether all is sent and acknowledged.
    pub fn done(&self) -> bool {
        self.una == self.end
    }

    /// The connection is no more: the flow leaves its group.
    pub fn close(&mut self, now: Nanos) {
        if let Some(group) = self.control.tagging() {
            self.segments.iter().filter(|s| s.tag != 0).for_each(|s| group.gone(s.tag));
        }
        let facts = self.facts(now);
        self.control.close(&facts);
    }

    /// The algorithm's parameters are others from now on; a gap that was begun with the old ones ends.
    pub fn configure(&mut self, config: &Config, now: Nanos) {
        self.control.configure(config);
        let facts = self.facts(now);
        self.control.send(&facts);
        self.gap_until = self.gap_until.min(now);
        if self.state == State::Open {
            self.apply();
        }
    }

    /// Sends nothing new from now on.
    pub fn stop(&mut self) {
        self.end = self.nxt;
    }

    /// The window in packets that the algorithm asks for, with its fraction.
    pub fn window(&self) -> f64 {
        self.control.ctl().cwnd_q16 as f64 / ONE as f64
    }

    /// Packets in flight.
    pub fn inflight(&self) -> u32 {
        (self.segments.len() as u32 + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// Packets acknowledged, in order.
    pub fn acked(&self) -> u32 {
        self.una
    }

    /// The RTT that the last ACK measured, in nanoseconds; 0: none.
    pub fn measured_rtt(&self) -> Nanos {
        self.measured
    }

    /// What a person wants to see of the algorithm.
    pub fn show(&self) -> Vec<Value> {
        self.control.show()
    }

    /// Packets sent, retransmissions included.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Packets sent again.
    pub fn retransmits(&self) -> u64 {
        self.retransmits
    }

    /// Heap and inline memory of this end, in bytes.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.segments.capacity() * size_of::<Segment>()
            + size_of_val(self.control.state())
    }

    /// Takes an acknowledgement; `delivered` gets the time at which each packet that is newly
    /// delivered was sent first.
    pub fn ack(
        &mut self,
        profile: &Profile,
        ack: &Ack,
        now: Nanos,
        mut delivered: impl FnMut(Nanos),
    ) {
        if ack.next < self.una {
            return;
        }
        let mut got = Delivered::default();
        for &(from, to) in ack.sacks.iter().filter(|_| profile.sack) {
            self.sack(from, to, now, &mut got, &mut delivered);
        }
        let advanced = ack.next - self.una;
        let sacked_rtt = got.rtt;
        while self.una < ack.next {
            self.acknowledge(now, &mut got, &mut delivered);
        }
        if got.again {
            // what lies behind the packet that was sent again waited for it
            (got.rtt, got.first_rtt) = (sacked_rtt, 0);
        }
        if !profile.sack {
            self.count_duplicates(advanced, &mut got);
        }
        self.measured = got.rtt;
        self.sample(profile, ack, advanced, &got, now);

        let lost_before = self.lost + got.repaired;
        let head_is_missing = match self.state {
            State::Recovery => advanced > 0 && self.una < self.high, // a partial ACK
            _ => self.sacked >= DUP_THRESHOLD,
        };
        if profile.sack {
            self.detect(now);
        } else if head_is_missing {
            self.mark_head(now);
        }
        let newly_lost = (self.lost + got.repaired).saturating_sub(lost_before);
        self.check_probe(ack, advanced, &got, now);

        let mut facts = self.facts(now);
        facts.rtt_us = u32::try_from(got.rtt / 1000).unwrap_or(u32::MAX);
        facts.acked = got.packets;
        // with those that a timer found since the last ACK
        facts.lost = self.lost_ever - std::mem::replace(&mut self.lost_told, self.lost_ever);
        if ack.ece {
            facts.flags |= sys::NN_ACK_ECE;
        }
        if self.app_limited() {
            facts.flags |= sys::NN_ACK_APP_LIMITED;
        }
        self.change_state(profile, ack, advanced, facts, &got, newly_lost);
        if self.state == State::Open && self.retrans == 0 {
            self.retransmitted_ns = 0;
        }
        if advanced > 0 {
            self.arm(profile, now);
        }
        if profile.sack && self.sacked + self.retrans + self.lost > 0 {
            self.arm_reordering(now);
        }
    }

    /// Appends what may leave now.
    pub fn transmit(&mut self, profile: &Profile, now: Nanos, out: &mut Vec<Step>) {
        self.transmit_some(profile, now, u32::MAX, out);
    }

    /// As [`Sender::transmit`], but no more than so many packets beside a tail loss probe, as the
    /// host has room for.
    pub fn transmit_some(&mut self, profile: &Profile, now: Nanos, most: u32, out: &mut Vec<Step>) {
        let end = self.sent + u64::from(most);
        self.gap_at = Nanos::MAX;
        let mut new = 0;
        if std::mem::take(&mut self.probe_due) && !self.segments.is_empty() {
            self.send_probe(now, out);
        }
        while (self.waiting > 0 || self.may_send_new()) && self.sent < end {
            if now < self.gap_until {
                self.gap_at = self.gap_until;
                break;
            }
            let facts = self.facts(now);
            let ctl = self.control.send(&facts);
            let mut room = self.cwnd.saturating_sub(self.inflight());
            if ctl.gap_us > 0 {
                room = room.min(ctl.burst);
            }
            if room == 0 {
                break;
            }
            if profile.overhead_ns > 0 && self.waiting > 0 {
                room = room.min(self.waiting); // these do not wait
            } else if profile.overhead_ns > 0 && !self.waited(profile, now) {
                self.gap_at = self.overhead_until;
                break;
            }
            let paced = ctl.gap_us == 0 && profile.pacing && self.rtt.smoothed > 0;
            if paced {
                room = 1;
            }
            for _ in 0..u64::from(room).min(end - self.sent) {
                if self.waiting > 0 {
                    self.resend(now, out);
                } else if self.may_send_new() {
                    self.send_new(now, out);
                    new += 1;
                } else {
                    break;
                }
            }
            if ctl.gap_us > 0 && self.sent > u64::from(profile.unpaced) {
                self.gap_until = now + ctl.gap_us * 1000;
            } else if paced && self.sent > u64::from(profile.unpaced) {
                self.pace(now);
            }
        }
        if profile.overhead_ns > 0 && self.overhead_until <= now {
            self.overhead_until = Nanos::MAX;
        }
        if new > 0 {
            self.note_usage();
            if self.timer == Timer::Off || self.timer == Timer::Probe {
                self.arm(profile, now);
            }
        }
        if self.timer == Timer::Off && !self.segments.is_empty() {
            self.arm(profile, now);
        }
    }

    fn may_send_new(&self) -> bool {
        self.nxt < self.end && self.nxt < self.edge && self.nxt - self.una < self.offered
    }

    fn send_new(&mut self, now: Nanos, out: &mut Vec<Step>) {
        let tag = self.tag();
        self.segments.push_back(Segment { first_ns: now, sent_ns: now, tag, flags: 0 });
        out.push(Step { seq: self.nxt, cwr: std::mem::take(&mut self.tell_cwr) });
        self.nxt += 1;
        self.new_ns = now;
        self.sent += 1;
        self.prr_out += 1;
    }

    /// Sends the first packet that is lost and waits.
    fn resend(&mut self, now: Nanos, out: &mut Vec<Step>) {
        let mut index = (self.waiting_from.max(self.una) - self.una) as usize;
        while self.segments[index].flags & (LOST | RETRANS) != LOST {
            index += 1;
        }
        self.waiting -= 1;
        self.waiting_from = self.una + index as Seq + 1;
        self.send_again(index, now, out);
    }

    /// The tag of a packet that leaves, if the flow's group has any.
    fn tag(&mut self) -> u32 {
        self.last_tag = self.control.tagging().map_or(0, |group| group.send(self.last_tag));
        self.last_tag
    }

    fn send_again(&mut self, index: usize, now: Nanos, out: &mut Vec<Step>) {
        let tag = self.tag();
        let segment = &mut self.segments[index];
        let before = std::mem::replace(&mut segment.tag, tag);
        segment.sent_ns = now;
        if segment.flags & RETRANS == 0 {
            self.retrans += 1;
        }
        segment.flags |= RETRANS | AGAIN;
        if let Some(group) = self.control.tagging().filter(|_| before != 0) {
            group.gone(before); // a probe: which of the two arrives will not be known
        }
        if self.retransmitted_ns == 0 {
            self.retransmitted_ns = now;
        }
        out.push(Step { seq: self.una + index as Seq, cwr: false });
        self.retransmits += 1;
        self.sent += 1;
        self.prr_out += 1;
    }

    /// A tail loss probe: the next new packet, or else the last one again (RFC 8985, 7.3).
    fn send_probe(&mut self, now: Nanos, out: &mut Vec<Step>) {
        self.probe_again = !self.may_send_new();
        if !self.probe_again {
            self.send_new(now, out);
        } else {
            let last = self.segments.len() - 1;
            if self.segments[last].flags & (SACKED | LOST) != 0 {
                return;
            }
            self.send_again(last, now, out);
        }
        self.probe_end = self.nxt;
    }
}

#[cfg(test)]
mod tests;

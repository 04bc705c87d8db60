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

use std::collections::VecDeque;
use std::rc::Rc;

use netnice_core::{sys, Ack as Facts, Config, Ctl, Event, Flow, Group, Info, ONE};
use netnice_scenario::pattern;

use super::rtt::Rtt;
use super::{Profile, MS};
use crate::packet::{Ack, Nanos, Seq};

/// Duplicate acknowledgements that mean a loss (RFC 5681).
const DUP_THRESHOLD: u32 = 3;

/// What a tail loss probe waits beyond two RTTs, and beyond that for a delayed ACK of a lone packet
/// (RFC 8985, 7.2, with Linux' timer slack).
const PROBE_SLACK_NS: Nanos = 8 * MS;
const PROBE_DELAYED_ACK_NS: Nanos = 200 * MS;

/// Windows are at most this, so that counts of packets fit.
const GREATEST_WINDOW: u64 = 1 << 20;

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    Off,
    Retransmission,
    Probe,
    Reordering,
}

/// A packet between `una` and `nxt`.
#[derive(Debug, Clone, Copy)]
struct Segment {
    first_ns: Nanos,
    sent_ns: Nanos,
    /// The window of the flow's group that it was sent through; 0: none, or that has been told.
    tag: u32,
    flags: u8,
}

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission is on its way.
const RETRANS: u8 = 4;
/// It was sent more than once: its RTT is ambiguous (Karn).
const AGAIN: u8 = 8;

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
    /// The last packet's tag.
    last_tag: u32,
}

/// The connections of one host under one algorithm: each has a clone, and the host has one.
#[derive(Debug, Clone, Default)]
pub struct Peers(Rc<()>);

impl Peers {
    fn count(&self) -> u32 {
        u32::try_from(Rc::strong_count(&self.0) - 1).unwrap_or(u32::MAX)
    }
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
    pub fn info(&self) -> Info {
        self.control.info()
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

    /// Does what is due at `now`: a timer, or the end of a gap, after which `transmit` may send.
    pub fn wake(&mut self, profile: &Profile, now: Nanos) {
        if self.timer_at > now {
            return;
        }
        let timer = std::mem::replace(&mut self.timer, Timer::Off);
        self.timer_at = Nanos::MAX;
        match timer {
            Timer::Off => {}
            Timer::Retransmission => self.time_out(profile, now),
            Timer::Probe => {
                self.probe_due = true;
                self.timer = Timer::Retransmission;
                self.timer_at = now + self.rtt.timeout(profile); // RFC 8985, 7.3
            }
            Timer::Reordering => {
                let lost = self.lost;
                self.detect(now);
                if self.lost > lost && matches!(self.state, State::Open | State::Reduced) {
                    self.recover(now, None);
                    self.reduce(profile, 0, false);
                }
                if self.timer == Timer::Off {
                    self.timer = Timer::Retransmission;
                    self.timer_at = now + self.rtt.timeout(profile);
                }
            }
        }
    }

    /// Appends what may leave now.
    pub fn transmit(&mut self, profile: &Profile, now: Nanos, out: &mut Vec<Step>) {
        self.gap_at = Nanos::MAX;
        let mut new = 0;
        if std::mem::take(&mut self.probe_due) && !self.segments.is_empty() {
            self.send_probe(now, out);
        }
        while self.waiting > 0 || self.may_send_new() {
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
            for _ in 0..room {
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

    /// Whether the wait before something new is over; begins it if there is none.
    fn waited(&mut self, profile: &Profile, now: Nanos) -> bool {
        if self.overhead_until == Nanos::MAX {
            let draw = pattern::mix(u64::from(self.first) << 32 ^ self.sent);
            self.overhead_until = now + (draw >> 32) * profile.overhead_ns / (1 << 32);
        }
        self.overhead_until <= now
    }

    /// Begins the gap after a paced packet: 2 windows in a round trip while the window is below half
    /// of ssthresh, else 1.2, and up to half of it forgiven for time in which nothing was sent, as in
    /// Linux.
    fn pace(&mut self, now: Nanos) {
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        let window = u64::from(self.cwnd.max(self.segments.len() as u32).max(1));
        let gap = self.rtt.smoothed * 100 / (percent * window);
        self.gap_until = now + gap - (now - self.gap_until.min(now)).min(gap / 2);
    }

    fn may_send_new(&self) -> bool {
        self.nxt < self.end && self.nxt - self.una < self.offered
    }

    fn send_new(&mut self, now: Nanos, out: &mut Vec<Step>) {
        let tag = self.tag();
        self.segments.push_back(Segment { first_ns: now, sent_ns: now, tag, flags: 0 });
        out.push(Step { seq: self.nxt, cwr: std::mem::take(&mut self.tell_cwr) });
        self.nxt += 1;
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

    /// Marks packets as SACKed.
    fn sack(
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
    fn acknowledge(&mut self, now: Nanos, got: &mut Delivered, delivered: &mut impl FnMut(Nanos)) {
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
    fn deliver(
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
    fn count_duplicates(&mut self, advanced: u32, got: &mut Delivered) {
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
    fn mark_head(&mut self, now: Nanos) {
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

    fn sample(&mut self, profile: &Profile, ack: &Ack, advanced: u32, got: &Delivered, now: Nanos) {
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
    fn reordering_window(&self) -> Nanos {
        let in_recovery = matches!(self.state, State::Recovery | State::Loss);
        if !self.reordering && (in_recovery || self.sacked >= DUP_THRESHOLD) {
            return 0;
        }
        (self.rtt.least / 4).min(self.rtt.smoothed / 8)
    }

    /// Whether RACK takes the packet for lost `at`, or when it will.
    fn verdict(&self, index: usize, window: Nanos) -> Option<Nanos> {
        let segment = &self.segments[index];
        let out = segment.flags & SACKED == 0
            && (segment.flags & LOST == 0 || segment.flags & RETRANS != 0);
        let before = (segment.sent_ns, self.una + index as Seq) < self.rack;
        (out && before).then(|| segment.sent_ns + self.rack_rtt + window)
    }

    /// Marks what is lost (RFC 8985, 6.2): sent a reordering window before something delivered.
    fn detect(&mut self, now: Nanos) {
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
    fn charge(&mut self, index: usize, now: Nanos) {
        self.lost_ever += 1;
        let tag = std::mem::take(&mut self.segments[index].tag);
        if let Some(group) = self.control.tagging().filter(|_| tag != 0) {
            group.lost(tag, &self.facts(now));
        }
    }

    fn arm_reordering(&mut self, now: Nanos) {
        let window = self.reordering_window();
        let due = (0..self.segments.len()).filter_map(|index| self.verdict(index, window)).max();
        if let Some(at) = due.filter(|at| *at > now) {
            self.timer = Timer::Reordering;
            self.timer_at = at;
        } else if self.timer == Timer::Reordering {
            self.timer = Timer::Off;
            self.timer_at = Nanos::MAX;
        }
    }

    /// What the ACK of a tail loss probe says (RFC 8985, 7.4).
    fn check_probe(&mut self, ack: &Ack, advanced: u32, got: &Delivered, now: Nanos) {
        if self.probe_end == 0 || ack.next < self.probe_end {
            return;
        }
        let repaired = self.probe_again && ack.next > self.probe_end && !ack.duplicate;
        let both_arrived = advanced == 0 && got.sacked == 0;
        if !self.probe_again || ack.duplicate || repaired || both_arrived {
            self.probe_end = 0;
        }
        if repaired && self.state == State::Open {
            // the probe repaired a loss of which nothing else tells
            self.event(Event::NN_LOSS, now);
            self.ssthresh = self.asked().max(2);
            self.apply();
        }
    }

    /// The timer of retransmission, or before it that of the tail loss probe.
    fn arm(&mut self, profile: &Profile, now: Nanos) {
        if self.segments.is_empty() {
            self.timer = Timer::Off;
            self.timer_at = Nanos::MAX;
            return;
        }
        let timeout = self.rtt.timeout(profile);
        self.timer = Timer::Retransmission;
        self.timer_at = now + timeout;
        let calm = matches!(self.state, State::Open | State::Reduced) && self.sacked == 0;
        if profile.sack && calm && self.probe_end == 0 && self.rtt.smoothed > 0 {
            let lone = self.segments.len() == 1;
            let slack = if lone { PROBE_DELAYED_ACK_NS } else { PROBE_SLACK_NS };
            let wait = 2 * self.rtt.smoothed + slack;
            if wait < timeout {
                self.timer = Timer::Probe;
                self.timer_at = now + wait;
            }
        }
    }

    fn change_state(
        &mut self,
        profile: &Profile,
        ack: &Ack,
        advanced: u32,
        facts: Facts,
        got: &Delivered,
        newly_lost: u32,
    ) {
        let now = facts.now_us * 1000;
        let spurious = profile.sack
            && advanced > 0
            && self.retransmitted_ns > ack.echo_ns
            && matches!(self.state, State::Recovery | State::Loss);
        if spurious {
            self.tell(facts, sys::NN_ACK_HOLD);
            self.undo(now);
            return;
        }
        let passed = if profile.sack || self.segments.is_empty() {
            self.una >= self.high
        } else {
            self.una > self.high // RFC 6582: duplicates below it are not a new loss
        };
        if self.state != State::Open && passed {
            if self.state != State::Loss {
                self.cwnd = self.ssthresh;
            }
            self.state = State::Open;
            if !profile.sack {
                self.sacked = 0;
            }
        }
        match self.state {
            State::Open | State::Reduced if self.lost > 0 => {
                self.recover(now, Some(facts));
                self.reduce(profile, got.packets, advanced > 0 && newly_lost == 0);
            }
            State::Open if ack.ece && self.una >= self.high => {
                self.tell(facts, sys::NN_ACK_HOLD);
                self.event(Event::NN_ECN, now);
                self.tell_cwr = true;
                self.begin_reduction(State::Reduced);
                self.reduce(profile, got.packets, false);
            }
            State::Recovery | State::Reduced => {
                self.tell(facts, sys::NN_ACK_HOLD);
                self.reduce(profile, got.packets, advanced > 0 && newly_lost == 0);
            }
            State::Open | State::Loss if advanced > 0 => {
                self.tell(facts, 0);
                self.apply();
            }
            State::Open | State::Loss => self.tell(facts, sys::NN_ACK_HOLD),
        }
    }

    /// Begins a recovery, unless the window falls already for an ECN mark.
    fn recover(&mut self, now: Nanos, facts: Option<Facts>) {
        if let Some(facts) = facts {
            self.tell(facts, sys::NN_ACK_HOLD);
        }
        if self.state == State::Reduced {
            self.state = State::Recovery;
            self.high = self.nxt;
            return;
        }
        self.event(Event::NN_LOSS, now);
        self.begin_reduction(State::Recovery);
    }

    fn begin_reduction(&mut self, state: State) {
        self.ssthresh = self.asked().max(2);
        self.prior_cwnd = self.cwnd.max(1);
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.high = self.nxt;
        self.state = state;
        self.probe_end = 0;
    }

    /// Proportional rate reduction (RFC 6937) towards ssthresh, with the reduction bound that depends
    /// on progress (RFC 9937); without SACK the window falls at once, but a
    /// retransmission always leaves (RFC 6582).
    fn reduce(&mut self, profile: &Profile, delivered: u32, progress: bool) {
        let inflight = self.inflight();
        if !profile.sack {
            let resend = if self.waiting > 0 { inflight + 1 } else { 0 };
            self.cwnd = self.ssthresh.max(resend);
            return;
        }
        self.prr_delivered += delivered;
        let mut room = if inflight > self.ssthresh {
            let allowed = (u64::from(self.ssthresh) * u64::from(self.prr_delivered))
                .div_ceil(u64::from(self.prior_cwnd)) as u32;
            allowed.saturating_sub(self.prr_out)
        } else {
            let delta = self.ssthresh - inflight;
            let bound = if progress {
                self.prr_delivered.saturating_sub(self.prr_out).max(delivered) + 1
            } else {
                delivered
            };
            delta.min(bound)
        };
        if self.prr_out == 0 {
            room = room.max(1); // the first retransmission leaves at once
        }
        self.cwnd = inflight + room;
    }

    /// The retransmission timer: everything is lost until shown otherwise.
    fn time_out(&mut self, profile: &Profile, now: Nanos) {
        if self.segments.is_empty() {
            return;
        }
        if self.state != State::Loss || self.una >= self.high {
            self.event(Event::NN_LOSS, now);
            self.ssthresh = self.asked().max(2);
        }
        if !profile.sack {
            self.sacked = 0;
        }
        for index in 0..self.segments.len() {
            let flags = self.segments[index].flags;
            if flags & SACKED == 0 {
                if flags & (LOST | RETRANS) != LOST {
                    self.charge(index, now);
                }
                self.segments[index].flags = LOST | flags & AGAIN;
            }
        }
        self.lost = self.segments.len() as u32 - self.sacked;
        self.retrans = 0;
        self.waiting = self.lost;
        self.waiting_from = self.una;
        self.state = State::Loss;
        self.high = self.nxt;
        self.probe_end = 0;
        self.event(Event::NN_TIMEOUT, now);
        self.cwnd = 1;
        self.rtt.backoff += 1;
        self.timer = Timer::Retransmission;
        self.timer_at = now + self.rtt.timeout(profile);
    }

    /// Nothing was lost after all: an original has arrived after its retransmission was sent.
    fn undo(&mut self, now: Nanos) {
        for segment in &mut self.segments {
            segment.flags &= !(LOST | RETRANS);
        }
        self.lost = 0;
        self.retrans = 0;
        self.waiting = 0;
        self.event(Event::NN_UNDO, now);
        self.ssthresh = u32::MAX;
        self.retransmitted_ns = 0;
        self.state = State::Open;
        self.reordering = true;
        self.apply();
    }

    /// What the algorithm is told at any time.
    fn facts(&self, now: Nanos) -> Facts {
        Facts {
            now_us: now / 1000,
            srtt_us: u32::try_from(self.rtt.smoothed / 1000).unwrap_or(u32::MAX),
            inflight: self.inflight(),
            una: self.first.wrapping_add(self.una),
            nxt: self.first.wrapping_add(self.nxt),
            mss: self.mss,
            flows: self.peers.count(),
            ..Facts::default()
        }
    }

    fn tell(&mut self, mut facts: Facts, flags: u32) {
        facts.flags |= flags;
        self.control.ack(&facts);
    }

    fn event(&mut self, event: Event, now: Nanos) {
        let facts = self.facts(now);
        self.control.event(event, &facts);
    }

    /// The window that the algorithm asks for, in whole packets.
    fn asked(&self) -> u32 {
        let ctl: Ctl = self.control.ctl();
        let least = if ctl.gap_us > 0 { 2 * u64::from(ctl.burst) } else { 1 };
        (ctl.cwnd_q16 / ONE).clamp(least, GREATEST_WINDOW) as u32
    }

    fn apply(&mut self) {
        let ctl = self.control.ctl();
        self.cwnd = self.asked();
        if ctl.gap_us > 0 && self.state == State::Loss {
            self.cwnd = ctl.burst;
        }
        if ctl.flags & sys::NN_CTL_SLOW_START == 0 {
            self.ssthresh = self.ssthresh.min(self.cwnd.max(2));
        }
    }

    /// Whether the window is larger than what is sent (RFC 7661): then it must not grow.
    fn app_limited(&self) -> bool {
        let ctl = self.control.ctl();
        if ctl.gap_us > 0 {
            return self.nxt >= self.end;
        }
        if ctl.flags & sys::NN_CTL_SLOW_START != 0 && self.cwnd < 2 * self.greatest_out {
            return false;
        }
        !self.window_limited
    }

    /// Remembers for a window of data whether the window was used up.
    fn note_usage(&mut self) {
        let out = self.segments.len() as u32;
        let limited = self.inflight() >= self.cwnd;
        let over = self.una >= self.usage_end;
        if over || limited || (!self.window_limited && out > self.greatest_out) {
            self.window_limited = limited;
            self.greatest_out = out;
            self.usage_end = self.nxt;
        }
    }
}

/// What one acknowledgement newly delivered.
#[derive(Debug, Default)]
struct Delivered {
    /// Packets, SACKed ones included.
    packets: u32,
    /// Of these, SACKed.
    sacked: u32,
    /// Of these, taken for lost before.
    repaired: u32,
    /// Whether one that was sent again is among those acknowledged in order.
    again: bool,
    /// RTT of the last packet that was sent once; 0: none.
    rtt: Nanos,
    /// RTT of the first one acknowledged in order; 0: none.
    first_rtt: Nanos,
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The timers of a sender: retransmission, tail loss probe, reordering; the end of a gap.

use netnice_core::Event;
use netnice_scenario::pattern;

use super::scoreboard::{AGAIN, LOST, RETRANS, SACKED};
use super::{Sender, State};
use crate::packet::Nanos;
use crate::tcp::{Profile, MS};

/// What a tail loss probe waits beyond two RTTs, and beyond that for a delayed ACK of a lone packet
/// (RFC 8985, 7.2, with Linux' timer slack).
const PROBE_SLACK_NS: Nanos = 8 * MS;
const PROBE_DELAYED_ACK_NS: Nanos = 200 * MS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    Off,
    Retransmission,
    Probe,
    Reordering,
}

impl Sender {
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

    /// The timer of retransmission, or before it that of the tail loss probe.
    pub(super) fn arm(&mut self, profile: &Profile, now: Nanos) {
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

    pub(super) fn arm_reordering(&mut self, now: Nanos) {
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

    /// The retransmission timer: everything is lost until shown otherwise.
    pub(super) fn time_out(&mut self, profile: &Profile, now: Nanos) {
        if self.segments.is_empty() {
            return;
        }
        if self.state != State::Loss || self.una >= self.high {
            self.event(Event::NN_LOSS, now);
            self.ssthresh = self.target();
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

    /// Whether the wait before something new is over; begins it if there is none.
    pub(super) fn waited(&mut self, profile: &Profile, now: Nanos) -> bool {
        if self.overhead_until == Nanos::MAX {
            let draw = pattern::mix(u64::from(self.first) << 32 ^ self.sent);
            self.overhead_until = now + (draw >> 32) * profile.overhead_ns / (1 << 32);
        }
        self.overhead_until <= now
    }

    /// Begins the gap after a paced packet: 2 windows in a round trip while the window is below half
    /// of ssthresh, else 1.2, and up to half of it forgiven for time in which nothing was sent, as in
    /// Linux.
    pub(super) fn pace(&mut self, now: Nanos) {
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        let window = u64::from(self.cwnd.max(self.segments.len() as u32).max(1));
        let gap = self.rtt.smoothed * 100 / (percent * window);
        self.gap_until = now + gap - (now - self.gap_until.min(now)).min(gap / 2);
    }
}

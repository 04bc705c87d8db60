// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a sender believes of the path, and how its window falls: Linux' states, proportional rate
//! reduction (RFC 6937), and the way back from a loss that was none.

use netnice_core::{sys, Ack as Facts, Event};

use super::scoreboard::{Delivered, LOST, RETRANS};
use super::{Sender, State};
use crate::packet::{Ack, Nanos};
use crate::tcp::Profile;

impl Sender {
    /// What the ACK of a tail loss probe says (RFC 8985, 7.4).
    pub(super) fn check_probe(&mut self, ack: &Ack, advanced: u32, got: &Delivered, now: Nanos) {
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
            self.ssthresh = self.target();
            self.apply();
        }
    }

    pub(super) fn change_state(
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
    pub(super) fn recover(&mut self, now: Nanos, facts: Option<Facts>) {
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

    pub(super) fn begin_reduction(&mut self, state: State) {
        self.ssthresh = self.target();
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
    pub(super) fn reduce(&mut self, profile: &Profile, delivered: u32, progress: bool) {
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

    /// Nothing was lost after all: an original has arrived after its retransmission was sent.
    pub(super) fn undo(&mut self, now: Nanos) {
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
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What congestion control is told, and how its answer becomes the window, by the same rules
//! as in the kernel (`core/host/obey.h`), so that the same algorithm meets the same life on both.

use netnice_core::{sys, Ack as Facts, Event, ONE};

use super::{Sender, State};
use crate::packet::{Nanos, Seq};
use crate::tcp::Profile;

impl Sender {
    /// What the algorithm is told at any time.
    pub(super) fn facts(&self, now: Nanos) -> Facts {
        Facts {
            now_us: now / 1000,
            srtt_us: u32::try_from(self.rtt.smoothed / 1000).unwrap_or(u32::MAX),
            inflight: self.inflight(),
            una: self.first.wrapping_add(self.una),
            nxt: self.first.wrapping_add(self.nxt),
            mss: self.mss,
            flows: self.peers.count(),
            flags: if self.held { sys::NN_ACK_HELD } else { 0 },
            ..Facts::default()
        }
    }

    pub(super) fn tell(&mut self, mut facts: Facts, flags: u32) {
        facts.flags |= flags;
        self.control.ack(&facts);
    }

    pub(super) fn event(&mut self, event: Event, now: Nanos) {
        let facts = self.facts(now);
        self.control.event(event, &facts);
    }

    /// The window that a recovery heads for, in packets.
    pub(super) fn target(&self) -> u32 {
        self.control.ctl().target()
    }

    pub(super) fn apply(&mut self) {
        let ctl = self.control.ctl();
        self.cwnd = if self.state == State::Loss { ctl.window_in_loss() } else { ctl.window() };
        self.ssthresh = ctl.ssthresh(self.cwnd, self.ssthresh);
    }

    /// There is more to send, up to packet `end`. A window that was not used meanwhile is halved for
    /// each timeout's time, down to the initial one (RFC 2861).
    pub fn extend(&mut self, profile: &Profile, end: Seq, now: Nanos) {
        let rests = (now - self.new_ns) / self.rtt.timeout(profile);
        let least = self.cwnd.min(profile.initial_window);
        let left = self.cwnd.checked_shr(rests as u32).unwrap_or(0).max(least);
        if self.end < end && self.una == self.nxt && left < self.cwnd {
            self.control.cut(u64::from(left) * ONE);
            self.event(Event::NN_IDLE, now);
            self.apply();
        }
        self.end = self.end.max(end);
    }

    /// Whether the window is larger than what is sent (RFC 7661): then it must not grow.
    pub(super) fn app_limited(&self) -> bool {
        let ctl = self.control.ctl();
        ctl.app_limited(self.nxt < self.end, self.cwnd, self.greatest_out, self.window_limited)
    }

    /// Remembers for a window of data whether the window was used up.
    pub(super) fn note_usage(&mut self) {
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

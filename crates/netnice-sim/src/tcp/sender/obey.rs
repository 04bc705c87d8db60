// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What congestion control is told, and how its answer becomes the window: as the kernel's host
//! (`bpf/cc.bpf.c`) does it, so that the same algorithm meets the same life on both.

use netnice_core::{sys, Ack as Facts, Ctl, Event, ONE};

use super::{Sender, State};
use crate::packet::Nanos;

/// Windows are at most this, so that counts of packets fit.
const GREATEST_WINDOW: u64 = 1 << 20;

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

    /// The window that the algorithm asks for, in whole packets.
    pub(super) fn asked(&self) -> u32 {
        let ctl: Ctl = self.control.ctl();
        let least = if ctl.gap_us > 0 { 2 * u64::from(ctl.burst) } else { 1 };
        (ctl.cwnd_q16 / ONE).clamp(least, GREATEST_WINDOW) as u32
    }

    pub(super) fn apply(&mut self) {
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
    pub(super) fn app_limited(&self) -> bool {
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

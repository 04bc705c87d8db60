// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! By how much the receiver delays the ACK of a lone packet (RFC 9000, 13.2.1).
//!
//! An ACK says how long it was delayed. Transports keep that from their controllers, but leave it out of their
//! smoothed RTT, which they show: s' = (7 s + RTT)/8. So the RTT without the delay is 8 s' - 7 s, and the
//! delay of one ACK is known at the next.

use std::time::Duration;

/// A delay below that is none, but the time that the receiver takes to answer.
const LEAST: Duration = Duration::from_millis(1);

/// What is known of a receiver's delay.
#[derive(Default)]
pub struct Delay {
    /// Of the last ACK, if of a lone packet: the transport's smoothed RTT before it, and the RTT that it measured.
    last: Option<(Duration, Duration)>,
    delay: Duration,
    least: Option<Duration>,
}

impl Delay {
    /// An ACK came, before which the transport's smoothed RTT is `smoothed`. It measured `raw`, and is for a
    /// `lone` packet or several. Returns the RTT without the delay.
    pub fn rtt(&mut self, smoothed: Duration, raw: Duration, lone: bool) -> Duration {
        if let Some((before, measured)) = self.last.take() {
            self.learn(measured, (smoothed * 8).saturating_sub(before * 7).min(measured));
        }
        let least = self.least.unwrap_or(raw);
        // an ACK that came much sooner than with the delay was not delayed
        let delayed = lone && raw >= least + self.delay / 2;
        let rtt = if delayed { raw.saturating_sub(self.delay).max(least.min(raw)) } else { raw };
        // a transport takes its first sample whole: nothing follows from that
        self.last = (lone && self.least.is_some()).then_some((smoothed, raw));
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        rtt
    }

    /// What the transport made of an RTT. It leaves a delay only as far as its least RTT allows: where that is close
    /// nothing was learned.
    fn learn(&mut self, measured: Duration, exact: Duration) {
        let delay = measured - exact;
        let close = self.least.is_some_and(|least| measured < least + self.delay + 2 * LEAST);
        if delay >= LEAST {
            self.delay = delay;
            self.least = self.least.map(|least| least.min(exact));
        } else if !close {
            self.delay = Duration::ZERO;
        }
    }
}

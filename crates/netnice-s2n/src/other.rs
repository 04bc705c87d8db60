// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Another controller in the foreground. It begins while packets of its predecessor are in flight, and
//! s2n-quic tells it of their end. So they count as sent when it begins.

use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Publisher};
use s2n_quic_core::recovery::RttEstimator;
use s2n_quic_core::time::Timestamp;

use crate::packet::Packet;

/// Another controller.
pub struct Other<C: CongestionController> {
    pub controller: C,
    /// The number of its first own packet.
    first: u64,
    /// What it knows of those before.
    before: Option<C::PacketInfo>,
}

impl<C: CongestionController> Other<C> {
    /// Begins with so many bytes in flight, before its first packet of that number.
    pub fn begin(
        mut controller: C,
        first: u64,
        in_flight: u64,
        now: Option<Timestamp>,
        rtt: &RttEstimator,
    ) -> Other<C> {
        let before = now.filter(|_| in_flight > 0).map(|now| {
            let bytes = usize::try_from(in_flight).unwrap_or(usize::MAX);
            controller.on_packet_sent(now, bytes, Some(false), rtt, &mut Quiet)
        });
        Other { controller, first, before }
    }

    /// What it knows of a packet.
    pub fn info(&self, packet: &Packet<C::PacketInfo>) -> Option<C::PacketInfo> {
        packet.other.filter(|_| packet.number >= self.first).or(self.before)
    }
}

/// Who hears nothing: what happens between the events of s2n-quic belongs to none of them.
pub struct Quiet;

impl Publisher for Quiet {
    fn on_slow_start_exited(&mut self, _: SlowStartExitCause, _: u32) {}
    fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: num_rational::Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _: BbrState) {}
}

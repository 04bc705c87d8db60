// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! TCP as the end hosts speak it; congestion control comes from `core/` alone.
//!
//! One [`Profile`] holds what distinguishes today's Linux from the simulations of the papers.
//! Packets are all of one size but for the last of a flow, and are counted, not their bytes.
//!
//! What is left out of Linux: limits of socket buffers and their tuning, F-RTO's probe with new
//! data (a spurious timeout is found by time stamps instead), compressed ACKs, cork and Nagle.

mod receiver;
mod rtt;
mod sender;

pub use crate::host::Peers;
pub use receiver::{stamp, Marks, Receiver, Reply};
pub use sender::{Sender, Step};

use netnice_scenario as scenario;

use crate::packet::Nanos;

/// Milliseconds in nanoseconds.
pub const MS: Nanos = 1_000_000;

/// Longest delay of an ACK in Linux.
const DELAYED_ACK_NS: Nanos = 40 * MS;

/// How the end hosts speak TCP.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Payload of a full packet in bytes, for algorithms that think in bytes.
    pub mss: u32,
    /// Window before the first ACK, in packets (RFC 6928).
    pub initial_window: u32,
    /// Selective acknowledgements and what needs them: RACK, tail loss probes (RFC 2018, 8985).
    pub sack: bool,
    /// Longest delay of an ACK; 0: every packet is acknowledged at once (RFC 1122, 4.2.3.2).
    pub delayed_ack_ns: Nanos,
    /// ACKs at the start of a connection that are not delayed.
    pub quick_acks: u32,
    /// Least retransmission timeout; see `rtt`.
    pub least_rto_ns: Nanos,
    /// Whether `least_rto_ns` bounds the timeout's variance term (Linux) or all of it (RFC 6298).
    pub rto_floor_on_variance: bool,
    /// Packets at the start of a connection that neither gap nor pacing holds back.
    pub unpaced: u32,
    /// Whether packets are paced over the round trip.
    pub pacing: bool,
    /// Longest wait before something new is sent, after which all that may leaves (ns-2's overhead).
    pub overhead_ns: Nanos,
    /// Whether connections are opened by a handshake, and fetches by a request.
    pub handshake: bool,
}

impl Profile {
    /// TCP of a scenario's end hosts: its profile, but for what the scenario sets itself.
    pub fn of_scenario(scenario: &scenario::Scenario) -> Self {
        let mut profile = Self {
            mss: scenario.mss_bytes(),
            pacing: scenario.pacing,
            overhead_ns: (scenario.overhead_ms * MS as f64) as Nanos,
            ..Self::of(scenario.profile)
        };
        if let Some(delayed) = scenario.delayed_acks {
            profile.delayed_ack_ns = if delayed { DELAYED_ACK_NS } else { 0 };
        }
        profile
    }

    /// The profile that a scenario names.
    pub fn of(profile: scenario::Profile) -> Self {
        match profile {
            scenario::Profile::Linux => Self {
                mss: profile.mss_bytes(),
                initial_window: 10,
                sack: true,
                delayed_ack_ns: DELAYED_ACK_NS,
                quick_acks: 16,
                least_rto_ns: 200 * MS,
                rto_floor_on_variance: true,
                unpaced: 10,
                pacing: false,
                overhead_ns: 0,
                handshake: true,
            },
            scenario::Profile::Ns2 => Self {
                mss: profile.mss_bytes(),
                initial_window: 2,
                sack: false,
                delayed_ack_ns: 0,
                quick_acks: 0,
                least_rto_ns: 1000 * MS,
                rto_floor_on_variance: false,
                unpaced: 0,
                pacing: false,
                overhead_ns: 0,
                handshake: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_acks_are_delayed_is_the_profiles_choice_unless_the_scenario_makes_it() {
        for (lines, expected) in [
            ("", DELAYED_ACK_NS),
            ("delayed_acks = false", 0),
            ("profile = \"ns2\"", 0),
            ("profile = \"ns2\"\ndelayed_acks = true", DELAYED_ACK_NS),
        ] {
            let text = format!(
                "name = \"n\"\n{lines}\n\
                 [bottleneck]\nrate_mbit = 1\nrtt_ms = 1\nlimit_packets = 1\n"
            );
            let scenario = scenario::Scenario::parse(&text, "n").unwrap();
            assert_eq!(Profile::of_scenario(&scenario).delayed_ack_ns, expected, "{lines}");
        }
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Round-trip times and the retransmission timeout (RFC 6298).

use super::Profile;
use crate::packet::Nanos;

/// Longest timeout: Linux' `TCP_RTO_MAX`.
const GREATEST_RTO_NS: Nanos = 120_000_000_000;

/// Timeout before the first sample (RFC 6298, 2.1).
const FIRST_RTO_NS: Nanos = 1_000_000_000;

/// The estimator; all times in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rtt {
    /// Smoothed RTT; 0: no sample yet.
    pub smoothed: Nanos,
    /// Mean deviation.
    variation: Nanos,
    /// Least RTT ever; 0: no sample yet.
    pub least: Nanos,
    /// Timeouts since the last new acknowledgement.
    pub backoff: u32,
}

impl Rtt {
    /// Takes a sample in.
    pub fn sample(&mut self, rtt: Nanos) {
        if self.smoothed == 0 {
            self.smoothed = rtt.max(1);
            self.variation = rtt / 2;
            self.least = rtt.max(1);
            return;
        }
        self.least = self.least.min(rtt.max(1));
        self.variation = (3 * self.variation + self.smoothed.abs_diff(rtt)) / 4;
        self.smoothed = (7 * self.smoothed + rtt).div_ceil(8);
    }

    /// The timeout, doubled for each that passed in vain.
    pub fn timeout(&self, profile: &Profile) -> Nanos {
        let once = if self.smoothed == 0 {
            FIRST_RTO_NS
        } else if profile.rto_floor_on_variance {
            self.smoothed + (4 * self.variation).max(profile.least_rto_ns)
        } else {
            (self.smoothed + 4 * self.variation).max(profile.least_rto_ns)
        };
        (once << self.backoff.min(16)).min(GREATEST_RTO_NS)
    }
}

#[cfg(test)]
mod tests {
    use netnice_scenario as scenario;

    use super::*;
    use crate::tcp::MS;

    #[test]
    fn the_first_sample_gives_three_times_its_rtt() {
        // RFC 6298, 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR = 3 R = 3 s; Linux's floor of
        // 200 ms on the variance term does not bite.
        let mut rtt = Rtt::default();
        rtt.sample(1000 * MS);
        for profile in [scenario::Profile::Linux, scenario::Profile::Ns2] {
            assert_eq!(rtt.timeout(&Profile::of(profile)), 3000 * MS);
        }
    }

    #[test]
    fn a_steady_rtt_leaves_the_floor() {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.sample(50 * MS);
        }
        // The variation falls by a quarter each time, to nothing: 50 + 200 ms, and the RFC's second.
        assert_eq!(rtt.timeout(&Profile::of(scenario::Profile::Linux)), 250 * MS);
        assert_eq!(rtt.timeout(&Profile::of(scenario::Profile::Ns2)), 1000 * MS);
    }

    #[test]
    fn each_timeout_in_vain_doubles_the_next_up_to_two_minutes() {
        let mut rtt = Rtt::default();
        let linux = Profile::of(scenario::Profile::Linux);
        assert_eq!(rtt.timeout(&linux), 1000 * MS);
        rtt.backoff = 3;
        assert_eq!(rtt.timeout(&linux), 8000 * MS);
        rtt.backoff = 40;
        assert_eq!(rtt.timeout(&linux), 120_000 * MS);
    }
}

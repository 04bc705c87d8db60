// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What other traffic can be.

use super::ranges::{Ranges, LONGEST_MS};
use super::{control_fault, shares_fault, stop_fault};
use crate::{Cross, CrossKind};

/// Between the packets of one flow of UDP.
const GAP_MIN_NS: f64 = 100.0;

impl Cross {
    pub(super) fn fault(&self, at: &str) -> Option<String> {
        Ranges::of(at)
            .flows(self.flows)
            .senders(self.senders)
            .rate(self.rate_mbit)
            .packets("window_packets", self.window_packets)
            .add("packet_bytes", f64::from(self.packet_bytes), (28.0, 65_535.0), "bytes")
            .add("on_ms", self.on_ms, (0.001, LONGEST_MS), "milliseconds")
            .add("off_ms", self.off_ms, (0.001, LONGEST_MS), "milliseconds")
            .shape(self.shape)
            .seconds("start_s", self.start_s)
            .seconds("stagger_s", self.stagger_s)
            .seconds("stop_s", self.stop_s)
            .fault()
            .or_else(|| control_fault(&format!("{at}control"), &self.control))
            .or_else(|| stop_fault(at, self.start_s, self.stop_s))
            .or_else(|| shares_fault(at, self.flows, self.group.as_ref(), self.shares.as_ref()))
            .or_else(|| {
                let tcp_only = self.group.is_some() || !self.set.is_empty();
                (self.kind != CrossKind::Tcp && tcp_only).then(|| {
                    format!(
                        "`{at}group` and `{at}set` are of no use to UDP; remove them, or choose \
                         `kind = \"tcp\"`."
                    )
                })
            })
            .or_else(|| match (self.kind, self.rate_mbit, self.bytes, self.window_packets) {
                (CrossKind::Tcp, Some(_), ..) => Some(format!(
                    "`{at}rate_mbit` is of no use to TCP; remove it, or choose `kind = \"cbr\"`."
                )),
                (CrossKind::Tcp, ..) => None,
                (_, None, ..) => Some(format!(
                    "`{at}rate_mbit` is missing; UDP sends at a rate, for example 0.5."
                )),
                (_, _, 1.., _) | (_, _, _, Some(_)) => Some(format!(
                    "`{at}bytes` and `{at}window_packets` are of no use to UDP; remove them, or \
                     choose `kind = \"tcp\"`."
                )),
                (_, Some(rate), ..) => self.gap_fault(at, rate),
            })
    }

    /// At no time between its packets a source would send for ever.
    fn gap_fault(&self, at: &str, rate_mbit: f64) -> Option<String> {
        let gap_ns = f64::from(self.packet_bytes) * 8e3 / rate_mbit;
        (gap_ns < GAP_MIN_NS).then(|| {
            format!(
                "`{at}packet_bytes` is {}, which at `{at}rate_mbit` leave every {gap_ns:.1} ns; \
                 packets leave {GAP_MIN_NS} ns apart or more. Make them longer, or lower the rate.",
                self.packet_bytes
            )
        })
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What payload takes on the wire.

/// Headers of a TCP packet with time stamps, over Ethernet: 14 + 20 or 40 + 32 bytes.
pub(super) const HEADERS: (u64, u64) = (66, 86);
/// Payload of a full one.
const MSS: u64 = 1448;

/// So much payload in full packets, with their headers.
pub(super) fn on_wire(payload: u64) -> u64 {
    payload + payload / MSS * HEADERS.0
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What s2n-quic keeps of each packet for its controller.

use std::time::Instant;

/// A packet that was sent; `I` is what another controller knows of it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<I> {
    /// Packets that count have numbers of their own, from 0.
    pub(crate) number: u64,
    pub(crate) sent: Instant,
    /// If it left in the foreground.
    pub(crate) other: Option<I>,
}

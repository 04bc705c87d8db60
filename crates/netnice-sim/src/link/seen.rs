// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What somebody sees who watches a link: each packet that comes and that leaves, and the work
//! before the link after that.

use crate::packet::{Body, Nanos, Packet};

/// What a packet did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A full packet of TCP's data, not of the background, has left.
    Left,
    /// The last packet of a connection has come: it is not full.
    Ends,
    /// A server's first packet has left; data follows when the client has answered.
    Opens,
    /// Anything else.
    Other,
}

/// Something that was seen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    pub(crate) at: Nanos,
    pub(crate) of: (u32, u32),
    pub(crate) what: What,
    /// Nanoseconds that the link needs for what is before it, and for each byte.
    pub(crate) work: Nanos,
    pub(crate) per_byte: f64,
}

impl What {
    /// What a packet did that has come, or has left; `full`: bytes of a full packet.
    pub(crate) fn of(packet: &Packet, left: bool, full: u32) -> Self {
        match packet.body {
            Body::Data { .. } if packet.low => Self::Other,
            Body::Data { .. } if packet.bytes < full && !left => Self::Ends,
            Body::Data { .. } if packet.bytes == full && left => Self::Left,
            Body::SynAck if left => Self::Opens,
            _ => Self::Other,
        }
    }
}

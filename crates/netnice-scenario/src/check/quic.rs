// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a background has over TCP alone.

use crate::Background;

impl Background {
    /// What a host does for the packets of TCP, and what only `netnice run` can give a flow.
    pub(super) fn quic_fault(&self, at: &str) -> Option<String> {
        let of_tcp = [
            ("hold", self.hold),
            ("shares", self.shares.is_some()),
            ("change", !self.change.is_empty()),
        ];
        let (key, _) = of_tcp.into_iter().find(|&(_, given)| self.quic && given)?;
        Some(format!("`{at}{key}` is of TCP, not of QUIC; remove it, or `{at}quic`."))
    }
}

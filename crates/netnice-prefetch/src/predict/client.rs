// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Who asked: what tells a client from others, and an address.

use std::hash::{BuildHasher, RandomState};
use std::net::Ipv6Addr;

/// A client: a keyed hash of address and `User-Agent`, and the bit of the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    pub(super) id: u64,
    pub(super) bit: u32,
    pub(super) teaches: bool,
}

impl Client {
    /// The client with this address and `User-Agent`.
    pub(super) fn new(key: &RandomState, address: &str, agent: &[u8]) -> Self {
        let (prefix, name) = network(address);
        let id = key.hash_one((prefix, name, agent));
        // the bit is saved, so it must be the same after a restart
        let hash = fnv1a(prefix.iter().chain(name));
        Self { id, bit: 1 << ((hash ^ hash >> 16) % u32::BITS), teaches: true }
    }

    /// The same client where it teaches nothing: another history, which nothing is learned from.
    pub fn apart(self) -> Self {
        Self { id: !self.id, teaches: false, ..self }
    }
}

/// The bytes that tell an address from others.
fn network(address: &str) -> ([u8; 8], &[u8]) {
    match address.contains(':').then(|| address.parse::<Ipv6Addr>()) {
        Some(Ok(v6)) if v6.to_ipv4_mapped().is_none() => {
            let mut prefix = [0; 8];
            prefix.copy_from_slice(&v6.octets()[..8]);
            (prefix, b"")
        }
        _ => ([0; 8], address.as_bytes()),
    }
}

/// The hash by Fowler, Noll and Vo (32 bits, 1a).
fn fnv1a<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u32 {
    bytes.into_iter().fold(0x811c_9dc5, |h, b| (h ^ u32::from(*b)).wrapping_mul(0x0100_0193))
}

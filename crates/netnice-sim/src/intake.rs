// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How a host lets its downloads yield (`core/host/down.h`): what it tells their senders.
//!
//! ```text
//! ACK of a download --> its window, as the path has room --> link
//! the host's requests, and ACKs of what it fetches: announce what will come
//! ```
//!
//! Sequence numbers are bytes there; here they count packets.

use std::collections::BTreeMap;

use netnice_core::{Config, Down, Fetched, Pulled};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::egress::Key;
use crate::packet::{Nanos, Seq};
use crate::tcp::stamp;

/// Windows are told in units of 2^7 bytes, as Linux does with its default buffers.
const SCALE: u32 = 7;
/// What a receiver's own TCP would allow.
const OWN_WINDOW: u32 = 4 << 20;
/// What a SYN allows, packets.
pub(crate) const AT_FIRST: Seq = 1;

/// A download of the background.
#[derive(Debug)]
struct Download {
    pulled: Pulled,
    /// All packets below it have come, as its last ACK said.
    acked: Seq,
    /// It asks again at some time.
    waits: bool,
}

/// What a host knows of what comes in.
#[derive(Debug)]
pub(crate) struct Intake {
    down: Down,
    mss: u32,
    downloads: BTreeMap<Key, Download>,
    fetches: BTreeMap<Key, Fetched>,
    random: Pcg64,
}

impl Intake {
    /// A host whose path is not known.
    pub(crate) fn new(config: &Config, mss: u32, random: Pcg64) -> Self {
        let (downloads, fetches) = (BTreeMap::new(), BTreeMap::new());
        Self { down: Down::new(config, 0), mss, downloads, fetches, random }
    }

    /// What it has measured.
    pub(crate) fn rate(&self) -> u64 {
        self.down.rate()
    }

    fn bytes(&self, packets: Seq) -> u32 {
        packets.wrapping_mul(self.mss)
    }

    /// A packet of so many bytes comes, whose sender sends by itself if `alone`.
    pub(crate) fn count(&mut self, now: Nanos, bytes: u32, alone: bool) {
        self.down.count(now, bytes);
        if alone {
            self.down.other(now, bytes);
        }
    }

    /// A request of the foreground leaves.
    pub(crate) fn asks(&mut self, of: Key, now: Nanos, payload: u32) {
        self.down.leaves(self.fetches.entry(of).or_default(), now, payload, None);
    }

    /// An ACK of the foreground leaves, of all packets below `next`.
    pub(crate) fn acknowledges(&mut self, of: Key, now: Nanos, next: Seq) {
        let ack = Some(self.bytes(next));
        self.down.leaves(self.fetches.entry(of).or_default(), now, 0, ack);
    }

    /// Data of the foreground comes: the `last` of a response, and of its connection (`fin`).
    pub(crate) fn fetched(&mut self, of: Key, now: Nanos, payload: u32, last: bool, fin: bool) {
        self.down.user_came(self.fetches.entry(of).or_default(), now, payload, last, fin);
    }

    /// Data of a download comes: packet `seq`, which was sent at some time; its `last`.
    pub(crate) fn downloaded(&mut self, of: Key, now: Nanos, seq: Seq, sent: Nanos, last: bool) {
        let (mss, end) = (self.mss, self.bytes(seq + 1));
        if let Some(Download { pulled, .. }) = self.downloads.get_mut(&of) {
            self.down.came(pulled, now, mss, end, stamp(sent), last);
        }
    }

    /// Up to which packet its sender may send, as an ACK of all below `next` tells it; and when it asks
    /// again, if it does not wait for that already.
    pub(crate) fn offer(&mut self, of: Key, now: Nanos, next: Seq) -> (Seq, Option<Nanos>) {
        let (ack, first) = (self.bytes(next), self.bytes(next + AT_FIRST));
        let download = self.downloads.entry(of).or_insert_with(|| {
            let mut pulled = Pulled::default();
            self.down.begin(&mut pulled, now, ack, first, SCALE);
            Download { pulled, acked: next, waits: false }
        });
        download.acked = download.acked.max(next);
        let again = !download.waits;
        self.tell(of, now, again)
    }

    /// The time has come that [`Intake::offer`] named, of a download: the same again, and whether its
    /// sender is to be told.
    pub(crate) fn turn(&mut self, of: Key, now: Nanos) -> Option<(Seq, Option<Nanos>, bool)> {
        self.downloads.get_mut(&of)?.waits = false;
        let (edge, again) = self.tell(of, now, true);
        Some((edge, again, self.down.tells(&self.downloads.get(&of)?.pulled)))
    }

    fn tell(&mut self, of: Key, now: Nanos, again: bool) -> (Seq, Option<Nanos>) {
        let mss = self.mss;
        let Some(download) = self.downloads.get_mut(&of) else { return (0, None) };
        let next = download.acked;
        let ack = next.wrapping_mul(mss);
        let edge = self.down.offer(&mut download.pulled, now, ack, ack.wrapping_add(OWN_WINDOW));
        let random = self.random.random();
        let at = if again { self.down.again(&download.pulled, now, random) } else { None };
        download.waits |= at.is_some();
        (next + edge.wrapping_sub(ack) / mss, at)
    }

    /// A connection has ended.
    pub(crate) fn end(&mut self, of: Key) {
        self.fetches.remove(&of);
        if let Some(mut download) = self.downloads.remove(&of) {
            self.down.end(&mut download.pulled);
        }
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a transport tells of a connection, in the foreground too, as an algorithm is to hear it.

use std::time::{Duration, Instant};

use netnice_core::sys::{NN_ACK_EXACT, NN_ACK_HANDSHAKE};
use netnice_core::Ack;

use crate::clock;
use crate::delay::Delay;

/// What a transport tells of the delay of an ACK.
#[derive(Clone, Copy, Debug)]
pub enum AckDelay {
    /// Its smoothed RTT before the ACK, from which the delay of the one before can be learned.
    Smoothed(Duration),
    /// The delay.
    Known(Duration),
}

/// Packets that are those of a handshake, and of the first data after it. No transport tells its controller
/// which these are.
const HANDSHAKE: u64 = 10;

/// What is known of a connection.
///
/// For each ACK frame a controller calls [`delivered`](Told::delivered) for the packets that it covers for the
/// first time, then [`acked`](Told::acked) once; [`lost`](Told::lost) before or after them. After some
/// datagrams left, it calls [`sent`](Told::sent).
pub struct Told {
    /// The greatest time that the transport spoke of.
    pub now: Instant,
    /// Bytes of a full packet.
    pub mtu: u16,
    /// Bytes that the transport counts as in flight, as far as it told.
    pub in_flight: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Packet numbers: behind the greatest one acknowledged, and the next one.
    pub una: u32,
    /// See `una`.
    pub nxt: u32,

    // the ACK that is being told
    acked: u32,
    newest: Option<Instant>,
    told_delay: AckDelay,
    /// When the last packet of the start was sent.
    started: Option<Instant>,
    /// When the newest packet of all that were delivered was sent.
    newest_ever: Option<Instant>,
    delay: Delay,
    srtt: Duration,
    /// Bytes taken for lost of which no ACK told.
    lost: u64,
}

impl Told {
    /// Nothing was sent yet.
    pub fn new(now: Instant, mtu: u16) -> Told {
        Told {
            now,
            mtu: mtu.max(1),
            in_flight: 0,
            sent: 0,
            una: 0,
            nxt: 0,
            acked: 0,
            newest: None,
            told_delay: AckDelay::Known(Duration::ZERO),
            started: None,
            newest_ever: None,
            delay: Delay::default(),
            srtt: Duration::ZERO,
            lost: 0,
        }
    }

    /// What an algorithm is told at any time, but for its number of connections.
    pub fn facts(&self) -> Ack {
        Ack {
            now_us: clock::us(self.now),
            srtt_us: us(self.srtt),
            inflight: self.packets(self.in_flight),
            una: self.una,
            nxt: self.nxt,
            mss: self.mtu.into(),
            ..Ack::default()
        }
    }

    /// Bytes as packets, rounded up.
    pub fn packets(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.mtu.into())).unwrap_or(u32::MAX)
    }

    /// Datagrams of so many bytes left, the last of which has that number.
    pub fn sent(&mut self, bytes: u64, last: u64) {
        self.in_flight += bytes;
        self.sent += u64::from(self.packets(bytes));
        if self.sent >= HANDSHAKE {
            self.started.get_or_insert(self.now);
        }
        // numbers of the handshake start again from 0 for each of its keys
        self.nxt = later(self.nxt, (last as u32).wrapping_add(1));
    }

    /// So many packets were delivered, the newest of which was sent then.
    pub fn delivered(&mut self, packets: u32, sent: Instant, delay: AckDelay) {
        self.acked += packets;
        self.newest = self.newest.max(Some(sent));
        self.told_delay = delay;
    }

    /// All that an ACK is for was told by `delivered`. Returns what the algorithm is told, and when the
    /// newest of these packets was sent.
    pub fn acked(&mut self, in_flight: u64, largest: Option<u64>) -> Option<(Ack, Instant)> {
        self.in_flight = in_flight;
        let (acked, newest) = (std::mem::take(&mut self.acked), self.newest.take()?);
        if let Some(largest) = largest {
            self.una = later(self.una, (largest as u32).wrapping_add(1));
        }
        // where nothing is out, what is not acknowledged never will be: it held no data
        if in_flight == 0 || later(self.una, self.nxt) == self.una {
            self.una = self.nxt;
        }
        let mut rtt_us = 0;
        if self.newest_ever.is_none_or(|before| newest >= before) {
            self.newest_ever = Some(newest);
            let raw = self.now.saturating_duration_since(newest);
            let rtt = match self.told_delay {
                AckDelay::Smoothed(smoothed) => self.delay.rtt(smoothed, raw, acked == 1),
                AckDelay::Known(delay) => raw.saturating_sub(delay),
            };
            self.srtt = if self.srtt.is_zero() { rtt } else { (self.srtt * 7 + rtt) / 8 };
            rtt_us = us(rtt).max(1);
        }
        let lost = std::mem::take(&mut self.lost);
        let started = self.started.is_some_and(|at| newest > at);
        let flags = if started { NN_ACK_EXACT } else { NN_ACK_HANDSHAKE };
        Some((Ack { acked, rtt_us, lost: self.packets(lost), flags, ..self.facts() }, newest))
    }

    /// So many bytes are taken for lost.
    pub fn lost(&mut self, bytes: u64) {
        self.in_flight = self.in_flight.saturating_sub(bytes);
        self.lost += bytes;
    }
}

/// The later of two numbers that wrap around.
fn later(a: u32, b: u32) -> u32 {
    if (b.wrapping_sub(a) as i32) > 0 {
        b
    } else {
        a
    }
}

/// Microseconds.
fn us(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The path out of a host: when may a packet of the background leave? (`core/host/path.h`)

use std::fmt;

use crate::sys;

/// What a host knows of the path that its packets take: a copy of the queue at its bottleneck.
///
/// The clock is in nanoseconds, from any beginning.
#[derive(Clone)]
pub struct Path(Box<sys::nn_path>);

/// A packet of the background that left, for [`Path::ack`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent(sys::nn_path_sent);

/// What the ACKs of one connection tell of its way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Base(sys::nn_path_base);

// SAFETY of the blocks below: the functions take any numbers, index within the arrays of what they
// are given, and keep no pointer.
impl Path {
    /// A path of which nothing is known.
    pub fn new(now: u64) -> Path {
        let mut path = Box::<sys::nn_path>::default();
        unsafe { sys::nn_host_path_init(&raw mut *path, now) };
        Path(path)
    }

    /// A packet of so many bytes on the wire leaves; its record, if it is the background's.
    pub fn left(&mut self, now: u64, bytes: u32, background: bool) -> Option<Sent> {
        let mut sent = Sent::default();
        let record = if background { &raw mut sent.0 } else { std::ptr::null_mut() };
        unsafe { sys::nn_host_path_left(&raw mut *self.0, now, bytes, record) };
        background.then_some(sent)
    }

    /// One of the background's leaves whose ACK nobody can read, of UDP.
    pub fn left_unread(&mut self, now: u64, bytes: u32) {
        unsafe { sys::nn_host_path_left_unread(&raw mut *self.0, now, bytes) };
    }

    /// When to ask again whether a packet of the background may leave; `None`: it may, and does.
    pub fn gate(&mut self, now: u64) -> Option<u64> {
        match unsafe { sys::nn_host_path_gate(&raw mut *self.0, now) } {
            0 => None,
            at => Some(at),
        }
    }

    /// What left now, at `now` ns, has left before.
    pub fn again(&mut self, now: u64) {
        unsafe { sys::nn_host_path_again(&raw mut *self.0, now) };
    }

    /// So many bytes of the background were delivered, headers included.
    pub fn delivered(&mut self, bytes: u64) {
        unsafe { sys::nn_host_path_delivered(&raw mut *self.0, bytes) };
    }

    /// The ACK of a full packet that left once and waited for no gap before it; it acknowledges so
    /// many bytes of payload, and has this time stamp (0: none).
    pub fn ack(&mut self, base: &mut Base, now: u64, sent: &Sent, acked: u64, stamp: u32) {
        let (path, base, sent) = (&raw mut *self.0, &raw mut base.0, &raw const sent.0);
        unsafe { sys::nn_host_path_ack(path, base, now, sent, acked, stamp) };
    }

    /// Whether nothing is to be held now: the foreground does not pass this bottleneck.
    pub fn away(&self, now: u64) -> bool {
        unsafe { sys::nn_host_path_away(&raw const *self.0, now) != 0 }
    }

    /// The rate of the bottleneck in bytes/s; 0: it is not known yet.
    pub fn rate(&self) -> u64 {
        self.0.mu
    }

    /// The virtual queue in bytes, as of the last call.
    pub fn queue(&self) -> u64 {
        self.0.v / u64::from(sys::NN_PATH_S)
    }

    /// The part of the rate that this host had in the last second or more beside other hosts, Q16; without them all of it.
    pub fn part_q16(&self) -> u64 {
        self.0.part.into()
    }

    /// By how many nanoseconds delays vary though nothing waits.
    pub fn jitter(&self) -> u64 {
        self.0.jitter
    }
}

impl fmt::Debug for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes queue at {} bytes/s", self.queue(), self.rate())
    }
}

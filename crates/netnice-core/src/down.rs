// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The path into a host: how much may those send whose data is in the background?
//! (`core/host/down.h`)

use std::fmt;

use crate::{sys, Ack, Config, Flow};

/// What a host knows of the path that its downloads come by, and the algorithm that yields to other
/// hosts.
///
/// The clock is in nanoseconds, from any beginning; sequence numbers are bytes, and wrap.
#[derive(Clone)]
pub struct Down {
    down: Box<sys::nn_down>,
    flow: Flow,
}

/// A connection of the background.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pulled(pub(crate) sys::nn_down_flow);

/// A connection of the foreground.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fetched(sys::nn_down_user);

/// What becomes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datagram {
    GoesOn,
    /// It is one too many.
    Dropped,
    /// It looks again at that clock.
    Waits {
        ticket: u32,
        until: u64,
    },
}

// SAFETY of the blocks below: the functions take any numbers, index within the arrays of what they
// are given, and keep no pointer.
impl Down {
    /// A path of which nothing is known.
    pub fn new(config: &Config, now: u64) -> Down {
        let start = Ack { now_us: now / 1000, mss: sys::NN_DOWN_MSS, ..Ack::default() };
        let flow = Flow::new(config, &start, sys::NN_DOWN_WINDOW);
        let mut down = Box::<sys::nn_down>::default();
        unsafe { sys::nn_host_down_init(&raw mut *down, now) };
        down.ctl = flow.ctl();
        Down { down, flow }
    }

    /// A packet of so many bytes on the wire came, of whatever kind.
    pub fn count(&mut self, now: u64, bytes: u32) {
        unsafe { sys::nn_host_down_count(&raw mut *self.down, now, bytes) };
    }

    /// It answers nothing that was seen to leave.
    pub fn other(&mut self, now: u64, bytes: u32) {
        unsafe { sys::nn_host_down_other(&raw mut *self.down, now, bytes) };
    }

    /// A packet of the foreground leaves, with so many bytes of payload.
    pub fn leaves(&mut self, user: &mut Fetched, now: u64, payload: u32, ack: Option<u32>) {
        let (down, user) = (&raw mut *self.down, &raw mut user.0);
        let (acks, ack) = (ack.is_some().into(), ack.unwrap_or_default());
        unsafe { sys::nn_host_down_user_leaves(down, user, now, payload, acks, ack) };
    }

    /// A packet of the foreground came; the `last` of a response, or of the connection (`fin`).
    pub fn user_came(&mut self, user: &mut Fetched, now: u64, payload: u32, last: bool, fin: bool) {
        let (down, user) = (&raw mut *self.down, &raw mut user.0);
        unsafe {
            sys::nn_host_down_user_came(down, user, now, payload, last.into(), fin.into());
        }
    }

    /// A connection comes into the background: all before `ack` has come, and its peer may send up to
    /// `edge`. Its windows are told in units of 2^`scale` bytes.
    pub fn begin(&mut self, pulled: &mut Pulled, now: u64, ack: u32, edge: u32, scale: u32) {
        let (down, pulled) = (&raw mut *self.down, &raw mut pulled.0);
        unsafe { sys::nn_host_down_begin(down, pulled, now, ack, edge, scale) };
    }

    /// It has ended.
    pub fn end(&mut self, pulled: &mut Pulled) {
        unsafe { sys::nn_host_down_end(&raw mut *self.down, &raw mut pulled.0) };
    }

    /// Up to where its peer may send, as an ACK of all before `ack` is to tell it; its own TCP would
    /// go up to `wanted`.
    pub fn offer(&mut self, pulled: &mut Pulled, now: u64, ack: u32, wanted: u32) -> u32 {
        pulled.0.wanted = wanted;
        let window =
            unsafe { sys::nn_host_down_offer(&raw mut *self.down, &raw mut pulled.0, now, ack) };
        ack.wrapping_add(window << (pulled.0.scale & 15))
    }

    /// Whether its peer is to be told of what [`Down::offer`] said, where no ACK leaves anyway.
    pub fn tells(&self, pulled: &Pulled) -> bool {
        pulled.0.tells != 0
    }

    /// When to ask again whether it may be told of more; `None`: that is all it wants.
    pub fn again(&mut self, pulled: &Pulled, now: u64, random: u32) -> Option<u64> {
        let (down, pulled) = (&raw mut *self.down, &raw const pulled.0);
        match unsafe { sys::nn_host_down_again(down, pulled, now, random) } {
            0 => None,
            at => Some(at),
        }
    }

    /// Its data came, up to `end`, in segments of so many bytes, with its sender's time stamp (0: none);
    /// the `last` of a response.
    pub fn came(
        &mut self,
        pulled: &mut Pulled,
        now: u64,
        segment: u32,
        end: u32,
        stamp: u32,
        last: bool,
    ) {
        let mut ack = Ack::default();
        let (down, pulled) = (&raw mut *self.down, &raw mut pulled.0);
        let (last, to) = (last.into(), &raw mut ack);
        let told =
            unsafe { sys::nn_host_down_came(down, pulled, now, segment, end, stamp, last, to) };
        if told != 0 {
            self.down.ctl = self.flow.ack(&ack);
        }
    }

    /// A datagram of so many bytes came for the background, of a connection with any number.
    pub fn datagram(&mut self, now: u64, bytes: u32, flow: u32) -> Datagram {
        self.datagram_goes(now, bytes, flow, None)
    }

    /// One with this ticket looks again, as [`Datagram::Waits`] asked for.
    pub fn look_again(&mut self, ticket: u32, now: u64, bytes: u32, flow: u32) -> Datagram {
        self.datagram_goes(now, bytes, flow, Some(ticket))
    }

    fn datagram_goes(&mut self, now: u64, bytes: u32, flow: u32, ticket: Option<u32>) -> Datagram {
        const DROP: u64 = u64::MAX; // NN_DATAGRAM_DROP
        let (fresh, mut ticket) = (ticket.is_none(), ticket.unwrap_or_default());
        let (down, to) = (&raw mut *self.down, &raw mut ticket);
        match unsafe { sys::nn_host_datagram_goes(down, now, bytes, flow, fresh.into(), to) } {
            0 => Datagram::GoesOn,
            DROP => Datagram::Dropped,
            until => Datagram::Waits { ticket, until },
        }
    }

    /// The rate of the bottleneck, bytes/s.
    pub fn rate(&self) -> u64 {
        self.down.mu
    }

    /// The virtual queue in bytes, as of the last call.
    pub fn queue(&self) -> u64 {
        self.down.v / u64::from(sys::NN_PATH_S)
    }

    /// The window that the algorithm gives all downloads together, packets.
    pub fn window(&self) -> f64 {
        self.down.ctl.cwnd_q16 as f64 / 65536.0
    }

    /// Bytes that its peers may send and that have not come.
    pub fn allowed(&self) -> u64 {
        self.down.allowed
    }
}

impl fmt::Debug for Down {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes queue at {} bytes/s", self.queue(), self.rate())
    }
}

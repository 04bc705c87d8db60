// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What every host does with an algorithm's answer (`core/host/obey.h`).

use crate::{sys, Ctl};

// SAFETY of the blocks below: the functions read `self`, any bits of which are valid, and keep no
// pointer.
impl Ctl {
    /// The window in whole packets; with a gap, two bursts at least.
    pub fn window(&self) -> u32 {
        unsafe { sys::nn_host_window(self) }
    }

    /// The window after a timeout, in packets: with a gap, no more than a burst.
    pub fn window_in_loss(&self) -> u32 {
        unsafe { sys::nn_host_window_in_loss(self) }
    }

    /// The window that a recovery heads for, in packets.
    pub fn target(&self) -> u32 {
        unsafe { sys::nn_host_target(self) }
    }

    /// The host's ssthresh in packets, with a window of `cwnd`.
    pub fn ssthresh(&self, cwnd: u32, ssthresh: u32) -> u32 {
        unsafe { sys::nn_host_ssthresh(self, cwnd, ssthresh) }
    }

    /// Whether the sender has less to send than a window of `cwnd` packets allows (RFC 7661).
    /// `data_waits` to be sent; `most_out` packets were in flight at most in the last round trip,
    /// and used the window up if it was `limited`.
    pub fn app_limited(&self, data_waits: bool, cwnd: u32, most_out: u32, limited: bool) -> bool {
        let app = unsafe {
            sys::nn_host_app_limited(self, data_waits.into(), cwnd, most_out, limited.into())
        };
        app != 0
    }
}

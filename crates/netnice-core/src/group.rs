// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! State shared by the flows of a group (`core/aggregate/`).

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{sys, Ack, ONE};

/// What flows share that divide the sum of their windows. A clone is the same group, and its flows may
/// be those of several threads.
#[derive(Clone)]
pub struct Group(Arc<Mutex<Box<sys::nn_group>>>);

impl Group {
    /// An empty group. `tags`: its host can tag packets with windows, and does so while
    /// [`Group::tags`].
    pub fn new(tags: bool) -> Group {
        let mut group = Box::<sys::nn_group>::default();
        group.tags = tags.into();
        Group(Arc::new(Mutex::new(group)))
    }

    /// As [`Group::new`], of flows whose paths may differ.
    pub fn apart(tags: bool) -> Group {
        let group = Self::new(tags);
        group.locked().apart = 1;
        group
    }

    /// Flows that are in it.
    pub fn members(&self) -> u32 {
        self.locked().members
    }

    /// The sum of the members' windows in packets, Q16.
    pub fn sum_q16(&self) -> u64 {
        self.locked().sum
    }

    /// The members' windows in packets, Q16, in the order of their places.
    pub fn windows_q16(&self) -> Vec<u64> {
        let group = self.locked();
        group.member.iter().filter(|m| m.weight > 0).map(|m| m.window.cwnd).collect()
    }

    /// What golden traces hash of it: what is divided, and what limited members use.
    pub fn traced(&self) -> [u64; 2] {
        let group = self.locked();
        [group.window, group.used]
    }

    /// Whether packets get tags.
    pub fn tags(&self) -> bool {
        self.locked().rule > 0
    }

    /// The tag of a packet that leaves; `last` is that of the flow's last one, or 0.
    pub fn send(&self, last: u32) -> u32 {
        // SAFETY: the function takes any number, and keeps no pointer; so do the others.
        self.with(|g| unsafe { sys::nn_group_send(g, last) })
    }

    /// The packet of that tag was delivered.
    pub fn acked(&self, tag: u32) {
        self.with(|g| unsafe { sys::nn_group_acked(g, tag) });
    }

    /// The packet of that tag is taken for lost; of `now` the time and the smoothed RTT count.
    pub fn lost(&self, tag: u32, now: &Ack) {
        self.with(|g| unsafe { sys::nn_group_lost(g, tag, now) });
    }

    /// Nobody will know of the packet of that tag.
    pub fn gone(&self, tag: u32) {
        self.with(|g| unsafe { sys::nn_group_gone(g, tag) });
    }

    /// A thread that panicked left it as a hook left it.
    fn locked(&self) -> MutexGuard<'_, Box<sys::nn_group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the state, which nobody else has meanwhile.
    pub(crate) fn with<T>(&self, f: impl FnOnce(*mut sys::nn_group) -> T) -> T {
        f(&raw mut **self.locked())
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = self.sum_q16() as f64 / ONE as f64;
        write!(f, "{} members with {packets} packets", self.members())
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The line in which connections of the background wait in their host (`core/host/line.h`).

use crate::sys;

/// Whose turn it is, and who comes after.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line(sys::nn_line);

/// A connection in the line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place(sys::nn_line_place);

impl Place {
    /// That of a connection that has not come yet. No other one in the line has this number.
    pub fn new(id: u64) -> Place {
        Place(sys::nn_line_place { id, ..Default::default() })
    }

    /// How many packets of the connection wait.
    pub fn waits(&self) -> u32 {
        self.0.waits
    }
}

#[cfg(test)]
impl Place {
    /// As [`Place::new`], in a line whose places begin with `at`.
    pub(crate) fn begin_at(id: u64, at: u32) -> Place {
        Place(sys::nn_line_place { id, at, ..Default::default() })
    }
}

#[cfg(test)]
impl Line {
    /// A line whose places begin with `at`.
    pub(crate) fn begin_at(at: u32) -> Line {
        Line(sys::nn_line { head: at, last: at, ..Default::default() })
    }
}

// SAFETY of the blocks below: the functions take any numbers, and keep no pointer.
impl Line {
    /// A packet of a connection comes, and waits.
    pub fn put(&mut self, place: &mut Place) {
        unsafe {
            sys::nn_host_line_join(&raw mut self.0, &raw mut place.0);
            sys::nn_host_line_wait(&raw mut self.0, &raw mut place.0);
        }
    }

    /// A packet of a connection leaves, which waited.
    pub fn leave(&mut self, place: &mut Place) {
        unsafe { sys::nn_host_line_leave(&raw mut self.0, &raw mut place.0, 1) };
    }

    /// What waits of a connection was lost.
    pub fn lose(&mut self, place: &mut Place) {
        unsafe { sys::nn_host_line_lose(&raw mut self.0, &raw mut place.0) };
    }

    /// How many packets leave before a connection's first, about.
    pub fn before(&self, place: &Place) -> u32 {
        unsafe { sys::nn_host_line_before(&raw const self.0, &raw const place.0) }
    }
}

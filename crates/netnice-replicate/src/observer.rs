// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a run of a job tells while it goes on.

use std::time::Duration;

use crate::store::{Row, Summary};

/// Whoever shows a run to people. Every method does nothing by default.
pub trait Observer {
    /// A destination's copy is complete.
    fn complete(&mut self, _row: &Row) {}

    /// A destination will be tried again after `pause`.
    fn retrying(&mut self, _row: &Row, _pause: Duration) {}

    /// A destination will not be tried again.
    fn failed(&mut self, _row: &Row) {}

    /// Something that concerns the whole job happened, or ended.
    fn notice(&mut self, _text: &str) {}

    /// A moment went by: what all destinations are at, a few times a second.
    fn tick(&mut self, _rows: &[&Row], _summary: &Summary) {}

    /// For so long each connection of this run has yielded, on average; told every few seconds.
    fn yielded(&mut self, _time: Duration) {}

    /// Nothing will be told any more.
    fn finish(&mut self) {}
}

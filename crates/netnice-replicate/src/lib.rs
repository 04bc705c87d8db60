// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One tree to many hosts, as fast as nobody notices.
//!
//! rsync moves the data. This decides which transfers are under way when: all in the background,
//! as many at a time as make the aggregate goodput grow ([`schedule`]), each again after a failure,
//! with the state on disk ([`store`]). Nothing here prints: an [`Observer`] is told.

#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

pub mod cgroups;
mod copy;
mod engine;
mod error;
mod keeper;
mod lock;
mod need;
mod observer;
mod paths;
mod replication;
mod rsync;
mod watch;

pub mod config;
pub mod job;
pub mod place;
pub mod report;
pub mod schedule;
pub mod store;

pub use engine::Outcome;
pub use error::{Error, Result};
pub use observer::Observer;
pub use replication::{Replication, Stop};

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! netnice for users without root: a daemon, and what asks it.
//!
//! A request is one line of JSON over a Unix socket, and so is its answer ([`protocol`]); docs/daemon.md
//! describes them. All that a run needs is in the kernel: it is a cgroup, with the programs attached to it
//! and its owner noted at it. So a daemon that was killed interrupts nothing, and the next one goes on;
//! two notes of the report alone are lost with it. Nothing here prints or reads a command line.

#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

mod caller;
mod jobs;
mod limits;
mod look;
mod moves;
mod rights;
mod starving;
mod work;

pub mod client;
pub mod protocol;
pub mod scope;
pub mod server;
pub mod start;

/// Where the daemon listens unless told otherwise.
pub const SOCKET: &str = "/run/netnice/netnice.sock";

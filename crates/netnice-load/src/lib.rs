// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Traffic for experiments: real sockets that carry out what a scenario (`netnice_scenario`) asks for.
//!
//! - [`net`] holds what the traffic modes share: time line, congestion control, transfers.
//! - [`web`] serves and fetches the foreground, [`bulk`] sends and sinks the background,
//!   [`ping`] probes the path with small datagrams.
//!
//! Sockets are those of an unmodified program: default buffers (the kernel's autotuning), no
//! `TCP_NODELAY`, no `TCP_NOTSENT_LOWAT`. Only `TCP_CONGESTION` is set, and only on request.
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::io;

pub mod bulk;
pub mod net;
pub mod ping;
pub mod web;

/// What can go wrong, each as a sentence with the next step.
///
/// The sentences include what the system said, so it is not repeated as the source of the error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A congestion control could not be set on a socket.
    #[error("Cannot set the congestion control `{name}`: {reason}. {next}")]
    Control {
        /// The control asked for.
        name: String,
        /// What the system said.
        reason: io::Error,
        /// What to do about it.
        next: String,
    },
    /// A socket operation failed that the whole run depends on.
    #[error("{what}: {reason}. {next}")]
    Network {
        /// What was tried.
        what: String,
        /// What the system said.
        reason: io::Error,
        /// What to do about it.
        next: &'static str,
    },
    /// The time origin of `--epoch` makes no sense.
    #[error("The time origin --epoch {epoch} is {ahead_s:.0} s ahead of the clock. Give Unix seconds, for example --epoch $(date -d '+2 seconds' +%s).")]
    Epoch {
        /// As given, in Unix seconds.
        epoch: f64,
        /// Seconds until then.
        ahead_s: f64,
    },
}

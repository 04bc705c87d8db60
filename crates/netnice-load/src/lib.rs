// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Traffic for experiments: real sockets that carry out what a scenario (`netnice_scenario`) asks for.
//!
//! - [`transport`] is what carries their bytes, [`net`] what else the traffic modes share.
//! - [`web`] serves and fetches the foreground, [`bulk`] sends and sinks the background,
//!   [`ping`] probes the path with small datagrams.
//!
//! Sockets are those of an unmodified program: default buffers (the kernel's autotuning), no
//! `TCP_NODELAY`, no `TCP_NOTSENT_LOWAT`. Only `TCP_CONGESTION` is set, and only on request. QUIC has
//! quinn's defaults but for its congestion control and what [`transport`] says.
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::io;
use std::path::{Path, PathBuf};

pub mod bulk;
pub mod net;
pub mod ping;
pub mod transport;
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
    /// QUIC does not have a congestion control, or not so.
    #[error("The congestion control `{name}`: {what}.")]
    QuicControl {
        /// The control asked for.
        name: String,
        /// What is wrong with it, and what would do.
        what: String,
    },
    /// The file of a server's certificate is of no use.
    #[error("The certificate {} {what}: {reason}. {next}.", file.display())]
    Certificate {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        what: &'static str,
        /// What the system said, or TLS.
        reason: String,
        /// What to do about it.
        next: &'static str,
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

impl Error {
    fn certificate(
        file: &Path,
        what: &'static str,
        reason: &dyn std::error::Error,
        next: &'static str,
    ) -> Self {
        Self::Certificate { file: file.into(), what, reason: reason.to_string(), next }
    }
}

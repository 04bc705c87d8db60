// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Traffic for experiments: what a scenario asks for, and real sockets that carry it out.
//!
//! - [`scenario`] reads and checks a scenario file.
//! - [`schedule`] turns a scenario and a seed into foreground flows; a pure function.
//! - [`weblog`] reads the web request log that a scenario may replay or draw sizes from.
//! - [`pattern`] is the content of every flow, checkable at any byte.
//! - [`net`] holds what the traffic modes share: time line, congestion control, transfers.
//! - [`web`] serves and fetches the foreground, [`bulk`] sends and sinks the background,
//!   [`ping`] probes the path with small datagrams.
//!
//! Sockets are those of an unmodified program: default buffers (the kernel's autotuning), no
//! `TCP_NODELAY`, no `TCP_NOTSENT_LOWAT`. Only `TCP_CONGESTION` is set, and only on request.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::io;
use std::path::PathBuf;

pub mod bulk;
pub mod net;
pub mod pattern;
pub mod ping;
pub mod scenario;
pub mod schedule;
pub mod web;
pub mod weblog;

/// What can go wrong, each as a sentence with the next step.
///
/// The sentences include what the system said, so it is not repeated as the source of the error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("Cannot read {}: {reason}. Check the path; it is relative to the current directory.", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// A scenario is not valid.
    #[error("{place}: {what}")]
    Scenario {
        /// The file, and the line where known.
        place: String,
        /// What is wrong and what would be right.
        what: String,
    },
    /// A rate trace that a scenario names could not be read.
    #[error("Cannot read the trace {}: {reason}. Check `trace`; it is relative to the scenario file.", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The web request log is not usable.
    #[error("The web request log {} is not usable: {what}. Give the log with --data lab/data/web-requests.csv.gz.", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
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

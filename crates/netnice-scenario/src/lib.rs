// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What an experiment is: the same for the kernel's engine, the simulator and the lab.
//!
//! - [`Scenario`] is a scenario file (TOML), read and checked; its sections are types of this crate.
//! - [`schedule()`] turns a scenario and a seed into foreground flows; a pure function.
//! - [`weblog`] reads the web request log that a scenario may replay or draw sizes from.
//! - [`Described`] is a scenario for programs of other languages.
//! - [`cli`] is what commands about scenarios have in common, [`whole`] the files that they write.
//! - [`pattern`] is the content of every flow, checkable at any byte.
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::io;
use std::path::PathBuf;

mod check;
pub mod cli;
mod default;
mod described;
mod json;
mod network;
pub mod pattern;
mod read;
mod route;
mod scenario;
mod schedule;
mod set;
#[cfg(test)]
mod tests;
mod topology;
mod trace;
mod traffic;
pub mod weblog;
pub mod whole;

pub use default::CONTROL;
pub use described::{Described, Dumbbell};
pub use network::{Bottleneck, Change, Hosts, Link, LinkChange, Queue};
pub use read::Text;
pub use route::Route;
pub use scenario::{Ideal, Profile, Scenario, Variant, IDEAL, NONE};
pub use schedule::{schedule, Flow};
pub use trace::Trace;
pub use traffic::{
    Arrivals, Background, Cross, CrossKind, Foreground, Oracle, Parameter, ShareChange, Sizes,
};

/// What can be wrong with a scenario or its files, each as a sentence with the next step.
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
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Runs, groups and connections in the background.
//!
//! The command `netnice` stands on this library, and so can anything else that shows or controls
//! what is in the background. Nothing here prints or reads a command line.
//!
//! ```no_run
//! use netnice_manager::{choice::Choice, run::Run, system::System};
//!
//! let choice = Choice::default();
//! let mut system = System::change()?;
//! let run = Run::begin(&system, &choice.config()?, choice.tos(), None)?;
//! system.may_end(); // else signals that ask for an end would wait in the child too
//! let child = run.cgroup().inside(|| std::process::Command::new("rsync").spawn())?;
//! # Ok::<(), netnice_manager::Error>(())
//! ```

#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

mod error;
mod owner;

pub mod attached;
pub mod carrier;
pub mod cgroup;
pub mod check;
pub mod choice;
pub mod group;
pub mod hold;
pub mod moves;
pub mod named;
pub mod oci;
pub mod peer;
pub mod process;
pub mod report;
pub mod run;
pub mod snapshot;
pub mod socket;
pub mod system;
mod tcp;
pub mod tool;

pub use error::{Error, Result};

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Packet-level simulator: the second host of the algorithms in `core/`.
//!
//! It runs the scenarios that the lab runs on the kernel ([`netnice_scenario`]). Time is whole
//! nanoseconds, random numbers come from the run's seed alone: the same seed gives the same bytes.
//!
//! - [`world`] is the event loop: start reading there. `agenda` is what is to come, `plan` what a
//!   scenario means, `connection`, `source` and `host` what sends.
//! - [`tcp`] is what the end hosts do; congestion control comes from `netnice_core` alone.
//! - `network`, [`link`] and [`queue`] are what carries packets.
//! - [`outcome`] is what one run measured, [`result`] the document made of many, [`report`] a table.
//! - [`sweep`] runs many on all cores.
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod agenda;
mod connection;
mod egress;
mod host;
mod intake;
pub mod link;
mod network;
pub mod outcome;
pub mod packet;
mod plan;
pub mod queue;
pub mod random;
pub mod report;
pub mod result;
mod source;
pub mod stats;
pub mod sweep;
pub mod tcp;
pub mod trace;
pub mod world;

pub use world::run;

/// Why a scenario cannot be run here, as a sentence with the next step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario itself, such as a congestion control that the core does not have, or a setting
    /// that it does not take.
    #[error(transparent)]
    Scenario(#[from] netnice_scenario::Error),
    /// A transport that the simulator does not have.
    #[error("{place}: the simulator has no QUIC. Remove `quic`, or run the scenario on the kernel with --engine kernel.")]
    Quic {
        /// Whose transport it is.
        place: String,
    },
    /// A queue that the simulator does not have.
    #[error("{place}: {reason}")]
    Queue {
        /// Which link's queue it is.
        place: String,
        /// What is wrong with it.
        reason: queue::Error,
    },
}

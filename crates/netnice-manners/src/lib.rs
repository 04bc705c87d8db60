// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How netnice's programs behave among others.
//!
//! - [`say!`] and [`show!`] print, and never end the work: a full or closed standard error is
//!   nobody's failure, and while there is [work](output::working) to do, nor is one that nobody
//!   reads. They are the only way that programs of this workspace print.
//! - [`exec`] runs a program in the place of this one, as nice(1) does.
//! - [`start`] knows what this process was started with, before Rust's runtime changed some of it.

pub mod exec;
pub mod output;
pub mod start;

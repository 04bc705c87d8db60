// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How netnice's programs behave among others.
//!
//! - [`say!`] and [`show!`] print, and never end the work: a full or closed standard error is
//!   nobody's failure. They are the only way that programs of this workspace print.
//! - [`start`] knows what this process was started with, before Rust's runtime changed some of it.

pub mod output;
pub mod start;

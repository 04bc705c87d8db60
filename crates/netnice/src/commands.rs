// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One file for each command.

pub mod algorithms;
pub mod attach;
pub mod check;
pub mod daemon;
pub mod detach;
pub mod enable;
pub mod hold;
pub mod hook;
pub mod metrics;
pub mod probe;
pub mod replicate;
pub mod report;
pub mod run;
pub mod share;
pub mod status;
pub mod top;

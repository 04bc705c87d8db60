// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How what is printed ends.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use signal_hook::consts::SIGPIPE;
use signal_hook::flag;

/// Lets the process end as `ls | head` does once nobody reads on.
///
/// Only for what leaves nothing to clean up: Rust ignores SIGPIPE, and `println!` then panics.
///
/// # Errors
/// What the system says if the signal cannot be handled.
pub fn end_with_reader() -> io::Result<()> {
    flag::register_conditional_default(SIGPIPE, Arc::new(AtomicBool::new(true))).map(|_| ())
}

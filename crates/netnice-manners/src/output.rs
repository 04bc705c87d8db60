// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Printing that cannot panic: `println!` and `eprintln!` do when a pipe or disk is full or gone.

use std::fmt;
use std::io::{self, Write};

use crate::start;

/// Writes a line to standard error, as `eprintln!` does; it is lost where nobody can read it.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::output::say(format_args!($($text)*)) };
}

/// Writes a line to standard output, as `println!` does.
///
/// # Errors
/// What the system says, for a program whose work is this output. Where it is not, drop it.
#[macro_export]
macro_rules! show {
    ($($text:tt)*) => { $crate::output::show(format_args!($($text)*)) };
}

/// What [`say!`] does.
pub fn say(text: fmt::Arguments<'_>) {
    // one write: lines of several processes do not mix
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// What [`show!`] does.
///
/// # Errors
/// What the system says.
pub fn show(text: fmt::Arguments<'_>) -> io::Result<()> {
    let write = || {
        if start::closed(libc::STDOUT_FILENO) {
            return Err(io::Error::from_raw_os_error(libc::EBADF)); // Rust put /dev/null there
        }
        let mut out = io::stdout().lock();
        out.write_fmt(text)?;
        out.write_all(b"\n")?;
        out.flush()
    };
    write().map_err(|e| io::Error::new(e.kind(), format!("cannot write to standard output: {e}")))
}

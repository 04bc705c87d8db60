// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Printing that cannot panic: `println!` and `eprintln!` do when a pipe or disk is full or gone.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use libc::c_int;

use crate::start;

/// How long a line waits for its reader while there is work to do.
const READER: c_int = 1000; // ms
/// What a pipe that is ready takes at once (PIPE_BUF).
const PIECE: usize = 4096;

static WORKING: AtomicBool = AtomicBool::new(false);
/// Lines lost since the last one that somebody could read.
static LOST: AtomicU64 = AtomicU64::new(0);

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

/// While this is held, a line of [`say!`] does not wait for a reader who stands still, as a pager or a
/// stopped terminal does: it is lost, and the next one that can be read tells how many were.
#[must_use = "it counts while it is held"]
pub struct Working(());

/// There is work to do that no line may hold up. One part of a program may say so at a time.
pub fn working() -> Working {
    WORKING.store(true, Ordering::Relaxed);
    Working(())
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.store(false, Ordering::Relaxed);
    }
}

/// What [`say!`] does.
pub fn say(text: fmt::Arguments<'_>) {
    let lost = LOST.swap(0, Ordering::Relaxed);
    let text = match lost {
        0 => format!("{text}\n"),
        lost => format!("(nobody read what was said here; lines lost: {lost})\n{text}\n"),
    };
    // mostly one write: lines of several processes do not mix
    for piece in text.as_bytes().chunks(PIECE) {
        if WORKING.load(Ordering::Relaxed) && !is_read(if lost > 0 { 0 } else { READER }) {
            LOST.fetch_add(lost + 1, Ordering::Relaxed);
            return;
        }
        let _ = io::stderr().write_all(piece);
    }
}

/// Whether standard error takes something now, or within so many milliseconds. Where it never will,
/// as if it is closed, writing fails and does not wait.
#[allow(unsafe_code)]
fn is_read(patience: c_int) -> bool {
    let mut asked = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one structure, which is ours
    unsafe { libc::poll(&mut asked, 1, patience) > 0 }
}

/// What [`show!`] does.
///
/// # Errors
/// What the system says.
pub fn show(text: fmt::Arguments<'_>) -> io::Result<()> {
    write(|| {
        let mut out = io::stdout().lock();
        out.write_fmt(text)?;
        out.write_all(b"\n")
    })
}

/// Whether nobody reads what was to be shown, and that is no error to the caller.
pub fn reader_left(error: &io::Error) -> bool {
    !start::ignored(libc::SIGPIPE) && error.kind() == io::ErrorKind::BrokenPipe
}

/// Has others write to standard output.
///
/// # Errors
/// As [`show`].
pub fn write(others: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let done = match start::closed(libc::STDOUT_FILENO) {
        true => Err(io::Error::from_raw_os_error(libc::EBADF)), // Rust put /dev/null there
        false => others().and_then(|()| io::stdout().flush()),
    };
    done.map_err(|e| io::Error::new(e.kind(), format!("cannot write to standard output: {e}")))
}

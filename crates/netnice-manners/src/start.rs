// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What this process was started with.
//!
//! Before `main` Rust's runtime ignores SIGPIPE, and opens /dev/null in the place of a closed
//! standard stream. So both are looked at earlier, by an initializer that the loader calls.

#![allow(unsafe_code)]

use std::io;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::c_int;

/// A bit for each signal that is ignored.
static IGNORED: AtomicU64 = AtomicU64::new(0);
/// A bit for each of the three standard streams that is closed.
static CLOSED: AtomicU32 = AtomicU32::new(0);

const SIGNALS: std::ops::RangeInclusive<c_int> = 1..=64;

extern "C" fn look() {
    let mut ignored = 0;
    for signal in SIGNALS {
        // SAFETY: only asks; zero is a valid value of the structure, which is ours
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, std::ptr::null(), &mut action) == 0
                && action.sa_sigaction == libc::SIG_IGN
            {
                ignored |= 1 << (signal - 1);
            }
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
    // SAFETY: asks for the flags of a descriptor, which may be closed
    let is_closed = |fd: &c_int| unsafe { libc::fcntl(*fd, libc::F_GETFD) } < 0;
    CLOSED.store((0..3).filter(is_closed).fold(0, |all, fd| all | 1 << fd), Ordering::Relaxed);
}

// SAFETY: a function without arguments and result, as the loader calls those of this section
#[used]
#[link_section = ".init_array"]
static LOOK: extern "C" fn() = look;

/// Whether `signal` was ignored: `nohup` and a shell's `&` mean that it stays so.
pub fn ignored(signal: c_int) -> bool {
    SIGNALS.contains(&signal) && IGNORED.load(Ordering::Relaxed) & 1 << (signal - 1) != 0
}

/// Those of `signals` that were not ignored, and may be handled.
pub fn heeded(signals: &[c_int]) -> Vec<c_int> {
    signals.iter().copied().filter(|s| !ignored(*s)).collect()
}

/// Whether a standard stream (0, 1 or 2) was closed.
pub fn closed(fd: c_int) -> bool {
    (0..3).contains(&fd) && CLOSED.load(Ordering::Relaxed) & 1 << fd != 0
}

/// Lets a reader that leaves end this process, as `ls | head` ends, if it would have at the start.
///
/// # Errors
/// When the system refuses.
pub fn end_with_reader() -> io::Result<()> {
    if ignored(libc::SIGPIPE) {
        return Ok(());
    }
    // SAFETY: the default action needs no handler
    match unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Ends this process as [`end_with_reader`] would have, once it has cleaned up.
pub fn end_as_reader_left() -> ExitCode {
    if !ignored(libc::SIGPIPE) && end_with_reader().is_ok() {
        // SAFETY: sends a signal to this thread, with no handler
        unsafe { libc::raise(libc::SIGPIPE) };
    }
    ExitCode::FAILURE
}

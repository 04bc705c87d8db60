// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Making way for another program, as nice(1) and nohup(1) do, and staying beside it.
//!
//! The program runs in the place of this process: it has its number, its signals, its terminal,
//! its core file and its exit status, and whoever started it cannot tell the difference. What is
//! left to do when it has ended, a companion does.

#![allow(unsafe_code)]

use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::Command;
use std::{fs, io, ptr};

use libc::c_int;

use crate::start;

/// What a companion outlives: those are meant for the program.
const OUTLIVED: [c_int; 5] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGPIPE];

/// Runs a program in the place of this process, with what this one was started with; a script
/// without an interpreter is one for `sh`. Returns only if that fails, and why.
pub fn exec(program: OsString, arguments: Vec<OsString>) -> io::Error {
    let text = |s: OsString| CString::new(s.into_vec());
    let all: Result<Vec<_>, _> = std::iter::once(program).chain(arguments).map(text).collect();
    let all = match all {
        Ok(all) => all,
        Err(error) => return error.into(),
    };
    let mut pointers: Vec<_> = all.iter().map(|s| s.as_ptr()).collect();
    pointers.push(ptr::null());
    // SAFETY: the array ends with null, and its strings live as long; the rest are plain calls
    unsafe {
        if !start::ignored(libc::SIGPIPE) {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
        for fd in (0..3).filter(|fd| start::closed(*fd)) {
            libc::close(fd); // Rust put /dev/null there
        }
        libc::execvp(pointers[0], pointers.as_ptr());
        let error = io::Error::last_os_error();
        libc::signal(libc::SIGPIPE, libc::SIG_IGN); // saying so ends nothing
        error
    }
}

/// Does `work` with a copy of `held` in a process of its own, and returns `held` in this one. It is
/// no child of this one: it would be one of the program that [`exec`] runs, which may wait for its
/// children. It has its own session, only the
/// standard error of all that the caller handed down, and outlives the signals that end programs.
///
/// # Errors
/// When the system refuses, or this process has other threads; then `held` is as it was.
pub fn companion<T>(held: T, work: impl FnOnce(T)) -> Result<T, (T, io::Error)> {
    let several = || io::Error::other("a process with several threads cannot be divided");
    match fs::read_dir("/proc/self/task").map(Iterator::count) {
        Ok(1) => {}
        Ok(_) => return Err((held, no_companion(&several()))),
        Err(error) => return Err((held, no_companion(&error))),
    }
    // SAFETY: without other threads the child may do whatever this process may
    match unsafe { libc::fork() } {
        -1 => Err((held, no_companion(&io::Error::last_os_error()))),
        0 => {
            // SAFETY: as above; what is between them ends with this process
            let code = unsafe {
                // the signals of this session wait until the companion outlives them. It leaves it by
                // itself: where each session has its share of the processors, a new one may have to
                // wait for its, and the program waits for what is between them
                let before = block_signals();
                match libc::fork() {
                    -1 => io::Error::last_os_error().raw_os_error().unwrap_or(libc::EAGAIN),
                    0 => {
                        let done = catch_unwind(AssertUnwindSafe(|| {
                            step_aside(&before);
                            work(held);
                        }));
                        c_int::from(done.is_err())
                    }
                    _ => 0,
                }
            };
            // SAFETY: ends this process without the cleaning up that is its parent's
            unsafe { libc::_exit(code) }
        }
        between => {
            let mut status = 0;
            // SAFETY: waits for the child just made
            let waited = unsafe { libc::waitpid(between, &mut status, 0) };
            // who ignores SIGCHLD never sees the status
            match waited == between && status != 0 {
                true if libc::WIFEXITED(status) => {
                    let error = io::Error::from_raw_os_error(libc::WEXITSTATUS(status));
                    Err((held, no_companion(&error)))
                }
                true => Err((held, no_companion(&io::Error::other("it was killed")))),
                false => Ok(held),
            }
        }
    }
}

fn no_companion(error: &io::Error) -> io::Error {
    let step = match error.kind() {
        io::ErrorKind::WouldBlock => "; raise TasksMax= of the unit, or pids.max of the cgroup",
        _ => "",
    };
    io::Error::new(error.kind(), format!("cannot start the companion: {error}{step}"))
}

/// Has signals wait; returns those that did before.
fn block_signals() -> libc::sigset_t {
    // SAFETY: both sets are written before they are read
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_BLOCK, &all, &mut before);
        before
    }
}

/// Lets go of what is the program's; then signals wait no longer, but for those `blocked`.
fn step_aside(blocked: &libc::sigset_t) {
    let opened = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<c_int> = opened.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    // SAFETY: plain calls; a descriptor without FD_CLOEXEC is none of this program's
    unsafe {
        libc::setsid();
        for signal in OUTLIVED {
            libc::signal(signal, libc::SIG_IGN);
        }
        libc::sigprocmask(libc::SIG_SETMASK, blocked, ptr::null_mut());
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        libc::dup2(nothing, libc::STDIN_FILENO);
        libc::dup2(nothing, libc::STDOUT_FILENO);
        for fd in numbers.into_iter().filter(|fd| *fd > libc::STDERR_FILENO) {
            let flags = libc::fcntl(fd, libc::F_GETFD);
            if flags >= 0 && flags & libc::FD_CLOEXEC == 0 {
                libc::close(fd);
            }
        }
        libc::chdir(c"/".as_ptr());
    }
}

/// Has `command` begin in a session of its own, whose first process group it leads. So a terminal's
/// signals do not reach it, and it cannot ask anybody there. In a mere process group of its own it
/// could ask, and the kernel would stop it for that: a transfer that wants a password would wait for
/// ever, and nobody would see why.
pub fn without_terminal(command: &mut Command) -> &mut Command {
    // SAFETY: setsid(2) may be called between fork and exec, and needs nothing of this process
    unsafe {
        command.pre_exec(|| match libc::setsid() {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        })
    }
}

/// Lets go of standard error too: whoever reads it to its end need not wait any longer.
pub fn be_silent() {
    // SAFETY: plain calls
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        libc::dup2(nothing, libc::STDERR_FILENO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_companion_has_what_he_held_and_is_told_which_limit_to_raise() {
        // a test has a thread of its own
        let (held, error) = companion("held", |_| ()).expect_err("there are several threads");
        assert_eq!(held, "held");
        assert!(error
            .to_string()
            .starts_with("cannot start the companion: a process with several"));
        let said = no_companion(&io::Error::from_raw_os_error(libc::EAGAIN)).to_string();
        assert!(
            said.ends_with("; raise TasksMax= of the unit, or pids.max of the cgroup"),
            "{said}"
        );
    }
}

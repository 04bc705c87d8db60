// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What went wrong, and a hint at what to do.

use std::sync::Mutex;
use std::{fs, mem};

use libbpf_rs::PrintLevel;

/// What the kernel refused, and why as far as it can be told. Each message is whole: it has no
/// chain of sources, which would be said twice.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// libbpf or the kernel failed; `hint` names the missing feature or the next step.
    #[error("{what}: {error}{hint}")]
    Bpf { what: String, error: libbpf_rs::Error, hint: String },
    /// Reading or writing a file of the kernel's failed.
    #[error("{what}: {error}")]
    Io { what: String, error: std::io::Error },
    /// Another build of netnice is loaded, whose data look different.
    #[error("another version of netnice is loaded; let its transfers end, then: netnice disable")]
    Version,
}

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// What libbpf printed since the last failure.
static LOG: Mutex<String> = Mutex::new(String::new());

pub(crate) fn quiet() {
    fn keep(_: PrintLevel, text: String) {
        LOG.lock().expect("no panic while held").push_str(&text);
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
}

/// Asks for what may well not be there. What libbpf says of that is no reason of a later failure.
pub(crate) fn expected<T>(ask: impl FnOnce() -> T) -> T {
    heard(ask, |_| true)
}

/// Tries what may succeed by a detour. What libbpf says of that is no reason of a later failure.
pub(crate) fn tried<T>(attempt: impl FnOnce() -> libbpf_rs::Result<T>) -> libbpf_rs::Result<T> {
    heard(attempt, |done| done.is_ok())
}

/// Calls `f`, and forgets what libbpf said meanwhile if the answer is one that needs no reason.
fn heard<T>(f: impl FnOnce() -> T, needs_none: impl FnOnce(&T) -> bool) -> T {
    quiet();
    let said = || LOG.lock().expect("no panic while held");
    let before = said().len();
    let answer = f();
    if needs_none(&answer) {
        said().truncate(before);
    }
    answer
}

pub(crate) fn bpf(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Error {
    let what = what.into();
    move |error| Error::Bpf { what, error, hint: hint() }
}

/// Why this process sees no types of the kernel, and what would do; None: it does.
pub fn lacks_types() -> Option<&'static str> {
    let is_there = |path| fs::exists(path).unwrap_or(false);
    if !is_there("/sys/kernel") {
        return Some("/sys is not mounted here; mount it: mount -t sysfs sysfs /sys");
    }
    let without = "The kernel has no type information: it needs CONFIG_DEBUG_INFO_BTF=y \
                   (the kernels of Debian 12, Ubuntu 22.04 and later have it)";
    (!is_there("/sys/kernel/btf/vmlinux")).then_some(without)
}

/// Why loading fails on this kernel, if it can be told; else libbpf's own words.
fn hint() -> String {
    let log = mem::take(&mut *LOG.lock().expect("no panic while held"));
    if let Some(why) = lacks_types() {
        return format!("\n{why}");
    }
    let ops = "bpf_struct_ops_tcp_congestion_ops";
    if let Ok(btf) = libbpf_rs::btf::Btf::from_vmlinux() {
        if btf.type_by_name::<libbpf_rs::btf::types::Struct<'_>>(ops).is_none() {
            return "\nThe kernel cannot run congestion controls in BPF (struct_ops): it needs \
                    CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y, version 6.1 or later"
                .into();
        }
    }
    let tail: Vec<&str> = log.lines().rev().take(12).collect();
    tail.iter().rev().fold(String::new(), |text, line| text + "\n  " + line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_an_expected_failure_or_of_a_detour_is_no_reason_of_a_later_failure() {
        let say = |words| LOG.lock().expect("no panic while held").push_str(words);
        say("a reason\n");
        expected(|| say("Parent Qdisc doesn't exist\n"));
        let _ = tried(|| {
            say("Exclusivity flag on, cannot modify\n");
            Ok(())
        });
        assert_eq!(*LOG.lock().expect("no panic while held"), "a reason\n");
        let _ = tried(|| {
            say("not permitted\n");
            Err::<(), _>(libbpf_rs::Error::from_raw_os_error(1))
        });
        assert_eq!(*LOG.lock().expect("no panic while held"), "a reason\nnot permitted\n");
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Tools of the system that netnice runs for itself.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Where programs are if nobody says so.
const PLAIN: &str = "/usr/bin:/bin";
/// Where those of root are: cron leaves these two out.
const OF_ROOT: &str = ":/usr/sbin:/sbin";

/// A tool by its name, also one of root's that this process's own PATH does not lead to.
pub fn tool(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", path(env::var_os("PATH").as_deref()));
    command
}

fn path(own: Option<&OsStr>) -> OsString {
    let mut path = own.unwrap_or(PLAIN.as_ref()).to_os_string();
    path.push(OF_ROOT);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_sbin_is_found_last_and_also_without_any_path() {
        assert_eq!(path(Some("/opt/bin".as_ref())), "/opt/bin:/usr/sbin:/sbin");
        assert_eq!(path(None), "/usr/bin:/bin:/usr/sbin:/sbin");
    }
}

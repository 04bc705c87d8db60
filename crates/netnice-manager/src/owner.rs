// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The user to whom a run belongs: an attribute of its cgroup.
//!
//! So it is there exactly as long as the run, also when whoever began the run has ended. Only root can
//! give a file an attribute of this kind.

use std::fs::File;
use std::path::Path;

use rustix::fs::{fsetxattr, getxattr, XattrFlags};

use crate::error::io;
use crate::Result;

const NAME: &str = "trusted.netnice.owner";

/// The user to whom the run of a cgroup belongs; None: it is no user's.
pub(crate) fn of(cgroup: &Path) -> Option<u32> {
    let mut text = [0; 16];
    let length = getxattr(cgroup, NAME, &mut text).ok()?;
    std::str::from_utf8(&text[..length]).ok()?.parse().ok()
}

pub(crate) fn set(cgroup: &File, uid: u32) -> Result<()> {
    fsetxattr(cgroup, NAME, uid.to_string().as_bytes(), XattrFlags::empty())
        .map_err(io("cannot note whose run it is"))
}

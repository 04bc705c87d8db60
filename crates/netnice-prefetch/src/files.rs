// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files that the operator names, opened without waiting: what is named may be a pipe, whose other end
//! may never come, or a device without an end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{fcntl_setfl, OFlags};
use rustix::io::Errno;

/// Largest file that is read whole, in bytes.
const MOST: u64 = 1 << 20;

fn at_once(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

/// Reads a configuration, a certificate or a key.
///
/// # Errors
/// If it is no file, or larger than 1 MB, or cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = at_once(File::options().read(true), path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 {
        ..=MOST => Ok(bytes),
        _ => Err(io::Error::other("it is larger than 1 MB")),
    }
}

/// Opens a log to append to.
///
/// # Errors
/// If it cannot be opened, or is a pipe that nobody reads.
pub fn append(path: &Path) -> io::Result<File> {
    let file = at_once(File::options().append(true).create(true), path).map_err(|error| {
        match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => io::Error::other("nobody reads this pipe; start its reader first"),
            _ => error,
        }
    })?;
    fcntl_setfl(&file, OFlags::APPEND)?; // its reader may be slow
    Ok(file)
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Where the daemon listens: at the socket that systemd hands it, or at one of its own.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use netnice_manager::system::make_folder;
use rustix::process::{
    getpid, getrlimit, pidfd_getfd, pidfd_open, setrlimit, PidfdFlags, PidfdGetfdFlags, Resource,
    Rlimit,
};
use sd_notify::NotifyState;

/// Why it cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another netnice daemon listens at {0}; stop it first, or choose another --socket")]
    Taken(PathBuf),
    #[error("{0} is there, and is no socket; remove it, or choose another --socket")]
    NoSocket(PathBuf),
    #[error("cannot listen at {socket}: {error}")]
    Listen { socket: PathBuf, error: io::Error },
    #[error("cannot listen at the socket that systemd handed down: {0}")]
    HandedDown(io::Error),
}

/// A socket that is listened at.
pub struct Listening {
    pub listener: UnixListener,
    /// Its file, if that is this process's to remove.
    pub own: Option<Own>,
}

/// The file of a socket, which is removed when this is dropped: nobody who connects to it is served then.
pub struct Own(PathBuf);

impl Own {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Listens at the socket that systemd handed down, else at `path`.
///
/// # Errors
/// When that is taken, or the system refuses.
pub fn listen(path: &Path) -> Result<Listening, Error> {
    if let Some(listener) = handed_down().map_err(Error::HandedDown)? {
        return Ok(Listening { listener, own: None });
    }
    let failed = |error| Error::Listen { socket: path.into(), error };
    if let Ok(there) = fs::symlink_metadata(path) {
        use std::os::unix::fs::FileTypeExt;
        if !there.file_type().is_socket() {
            return Err(Error::NoSocket(path.into()));
        }
        if UnixStream::connect(path).is_ok() {
            return Err(Error::Taken(path.into()));
        }
        fs::remove_file(path).map_err(failed)?; // of a daemon that was killed
    }
    if let Some(folder) = path.parent() {
        make_folder(folder).map_err(failed)?; // users are to reach it
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let own = Own(path.into());
    fs::set_permissions(path, fs::Permissions::from_mode(0o666)).map_err(failed)?;
    Ok(Listening { listener, own: Some(own) })
}

/// The socket of a socket unit.
fn handed_down() -> io::Result<Option<UnixListener>> {
    let Some(first) = sd_notify::listen_fds()?.next() else { return Ok(None) };
    // a copy: to take the number itself for a descriptor is not safe in Rust
    let copy =
        pidfd_getfd(pidfd_open(getpid(), PidfdFlags::empty())?, first, PidfdGetfdFlags::empty())?;
    Ok(Some(UnixListener::from(copy)))
}

/// Each run takes some descriptors: as many as this process may have.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Tells the service manager that requests are served.
pub fn ready() {
    let _ = sd_notify::notify(true, &[NotifyState::Ready]);
}

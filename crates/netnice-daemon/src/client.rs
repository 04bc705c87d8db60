// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Asking the daemon.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::protocol::{line, parse, Answer, Request};

/// How long an answer may take: others may be served first, and a group be measured.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a daemon that is restarted may take until it answers again, and how often to look.
const RESTART: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// The longest answer: a status has some hundred bytes for each connection.
const LONGEST: u64 = 4 << 20;

/// Why there is no answer that says yes. Each message is a whole sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "netnice's daemon does not answer at {socket} ({error}); start it: sudo systemctl enable --now \
         netnice.socket; or run this as root: sudo netnice ..."
    )]
    NoDaemon { socket: PathBuf, error: io::Error },
    #[error(
        "netnice's daemon was stopped before it gave an answer; see: systemctl status netnice"
    )]
    Stopped,
    #[error("netnice's daemon gave no answer: {0}")]
    NoAnswer(String),
    #[error("netnice's daemon gave an answer to something else; update it: sudo systemctl restart netnice")]
    NotAsked,
    #[error("{0}")]
    Refused(String),
}

/// Has the daemon at `socket` carry out a request. One that is stopped meanwhile is followed by another,
/// which is asked again: no request is a different one the second time.
///
/// # Errors
/// When there is none, or it refuses.
pub fn ask(socket: &Path, request: &Request) -> Result<Answer, Error> {
    ask_for(socket, request, false)
}

/// As [`ask`], a daemon that was there before: it is waited for.
///
/// # Errors
/// As [`ask`].
pub fn ask_again(socket: &Path, request: &Request) -> Result<Answer, Error> {
    ask_for(socket, request, true)
}

fn ask_for(socket: &Path, request: &Request, mut was_there: bool) -> Result<Answer, Error> {
    let since = Instant::now();
    loop {
        match ask_once(socket, request) {
            Err(Error::Stopped) if since.elapsed() < RESTART => was_there = true,
            Err(Error::NoDaemon { .. }) if was_there && since.elapsed() < RESTART => {}
            answered => return answered,
        }
        thread::sleep(PAUSE);
    }
}

fn ask_once(socket: &Path, request: &Request) -> Result<Answer, Error> {
    let no_daemon = |error| Error::NoDaemon { socket: socket.into(), error };
    let stream = UnixStream::connect(socket).map_err(no_daemon)?;
    let asked = || -> io::Result<Vec<u8>> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        // it may have refused already, and not read this
        let told = (&stream).write_all(line(request).as_bytes());
        let mut said = Vec::new();
        BufReader::new(&stream).take(LONGEST).read_until(b'\n', &mut said)?;
        if said.is_empty() {
            told?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(said)
    };
    let said = asked().map_err(|error| match error.kind() {
        UnexpectedEof | ConnectionReset | BrokenPipe => Error::Stopped,
        _ => Error::NoAnswer(error.to_string()),
    })?;
    match parse(&said).map_err(Error::NoAnswer)? {
        Answer::Refused { why } => Err(Error::Refused(why)),
        answer => Ok(answer),
    }
}

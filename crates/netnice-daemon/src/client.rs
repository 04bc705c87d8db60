// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Asking the daemon.

use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof, WouldBlock};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use netnice_manager::snapshot::View;

use crate::protocol::{line, parse, Answer, Request};

/// How long an answer may take: others may be served first, and a group be measured.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long a daemon that is restarted may take until it answers again, and how often to look.
const RESTART: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// The longest answer: a status has some hundred bytes for each connection, and a command may be long.
const LONGEST: u64 = 16 << 20;

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
    #[error(
        "netnice's daemon is there, but gave no answer for {} s; start it anew, which ends no run: \
         sudo systemctl restart netnice",
        PATIENCE.as_secs()
    )]
    TooLate,
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

fn ask_for(socket: &Path, request: &Request, was_there: bool) -> Result<Answer, Error> {
    patiently(RESTART, was_there, || exchange(&mut connect(socket)?, request))
}

/// Tries so long as a daemon that was there is restarted, however long it took to answer before.
fn patiently<T>(
    patience: Duration,
    mut was_there: bool,
    mut f: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let mut missed = None;
    loop {
        let error = match f() {
            Err(error @ (Error::Stopped | Error::NoDaemon { .. })) => error,
            answered => return answered,
        };
        was_there |= matches!(error, Error::Stopped);
        if !was_there || missed.get_or_insert_with(Instant::now).elapsed() >= patience {
            return Err(error);
        }
        thread::sleep(PAUSE);
    }
}

/// Looks again and again at what of the caller is in the background, through one connection.
pub struct Looking {
    socket: PathBuf,
    patience: Duration,
    open: Option<BufReader<UnixStream>>,
    was_there: bool,
}

impl Looking {
    /// At the daemon's that listens at `socket`. `waits`: for one that is restarted, some seconds; else whoever
    /// looks is told at once that it is not there.
    pub fn at(socket: &Path, waits: bool) -> Looking {
        let patience = if waits { RESTART } else { Duration::ZERO };
        Looking { socket: socket.into(), patience, open: None, was_there: false }
    }

    /// What happened since the last look. If that was at another daemon, this is a first one again.
    ///
    /// # Errors
    /// When there is no daemon, or it refuses. The next look may see again.
    pub fn look(&mut self) -> Result<View, Error> {
        let Looking { socket, patience, open, was_there } = self;
        if let Some(mut last) = open.take() {
            match exchange(&mut last, &Request::Look {}) {
                Err(Error::Stopped) => {} // another one may be there already
                answered => return keep(open, last, answered),
            }
        }
        patiently(*patience, *was_there, || {
            let mut next = connect(socket)?;
            let answered = exchange(&mut next, &Request::Look {});
            *was_there |= answered.is_ok();
            keep(open, next, answered)
        })
    }
}

/// The view of an answer; then the next is to come the same way.
fn keep(
    open: &mut Option<BufReader<UnixStream>>,
    by: BufReader<UnixStream>,
    answered: Result<Answer, Error>,
) -> Result<View, Error> {
    match answered? {
        Answer::View { view } => {
            *open = Some(by);
            Ok(*view)
        }
        _ => Err(Error::NotAsked),
    }
}

fn connect(socket: &Path) -> Result<BufReader<UnixStream>, Error> {
    let opened = || prepare(UnixStream::connect(socket)?, PATIENCE);
    opened().map_err(|error| Error::NoDaemon { socket: socket.into(), error })
}

/// For talking to a daemon that may take so long.
fn prepare(stream: UnixStream, patience: Duration) -> io::Result<BufReader<UnixStream>> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    Ok(BufReader::new(stream))
}

/// Says a request, and hears the answer.
fn exchange(to: &mut BufReader<UnixStream>, request: &Request) -> Result<Answer, Error> {
    let mut asked = || -> io::Result<Vec<u8>> {
        // it may have refused already, and not read this
        let told = to.get_ref().write_all(line(request).as_bytes());
        let mut said = Vec::new();
        to.take(LONGEST).read_until(b'\n', &mut said)?;
        if said.is_empty() {
            told?;
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(said)
    };
    let said = asked().map_err(|error| match error.kind() {
        UnexpectedEof | ConnectionReset | BrokenPipe => Error::Stopped,
        WouldBlock => Error::TooLate,
        _ => Error::NoAnswer(error.to_string()),
    })?;
    match parse(&said).map_err(Error::NoAnswer)? {
        Answer::Refused { why } => Err(Error::Refused(why)),
        answer => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(150);

    fn no_daemon() -> Result<(), Error> {
        let (socket, error) = (PathBuf::new(), io::ErrorKind::ConnectionRefused.into());
        Err(Error::NoDaemon { socket, error })
    }

    /// How often one is asked who answers so.
    fn tries(was_there: bool, mut f: impl FnMut(u32) -> Result<(), Error>) -> (u32, bool) {
        let mut tries = 0;
        let answered = patiently(PATIENCE, was_there, || {
            tries += 1;
            f(tries)
        });
        (tries, answered.is_ok())
    }

    #[test]
    fn one_that_is_stopped_after_a_long_time_is_followed_by_another_who_is_asked() {
        let stopped_late = |n| {
            if n > 1 {
                return Ok(());
            }
            thread::sleep(2 * PATIENCE);
            Err(Error::Stopped)
        };
        assert_eq!(tries(false, stopped_late), (2, true));
    }

    #[test]
    fn one_that_does_not_come_again_is_waited_for_but_not_for_ever() {
        let (n, answered) = tries(true, |_| no_daemon());
        assert!(n > 1 && !answered);
        let (n, answered) = tries(false, |_| Err(Error::Stopped)); // each time that it is asked
        assert!(n > 1 && !answered);
    }

    #[test]
    fn one_that_hangs_is_to_be_started_anew() {
        let (here, _there) = UnixStream::pair().unwrap();
        let mut here = prepare(here, PATIENCE).unwrap();
        let error = exchange(&mut here, &Request::Look {}).unwrap_err().to_string();
        assert!(error.contains("systemctl restart netnice"), "{error}");
    }

    #[test]
    fn one_that_was_not_there_is_not_waited_for() {
        assert_eq!(tries(false, |_| no_daemon()), (1, false));
    }
}

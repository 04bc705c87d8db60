// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The daemon: a thread for each connection, of which there is a bounded number.

use std::io::{self, Read, Write};
use std::mem;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use netnice_manager::snapshot::Watch;
use netnice_manager::Result;

use crate::caller::{uid, Caller};
use crate::limits::{Connections, Full, Place, APART, IDLE, LOOKS, LOOKS_OF_USER, PATIENCE};
use crate::protocol::{line, parse, Answer, Request, LONGEST};
use crate::work::Work;

/// What a connection's thread has for its calls.
const STACK: usize = 1 << 20;

/// What is ready to serve.
pub struct Server {
    work: Arc<Work>,
}

impl Server {
    /// Finds the runs that an earlier daemon began.
    ///
    /// # Errors
    /// Without the privileges, or cgroup v2.
    pub fn new() -> Result<Server> {
        Ok(Server { work: Arc::new(Work::new()?) })
    }

    /// Serves who connects, for ever.
    pub fn serve(self, listener: &UnixListener) -> ! {
        let keeper = Arc::clone(&self.work);
        let _ = spawn(move || keeper.jobs.keep());
        let (requests, looks) = (Connections::of_requests(), Connections::of_looks());
        loop {
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(Duration::from_millis(100)); // no descriptors left: some will be
                continue;
            };
            let Some(uid) = uid(&stream) else { continue };
            let mut place = match requests.enter(uid) {
                Ok(place) => place,
                Err(full) => {
                    let who = match full {
                        Full::His => "you have",
                        Full::All => "all users together have",
                    };
                    let why = format!("{who} too many requests at a time; try again");
                    let _ = stream.set_nonblocking(true);
                    let _ = tell(&stream, &Answer::Refused { why });
                    continue;
                }
            };
            let (work, looks) = (Arc::clone(&self.work), looks.clone());
            // no thread: the client is told so by the end of the connection
            let _ = spawn(move || {
                serve(&stream, &work, &looks, &mut place);
                drop(stream); // first: who is served may come again
                drop(place);
            });
        }
    }
}

/// Threads have the name of the program: what looks who moved a process knows it by that.
fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().stack_size(STACK).spawn(work).map(drop)
}

/// Answers a request, and goes on as long as these are looks. From the first of them on, the connection
/// has a `place` among those that look, and none among the requests.
fn serve(stream: &UnixStream, work: &Work, looks: &Connections, place: &mut Place) {
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let (mut lines, mut watch) = (Lines::of(stream), Watch::default());
    let mut looked = None;
    loop {
        let said = match lines.next(looked.map_or(PATIENCE, |_| IDLE)) {
            Ok(None) => return,
            Ok(Some(said)) => parse::<Request>(&said),
            Err(why) => Err(why),
        };
        let (request, caller) = match (said, Caller::of(stream)) {
            (_, None) => return, // it has ended
            (Ok(request), Some(caller)) => (request, caller),
            (Err(why), _) => return drop(tell(stream, &Answer::Refused { why })),
        };
        let looks_on = request == Request::Look {};
        if looks_on && looked.is_none() {
            match looks.enter(caller.uid) {
                Ok(looking) => *place = looking,
                Err(full) => {
                    let why = match full {
                        Full::His => format!(
                            "{LOOKS_OF_USER} programs of yours look already (netnice top, netnice metrics), as \
                             many as a user may have; end one"
                        ),
                        Full::All => format!(
                            "all users together have {LOOKS} programs that look (netnice top, netnice metrics), \
                             the most; try again later"
                        ),
                    };
                    return drop(tell(stream, &Answer::Refused { why }));
                }
            }
        }
        if let Some(last) = looked.filter(|_| looks_on) {
            thread::sleep(APART.saturating_sub(Instant::now().duration_since(last)));
        }
        let answer = work.answer(&caller, request, &mut watch);
        if tell(stream, &answer).is_err() {
            return;
        }
        if !looks_on {
            return work.told(&caller, &answer);
        }
        looked = Some(Instant::now());
    }
}

fn tell(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    stream.write_all(line(answer).as_bytes())
}

/// The lines that a client says.
struct Lines<'a> {
    stream: &'a UnixStream,
    /// What came, and is not read yet.
    came: Vec<u8>,
}

impl Lines<'_> {
    fn of(stream: &UnixStream) -> Lines<'_> {
        Lines { stream, came: Vec::new() }
    }

    /// The next one, which may take so long; None: there is none.
    fn next(&mut self, patience: Duration) -> std::result::Result<Option<Vec<u8>>, String> {
        let deadline = Instant::now() + patience;
        let mut searched = 0;
        loop {
            let end = self.came[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| searched + end) {
                let rest = self.came.split_off(end + 1);
                let mut line = mem::replace(&mut self.came, rest);
                line.pop();
                return Ok(Some(line));
            }
            searched = self.came.len();
            if searched >= LONGEST {
                return Err(format!("a request has at most {LONGEST} bytes"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || self.stream.set_read_timeout(Some(left)).is_err() {
                return Err(format!("a request must be said within {} s", patience.as_secs()));
            }
            let mut more = [0; 4096];
            let room = more.len().min(LONGEST - searched);
            match self.stream.read(&mut more[..room]) {
                Ok(0) => return Ok(None),
                Ok(length) => self.came.extend_from_slice(&more[..length]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {} // the deadline has passed
                Err(_) => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(what: &[u8]) -> (Vec<Vec<u8>>, Option<String>) {
        let (here, there) = UnixStream::pair().expect("sockets");
        let what = what.to_vec();
        let client = thread::spawn(move || (&there).write_all(&what));
        let (mut lines, mut found) = (Lines::of(&here), Vec::new());
        let end = loop {
            match lines.next(Duration::from_millis(500)) {
                Ok(Some(line)) => found.push(line),
                Ok(None) => break None,
                Err(why) => break Some(why),
            }
        };
        drop(here);
        let _ = client.join();
        (found, end)
    }

    #[test]
    fn lines_that_come_together_are_read_one_after_the_other() {
        let lines = vec![b"one".to_vec(), Vec::new(), b"three".to_vec()];
        assert_eq!(said(b"one\n\nthree\nno end"), (lines, None));
    }

    #[test]
    fn a_line_that_is_too_long_is_refused_however_it_comes() {
        let longest = [&[b'x'; LONGEST - 1][..], b"\n"].concat();
        assert_eq!(said(&longest), (vec![longest[..LONGEST - 1].to_vec()], None));
        let (none, why) = said(&[b'x'; LONGEST + 1]);
        assert_eq!(none.len(), 0);
        assert!(why.expect("it is refused").contains("at most 16384 bytes"));
    }

    #[test]
    fn whoever_says_nothing_is_waited_for_no_longer_than_said() {
        let (here, _there) = UnixStream::pair().expect("sockets");
        let since = Instant::now();
        let why = Lines::of(&here).next(Duration::from_millis(50)).expect_err("nothing came");
        assert!(why.contains("must be said within"), "{why}");
        assert!(since.elapsed() >= Duration::from_millis(50));
    }
}

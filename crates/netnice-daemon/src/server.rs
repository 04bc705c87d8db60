// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The daemon: a thread for each connection, of which there is a bounded number.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use netnice_manager::Result;

use crate::caller::{uid, Caller};
use crate::limits::{Connections, PATIENCE};
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
        let connections = Connections::default();
        loop {
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(Duration::from_millis(100)); // no descriptors left: some will be
                continue;
            };
            let Some(place) = uid(&stream).and_then(|uid| connections.enter(uid)) else {
                let why = "you have too many requests at a time; try again".into();
                let _ = stream.set_nonblocking(true);
                let _ = (&stream).write_all(line(&Answer::Refused { why }).as_bytes());
                continue;
            };
            let work = Arc::clone(&self.work);
            // no thread: the client is told so by the end of the connection
            let _ = spawn(move || {
                serve(&stream, &work);
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

fn serve(stream: &UnixStream, work: &Work) {
    let answer = match said(stream) {
        Ok(None) => return,
        Ok(Some(said)) => match (parse::<Request>(&said), Caller::of(stream)) {
            (_, None) => return, // it has ended
            (Ok(request), Some(caller)) => work.answer(&caller, request),
            (Err(why), _) => Answer::Refused { why },
        },
        Err(why) => Answer::Refused { why },
    };
    let _ = stream.set_write_timeout(Some(PATIENCE));
    let _ = (&*stream).write_all(line(&answer).as_bytes());
}

/// The line that a client says; None: it said none.
fn said(mut stream: &UnixStream) -> std::result::Result<Option<Vec<u8>>, String> {
    let deadline = Instant::now() + PATIENCE;
    let mut said = vec![0; LONGEST];
    let mut length = 0;
    while length < LONGEST {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
            return Err(format!("a request must be said within {} s", PATIENCE.as_secs()));
        }
        match stream.read(&mut said[length..]) {
            Ok(0) => return Ok(None),
            Ok(more) => {
                let end = said[length..length + more].iter().position(|byte| *byte == b'\n');
                length += more;
                if let Some(end) = end {
                    said.truncate(length - more + end);
                    return Ok(Some(said));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {} // the deadline has passed
            Err(_) => return Ok(None),
        }
    }
    Err(format!("a request has at most {LONGEST} bytes"))
}

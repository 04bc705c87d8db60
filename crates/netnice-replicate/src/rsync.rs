// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! rsync: one transfer, from its start to its end.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use netnice_manners::exec::without_terminal;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process_group, waitid, Pid, Signal, WaitId, WaitIdOptions};

use crate::job::Job;
use crate::need::Need;

mod command;
mod output;
mod rules;

use command::command;
use output::{bytes_sent, differing, explain, lines, progress};
use rules::{leave_room, rules};

pub use command::Mode;
pub use output::Progress;
pub use rules::has_short;

/// Lines of the standard error that are kept.
const KEPT: usize = 20;

/// How often is looked whether the process that writes has ended.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How long what an ended process wrote is read, while others go on writing.
const REST: Duration = Duration::from_secs(2);

/// What a transfer tells while it goes on.
pub enum News {
    Progress(Progress),
    Verifying,
}

/// How a transfer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All is there; bytes sent. `vanished`: files of the source went away meanwhile.
    Done { sent: u64, vanished: bool },
    /// Content differs although rsync copied it; how many paths, and some of them.
    Differs { sent: u64, count: usize, some: Vec<String> },
    /// `lasting`: another attempt would fail alike.
    Failed { error: String, lasting: bool },
}

impl End {
    /// The system has no room for a thread of the transfer now.
    pub fn without_thread(error: &io::Error) -> End {
        End::Failed { error: format!("cannot start a thread: {error}"), lasting: false }
    }
}

/// A handle for ending a transfer.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    child: Option<Child>,
    stopped: bool,
}

impl Running {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the processes of the transfer to end, or forces them to.
    pub fn stop(&self, force: bool) {
        let mut state = self.state();
        state.stopped = true;
        if let Some(child) = &state.child {
            let signal = if force { Signal::KILL } else { Signal::TERM };
            // not waited for yet, or it would not be here: the number is still theirs
            let _ = kill_process_group(Pid::from_child(child), signal);
        }
    }

    /// Starts a command by `start`; its process group is ended by `stop`.
    fn spawn(&self, command: &mut Command, start: &Start<'_>) -> io::Result<Pipes> {
        let mut state = self.state();
        if state.stopped {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        without_terminal(command) // its signals reach netnice alone, which ends it in order
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = start(command)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        state.child = Some(child);
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// Whether the process has ended. It is not waited for: its number stays its own.
    fn ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let goes_on =
            |child| matches!(waitid(WaitId::Pid(Pid::from_child(child)), options), Ok(None));
        !self.state().child.as_ref().is_some_and(goes_on)
    }

    /// Waits without holding the lock, so that `stop` always gets it.
    fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            let mut state = self.state();
            let Some(child) = &mut state.child else {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            };
            if let Some(status) = child.try_wait()? {
                state.child = None;
                return Ok(status);
            }
            drop(state);
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// What the process writes, to its end. Whom it left behind may keep its output open for ever, as a
/// shell that starts a master or an agent does: such a one is not waited for.
struct Output<R> {
    from: R,
    by: Running,
    ended: Option<Instant>,
}

impl<R: Read + AsFd> Output<R> {
    fn new(from: R, by: &Running) -> Output<R> {
        Output { from, by: by.clone(), ended: None }
    }
}

impl<R: Read + AsFd> Read for Output<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.ended.is_none() && self.by.ended() {
                self.ended = Some(Instant::now());
            }
            let patience = if self.ended.is_some() { Timespec::default() } else { LOOK };
            let some = poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&patience))? > 0;
            match self.ended {
                Some(at) if !some || at.elapsed() > REST => return Ok(0),
                _ if some => return self.from.read(into),
                _ => {}
            }
        }
    }
}

/// How a process of a transfer is started: where it belongs.
pub type Start<'a> = dyn Fn(&mut Command) -> io::Result<Child> + 'a;

type Pipes = (std::process::ChildStdin, std::process::ChildStdout, std::process::ChildStderr);

/// Copies to destination `i`, and compares if the job wants that.
pub fn transfer(
    job: &Job,
    i: usize,
    need: &Need,
    mode: Mode,
    running: &Running,
    start: &Start<'_>,
    mut tell: impl FnMut(News),
) -> End {
    let need = if leave_room(&job.rsync) { need } else { &Need::Full };
    let mut sent = 0;
    let end = run(job, i, need, mode, running, start, |line| {
        if let Some(progress) = progress(line) {
            tell(News::Progress(progress));
        } else if let Some(bytes) = bytes_sent(line) {
            sent = bytes;
        }
    });
    let vanished = match end {
        Ok(vanished) => vanished,
        Err(failed) => return failed,
    };
    if job.verify {
        tell(News::Verifying);
        let (mut count, mut some) = (0, Vec::new());
        let end = run(job, i, need, Mode::Verify, running, start, |line| {
            let Some(name) = differing(line) else { return };
            count += 1;
            if some.len() < 3 {
                some.push(name.to_string());
            }
        });
        if let Err(failed) = end {
            return failed;
        }
        if count > 0 {
            return End::Differs { sent, count, some };
        }
    }
    End::Done { sent, vanished }
}

/// Runs one rsync and hands on each line of its output. True if files of the source vanished.
fn run(
    job: &Job,
    i: usize,
    need: &Need,
    mode: Mode,
    running: &Running,
    start: &Start<'_>,
    mut each: impl FnMut(&str),
) -> Result<bool, End> {
    let failed = |error: String, lasting| Err(End::Failed { error, lasting });
    let (mut command, source) = match (command(job, i, need, mode), job.source_of(i)) {
        (Ok(command), Ok(source)) => (command, source),
        (Err(error), _) | (_, Err(error)) => return failed(error.to_string(), true),
    };
    let (mut stdin, stdout, stderr) = match running.spawn(&mut command, start) {
        Ok(pipes) => pipes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return failed("rsync was not found; install it: apt-get install rsync".into(), true);
        }
        Err(error) => return failed(format!("cannot start rsync: {error}"), false),
    };
    let rules = rules(&source, need).unwrap_or_default();
    let (stdout, stderr) = (Output::new(stdout, running), Output::new(stderr, running));
    // threads of their own: rsync may write before it has read everything
    let threads = thread::Builder::new()
        .spawn(move || drop(stdin.write_all(&rules)))
        .and_then(|writer| Ok((writer, thread::Builder::new().spawn(move || last(stderr))?)));
    let (writer, reader) = match threads {
        Ok(both) => both,
        Err(error) => {
            running.stop(true); // it has hardly begun
            let _ = running.wait();
            return Err(End::without_thread(&error));
        }
    };
    lines(stdout, &mut each);
    let status = running.wait();
    let errors = reader.join().unwrap_or_default();
    let _ = writer.join();
    let place = job.destinations[i].place.as_str();
    let feeder = job.destinations[i].feeder.map(|f| job.destinations[f].place.as_str());
    match status {
        Ok(status) => match status.code() {
            Some(0) => Ok(false),
            Some(24) => Ok(true),
            code => {
                let (error, lasting) = explain(code, status.signal(), &errors, place, feeder);
                failed(error, lasting)
            }
        },
        Err(error) => failed(format!("cannot wait for rsync: {error}"), false),
    }
}

/// The last lines that are written there.
fn last(from: impl Read) -> Vec<String> {
    let mut kept = VecDeque::new();
    lines(from, |line| {
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line.to_string());
    });
    Vec::from(kept)
}

#[cfg(test)]
mod tests;

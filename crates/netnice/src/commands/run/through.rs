// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A run without root: the daemon begins it, and says at the end what it did.

use std::io::{self, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use netnice_daemon::client::{ask, Error};
use netnice_daemon::protocol::{Answer, Request};
use netnice_manager::cgroup::wait_for;
use netnice_manners::{exec, say};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{getpid, pidfd_open, PidfdFlags};

use super::{tell, Saying};

/// How long a daemon that is just restarted may take until it answers again.
const RESTART: Duration = Duration::from_secs(5);

/// Has the daemon put this process into a run, and leaves a companion beside it. Returns what takes a
/// word if the command cannot be run.
pub fn begin(socket: PathBuf, wanted: &Request, saying: Saying) -> Result<PipeWriter> {
    let command = pidfd_open(getpid(), PidfdFlags::empty())?;
    let (failed, failing) = io::pipe()?;
    let (begun, beginning) = io::pipe()?;
    let held = (command, failed, failing, begun, beginning, socket);
    // before the run begins: the companion is none of it
    let (.., failing, begun, mut beginning, socket) =
        exec::companion(held, |(command, failed, failing, begun, beginning, socket)| {
            drop((failing, beginning));
            if let Some(run) = number(begun) {
                stay(run, &command, failed, &socket, saying);
            }
        })?;
    drop(begun);
    match ask(&socket, wanted)? {
        Answer::Run { run, .. } => beginning.write_all(&run.to_ne_bytes())?,
        Answer::Kept { run } => say!(
            "netnice: this is in the background already, in run {run} of another user, and stays \
             there with what that has"
        ),
        _ => bail!(Error::NotAsked),
    }
    Ok(failing)
}

/// The run that began; None: none did.
fn number(mut begun: impl Read) -> Option<u64> {
    let mut run = [0; 8];
    begun.read_exact(&mut run).ok()?;
    Some(u64::from_ne_bytes(run))
}

/// Waits for the end of the command, and says what the run did. `failed` has something to read if it
/// could not be run.
fn stay(run: u64, command: &OwnedFd, mut failed: impl Read, socket: &Path, saying: Saying) {
    let started = Instant::now();
    let mut told = || -> Result<()> {
        wait_for(command.as_fd())?;
        let elapsed = started.elapsed();
        let was_run = failed.read(&mut [0])? == 0;
        let said = report(socket, run); // in any case: then the daemon takes the run away
        match said {
            _ if !was_run => {}
            Ok(Answer::Report { report, goes_on }) => tell(*report, elapsed, goes_on, saying)?,
            Ok(_) => bail!(Error::NotAsked),
            Err(error) => bail!(error),
        }
        Ok(())
    };
    if let Err(error) = told() {
        say!("netnice: the command was in the background, but what it did is not known: {error:#}");
    }
}

/// What the run did, of a daemon that may be restarted just now.
fn report(socket: &Path, run: u64) -> Result<Answer, Error> {
    let since = Instant::now();
    loop {
        match ask(socket, &Request::Report { run }) {
            Err(Error::NoDaemon { .. } | Error::NoAnswer(_)) if since.elapsed() < RESTART => {
                thread::sleep(Duration::from_millis(100));
            }
            said => return said,
        }
    }
}

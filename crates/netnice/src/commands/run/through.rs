// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A run without root: the daemon begins it, and says at the end what it did.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{bail, Result};
use netnice_daemon::client::{ask, ask_again, Error};
use netnice_daemon::protocol::{Answer, Request};
use netnice_daemon::scope;
use netnice_manager::cgroup::wait_for;
use netnice_manager::report::Report;
use netnice_manners::{exec, say};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{getpid, pidfd_open, PidfdFlags};
use serde_json::json;

use super::live::Live;
use super::{tell, Begun, Saying};

/// Has the daemon put this process into a run, and leaves a companion beside it.
pub fn begin(socket: PathBuf, wanted: &Request, saying: Saying) -> Result<Begun> {
    ask(&socket, &Request::Hello {})?; // before anything changes
    scope::enter();
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
        })
        .map_err(|(_, error)| error)?;
    drop(begun);
    match ask(&socket, wanted)? {
        Answer::Run { run, .. } => beginning.write_all(&run.to_ne_bytes())?,
        Answer::Kept { run } if saying.json => say!("{}", json!({ "kept": run })),
        Answer::Kept { run } => say!(
            "netnice: this is in the background already, in run {run} of another user, and stays \
             there with what that has"
        ),
        _ => bail!(Error::NotAsked),
    }
    Ok(Begun { failing, _held: None })
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
        let mut live = Live::new(saying.verbose);
        // of a run that nothing is in any more; the daemon tells it once
        let mut ended = None;
        while !wait_for(command.as_fd(), live.pause())? {
            if ended.is_some() {
                continue; // the command left it
            }
            let said = ask(socket, &Request::Report { run });
            if let Ok(Answer::Report { report, goes_on, starving }) = said {
                live.look_told((*report).clone(), starving);
                ended = (!goes_on).then_some(report);
            }
        }
        drop(live);
        let elapsed = started.elapsed();
        let was_run = failed.read(&mut [0])? == 0;
        // in any case: then the daemon takes the run away
        let said = ended.map_or_else(|| of_daemon(socket, run), |report| Ok((report, false)));
        if was_run {
            let (report, goes_on) = said?;
            tell(*report, elapsed, goes_on, saying)?;
        }
        Ok(())
    };
    if let Err(error) = told() {
        say!("netnice: the command was in the background, but what it did is not known: {error:#}");
    }
}

/// What the run did, and whether something is still in it.
fn of_daemon(socket: &Path, run: u64) -> Result<(Box<Report>, bool)> {
    match ask_again(socket, &Request::Report { run })? {
        Answer::Report { report, goes_on, .. } => Ok((report, goes_on)),
        _ => bail!(Error::NotAsked),
    }
}

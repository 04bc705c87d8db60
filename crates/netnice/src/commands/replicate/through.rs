// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A replication without root: the daemon puts this process into a run, and so all that it starts.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use anyhow::{bail, Result};
use netnice_daemon::client::{ask, Error};
use netnice_daemon::protocol::{Answer, Meant, Request, Wanted};
use netnice_daemon::scope;
use netnice_manager::report::Report;
use netnice_replicate::cgroups::Told;
use netnice_replicate::job::Job;

/// Has the daemon begin it, and returns what tells what it did.
pub fn begin(socket: PathBuf, job: &Job) -> Result<Told> {
    if (0..job.destinations.len()).any(|i| job.share(i).is_some()) {
        bail!("shares of destinations need root: sudo netnice replicate; or leave --share out");
    }
    let mut choice = Wanted::from(&job.choice);
    choice.no_hold |= !job.has_one_path();
    ask(&socket, &Request::Hello {})?; // before anything changes
    scope::enter();
    match ask(&socket, &Request::Run { choice, meant: Meant::default(), group: None })? {
        Answer::Run { run, .. } => Ok(teller(socket, run)),
        // its bytes are not this user's to see
        Answer::Kept { .. } => Ok(Box::new(Report::default)),
        _ => bail!(Error::NotAsked),
    }
}

/// While the daemon does not answer, all is as it was told last.
fn teller(socket: PathBuf, run: u64) -> Told {
    let last = Mutex::new(Report::default());
    Box::new(move || {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(Answer::Report { report, .. }) = ask(&socket, &Request::Report { run }) {
            *last = *report;
        }
        last.clone()
    })
}

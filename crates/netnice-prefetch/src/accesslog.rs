// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The access log: the combined format, with one more field, `"prefetch"`, behind prefetches, so
//! that [`log`](crate::log) does not learn them as if somebody had asked.

use netnice_manners::say;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;

/// Lines that may wait to be written; more are lost, and counted.
const WAITING: usize = 10_000;

enum Job {
    Line(String),
    Reopen,
    Flush(SyncSender<()>),
}

/// Writes lines on a thread of its own, so that a slow disk delays no answer.
#[derive(Debug, Clone)]
pub struct AccessLog {
    jobs: SyncSender<Job>,
}

fn open(path: &Path) -> io::Result<BufWriter<Box<dyn Write + Send>>> {
    Ok(BufWriter::new(match path.to_str() {
        Some("-") => Box::new(io::stdout()),
        _ => Box::new(OpenOptions::new().append(true).create(true).open(path)?),
    }))
}

fn work(path: &Path, mut out: BufWriter<Box<dyn Write + Send>>, jobs: &Receiver<Job>) {
    let mut write = |job| -> io::Result<()> {
        match job {
            Job::Line(line) => writeln!(out, "{line}"),
            Job::Reopen => {
                out.flush()?;
                out = open(path)?;
                Ok(())
            }
            Job::Flush(done) => {
                let _ = done.send(()); // whoever asked may have stopped waiting
                out.flush()
            }
        }
    };
    let mut failing = false;
    while let Ok(job) = jobs.recv() {
        let mut result = write(job);
        while let Ok(job) = jobs.try_recv() {
            result = result.and(write(job));
        }
        let (done, _) = sync_channel(1);
        result = result.and(write(Job::Flush(done)));
        if let Err(error) = &result {
            if !failing {
                say!("netnice-prefetch: cannot write the access log {}: {error}", path.display());
            }
        }
        failing = result.is_err(); // say it once for each time it breaks
    }
}

impl AccessLog {
    /// Opens a log to append to; `-` is standard output.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let out = open(&path)?;
        let (jobs, todo) = sync_channel(WAITING);
        thread::Builder::new().name("access-log".into()).spawn(move || work(&path, out, &todo))?;
        Ok(Self { jobs })
    }

    /// Hands over a line; false if it is lost.
    pub fn write(&self, line: String) -> bool {
        self.jobs.try_send(Job::Line(line)).is_ok()
    }

    /// Opens the file anew, after it was rotated.
    pub fn reopen(&self) {
        let _ = self.jobs.send(Job::Reopen); // fails only after the thread ended
    }

    /// Waits until all lines so far are written.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.jobs.send(Job::Flush(done)).is_ok() {
            let _ = wait.recv();
        }
    }
}

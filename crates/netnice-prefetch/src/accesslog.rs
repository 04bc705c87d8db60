// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The access log: the combined format, with one more field, `"prefetch"`, behind prefetches, so
//! that [`log`](crate::log) does not learn them as if somebody had asked.

use std::io::{self, BufWriter, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::thread;
use std::time::Duration;

use netnice_manners::say;
use prometheus::IntCounter;

use crate::files;

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
    lost: IntCounter,
}

/// How long the end waits for a log whose reader or disk stands still.
const PATIENCE: Duration = Duration::from_secs(5);

type Out = BufWriter<Box<dyn Write + Send>>;

fn open(path: &Path) -> io::Result<Out> {
    Ok(BufWriter::new(match path.to_str() {
        Some("-") => Box::new(io::stdout()),
        _ => Box::new(files::append(path)?),
    }))
}

/// The thread that writes.
struct Writer {
    path: PathBuf,
    out: Out,
    lost: IntCounter,
}

impl Writer {
    fn work(mut self, jobs: &Receiver<Job>) {
        let mut failing = false;
        while let Ok(job) = jobs.recv() {
            let mut result = self.write(job);
            while let Ok(job) = jobs.try_recv() {
                result = result.and(self.write(job));
            }
            result = result.and(self.out.flush());
            if let Err(error) = &result {
                if !failing {
                    let path = self.path.display();
                    say!("netnice-prefetch: cannot write the access log {path}: {error}");
                }
            }
            failing = result.is_err(); // say it once for each time it breaks
        }
    }

    fn write(&mut self, job: Job) -> io::Result<()> {
        match job {
            Job::Line(line) => {
                // in one piece: of a line that fails nothing is in the buffer
                let written = self.out.write_all(format!("{line}\n").as_bytes());
                written.inspect_err(|_| self.lost.inc())
            }
            Job::Reopen => self.reopen(),
            Job::Flush(done) => {
                let flushed = self.out.flush();
                let _ = done.send(()); // whoever asked may have stopped waiting
                flushed
            }
        }
    }

    /// What the old file does not take goes to the new one. If that cannot be opened, the old one stays.
    fn reopen(&mut self) -> io::Result<()> {
        let flushed = self.out.flush();
        let old = match open(&self.path) {
            Ok(new) => mem::replace(&mut self.out, new),
            Err(error) => {
                let path = self.path.display();
                say!(
                    "netnice-prefetch: cannot open the access log {path} again: {error}; it goes on \
                     in the file that it had"
                );
                return flushed;
            }
        };
        let (_, left) = old.into_parts();
        self.out.write_all(&left.unwrap_or_default())
    }
}

impl AccessLog {
    /// Opens a log to append to; `-` is standard output. Lines that it does not take are counted in
    /// `lost`.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: PathBuf, lost: IntCounter) -> io::Result<Self> {
        let writer = Writer { out: open(&path)?, path, lost: lost.clone() };
        let (jobs, todo) = sync_channel(WAITING);
        thread::Builder::new().name("access-log".into()).spawn(move || writer.work(&todo))?;
        Ok(Self { jobs, lost })
    }

    /// Hands over a line.
    pub fn write(&self, line: String) {
        if self.jobs.try_send(Job::Line(line)).is_err() {
            self.lost.inc();
        }
    }

    /// Hands over something that no line is lost for, however long that takes: it is another thread
    /// that waits.
    fn in_turn(&self, job: Job) {
        let jobs = self.jobs.clone();
        thread::spawn(move || jobs.send(job)); // fails only after the writer ended
    }

    /// Opens the file anew, after it was rotated.
    pub fn reopen(&self) {
        self.in_turn(Job::Reopen);
    }

    /// Waits until all lines so far are written, but not for ever: what reads them may stand still.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.in_turn(Job::Flush(done));
        if wait.recv_timeout(PATIENCE).is_err() {
            say!("netnice-prefetch: the access log takes nothing; its last lines are lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::Instant;

    #[test]
    fn a_log_on_a_full_disk_counts_what_it_loses_and_goes_on_in_the_file_that_takes_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        symlink("/dev/full", &path).unwrap();
        let lost = IntCounter::new("lost", "lost").unwrap();
        let log = AccessLog::open(path.clone(), lost.clone()).unwrap();
        let line = |i| format!("{i:02} {}", "x".repeat(1000));
        (0..20).for_each(|i| log.write(line(i)));
        log.flush();
        assert_eq!(lost.get(), 12); // 8 lines of 1004 bytes are in a buffer of 8192
        fs::remove_file(&path).unwrap(); // rotated
        log.reopen();
        let written = || fs::read_to_string(&path).unwrap_or_default();
        let begun = Instant::now();
        while written().lines().count() < 8 {
            assert!(begun.elapsed() < Duration::from_secs(60), "never opened again");
            log.flush();
        }
        log.write("new".into());
        log.flush();
        let kept: Vec<_> = (0..8).map(line).chain(["new".into()]).collect();
        assert_eq!(written().lines().collect::<Vec<_>>(), kept);
        assert_eq!(lost.get(), 12);
    }

    #[test]
    fn a_log_that_cannot_be_opened_again_goes_on_in_the_file_that_it_had() {
        let dir = tempfile::tempdir().unwrap();
        let (logs, away) = (dir.path().join("logs"), dir.path().join("away"));
        fs::create_dir(&logs).unwrap();
        let lost = IntCounter::new("lost", "lost").unwrap();
        let log = AccessLog::open(logs.join("log"), lost.clone()).unwrap();
        fs::rename(&logs, &away).unwrap();
        let (done, wait) = sync_channel(1);
        log.jobs.send(Job::Reopen).unwrap();
        log.jobs.send(Job::Line("line".into())).unwrap();
        log.jobs.send(Job::Flush(done)).unwrap();
        wait.recv().unwrap();
        assert_eq!(
            (fs::read_to_string(away.join("log")).unwrap(), lost.get()),
            ("line\n".into(), 0)
        );
    }
}

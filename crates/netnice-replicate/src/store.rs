// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The state of a job on disk.
//!
//! SQLite with a write-ahead log: `netnice replicate status` reads while a run writes, and neither
//! `kill -9` nor a power failure leaves half of a change.

use std::fs;
use std::io::ErrorKind::NotFound;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::ErrorCode::{CannotOpen, ReadOnly, SystemIoFailure};
use rusqlite::{params, Connection, OpenFlags, OptionalExtension, Row as SqlRow};
use serde::{Deserialize, Serialize};

use crate::error::{io, wrong};
use crate::{Error, Result};

const SCHEMA_VERSION: i64 = 3;
const SCHEMA: &str = "
    CREATE TABLE job (
        one INTEGER PRIMARY KEY CHECK (one = 1), source TEXT NOT NULL, watch INTEGER NOT NULL,
        transfers INTEGER NOT NULL, goodput REAL NOT NULL,
        compare_every INTEGER NOT NULL DEFAULT 0, trouble TEXT
    );
    CREATE TABLE destination (
        place TEXT PRIMARY KEY, number INTEGER NOT NULL, feeder TEXT, state TEXT NOT NULL,
        behind_since REAL, current_at REAL, bytes INTEGER NOT NULL, rate REAL NOT NULL,
        done REAL NOT NULL, attempts INTEGER NOT NULL, retry_at REAL, ends_at REAL, error TEXT,
        share REAL, compared_at REAL
    );
    PRAGMA user_version = 3;";
/// What makes a database of each earlier version, from the first one, one of the next.
const CHANGES: [&str; 2] = [
    "ALTER TABLE destination ADD COLUMN share REAL; PRAGMA user_version = 2;",
    "ALTER TABLE job ADD COLUMN compare_every INTEGER NOT NULL DEFAULT 0;
     ALTER TABLE job ADD COLUMN trouble TEXT;
     ALTER TABLE destination ADD COLUMN compared_at REAL; PRAGMA user_version = 3;",
];

/// Seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

/// What a destination is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// For its turn, or for its feeder.
    Waiting,
    /// The transfer was started; nothing came yet.
    Connecting,
    Copying,
    Verifying,
    /// The copy is as the source.
    Current,
    /// The last attempt failed; there will be another.
    Retrying,
    /// There will be no other attempt in this run.
    Failed,
}

impl State {
    const ALL: [(State, &'static str); 7] = [
        (State::Waiting, "waiting"),
        (State::Connecting, "connecting"),
        (State::Copying, "copying"),
        (State::Verifying, "verifying"),
        (State::Current, "current"),
        (State::Retrying, "retrying"),
        (State::Failed, "failed"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("", |(_, name)| name)
    }

    fn of(name: &str) -> State {
        Self::ALL.iter().find(|(_, n)| *n == name).map_or(State::Waiting, |(s, _)| *s)
    }
}

/// What is known of a destination. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub place: String,
    /// The place that feeds it; None: the source.
    pub feeder: Option<String>,
    /// Parts that it has among the transfers of its sender; None: these have no shares.
    pub share: Option<f64>,
    pub state: State,
    /// Since when the source has something that the copy lacks; None: it lacks nothing.
    pub behind_since: Option<f64>,
    /// When it was last complete.
    pub current_at: Option<f64>,
    /// When the last transfer that compared everything began, or that of the feeder which it handed
    /// on: what changed before is in the copy.
    pub compared_at: Option<f64>,
    /// Sent to it by all runs of the job.
    pub bytes: u64,
    /// Of the transfer under way, in bytes/s.
    pub rate: f64,
    /// Share of the transfer under way that is done, 0 to 1.
    pub done: f64,
    /// Failures since it was last complete.
    pub attempts: u32,
    pub retry_at: Option<f64>,
    /// When the transfer under way will end, at its present speed.
    pub ends_at: Option<f64>,
    /// Of the last attempt, if that failed.
    pub error: Option<String>,
}

impl Row {
    /// A destination of which nothing is known but where it is.
    pub fn new(place: String) -> Row {
        Row {
            place,
            feeder: None,
            share: None,
            state: State::Waiting,
            behind_since: None,
            current_at: None,
            compared_at: None,
            bytes: 0,
            rate: 0.0,
            done: 0.0,
            attempts: 0,
            retry_at: None,
            ends_at: None,
            error: None,
        }
    }
}

/// What is known of the whole job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    pub source: String,
    pub watch: bool,
    /// Transfers that may be under way at a time at present.
    pub transfers: u32,
    /// Of all transfers together, in bytes/s.
    pub goodput: f64,
    /// Seconds after which everything is compared again, below `watch`.
    pub compare_every: u32,
    /// Why not all of the source is watched.
    pub trouble: Option<String>,
}

/// For `map_err`: says what failed.
fn failed(what: impl Into<String>) -> impl FnOnce(rusqlite::Error) -> Error {
    |error| Error::State { what: what.into(), error }
}

/// The database of one job.
pub struct Store(Connection);

impl Store {
    fn path(dir: &Path, job: &str) -> PathBuf {
        dir.join(format!("{job}.sqlite"))
    }

    /// Opens the job's database, and makes it if there is none.
    ///
    /// # Errors
    /// When the file cannot be used, or a newer netnice wrote it.
    pub fn create(dir: &Path, job: &str) -> Result<Store> {
        let path = Self::path(dir, job);
        let open = || -> rusqlite::Result<Connection> {
            let db = Connection::open(&path)?;
            db.busy_timeout(Duration::from_secs(10))?;
            db.pragma_update(None, "journal_mode", "WAL")?;
            db.pragma_update(None, "synchronous", "FULL")?;
            Ok(db)
        };
        let db = open().map_err(failed(format!("cannot open {}", path.display())))?;
        let version: i64 = db
            .pragma_query_value(None, "user_version", |r| r.get(0))
            .map_err(failed(format!("cannot read {}", path.display())))?;
        match version {
            0 => {
                let all = format!("BEGIN; {SCHEMA} COMMIT;");
                db.execute_batch(&all)
                    .map_err(failed(format!("cannot set up {}", path.display())))?;
            }
            1..=SCHEMA_VERSION => {
                let all = CHANGES[version as usize - 1..].concat();
                db.execute_batch(&format!("BEGIN; {all} COMMIT;"))
                    .map_err(failed(format!("cannot change {}", path.display())))?;
            }
            newer => return Err(unknown(&path, newer)),
        }
        Ok(Store(db))
    }

    /// What is stored of a job; None: it was never run.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn read(dir: &Path, job: &str) -> Result<Option<(Summary, Vec<Row>)>> {
        let path = Self::path(dir, job);
        if !path.try_exists().map_err(io(format!("cannot read {}", path.display())))? {
            return Ok(None);
        }
        let read = |alone: bool| -> rusqlite::Result<_> {
            let mut db = match alone {
                true => Connection::open_with_flags(
                    unchanging(&path),
                    OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
                )?,
                false => Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)?,
            };
            db.busy_timeout(Duration::from_secs(10))?;
            let moment = db.transaction()?; // all as of one moment
            let format: i64 = moment.pragma_query_value(None, "user_version", |r| r.get(0))?;
            let summary = if format == SCHEMA_VERSION { summary(&moment)? } else { None };
            let Some(summary) = summary else { return Ok((format, None)) };
            Ok((format, Some((summary, rows(&moment)?))))
        };
        let answer = match read(false) {
            // readers share a file beside it, for which a full disk has no room, and which those who may not
            // write there cannot make; of a job at rest all is in the one file
            Err(error)
                if matches!(
                    error.sqlite_error_code(),
                    Some(SystemIoFailure | CannotOpen | ReadOnly)
                ) && at_rest(&path) =>
            {
                match read(true) {
                    found if at_rest(&path) => found.map_err(|_| error),
                    _ => read(false), // a run has just begun
                }
            }
            answer => answer,
        };
        match answer.map_err(failed(format!("cannot read {}", path.display())))? {
            (SCHEMA_VERSION | 0, stored) => Ok(stored), // 0: a run has just made the file
            (earlier @ 1..SCHEMA_VERSION, _) => Err(wrong!(
                "{} was written by an earlier version of netnice (format {earlier}); the job's next run \
                 changes it",
                path.display()
            )),
            (newer, _) => Err(unknown(&path, newer)),
        }
    }

    /// The names of all jobs with a state in `dir`; none if it is not there.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn jobs(dir: &Path) -> Result<Vec<String>> {
        let entries = match fs::read_dir(dir) {
            Err(error) if error.kind() == NotFound => return Ok(Vec::new()),
            entries => entries.map_err(io(format!("cannot read {}", dir.display())))?,
        };
        let mut names: Vec<_> = entries
            .flatten()
            .filter_map(|e| {
                e.file_name().to_string_lossy().strip_suffix(".sqlite").map(String::from)
            })
            .collect();
        names.sort();
        Ok(names)
    }

    /// Every destination, in the job's order.
    pub fn rows(&self) -> Result<Vec<Row>> {
        rows(&self.0).map_err(failed("cannot read the state of the job"))
    }

    /// Stores the job and destinations (with their numbers), all at once; `only` these stay.
    ///
    /// # Errors
    /// When that is not possible; then nothing of it is stored.
    pub fn write(&mut self, s: &Summary, rows: &[(usize, &Row)], only: bool) -> Result<()> {
        let mut write = || -> rusqlite::Result<()> {
            let change = self.0.transaction()?;
            if only {
                change.execute("DELETE FROM destination", [])?;
            }
            change.execute(
                "INSERT OR REPLACE INTO job VALUES (1, ?, ?, ?, ?, ?, ?)",
                params![s.source, s.watch, s.transfers, s.goodput, s.compare_every, s.trouble],
            )?;
            {
                let mut put = change.prepare_cached(
                    "INSERT OR REPLACE INTO destination VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                )?;
                for (number, r) in rows {
                    put.execute(params![
                        r.place,
                        *number as i64,
                        r.feeder,
                        r.state.name(),
                        r.behind_since,
                        r.current_at,
                        r.bytes as i64,
                        r.rate,
                        r.done,
                        r.attempts,
                        r.retry_at,
                        r.ends_at,
                        r.error,
                        r.share,
                        r.compared_at
                    ])?;
                }
            }
            change.commit()
        };
        write().map_err(failed("cannot store the state of the job"))
    }
}

/// For a file of a format that is not known here.
fn unknown(path: &Path, format: i64) -> Error {
    wrong!(
        "{} was written by another version of netnice (format {format}); move it away to start afresh: \
         nothing is copied twice",
        path.display()
    )
}

/// Whether nothing waits in the log beside the database.
fn at_rest(path: &Path) -> bool {
    fs::metadata(path.with_extension("sqlite-wal")).map_or(true, |log| log.len() == 0)
}

/// The name of a database that nobody changes meanwhile.
fn unchanging(path: &Path) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/-_.".contains(b);
    let one = |b: &u8| if plain(b) { char::from(*b).into() } else { format!("%{b:02x}") };
    let path: String = path.as_os_str().as_bytes().iter().map(one).collect();
    format!("file:{path}?immutable=1")
}

fn summary(db: &Connection) -> rusqlite::Result<Option<Summary>> {
    let read = |r: &SqlRow<'_>| {
        Ok(Summary {
            source: r.get(0)?,
            watch: r.get(1)?,
            transfers: r.get(2)?,
            goodput: r.get(3)?,
            compare_every: r.get(4)?,
            trouble: r.get(5)?,
        })
    };
    db.query_row(
        "SELECT source, watch, transfers, goodput, compare_every, trouble FROM job",
        [],
        read,
    )
    .optional()
}

fn rows(db: &Connection) -> rusqlite::Result<Vec<Row>> {
    let mut query = db.prepare(
        "SELECT place, feeder, state, behind_since, current_at, bytes, rate, done, attempts, \
         retry_at, ends_at, error, share, compared_at FROM destination ORDER BY number",
    )?;
    let rows = query.query_map([], row)?.collect();
    rows
}

fn row(r: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let state: String = r.get(2)?;
    Ok(Row {
        place: r.get(0)?,
        feeder: r.get(1)?,
        state: State::of(&state),
        behind_since: r.get(3)?,
        current_at: r.get(4)?,
        bytes: r.get::<_, i64>(5)?.max(0) as u64,
        rate: r.get(6)?,
        done: r.get(7)?,
        attempts: r.get(8)?,
        retry_at: r.get(9)?,
        ends_at: r.get(10)?,
        error: r.get(11)?,
        share: r.get(12)?,
        compared_at: r.get(13)?,
    })
}

#[cfg(test)]
mod tests;

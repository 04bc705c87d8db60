// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Stores the state of a job that runs, as long as that is possible: the state is bookkeeping, and
//! a full disk below it is no reason to copy nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};

use crate::observer::Observer;
use crate::store::{Row, Store, Summary};
use crate::{Error, Result};

/// How long after a failure it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// The state of one job, and whether it can be stored.
pub struct Keeper {
    dir: PathBuf,
    job: String,
    store: Option<Store>,
    /// Of earlier runs.
    earlier: Vec<Row>,
    /// Whether the database has all destinations of this run.
    begun: bool,
    failed: Option<Instant>,
}

impl Keeper {
    /// For the job `job`, whose state is kept in `dir`.
    ///
    /// # Errors
    /// When what is there is no state of this version. What only cannot be written is said later.
    pub fn new(dir: &Path, job: &str) -> Result<Keeper> {
        let opened = Store::create(dir, job).and_then(|store| Ok((store.rows()?, store)));
        let (earlier, store) = match opened {
            Ok((rows, store)) => (rows, Some(store)),
            Err(Error::State { error, .. })
                if !matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase)) =>
            {
                (Vec::new(), None)
            }
            Err(error) => return Err(error),
        };
        let (dir, job) = (dir.into(), job.into());
        Ok(Keeper { dir, job, store, earlier, begun: false, failed: None })
    }

    /// What earlier runs stored of the destination `place`.
    pub fn earlier(&self, place: &str) -> Option<&Row> {
        self.earlier.iter().find(|r| r.place == place)
    }

    /// Stores the job and its destinations, of which `true` ones changed; whether that was possible.
    /// That it is not is told once, and that it is again.
    pub fn store(
        &mut self,
        summary: &Summary,
        rows: &[(bool, &Row)],
        observer: &mut dyn Observer,
    ) -> bool {
        if self.failed.is_some_and(|f| f.elapsed() < AGAIN) {
            return false;
        }
        let before = self.failed.take().is_some();
        match (self.try_to_store(summary, rows), before) {
            (Ok(()), false) => return true,
            (Ok(()), true) => {
                observer.notice("the state of the job is stored again");
                return true;
            }
            (Err(error), false) => observer.notice(&format!(
                "{error}; the job goes on, and its status shows what was stored last"
            )),
            (Err(_), true) => {}
        }
        self.failed = Some(Instant::now());
        false
    }

    fn try_to_store(&mut self, summary: &Summary, rows: &[(bool, &Row)]) -> Result<()> {
        let store = match &mut self.store {
            Some(store) => store,
            none => none.insert(Store::create(&self.dir, &self.job)?),
        };
        let all = rows.iter().enumerate().map(|(i, (changed, row))| (*changed, (i, *row)));
        let wanted = all.filter(|(changed, _)| *changed || !self.begun);
        store.write(summary, &wanted.map(|(_, row)| row).collect::<Vec<_>>(), !self.begun)?;
        self.begun = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[derive(Default)]
    struct Told(Vec<String>);

    impl Observer for Told {
        fn notice(&mut self, text: &str) {
            self.0.push(text.into());
        }
    }

    fn row(place: &str) -> Row {
        Row::new(place.into())
    }

    #[test]
    fn what_cannot_be_stored_is_told_once_and_stored_as_a_whole_when_it_can_be() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("state");
        let mut keeper = Keeper::new(&dir, "www").unwrap(); // the directory is not there
        let (a, b) = (row("a:/1"), row("b:/2"));
        let mut told = Told::default();
        for _ in 0..3 {
            assert!(!keeper.store(&Summary::default(), &[(true, &a), (false, &b)], &mut told));
            keeper.failed = keeper.failed.and_then(|f| f.checked_sub(AGAIN));
        }
        let [text] = told.0.as_slice() else { panic!("{:?}", told.0) };
        assert!(text.contains("cannot open") && text.contains("the job goes on"), "{text}");
        fs::create_dir(&dir).unwrap();
        assert!(keeper.store(&Summary::default(), &[(false, &a), (false, &b)], &mut told));
        assert_eq!(told.0[1..], ["the state of the job is stored again"]);
        let stored = || Store::read(&dir, "www").unwrap().unwrap().1;
        assert_eq!(stored(), [a.clone(), b.clone()]); // both, though neither has just changed
        let changed = Row { bytes: 5, ..b.clone() };
        assert!(keeper.store(
            &Summary::default(),
            &[(false, &row("a:/1")), (true, &changed)],
            &mut told
        ));
        assert_eq!(stored(), [a, changed]);
        assert_eq!(told.0.len(), 2);
    }

    #[test]
    fn a_file_that_is_no_state_is_refused_and_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("www.sqlite");
        fs::write(&path, "somebody's notes, which are longer than a page's header ".repeat(40))
            .unwrap();
        let error = Keeper::new(dir.path(), "www").err().unwrap().to_string();
        assert!(error.contains("file is not a database"), "{error}");
        assert!(fs::read_to_string(&path).unwrap().starts_with("somebody's"));
    }
}

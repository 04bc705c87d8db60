// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a state keeps, and what is said of one that cannot be read.

use super::*;

fn fresh(place: &str) -> Row {
    Row { behind_since: Some(1.5), ..Row::new(place.into()) }
}

#[test]
fn what_was_stored_is_read_again_and_only_the_jobs_destinations_stay() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), "www").unwrap();
    let summary = Summary {
        source: "/a".into(),
        watch: true,
        transfers: 4,
        goodput: 1.0,
        compare_every: 3600,
        trouble: Some("no watches".into()),
    };
    let (a, mut b) = (fresh("a:/1"), fresh("b:/2"));
    store.write(&summary, &[(0, &a), (1, &b)], true).unwrap();
    b.state = State::Failed;
    b.error = Some("no".into());
    b.bytes = 1 << 40;
    b.share = Some(0.5);
    b.compared_at = Some(2.5);
    store.write(&summary, &[(1, &b)], false).unwrap();
    let read = || Store::read(dir.path(), "www").unwrap();
    assert_eq!(read(), Some((summary.clone(), vec![fresh("a:/1"), b.clone()])));
    store.write(&summary, &[(0, &b)], true).unwrap();
    assert_eq!(read(), Some((summary, vec![b])));
    assert_eq!(Store::jobs(dir.path()).unwrap(), ["www"]);
    assert!(Store::jobs(&dir.path().join("none")).unwrap().is_empty());
    // as where it may not be read: none is not what there is
    assert!(Store::jobs(&dir.path().join("www.sqlite")).is_err());
}

#[test]
fn a_database_of_each_earlier_version_becomes_one_of_this_version() {
    let first = "CREATE TABLE job (one INTEGER PRIMARY KEY CHECK (one = 1), source TEXT NOT NULL,
        watch INTEGER NOT NULL, transfers INTEGER NOT NULL, goodput REAL NOT NULL);
        CREATE TABLE destination (place TEXT PRIMARY KEY, number INTEGER NOT NULL, feeder TEXT,
        state TEXT NOT NULL, behind_since REAL, current_at REAL, bytes INTEGER NOT NULL,
        rate REAL NOT NULL, done REAL NOT NULL, attempts INTEGER NOT NULL, retry_at REAL,
        ends_at REAL, error TEXT);
        INSERT INTO destination VALUES ('a:/1', 0, NULL, 'current', NULL, 1.0, 7, 0, 0, 0,
        NULL, NULL, NULL); PRAGMA user_version = 1;";
    for changes in 0..=CHANGES.len() {
        let dir = tempfile::tempdir().unwrap();
        let db = Connection::open(dir.path().join("www.sqlite")).unwrap();
        db.execute_batch(first).unwrap();
        db.execute_batch(&CHANGES[..changes].concat()).unwrap();
        drop(db);
        let mut store = Store::create(dir.path(), "www").unwrap();
        let row = store.rows().unwrap().remove(0);
        assert_eq!((row.bytes, row.share, row.compared_at), (7, None, None));
        let row = Row { share: Some(2.0), compared_at: Some(3.0), ..row };
        store.write(&Summary::default(), &[(0, &row)], false).unwrap();
        assert_eq!(store.rows().unwrap(), [row]);
    }
}

#[test]
fn a_job_that_has_just_begun_is_one_that_was_never_run() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(Store::read(dir.path(), "www").unwrap(), None);
    fs::File::create(dir.path().join("www.sqlite")).unwrap();
    assert_eq!(Store::read(dir.path(), "www").unwrap(), None);
    let _store = Store::create(dir.path(), "www").unwrap();
    assert_eq!(Store::read(dir.path(), "www").unwrap(), None);
}

#[test]
fn a_state_of_another_version_is_not_taken_for_none() {
    for (format, says) in [(2, "next run changes it"), (999, "another version of netnice")] {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::create(dir.path(), "www").unwrap();
        store.0.pragma_update(None, "user_version", format).unwrap();
        drop(store);
        let error = Store::read(dir.path(), "www").unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_damaged_state_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), "www").unwrap();
    store.write(&Summary::default(), &[(0, &fresh("a:/1"))], true).unwrap();
    drop(store);
    let path = dir.path().join("www.sqlite");
    fs::File::options().write(true).open(&path).unwrap().set_len(5000).unwrap();
    let create = Store::create(dir.path(), "www").err().unwrap().to_string();
    for error in [create, Store::read(dir.path(), "www").unwrap_err().to_string()] {
        assert!(error.contains("move that file away"), "{error}");
    }
}

#[test]
fn a_state_at_rest_can_be_read_without_a_file_beside_it_whatever_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let odd = "a #1?%20\u{e9}"; // a name that means something in a URI
    let mut store = Store::create(dir.path(), odd).unwrap();
    store.write(&Summary::default(), &[(0, &fresh("a:/1"))], true).unwrap();
    let path = Store::path(dir.path(), odd);
    assert!(!at_rest(&path)); // what waits in the log would be left out
    drop(store);
    assert!(at_rest(&path));
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let db = Connection::open_with_flags(unchanging(&path), flags).unwrap();
    assert_eq!(rows(&db).unwrap(), [fresh("a:/1")]);
    drop(db);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_change_that_was_not_finished_is_not_seen() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::create(dir.path(), "www").unwrap();
    store.write(&Summary::default(), &[(0, &fresh("a:/1"))], true).unwrap();
    // as after a kill: a transaction is open, and the process is gone without a word
    store.0.execute_batch("BEGIN; DELETE FROM destination;").unwrap();
    drop(store);
    assert_eq!(Store::create(dir.path(), "www").unwrap().rows().unwrap().len(), 1);
}

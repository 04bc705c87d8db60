// SPDX-License-Identifier: MIT OR GPL-2.0-only

use super::*;
use crate::job::tests::job;
use netnice_manager::report::Report;
use std::sync::mpsc::channel;

/// Bytes that earlier runs sent to the first place.
const EARLIER: u64 = 1_000_000_000;

struct Nobody;

impl Observer for Nobody {}

/// Has an engine under watch keep these places, and hands it to `test`; it starts no transfer itself.
fn with_engine(list: &str, test: impl FnOnce(&mut Engine<'_>)) {
    with_engine_in(Cgroups::plain(), list, test);
}

fn with_engine_in(cgroups: Cgroups, list: &str, test: impl FnOnce(&mut Engine<'_>)) {
    let dir = tempfile::tempdir().unwrap();
    let mut job = job(list);
    job.watch = true;
    let mut state = Keeper::new(dir.path(), &job.name).unwrap();
    let earlier = Row { bytes: EARLIER, ..Row::new(job.destinations[0].place.to_string()) };
    assert!(state.store(&Summary::default(), &[(true, &earlier)], &mut Nobody));
    let state = Keeper::new(dir.path(), &job.name).unwrap();
    let cgroups = Arc::new(cgroups);
    test(&mut Engine::new(Arc::new(job), cgroups, state, channel().0, &mut Nobody));
}

fn begin(engine: &mut Engine<'_>, i: usize) {
    let reaches = engine.reaches(i);
    engine.copies[i].begin(reaches).unwrap();
}

fn done(engine: &mut Engine<'_>, i: usize) {
    engine.handle(Event::Ended(i, End::Done { sent: 0, vanished: false }));
}

fn changed(engine: &mut Engine<'_>) {
    engine.handle(Event::Seen(Seen::Changed(Need::Full)));
}

/// The state of a copy, and whether it has a lag.
fn at(engine: &Engine<'_>, i: usize) -> (State, bool) {
    let row = &engine.copies[i].row;
    (row.state, row.behind_since.is_some())
}

#[test]
fn a_copy_that_another_one_feeds_lacks_what_its_feeder_lacks() {
    with_engine("hub:/1\n  mid:/2\n    leaf:/3\n", |engine| {
        for i in 0..3 {
            begin(engine, i);
            if i == 2 {
                changed(engine); // while what came before is on its way to the leaf
            }
            done(engine, i);
        }
        let since = engine.copies[0].row.behind_since;
        assert!(since.is_some());
        assert_eq!(engine.copies[2].row.behind_since, since);
        for i in 0..3 {
            assert_ne!(at(engine, i), (State::Current, false));
            begin(engine, i);
            done(engine, i);
            assert_eq!(at(engine, i), (State::Current, false));
        }
    });
}

#[test]
fn a_copy_that_another_one_feeds_was_compared_when_its_feeder_was() {
    with_engine("hub:/1\n  leaf:/2\n", |engine| {
        begin(engine, 0);
        done(engine, 0);
        let first = engine.copies[0].row.compared_at;
        assert!(first.is_some());
        begin(engine, 1);
        changed(engine);
        begin(engine, 0);
        done(engine, 0); // the leaf may have read before what this one brought
        done(engine, 1);
        assert_eq!(engine.copies[1].row.compared_at, first);
        assert_eq!(at(engine, 1), (State::Waiting, true));
    });
}

#[test]
fn without_figures_the_number_of_transfers_stays_and_the_epoch_goes_on() {
    for (run, expected) in [(0, 4), (7, 6)] {
        let told = Box::new(move || Report { run, bytes_sent: 5_000_000, ..Report::default() });
        with_engine_in(Cgroups::given(told), "a:/1\n", |engine| {
            let began = Instant::now().checked_sub(EPOCH).unwrap();
            engine.epoch.began = began;
            engine.measure();
            assert_eq!(engine.level.now(), expected);
            assert_eq!(engine.epoch.began == began, run == 0);
        });
    }
}

#[test]
fn what_earlier_runs_copied_is_no_goodput_of_this_one() {
    with_engine("/a\n", |engine| {
        assert_eq!(engine.copies[0].row.bytes, EARLIER);
        engine.copies[0].row.bytes += 5_000_000;
        engine.epoch.began = Instant::now().checked_sub(EPOCH).unwrap();
        engine.measure();
        assert!((400_000.0..=500_000.0).contains(&engine.summary.goodput)); // in 10 s
    });
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Scores of small logs, derived by hand.

use super::*;

const LINE: &str = r#"::1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 100"#;
const ALL: Budget = Budget { most: 10, threshold: 0.0, max_object_bytes: 1_000_000 };

fn views(of: &[(i64, &str, &str)]) -> Views {
    let mut views = Views::default();
    for (time_s, client, path) in of {
        views.add(&Entry {
            time_s: *time_s,
            client,
            agent: "",
            referer: "",
            method: "GET",
            path,
            status: 200,
            bytes: 100,
            prefetch: false,
            personal: false,
        });
    }
    views
}

#[test]
fn what_followed_a_page_is_foreseen_and_the_rest_is_wasted_or_missed() {
    let learned = views(&[(1, "x", "/a"), (2, "x", "/b"), (3, "y", "/a"), (4, "y", "/c")]);
    let trained = Trained::new(Kind::Ppm, Settings::default(), &learned);
    // after /a both /b and /c are put into z's cache; it asks for /b, then for /d
    let then = views(&[(11, "z", "/a"), (12, "z", "/b"), (13, "z", "/d"), (14, "z", "/b")]);
    let found = score(&trained, &then, Settings::default(), ALL);
    let expected = Score {
        prefetched: 2,
        foreseen: 1,
        missed: 2, // /a and /d
        prefetched_bytes: 200,
        wasted_bytes: 100,
        demand_bytes: 300,
    };
    assert_eq!(found, expected);
    assert_eq!((found.precision(), found.recall()), (Some(0.5), Some(1.0 / 3.0)));
}

#[test]
fn a_markov_chain_sees_one_step_and_ppm_its_window() {
    let learned = views(&[(1, "x", "/a"), (2, "x", "/b"), (3, "x", "/c")]);
    let then = views(&[(11, "z", "/a"), (12, "z", "/c")]);
    let of = |kind| {
        let trained = Trained::new(kind, Settings::default(), &learned);
        score(&trained, &then, Settings::default(), ALL).foreseen
    };
    assert_eq!((of(Kind::Ppm), of(Kind::Markov)), (1, 0));
}

#[test]
fn the_popular_comes_first_whoever_asks() {
    let learned = views(&[(1, "x", "/a"), (2, "y", "/b"), (3, "z", "/b")]);
    let then = views(&[(11, "v", "/c"), (12, "v", "/b")]);
    let trained = Trained::new(Kind::Popular, Settings::default(), &learned);
    let one = Budget { most: 1, ..ALL };
    let found = score(&trained, &then, Settings::default(), one);
    // after /c /b is prefetched; after /b /a
    assert_eq!((found.prefetched, found.foreseen, found.missed), (2, 1, 1));
}

#[test]
fn a_client_that_was_idle_for_long_has_an_empty_cache() {
    let learned = views(&[(1, "x", "/a"), (2, "x", "/b")]);
    let then = views(&[(11, "z", "/a"), (11 + 1801, "z", "/b")]);
    let trained = Trained::new(Kind::Ppm, Settings::default(), &learned);
    let found = score(&trained, &then, Settings::default(), ALL);
    assert_eq!((found.foreseen, found.missed, found.wasted_bytes), (0, 2, 100));
}

#[test]
fn a_log_is_divided_in_time_not_by_count() {
    let all = views(&[(0, "x", "/a"), (10, "x", "/b"), (20, "x", "/c"), (90, "x", "/d")]);
    let (first, second) = all.split(Cut::Part(0.5), None);
    assert_eq!((first.len(), second.len()), (3, 1));
}

#[test]
fn days_end_at_midnight_and_what_is_learned_may_begin_later() {
    let (noon, hour) = (DAY_S / 2, HOUR_S);
    let all = views(&[
        (noon, "x", "/a"),
        (2 * DAY_S - 2 * hour, "x", "/b"),
        (2 * DAY_S - 1, "x", "/c"),
        (2 * DAY_S, "x", "/d"),
    ]);
    let lengths = |hours| {
        let (first, second) = all.split(Cut::Days(2), hours);
        (first.len(), second.len())
    };
    assert_eq!((lengths(None), lengths(Some(2)), lengths(Some(1))), ((3, 1), (2, 1), (1, 1)));
}

#[test]
fn of_pages_alone_no_object_is_left() {
    let mut all = views(&[(1, "x", "/a"), (2, "x", "/i.png"), (3, "x", "/b.html")]);
    all.keep_pages();
    assert_eq!(all.len(), 2);
}

#[test]
fn a_cut_is_a_part_or_days() {
    assert_eq!("0.5".parse(), Ok(Cut::Part(0.5)));
    assert_eq!("2d".parse(), Ok(Cut::Days(2)));
    for bad in ["0", "1", "0d", "-1d", "2.5d", "d", "x", "NaN"] {
        assert!(bad.parse::<Cut>().is_err(), "{bad}");
    }
}

#[test]
fn robots_are_left_out_and_counted() {
    let mut all = Views::default();
    for agent in ["Mozilla/5.0 (compatible; Googlebot/2.1)", "Mozilla/5.0", log::ROBOT] {
        let entry = Entry { agent, ..log::parse(LINE).unwrap() };
        all.add(&entry);
    }
    assert_eq!((all.len(), all.robots()), (1, 2));
}

#[test]
fn a_page_is_put_behind_its_referer_and_keeps_the_hours_times() {
    let mut all = Views::default();
    // logged as image, next page, page; another client in between, another hour behind
    for (time_s, client, path, referer) in [
        (1, "x", "/i.png", "/p"),
        (2, "x", "/next", "/p"),
        (3, "y", "/q", ""),
        (4, "x", "/p", ""),
        (HOUR_S, "x", "/late", ""),
    ] {
        let line = log::parse(LINE).unwrap();
        all.add(&Entry { time_s, client, path, referer, ..line });
    }
    all.order_by_referer();
    let seen: Vec<_> = all.requests.iter().map(|r| (r.time_s, &*r.path)).collect();
    let expected = [(1, "/p"), (2, "/i.png"), (3, "/q"), (4, "/next"), (HOUR_S, "/late")];
    assert_eq!(seen, expected);
}

/// The counts are those of `zcat lab/data/web-requests.csv.gz`: rows with method GET, status
/// 200 or 304, bot 0 and a static path of this site, before and from second 172,800; and with
/// bot 1.
#[test]
fn the_labs_log_is_divided_at_its_third_midnight() {
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/data/web-requests.csv.gz");
    let all = Views::read(&[log.into()]).unwrap();
    let (first, second) = all.split(Cut::Days(2), None);
    assert_eq!((first.len(), second.len(), all.robots()), (2911, 2283, 882));
}

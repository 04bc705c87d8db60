// SPDX-License-Identifier: MIT OR GPL-2.0-only

use super::*;
use proptest::prelude::*;
use std::os::unix::fs::symlink;

pub fn job(list: &str) -> Job {
    Job {
        name: "test".into(),
        source: "/home/www/".into(),
        destinations: tree(place::list(list).unwrap()).unwrap(),
        watch: false,
        delete: false,
        verify: false,
        retries: 5,
        most: 16,
        rsync: vec![],
        choice: Choice::default(),
        or_plain: false,
        compare_every: COMPARE_EVERY,
        left_out: None,
    }
}

fn feeders(destinations: &[Destination]) -> Vec<Option<usize>> {
    destinations.iter().map(|d| d.feeder).collect()
}

#[test]
fn indentation_says_who_feeds_whom() {
    let job = job("a:/1\n  b:/2\n    c:/3\n  d:/4\ne:/5\n");
    job.check().unwrap();
    assert_eq!(feeders(&job.destinations), [None, Some(0), Some(1), Some(0), None]);
    assert_eq!(job.feeders(2).unwrap(), [0, 1]);
    assert_eq!(job.source_of(0).unwrap(), "/home/www/");
    assert_eq!(job.source_of(2).unwrap(), "/2/");
}

#[test]
fn a_first_line_that_is_indented_is_refused() {
    let error = tree(place::list("  a:/1\n").unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("line 1: "), "{error}");
}

#[test]
fn via_lets_one_host_feed_the_others() {
    let mut found = job("a:/1\nme@b:/2\nc:/3\n").destinations;
    feed_all(&mut found, "b").unwrap();
    assert_eq!(feeders(&found), [Some(1), None, Some(1)]);
    assert!(feed_all(&mut found, "x").unwrap_err().to_string().contains("no destination"));
    let mut twice = job("a:/1\na:/2\n").destinations;
    assert!(feed_all(&mut twice, "a").unwrap_err().to_string().contains("may mean"));
}

#[test]
fn a_share_is_given_to_the_one_destination_of_that_name() {
    let list = "me@a:/1\nb:/x=y\nrsync://c:8730/m\nd:/1\nd:/2\n/local\n";
    let mut job = job(list);
    assert_eq!(job.share(0), None);
    for (name, parts) in [("a", 4.0), ("b:/x=y", 0.5), ("c", 2.0)] {
        give(&mut job.destinations, name, parts).unwrap();
    }
    job.check().unwrap();
    let shares: Vec<_> = (0..4).map(|i| job.share(i)).collect();
    assert_eq!(shares, [Some(4.0), Some(0.5), Some(2.0), Some(1.0)]);
    for (name, words) in [
        ("x", "there are me@a:/1, b:/x=y, rsync://c:8730/m, d:/1, d:/2 and 1 more"),
        ("d", "may mean d:/1 or d:/2"),
        ("me@a", "two shares"),
    ] {
        let error = give(&mut job.destinations, name, 1.0).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    give(&mut job.destinations, "/local", 3.0).unwrap();
    assert!(job.check().unwrap_err().to_string().contains("takes no bandwidth"));
}

#[test]
fn shares_count_among_the_transfers_of_a_sender() {
    let mut job = job("hub:/1\n  a:/2\n  b:/3\nc:/4\n");
    give(&mut job.destinations, "b", 4.0).unwrap();
    let shares: Vec<_> = (0..4).map(|i| job.share(i)).collect();
    assert_eq!(shares, [None, Some(1.0), Some(4.0), None]);
}

#[test]
fn a_share_is_a_positive_number_and_takes_an_algorithm_with_groups() {
    for (share, words) in [
        (0.0, "share=0 is out of range"),
        (-1.0, "share=-1 is out of range"),
        (f64::NAN, "share=NaN is out of range"),
        (f64::INFINITY, "out of range"),
        (1001.0, "out of range"),
    ] {
        let mut job = job("a:/1\nb:/2\n");
        give(&mut job.destinations, "b", share).unwrap();
        let error = format!("{:#}", job.check().unwrap_err());
        assert!(error.starts_with("the share of b:/2: ") && error.contains(words), "{error}");
    }
    let mut job = job("a:/1\n");
    give(&mut job.destinations, "a", 4.0).unwrap();
    job.choice.class = Some("fair".parse().unwrap());
    let error = format!("{:#}", job.check().unwrap_err());
    assert!(error.contains("the class fair (fairbat1)"), "{error}");
    assert!(error.contains("these have groups: ") && error.contains("nice"), "{error}");
}

#[test]
fn a_group_is_named_as_its_job_as_far_as_that_fits() {
    let mut job = job("a:/1\n");
    assert_eq!((job.group().name.as_str(), job.group().bits), ("test", 0));
    let mut seen = std::collections::BTreeSet::new();
    for name in ["www@eu", "www_eu", &"x".repeat(40), &"x".repeat(41)] {
        job.name = name.into();
        let group = job.group().name;
        assert!(group.parse::<group::Name>().is_ok(), "{group}");
        assert!(seen.insert(group), "{name}");
    }
}

#[test]
fn contradictions_are_named() {
    for (list, word) in [
        ("a:/1\na:/1\n", "twice"),
        ("/x/tw\n/x/tw/\n", "the same destination"),
        ("a:tw\nb:/x\nA:./tw/\n", "the same destination"),
        ("a::m\n b:/1\n", "cannot feed"),
        ("a:/1\n /2\n", "needs no feeder"),
        ("", "no destination"),
    ] {
        let error = job(list).check().unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let mut remote = job("a:/1\n");
    remote.source = "b:/2".into();
    assert!(remote.check().unwrap_err().to_string().contains("on this machine"));
    let mut circle = job("a:/1\nb:/2\n");
    circle.destinations[0].feeder = Some(1);
    circle.destinations[1].feeder = Some(0);
    assert!(circle.check().unwrap_err().to_string().contains("feeds itself"));
}

#[test]
fn a_name_is_safe_in_a_path() {
    assert!(check_name("www@eu-1").is_ok());
    for name in ["", "../x", ".hidden", "a b", "a/b"] {
        assert!(check_name(name).is_err(), "{name}");
    }
    check_name(&default_name("/").unwrap()).unwrap();
    assert_eq!(default_name("/usr/").unwrap(), default_name("/usr").unwrap());
}

#[test]
fn a_name_follows_from_the_path_as_it_was_written_and_not_from_where_it_leads() {
    let base = tempfile::tempdir().unwrap();
    let (link, next) = (base.path().join("current"), base.path().join("next"));
    symlink("/usr", &link).unwrap();
    let name = || default_name(&format!("{}/", link.display())).unwrap();
    let before = name();
    symlink("/etc", &next).unwrap();
    fs::rename(&next, &link).unwrap(); // mv -T
    assert_eq!(name(), before);
    fs::remove_file(&link).unwrap();
    assert_eq!(name(), before); // it may be back when it is started
    assert_ne!(before, default_name("/usr").unwrap());
}

#[test]
fn sources_whose_names_look_alike_have_jobs_of_their_own() {
    let alike =
        ["/s/;x", "/s/#x", "/s/_x", "/s/ x", "/s/é", "/s/è", "/t/#x", "/s/.lock", "/s/_lock"];
    let names: std::collections::BTreeSet<_> =
        alike.iter().map(|s| default_name(s).unwrap()).collect();
    assert_eq!(names.len(), alike.len(), "{names:?}");
    names.iter().for_each(|name| check_name(name).unwrap());
}

#[test]
fn a_destination_inside_the_source_is_refused_by_whatever_name_it_has() {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("{}/{name}", base.path().display());
    fs::create_dir_all(at("w/deep")).unwrap();
    symlink("w/deep", at("short")).unwrap();
    symlink("w", at("link")).unwrap();
    let check = |source: &str, copy: &str| {
        let mut job = job(&format!("{}\nhost:/w\n", at(copy)));
        job.source = at(source);
        job.check().map_err(|e| e.to_string())
    };
    for (source, copy) in [
        ("w/", "w/copy"),
        ("w/", "w"),
        ("w", "w/deep"),
        ("w/", "short/new/er"),
        ("link/", "w/copy"),
        ("w/", "other/../w/x"),
        ("w", ""), // the copy would be `w` itself
    ] {
        let error = check(source, copy).unwrap_err();
        assert!(error.contains("is inside the source"), "{source} {copy}: {error}");
    }
    for (source, copy) in [("w/", "w2"), ("w", "w2"), ("w/", ""), ("w/deep/", "w"), ("w/", "w-x/w")]
    {
        check(source, copy).unwrap();
    }
}

#[test]
fn a_copy_that_contains_the_source_is_refused_where_it_would_remove_that() {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| format!("{}/{name}", base.path().display());
    fs::create_dir_all(at("srv/www/www/d")).unwrap();
    symlink("srv", at("link")).unwrap();
    let check = |source: &str, copy: &str, delete: bool, option: &str| {
        let mut job = job(&format!("{}\nhost:/srv\n", at(copy)));
        (job.source, job.delete) = (at(source), delete);
        job.rsync = vec![option.into()];
        job.check().map_err(|e| e.to_string())
    };
    for (source, copy) in
        [("srv/www/", "srv"), ("srv/www/", ""), ("link/www/", "srv"), ("srv/www/", "link/")]
    {
        for (delete, option) in [(true, "-z"), (false, "--delete-after")] {
            let error = check(source, copy, delete, option).unwrap_err();
            assert!(error.contains("--delete would remove it"), "{source} {copy}: {error}");
        }
        check(source, copy, false, "-z").unwrap();
        check(source, copy, false, "--delay-updates").unwrap();
    }
    // a source without a slash has its name in the copy, here `srv/www`, which contains it
    let error = check("srv/www/www", "srv", true, "-z").unwrap_err();
    assert!(error.contains("--delete would remove it"), "{error}");
    check("srv/www/www/d", "srv", true, "-z").unwrap(); // `srv/d` is beside it
}

#[test]
fn the_state_in_the_source_is_left_out_and_no_source_of_its_own() {
    let base = tempfile::tempdir().unwrap();
    let mut job = job("a:/1\n");
    job.source = base.path().display().to_string();
    job.leave_out(&base.path().join("lib/new")).unwrap();
    assert_eq!(job.left_out.as_deref(), Some("lib/new"));
    let error = job.leave_out(base.path()).unwrap_err().to_string();
    assert!(error.contains("keep it elsewhere: --state DIR"), "{error}");
    job.left_out = None;
    job.leave_out(Path::new("/var/lib/netnice/replicate")).unwrap();
    assert_eq!(job.left_out, None);
}

#[test]
fn a_pause_between_comparisons_is_a_second_to_a_year() {
    assert_eq!(compare_every(1).unwrap(), 1);
    assert_eq!(compare_every(365 * 86_400).unwrap(), 31_536_000);
    for wrong in [0, -1, 31_536_001, i64::MAX, i64::MIN, 1 << 32] {
        let error = compare_every(wrong).unwrap_err().to_string();
        assert!(error.ends_with(&format!("not every {wrong}")), "{error}");
    }
}

proptest! {
    #[test]
    fn a_tree_from_any_indentation_has_feeders_above_and_no_circle(
        indents in prop::collection::vec(0usize..6, 1..30)
    ) {
        let list: String = indents
            .iter()
            .enumerate()
            .map(|(i, n)| format!("{}h{i}:/\n", " ".repeat(if i == 0 { 0 } else { *n })))
            .collect();
        let Ok(found) = tree(place::list(&list).unwrap()) else { return Ok(()) };
        for (i, d) in found.iter().enumerate() {
            prop_assert!(d.feeder.is_none_or(|f| f < i && indents[f] < indents[i] || f == 0));
        }
    }
}

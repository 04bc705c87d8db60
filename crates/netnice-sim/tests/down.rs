// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Downloads that their receiver's host lets yield, from senders that are plain CUBIC. A bound holds when
//! the whole 95 % confidence interval over the seeds is on its side.

use std::path::Path;

use netnice_scenario::Scenario;
use netnice_sim::result::{summarise, Summary};
use netnice_sim::sweep::{run_all, Plan};

/// A row for each download, and one for CUBIC on its own.
fn rows(settings: &[&str], seeds: u64) -> (Vec<Summary>, Summary) {
    rows_of("downloads", settings, seeds)
}

/// The same of a scenario.
fn rows_of(name: &str, settings: &[&str], seeds: u64) -> (Vec<Summary>, Summary) {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../lab/scenarios/{name}.toml"));
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let scenario = Scenario::read_with(&file, &settings).unwrap();
    let pulled: Vec<_> =
        scenario.background.iter().filter(|b| b.pull).map(|b| b.name.clone()).collect();
    assert_eq!(pulled.len(), 4);
    let plan = Plan::new(scenario, &[], (1..=seeds).collect()).unwrap();
    let rows = summarise(&run_all(&[plan], None, &|_| ()).unwrap()[0]);
    for row in &rows {
        println!("{}: harm {:?}, share {:?}", row.background, row.fct_ratio_mean, row.share);
    }
    let plain = rows.iter().find(|row| row.background == "cubic x1").unwrap().clone();
    (rows.into_iter().filter(|row| pulled.contains(&row.background)).collect(), plain)
}

#[test]
fn beside_fetches_of_its_host_downloads_take_most_of_what_they_leave_and_do_them_little_harm() {
    // 1.02 [1.00, 1.03] and .64, 1.02/.65, 1.01/.67, 1.01/.70; strict priority has 1.02
    let (rows, plain) = rows(&[], 24);
    assert!(plain.fct_ratio_mean.lo.unwrap() >= 1.5);
    for row in rows {
        assert!(row.fct_ratio_mean.hi.unwrap() <= 1.07, "{}", row.background);
        assert!(row.share.lo.unwrap() >= 0.58, "{}", row.background);
    }
}

#[test]
fn near_and_far_servers_together_make_downloads_neither_rude_nor_poor() {
    // 1.04/.44, 1.03/.43, 1.02/.41, 1.03/.42; strict priority has 1.01
    for row in rows_of("downloads-far", &[], 24).0 {
        assert!(row.fct_ratio_mean.hi.unwrap() <= 1.10, "{}", row.background);
        assert!(row.share.mean.unwrap() >= 0.4, "{}", row.background);
    }
    // .99, .82, .78, .77
    for row in rows_of("downloads-far", &["foreground.load=0"], 8).0 {
        assert!(row.share.mean.unwrap() >= 0.7, "{}", row.background);
    }
}

#[test]
fn beside_fetches_over_connections_that_are_kept_they_yield_as_well() {
    // about 1.02/.55, 1.01/.56, 1.03/.57, 1.05/.63; strict priority has 1.01 to 1.04
    for row in rows(&["foreground.keep_alive=true"], 60).0 {
        assert!(row.fct_ratio_mean.hi.unwrap() <= 1.07, "{}", row.background);
        assert!(row.share.lo.unwrap() >= 0.5, "{}", row.background);
    }
}

#[test]
fn downloads_fill_an_idle_link_however_many_they_are() {
    for row in rows(&["foreground.load=0"], 3).0 {
        assert!(row.share.lo.unwrap() >= 0.98, "{}", row.background);
    }
}

#[test]
fn of_other_hosts_traffic_they_know_nothing_and_yield_to_it_all_the_same() {
    let elsewhere: Vec<_> = (1..=4).map(|i| format!("background[{i}].host=elsewhere")).collect();
    let slow: Vec<_> = elsewhere.iter().map(String::as_str).collect();
    let fast = ["bottleneck.rate_mbit=50", "bottleneck.rtt_ms=20", "bottleneck.limit_packets=100"];
    let fast: Vec<_> = slow.iter().copied().chain(fast).collect();
    for (settings, seeds, harm, share) in [(slow, 40, 1.10, 0.23), (fast, 12, 1.07, 0.28)] {
        for row in rows(&settings, seeds).0 {
            assert!(row.fct_ratio_mean.hi.unwrap() <= harm, "{}", row.background);
            assert!(row.share.mean.unwrap() > share, "{}", row.background);
        }
    }
}

#[test]
fn where_queues_are_fair_many_downloads_do_no_harm_either() {
    for row in rows(&["bottleneck.queue=fq_codel", "bottleneck.limit_packets=1000"], 12).0 {
        assert!(row.fct_ratio_mean.hi.unwrap() <= 1.12, "{}", row.background);
        assert!(row.share.lo.unwrap() >= 0.58, "{}", row.background);
    }
}

#[test]
fn on_an_idle_link_jitter_costs_a_download_little_and_a_loss_what_it_costs_its_sender() {
    for row in rows(&["foreground.load=0", "bottleneck.jitter_ms=10"], 4).0 {
        assert!(row.share.mean.unwrap() >= 0.6, "{}", row.background);
    }
    let (rows, plain) = rows(&["foreground.load=0", "bottleneck.loss=0.01"], 4);
    // CUBIC alone has .34
    for row in rows {
        let part = row.share.mean.unwrap() / plain.share.mean.unwrap();
        assert!(part >= 0.75, "{}", row.background);
    }
}

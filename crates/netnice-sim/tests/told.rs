// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Hosts that are told of their path: what is the best that a sender could do? Harm and share are as in
//! the table of a run, over seeds from 101 on.
//!
//! Saved results name the table of short runs as what they depend on (lab/netnice_lab/records.py,
//! `told`). After a change on purpose: INSTA_UPDATE=always cargo test --release -p netnice-sim --test
//! told.

use std::fmt::Write;

use netnice_scenario::{Scenario, IDEAL};
use netnice_sim::result::{summarise, Summary};
use netnice_sim::sweep::{run_all, Plan};

/// K1 with `head` beside it, and a background of CUBIC for each set of keys.
fn scenario(head: &str, queue: &str, backgrounds: &[&str]) -> Scenario {
    let mut text = format!(
        "name = \"told\"\n{head}\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\nlimit_packets = 50\n\
         queue = \"{queue}\"\n"
    );
    if !head.contains("foreground") {
        text += "[foreground]\nhost = \"theirs\"\n";
    }
    for keys in backgrounds {
        write!(
            text,
            "[[background]]\nname = '''{keys}'''\ncontrol = \"cubic\"\nhold = true\n{keys}\n"
        )
        .unwrap();
    }
    Scenario::parse(&text, "told").unwrap()
}

/// The rows of strict priority and of each background.
fn rows(scenario: Scenario, seeds: u64) -> Vec<Summary> {
    let plan = Plan::new(scenario, &[], (101..101 + seeds).collect()).unwrap();
    let mut rows = summarise(&run_all(&[plan], None, &|_| ()).unwrap()[0]);
    rows.remove(0);
    for row in &rows {
        println!("{}: harm {:?}, share {:?}", row.background, row.fct_ratio_mean, row.share);
    }
    assert_eq!(rows[0].background, IDEAL);
    rows
}

fn harm(row: &Summary) -> f64 {
    row.fct_ratio_mean.mean.unwrap()
}

fn share(row: &Summary) -> f64 {
    row.share.mean.unwrap()
}

#[test]
fn an_oracle_that_knows_at_once_is_strict_priority() {
    // both send a packet of the background when no other waits; neither takes one back
    let now = "oracle = { late_ms = 0 }";
    let rows = rows(scenario("", "drop-tail", &[now, &format!("flows = 16\n{now}")]), 24);
    let priority = &rows[0].fct_ratio_mean;
    for row in &rows[1..] {
        let its = &row.fct_ratio_mean;
        assert!(its.lo.unwrap() <= priority.hi.unwrap() && its.hi.unwrap() >= priority.lo.unwrap());
        assert!((0.98..1.02).contains(&share(row)));
    }
}

#[test]
fn the_later_an_oracle_knows_the_more_it_harms() {
    let late = [0, 25, 50, 100].map(|ms| format!("oracle = {{ late_ms = {ms} }}"));
    let rows = rows(scenario("", "drop-tail", &late.each_ref().map(String::as_str)), 24);
    assert!(rows[1..].windows(2).all(|pair| harm(&pair[0]) < harm(&pair[1])));
}

#[test]
fn the_stricter_an_oracle_the_less_it_harms_and_carries() {
    // Fetches take half of the link, so half of the time it is free. A part of the rate in that time
    // is the same part of what is spare, but for times in which it expects what does not come, and
    // for those in which it does not know yet of what came.
    let parts = [0.2, 0.4, 0.6, 0.8];
    let keys = parts.map(|part| format!("oracle = {{ part = {part} }}"));
    let rows = rows(scenario("", "drop-tail", &keys.each_ref().map(String::as_str)), 24);
    for (row, part) in rows[1..].iter().zip(parts) {
        assert!((part * 0.9..part * 1.2).contains(&share(row)), "{}", row.background);
    }
    assert!(rows[1..].windows(2).all(|pair| harm(&pair[0]) < harm(&pair[1])));
}

#[test]
fn a_round_trip_late_an_oracle_harms_no_more_than_a_host_that_measures_and_carries_more() {
    // what that learns from its ACKs is not more than the oracle is told
    let strict = "oracle = { part = 0.2 }";
    let rows = rows(scenario("", "drop-tail", &["", strict]), 40);
    assert!(harm(&rows[2]) <= harm(&rows[1]));
    assert!(rows[2].share.lo.unwrap() > rows[1].share.hi.unwrap());
}

#[test]
fn with_the_openings_of_connections_an_oracle_foresees_nearly_all() {
    // a server's first packet passes a round trip before its first data
    let told = "oracle = { openings = true, brings = 1 }";
    let rows = rows(scenario("", "drop-tail", &["oracle = { brings = 1 }", told]), 24);
    assert!(rows[2].fct_ratio_mean.hi.unwrap() <= 1.06);
    assert!(rows[2].share.lo.unwrap() >= 0.8);
    assert!(rows[1].fct_ratio_mean.lo.unwrap() > rows[2].fct_ratio_mean.hi.unwrap());
}

#[test]
fn at_a_typed_rate_a_host_takes_that_of_an_idle_link_and_what_its_own_fetches_leave_of_it() {
    let typed = ["hold_rate_mbit = 7.6"];
    // 95 % of the rate
    let idle = rows(scenario("[foreground]\nload = 0", "drop-tail", &typed), 2);
    assert!((0.94..0.96).contains(&share(&idle[1])), "{}", share(&idle[1]));
    // 4.3 of 8 Mbit/s are the fetches' packets: (7.6 - 4.3) / (8 - 4.3) = .89, or less where they are more
    let own = rows(scenario("[foreground]\nload = 0.5", "drop-tail", &typed), 24);
    assert!((0.80..0.92).contains(&share(&own[1])));
    assert!(own[1].fct_ratio_mean.hi.unwrap() <= 1.04);
    // it does not see those of others: their sum is more than the link carries
    let theirs = rows(scenario("", "drop-tail", &typed), 12);
    assert!(theirs[1].fct_ratio_mean.lo.unwrap() > 1.3);
}

#[test]
fn hosts_that_are_told_carry_what_they_did() {
    let short = "warmup_s = 1\nmeasure_s = 5\ndrain_s = 5";
    let half = "[foreground]\nhost = \"server\"\nsenders = 2\n";
    let each = [
        "oracle = {}",
        "oracle = { part = 0.3 }",
        "oracle = { openings = true, brings = 1 }",
        "flows = 4\nhost = \"server 1\"\noracle = { late_ms = 20 }",
        "hold_rate_mbit = 7.6",
    ];
    let mut table = String::new();
    for (head, queue) in
        [(short, "drop-tail"), (short, "fq_codel"), (&format!("{short}\n{half}"), "drop-tail")]
    {
        writeln!(table, "{queue} {}", head.replace('\n', " ")).unwrap();
        for row in &rows(scenario(head, queue, &each), 2)[1..] {
            let name = row.background.replace('\n', ", ");
            writeln!(table, "  {name:64} {:.6} / {:.6}", harm(row), share(row)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

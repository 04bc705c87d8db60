// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A table of small duels: what each algorithm of the core does to web-like fetches in the background.
//!
//! The table is for people to read, and to see in a diff what a change of an algorithm, of TCP or of a
//! queue does. A few seconds of one seed are far too little to judge an algorithm by; they are exactly
//! repeatable, though. After a change on purpose: INSTA_UPDATE=always cargo test -p netnice-sim
//! --test duels, and look at the diff.

use netnice_core::Algorithm;
use netnice_scenario::Scenario;
use netnice_sim::result::{summarise, Summary};
use netnice_sim::sweep::{run_all, Plan};

/// Queue and number of background flows.
const CASES: [(&str, u32); 5] =
    [("drop-tail", 1), ("drop-tail", 8), ("red", 8), ("fq_codel", 8), ("pie", 8)];

/// Fetches at half the load, and every algorithm in turn behind them.
fn plan(queue: &str, flows: u32) -> Plan {
    let mut text = format!(
        "name = \"duels\"\nwarmup_s = 1\nmeasure_s = 4\ndrain_s = 2\n[bottleneck]\nrate_mbit = 8\n\
         rtt_ms = 50\nlimit_packets = 50\nqueue = \"{queue}\"\n[foreground]\n\
         max_bytes = 100000\n[ideal]\nflows = {flows}\n"
    );
    for algorithm in Algorithm::all() {
        let name = algorithm.name();
        text +=
            &format!("[[background]]\nname = \"{name}\"\ncontrol = \"{name}\"\nflows = {flows}\n");
    }
    Plan::new(Scenario::parse(&text, "duels").unwrap(), &[], vec![1]).unwrap()
}

/// By how much fetches take longer, and the share of the spare bandwidth.
fn cell(entry: &Summary) -> String {
    let percent = entry.share.mean.unwrap() * 100.0;
    format!("{:.2} / {percent:3.0}", entry.fct_ratio_mean.mean.unwrap())
}

#[test]
fn the_small_duels_end_as_they_did() {
    let plans = CASES.map(|(queue, flows)| plan(queue, flows));
    let columns: Vec<Vec<Summary>> =
        run_all(&plans, None, &|_| ()).unwrap().iter().map(|runs| summarise(runs)).collect();
    let mut table = String::from(
        "Fetches at half of 8 Mbit/s, 50 ms, 50 packets: mean completion time over that without\n\
         background / background goodput in % of strict priority's\n\n",
    );
    table += &format!("{:16}", "background");
    table.extend(CASES.map(|(queue, flows)| format!("{:>14}", format!("{queue} x{flows}"))));
    for row in 1..columns[0].len() {
        table += &format!("\n{:16}", columns[0][row].background);
        table.extend(columns.iter().map(|column| format!("{:>14}", cell(&column[row]))));
    }
    insta::assert_snapshot!(table);
}

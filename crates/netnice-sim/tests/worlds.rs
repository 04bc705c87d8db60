// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A few seconds of every network that the lab's scenarios have, without the algorithms under test: a
//! change of the simulator's TCP profiles, links, queues, hosts or other traffic shows here.
//!
//! Saved results name this table as what they depend on (lab/netnice_lab/records.py, `world`). After a
//! change on purpose: INSTA_UPDATE=always cargo test --release -p netnice-sim --test worlds.

use std::fmt::Write;
use std::path::Path;

use netnice_scenario::weblog::WebLog;
use netnice_scenario::{Scenario, IDEAL, NONE};
use netnice_sim::result::Run;
use netnice_sim::sweep::{run_all, Plan};

/// Scenarios, and what makes them short or another.
const WORLDS: [(&str, &[&str]); 12] = [
    ("nice/web", &[]),
    ("nice/udp", &[]),
    ("nice/london", &[]),
    ("imtcp-bg/steps", &[]),
    ("fairbat/single", &[]),
    ("fairbat/two-links", &[]),
    ("mpat/shares", &[]),
    ("idle", &[]),
    ("shaped", &[]),
    ("lan", &["measure_s=0.5"]),
    ("k1", &["pacing=true", "bottleneck.loss=0.01"]),
    ("k1", &["bottleneck.jitter_ms=5", "bottleneck.reorder=0.05", "bottleneck.reorder_ms=3"]),
];
const SHORT: [&str; 3] = ["warmup_s=2", "measure_s=10", "drain_s=5"];

/// No background and strict priority, whose flows are the Reno or CUBIC that every result rests on.
fn plan(name: &str, settings: &[&str]) -> Plan {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../lab/scenarios/{name}.toml"));
    let all: Vec<String> = SHORT.iter().chain(settings).map(ToString::to_string).collect();
    let mut plan = Plan::new(Scenario::read_with(&file, &all).unwrap(), &[], vec![1]).unwrap();
    plan.variants.retain(|v| [NONE, IDEAL].contains(&&*v.name));
    plan
}

/// Mean completion time of the foreground, goodputs, and packets lost, to the last digits.
fn line(run: &Run) -> String {
    let mut text = format!("  {:15} ", run.background);
    if let Some(fct) = run.foreground.fct_mean_s {
        write!(text, "{fct:.9} s, ").unwrap();
    }
    for cross in &run.cross {
        write!(text, "{:.6} Mbit/s, ", cross.goodput_mbit).unwrap();
    }
    write!(text, "{:.6} Mbit/s, {} dropped", run.background_goodput_mbit, run.queue.drops).unwrap();
    text
}

#[test]
fn every_network_of_the_lab_carries_what_it_did() {
    let log = WebLog::read(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/data/web-requests.csv.gz"),
    )
    .unwrap();
    let plans = WORLDS.map(|(name, settings)| plan(name, settings));
    let mut table = String::new();
    for ((name, settings), runs) in WORLDS.iter().zip(run_all(&plans, Some(&log), &|_| ()).unwrap())
    {
        writeln!(table, "{}", [&[*name], *settings].concat().join(" ")).unwrap();
        for run in &runs {
            writeln!(table, "{}", line(run)).unwrap();
        }
    }
    insta::assert_snapshot!(table);
}

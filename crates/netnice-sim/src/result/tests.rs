// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Documents of runs whose figures can be derived by hand.

use super::*;
use crate::outcome::Fetch;
use crate::report;

const FILE: &str = "name = \"t\"\nmeasure_s = 10\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\n\
    limit_packets = 50\n[foreground]\nprobe_interval_ms = 100\n[[background]]\nname = \"b\"\n\
    control = \"reno\"\nflows = 2\n[[cross]]\nname = \"udp\"\nkind = \"cbr\"\nrate_mbit = 1\n";

/// A run whose completion times are so many seconds, and whose second flow is as fast as it says.
fn run(variant: usize, seed: u64, fct_s: &[Option<f64>], bulk_mbit: u64) -> Run {
    let scenario = Scenario::parse(FILE, "t.toml").unwrap();
    let fetch = |&fct_s| Fetch { start_s: 3.0, bytes: 1000, counted: true, fct_s };
    let packets = Packets { rtt_us: vec![50_000, 150_000], sent: 7, lost: 2, window_bytes: 5 };
    let outcome = Outcome {
        fetches: fct_s.iter().map(fetch).collect(),
        foreground: packets.clone(),
        probes: vec![Some(50_000_000), None, Some(70_000_000)],
        background: vec![
            Bulk { window_bytes: 0, bytes: 1, retransmits: 3 },
            Bulk { window_bytes: bulk_mbit * 1_250_000, bytes: 1, retransmits: 4 },
        ],
        cross: vec![packets],
        ..Outcome::default()
    };
    Run::new(&scenario, &scenario.variants()[variant], seed, &outcome)
}

#[test]
fn a_run_counts_finished_and_unfinished_flows_apart() {
    // Two of three ended; 2 x 1000 bytes in 10 s are 0.0016 Mbit/s. The window of 10 s has
    // 4 x 1.25 MB = 4 Mbit/s. p95 of two values: 1 + 0.95 x (3 - 1) = 2.9.
    let run = run(2, 1, &[Some(3.0), None, Some(1.0)], 4);
    let f = &run.foreground;
    assert_eq!((f.flows, f.unfinished, f.bytes), (3, 1, 2000));
    assert_eq!((f.fct_mean_s, f.fct_p50_s), (Some(2.0), Some(2.0)));
    assert!((f.fct_p95_s.unwrap() - 2.9).abs() < 1e-12);
    assert!((f.goodput_mbit - 0.0016).abs() < 1e-12);
    assert_eq!((&f.fct_s, &f.sizes), (&vec![3.0, 1.0], &vec![1000, 1000]));
    assert_eq!(f.packet_rtt.packet_rtt_mean_ms, Some(100.0));
    assert_eq!((f.packets, f.retransmits), (7, 2));
    assert_eq!(run.background_flow_mbit, [0.0, 4.0]);
    assert_eq!((run.flows, run.background_retransmits), (2, 7));
    let probe = run.probe.unwrap();
    assert_eq!((probe.rtt_mean_ms, probe.lost), (Some(60.0), 1));
}

#[test]
fn ratios_and_shares_are_to_the_same_seed() {
    // Seed 1: 2 s over 1 s, 2 over 4 Mbit/s. Seed 2: 6 s over 2 s, 4 over 4 Mbit/s.
    // Ratios 2 and 3: mean 2.5, and 12.7062 x 0.70711 / sqrt(2) = 6.3531 each way.
    let runs = [
        run(0, 1, &[Some(1.0)], 0),
        run(1, 1, &[Some(1.0)], 4),
        run(2, 1, &[Some(2.0)], 2),
        run(0, 2, &[Some(2.0)], 0),
        run(1, 2, &[Some(2.0)], 4),
        run(2, 2, &[Some(6.0)], 4),
    ];
    let summary = summarise(&runs);
    let names: Vec<&str> = summary.iter().map(|s| s.background.as_str()).collect();
    assert_eq!(names, ["none", "strict priority", "b"]);
    let b = &summary[2];
    assert_eq!((b.seeds, b.fct_mean_s, b.unfinished), (2, Some(4.0), 0));
    assert_eq!(b.fct_ratio_mean.mean, Some(2.5));
    assert!((b.fct_ratio_mean.hi.unwrap() - 8.8531).abs() < 1e-4);
    assert_eq!(b.share.mean, Some(0.75));
    assert_eq!(summary[1].share.mean, Some(1.0));
    assert_eq!(b.cross[0].goodput_ratio.mean, Some(1.0));
}

#[test]
fn what_cannot_be_known_is_null() {
    let summary = summarise(&[run(2, 1, &[None], 4)]);
    assert_eq!(summary[0].fct_ratio_mean, Interval::default());
    assert_eq!(summary[0].share, Interval::default());
    assert_eq!((summary[0].fct_mean_s, summary[0].unfinished), (None, 1));
}

#[test]
fn the_document_has_the_keys_of_the_kernels() {
    let scenario = Scenario::parse(FILE, "t.toml").unwrap();
    let document = Document::new(scenario, vec!["c".into()], vec![run(2, 1, &[Some(1.0)], 4)]);
    let json = serde_json::to_value(&document).unwrap();
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    // As in lab/netnice_lab/run.py and stats.py; serde_json sorts them.
    assert_eq!(
        keys(&json),
        ["command", "commit", "date", "engine", "kernel", "runs", "scenario", "schema", "summary"]
    );
    let run = &json["runs"][0];
    for key in ["background", "control", "flows", "seed", "background_goodput_mbit"] {
        assert!(run.get(key).is_some(), "{key}");
    }
    assert_eq!(
        keys(&run["foreground"]),
        [
            "bytes",
            "fct_mean_s",
            "fct_p50_s",
            "fct_p95_s",
            "fct_p99_s",
            "fct_s",
            "flows",
            "goodput_mbit",
            "packet_rtt_mean_ms",
            "packet_rtt_p95_ms",
            "packet_rtt_p99_ms",
            "packets",
            "retransmits",
            "sizes",
            "unfinished"
        ]
    );
    assert_eq!(keys(&run["probe"]), ["lost", "rtt_mean_ms", "rtt_p95_ms", "rtt_p99_ms"]);
    assert!(json["kernel"].is_null() && json["date"].is_null());
}

/// What people read of some runs.
fn table(runs: Vec<Run>) -> String {
    report::text(&Document::new(Scenario::parse(FILE, "t.toml").unwrap(), Vec::new(), runs))
}

#[test]
fn a_share_of_next_to_nothing_is_a_dash_and_the_caption_says_why() {
    let of_seed = |seed, ideal_mbit| {
        [(0, 0), (1, ideal_mbit), (2, 4)]
            .map(|(variant, mbit)| run(variant, seed, &[Some(1.0)], mbit))
    };
    let shared = table([of_seed(1, 4), of_seed(2, 5)].concat());
    assert!(shared.contains(" 90 [-37, 217]"), "{shared}");
    assert!(!shared.contains("no shares"), "{shared}");
    let in_one = table([of_seed(1, 4), of_seed(2, 0)].concat());
    let why = "; no shares: strict priority leaves nothing to compare with in 1 of 2 seeds\n";
    assert!(in_one.contains(why), "{in_one}");
    assert!(in_one.lines().filter(|line| line.ends_with(" –")).count() == 3, "{in_one}");

    let mut little = of_seed(1, 1).to_vec();
    little[1].background_goodput_mbit = 0.09;
    let little = table(little);
    let why = "; no shares: strict priority carries less than 0.1 Mbit/s to compare with\n";
    assert!(little.contains(why), "{little}");
}

#[test]
fn ratios_of_fewer_seeds_say_of_how_many_and_names_come_once() {
    let runs: Vec<Run> = [(1, None), (2, Some(2.0)), (3, Some(3.0))]
        .into_iter()
        .flat_map(|(seed, fct_s)| {
            [(0, Some(1.0)), (1, Some(1.0)), (2, fct_s)]
                .map(|(variant, fct_s)| run(variant, seed, &[fct_s], 4))
        })
        .collect();
    let fewer =
        "FCT ratios of fewer seeds, as with the others no fetch finished: b (of 2 of 3 seeds)\n";
    let one = table(runs.clone());
    assert!(one.contains(fewer) && one.contains("\n1 fetch (b) had not"), "{one}");
    let point = || SweepPoint { settings: Ordered(Vec::new()), summary: summarise(&runs) };
    let scenario = Scenario::parse(FILE, "t.toml").unwrap();
    let sweep = Sweep::new(scenario, Vec::new(), Vec::new(), 3, vec![point(), point()]);
    let two = report::sweep_text(&sweep);
    assert!(two.contains(fewer) && two.contains("\n2 fetches (b) had not"), "{two}");
}

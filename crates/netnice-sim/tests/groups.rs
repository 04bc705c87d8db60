// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Groups in the background: what their members get, and what others lose by them.

use netnice_load::scenario::Scenario;
use netnice_sim::result::summarise;
use netnice_sim::sweep::{run_all, Plan};

/// Fetches at half the load of 40 Mbit/s, 50 ms and 200 packets, beside four flows of Nice: on their
/// own, and in a group with shares.
const SCENARIO: &str =
    "name = \"groups\"\nmeasure_s = 60\n[bottleneck]\nrate_mbit = 40\nrtt_ms = 50\n\
    limit_packets = 200\n[foreground]\nload = 0.5\n[ideal]\nflows = 4\n\
    [[background]]\nname = \"alone\"\ncontrol = \"nice\"\nflows = 4\n\
    [[background]]\nname = \"group\"\ncontrol = \"nice\"\nflows = 4\ngroup = \"g\"\n\
    shares = [1.0, 2.0, 3.0, 4.0]\n";

#[test]
fn four_flows_of_nice_divide_by_shares_what_four_would_take_and_are_no_more_in_the_way() {
    let plan = Plan::new(Scenario::parse(SCENARIO, "groups").unwrap(), &[], (1..=10).collect());
    let runs = run_all(&[plan.unwrap()], None, &|_| ()).unwrap().remove(0);

    let mut got = [0.0; 4];
    for run in runs.iter().filter(|run| run.background == "group") {
        got.iter_mut().zip(&run.background_flow_mbit).for_each(|(sum, mbit)| *sum += mbit);
    }
    let all: f64 = got.iter().sum();
    for (share, got) in [1.0, 2.0, 3.0, 4.0].iter().zip(got) {
        let part = got / all * 10.0;
        assert!((part / share - 1.0).abs() < 0.1, "a share of {share} of 10 got {part}");
    }

    let summary = summarise(&runs);
    let of = |name: &str| summary.iter().find(|s| s.background == name).unwrap();
    let (alone, group) = (of("alone"), of("group"));
    let times = (alone.fct_ratio_mean.mean.unwrap(), group.fct_ratio_mean.mean.unwrap());
    let reaped = (alone.share.mean.unwrap(), group.share.mean.unwrap());
    println!("completion times {times:?}, spare bandwidth {reaped:?}");
    // by figures of ten seeds, which differ by a percent: both take 3 % longer
    assert!(times.1 < times.0 + 0.02, "{times:?}");
    assert!((0.75..1.33).contains(&(reaped.1 / reaped.0)), "{reaped:?}");
}

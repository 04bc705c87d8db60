// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Groups in the background: what their members get, and what others lose by them.

use netnice_scenario::Scenario;
use netnice_sim::result::summarise;
use netnice_sim::sweep::{run_all, Plan};

const SCENARIO: &str = include_str!("../../../lab/scenarios/groups.toml");

#[test]
fn four_flows_of_nice_divide_by_shares_what_four_would_take_and_are_no_more_in_the_way() {
    let plan = Plan::new(Scenario::parse(SCENARIO, "groups").unwrap(), &[], (1..=20).collect());
    let runs = run_all(&[plan.unwrap()], None, &|_| ()).unwrap().remove(0);

    let mut got = [0.0; 4];
    for run in runs.iter().filter(|run| run.background == "group 1:2:3:4") {
        got.iter_mut().zip(&run.background_flow_mbit).for_each(|(sum, mbit)| *sum += mbit);
    }
    let all: f64 = got.iter().sum();
    for (share, got) in [1.0, 2.0, 3.0, 4.0].iter().zip(got) {
        let part = got / all * 10.0;
        // the least one, whose gaps go on when C has grown, lacks a quarter with these seeds
        assert!((part / share - 1.0).abs() < 0.3, "a share of {share} of 10 got {part}");
    }

    let summary = summarise(&runs);
    let of = |name: &str| summary.iter().find(|s| s.background == name).unwrap();
    let (alone, group) = (of("alone"), of("group 1:2:3:4"));
    let times = (alone.fct_ratio_mean.mean.unwrap(), group.fct_ratio_mean.mean.unwrap());
    let reaped = (alone.share.mean.unwrap(), group.share.mean.unwrap());
    println!("completion times {times:?}, spare bandwidth {reaped:?}");
    // both means move by a percent from twenty seeds to others
    assert!(times.1 < times.0 + 0.02, "{times:?}");
    // a small window of a group is drawn seldom and grows late, so that a group has somewhat less
    assert!((0.6..1.25).contains(&(reaped.1 / reaped.0)), "{reaped:?}");
}

/// A server with a fast uplink, to four places behind links of their own; users share one of these.
/// `group`: a line for each of the four transfers.
fn apart(group: &str) -> String {
    let paths = [
        ("modem", 0.0566, 60, 5),
        ("cable", 1.5, 15, 40),
        ("london", 2.0, 65, 40),
        ("delaware", 5.0, 25, 40),
    ];
    let mut text = String::from(
        "name = \"apart\"\nwarmup_s = 20.0\nmeasure_s = 200.0\ndrain_s = 60.0\n\
         [foreground]\nfrom = \"s\"\nto = \"modem\"\nmean_bytes = 3000\nmax_bytes = 900000\n\
         [[link]]\nname = \"up\"\nfrom = \"s\"\nto = \"r\"\nrate_mbit = 100.0\nlimit_packets = 1000\n\
         duplex = true\n\
         [[background]]\nname = \"nearly none\"\ncontrol = \"nice\"\nbytes = 1000\n",
    );
    for (name, rate, delay, queue) in paths {
        text += &format!(
            "[[link]]\nname = \"{name}\"\nfrom = \"r\"\nto = \"{name}\"\nrate_mbit = {rate}\n\
             delay_ms = {delay}.0\nlimit_packets = {queue}\n\
             [[link]]\nname = \"from {name}\"\nfrom = \"{name}\"\nto = \"r\"\ndelay_ms = {delay}.0\n"
        );
        if !group.is_empty() {
            text += &format!(
                "[[cross]]\nname = \"{name}\"\nkind = \"tcp\"\ncontrol = \"nice\"\nfrom = \"s\"\n\
                 to = \"{name}\"\n{group}\n"
            );
        }
    }
    text
}

/// Means over seeds: the users' completion time, and what each transfer got, in Mbit/s.
fn beside(group: &str) -> (f64, Vec<f64>) {
    const SEEDS: u64 = 5;
    let plan =
        Plan::new(Scenario::parse(&apart(group), "apart").unwrap(), &[], (1..=SEEDS).collect());
    let runs = run_all(&[plan.unwrap()], None, &|_| ()).unwrap().remove(0);
    let runs: Vec<_> = runs.iter().filter(|run| run.background == "none").collect();
    let mean = |of: &dyn Fn(usize) -> f64| (0..runs.len()).map(of).sum::<f64>() / SEEDS as f64;
    let got = (0..runs[0].cross.len()).map(|i| mean(&|run| runs[run].cross[i].goodput_mbit));
    (mean(&|run| runs[run].foreground.fct_mean_s.unwrap()), got.collect())
}

#[test]
fn a_member_on_a_path_of_its_own_is_no_more_in_the_way_there_than_a_flow_on_its_own() {
    let (nobody, _) = beside("");
    let (alone, own) = beside("set = {}");
    let (group, shared) = beside("group = \"g\"");
    println!("times {:.3} and {:.3}; {own:?} and {shared:?}", alone / nobody, group / nobody);
    // a group that takes the four links for one makes it 3.2 +- 0.6 times; one flow 1.02 +- 0.02
    assert!(group / nobody < 1.2, "{group} s, {nobody} s without any");
    // and 0.46 and 0.61 of 1.9 and 4.8 Mbit/s to the two that are fast, since all hear of the slow one.
    // It is a third to a half since maxRTT has to be confirmed, and fades (bounds.h); before, the slow
    // one's queue of a second was what all of them tolerated for ever, and they got 0.68 and 0.71.
    assert!(shared[2] > own[2] / 4.0 && shared[3] > own[3] / 4.0, "{own:?} and {shared:?}");
}

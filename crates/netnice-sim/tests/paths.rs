// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A path that changes while a connection lives: it gets longer, stalls once, or its delay varies.

use netnice_scenario::{Scenario, IDEAL, NONE};
use netnice_sim::result::Run;
use netnice_sim::sweep::{run_all, Plan};

/// One flow of each over 8 Mbit/s, 20 ms both ways and 80 ms of queue; measured from 30 to 60 s.
const PATH: &str = r#"
name = "path"
warmup_s = 30
measure_s = 30
drain_s = 0
ideal = { control = "cubic", flows = 1 }
[foreground]
load = 0
[[background]]
name = "nice"
control = "nice"
[[background]]
name = "lp"
control = "lp"
[[background]]
name = "imtcp_bg"
control = "imtcp_bg"
[[background]]
name = "vegas"
control = "vegas"
[[background]]
name = "fairbat2"
control = "fairbat2"
[bottleneck]
rate_mbit = 8
rtt_ms = 20
limit_packets = 54
"#;

/// Runs of the path with lines of the bottleneck's, seeds 1 to 4.
fn runs(change: &str) -> Vec<Run> {
    let scenario = Scenario::parse(&format!("{PATH}{change}"), "path").unwrap();
    let plan = Plan::new(scenario, &[], (1..=4).collect()).unwrap();
    run_all(&[plan], None, &|_| ()).unwrap().remove(0)
}

/// The mean over the seeds.
fn mean(runs: &[Run], background: &str, of: impl Fn(&Run) -> f64) -> f64 {
    let values: Vec<f64> = runs.iter().filter(|r| r.background == background).map(of).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// What a background carries, as a share of what CUBIC does on the link.
fn carried(runs: &[Run], background: &str) -> f64 {
    let of = |name| mean(runs, name, |run| run.background_goodput_mbit);
    of(background) / of(IDEAL)
}

/// What the flows beside a background carry, as a share of what they do without it.
fn left(runs: &[Run], background: &str) -> f64 {
    let others = |run: &Run| run.cross.iter().map(|flow| flow.goodput_mbit).sum();
    mean(runs, background, others) / mean(runs, NONE, others)
}

#[test]
fn a_path_that_becomes_three_times_as_long_is_used_as_before_within_ten_seconds() {
    let runs = runs("[[bottleneck.change]]\nat_s = 20\nrtt_ms = 60\n");
    // TCP-LP halves its window when 15 % of the queue is full: it carries 84 % of a path of 60 ms
    for (name, least) in
        [("nice", 0.9), ("imtcp_bg", 0.9), ("vegas", 0.9), ("fairbat2", 0.9), ("lp", 0.65)]
    {
        let share = carried(&runs, name);
        println!("{name}: {share:.2}");
        assert!(share > least, "{name} carries {share} of the longer path");
    }
}

#[test]
fn a_path_whose_delay_varies_by_as_much_as_it_is_long_is_used() {
    let runs = runs("jitter_ms = 20\n");
    // TCP-LP compares an average of delays, which begins with one of them after each reaction
    for (name, least) in
        [("nice", 0.8), ("imtcp_bg", 0.8), ("vegas", 0.8), ("fairbat2", 0.8), ("lp", 0.4)]
    {
        let share = carried(&runs, name);
        println!("{name}: {share:.2}");
        assert!(share > least, "{name} carries {share} of a path with jitter");
    }
}

#[test]
fn after_one_stall_of_the_path_a_background_yields_as_before() {
    let runs = runs(
        "[[bottleneck.change]]\nat_s = 15\nrtt_ms = 1500\n\
         [[bottleneck.change]]\nat_s = 15.5\nrtt_ms = 20\n\
         [[cross]]\nname = \"cubic\"\nkind = \"tcp\"\nstart_s = 20\n",
    );
    for (name, least) in [("nice", 0.97), ("imtcp_bg", 0.97), ("lp", 0.97), ("vegas", 0.93)] {
        let share = left(&runs, name);
        println!("{name}: {share:.3}");
        assert!(share > least, "{name} leaves {share} to a CUBIC flow");
    }
}

#[test]
fn vegas_learns_of_jitter_whatever_the_chance() {
    // a look of 6 s found nothing with two of these seeds, 12 among them: half of the path was used
    let scenario = Scenario::parse(&format!("{PATH}jitter_ms = 20\n"), "path").unwrap();
    let plan = Plan::new(scenario, &["vegas".into()], (1..=48).collect()).unwrap();
    let runs = run_all(&[plan], None, &|_| ()).unwrap().remove(0);
    let cubic = mean(&runs, IDEAL, |run| run.background_goodput_mbit);
    for run in runs.iter().filter(|run| run.background == "vegas") {
        let share = run.background_goodput_mbit / cubic;
        assert!(share > 0.9, "seed {}: {share}", run.seed);
    }
}

#[test]
fn a_queue_that_others_keep_is_taken_neither_for_a_longer_path_nor_for_jitter() {
    // one flow and many; a queue that never empties, one that does, and one that CoDel keeps short
    for (queue, limit, control, flows) in [
        ("drop-tail", 54, "cubic", 1),
        ("drop-tail", 54, "reno", 1),
        ("drop-tail", 54, "cubic", 16),
        ("drop-tail", 13, "reno", 1),
        ("codel", 200, "cubic", 1),
    ] {
        let text = format!(
            "queue = \"{queue}\"\n[[cross]]\nname = \"others\"\nkind = \"tcp\"\nstart_s = 5\n\
             control = \"{control}\"\nflows = {flows}\n"
        );
        let file = format!("{PATH}{text}")
            .replace("limit_packets = 54", &format!("limit_packets = {limit}"))
            .replace("warmup_s = 30", "warmup_s = 60");
        let plan = Plan::new(Scenario::parse(&file, "path").unwrap(), &["nice".into()], vec![1, 2]);
        let runs = run_all(&[plan.unwrap()], None, &|_| ()).unwrap().remove(0);
        let share = left(&runs, "nice");
        println!("{queue} {limit} {control} x{flows}: {share:.3}");
        assert!(share > 0.95, "{flows} {control} flows, {queue} of {limit}: {share} is left");
    }
}

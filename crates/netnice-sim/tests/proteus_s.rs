// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Proteus-S as its paper has it: alone it fills the path, beside CUBIC it takes little, and two share.

use netnice_scenario::Scenario;
use netnice_sim::outcome::Outcome;

/// Of a link: a packet of 1514 bytes carries 1448.
const PAYLOAD: f64 = 1448.0 / 1514.0;

/// Measures flows that start 20 s apart on a path of 30 ms, from 40 s on.
fn run([rate, limit]: [u32; 2], flows: u32, for_s: u32, seed: u64, more: &str) -> Outcome {
    let text = format!(
        "name = \"proteus\"\nwarmup_s = 40\nmeasure_s = {for_s}\ndrain_s = 0\n[bottleneck]\n\
         rate_mbit = {rate}\nrtt_ms = 30\nlimit_packets = {limit}\n[[background]]\nname = \"it\"\n\
         control = \"proteus_s\"\nflows = {flows}\nstagger_s = 20\n{more}"
    );
    let scenario = Scenario::parse(&text, "proteus.toml").unwrap();
    let variants = scenario.variants();
    let variant = variants.iter().find(|v| v.name == "it").unwrap();
    netnice_sim::run(&scenario, variant, seed, None, None).unwrap()
}

/// What each flow carried, of a link of `rate` Mbit/s.
fn shares(outcome: &Outcome, rate: u32, for_s: u32) -> Vec<f64> {
    let all = f64::from(rate) * PAYLOAD * f64::from(for_s);
    outcome.background.iter().map(|flow| flow.window_bytes as f64 * 8e-6 / all).collect()
}

#[test]
fn alone_it_fills_a_path_with_a_buffer_of_a_round_trip_and_leaves_that_empty() {
    // 20 Mbit/s and 30 ms are 50 packets. Half of its probes are a twentieth below what it has found
    let outcome = run([20, 50], 1, 60, 1, "");
    let share = shares(&outcome, 20, 60)[0];
    assert!(share > 0.9, "{share}");
    assert!(outcome.queue.mean_ms < 4.0, "{}", outcome.queue.mean_ms);
}

#[test]
fn beside_one_cubic_flow_it_leaves_nineteen_twentieths() {
    let cubic = "[[cross]]\nname = \"tcp\"\nkind = \"tcp\"\ncontrol = \"cubic\"\n";
    for seed in 1..=4 {
        let outcome = run([20, 50], 1, 60, seed, cubic);
        let theirs = outcome.cross[0].window_bytes as f64 * 8e-6 / (20.0 * PAYLOAD * 60.0);
        assert!(theirs > 0.95, "{seed}: {theirs}");
    }
}

#[test]
fn two_flows_share_a_path_of_20_mbit_for_each() {
    // the paper's: 300 kB of buffer for each
    for seed in 1..=4 {
        let flows = shares(&run([40, 400], 2, 160, seed, ""), 40, 160);
        let sum: f64 = flows.iter().sum();
        let jain = sum * sum / 2.0 / flows.iter().map(|x| x * x).sum::<f64>();
        assert!(jain > 0.9, "{seed}: {flows:?}");
        assert!(sum > 0.8, "{seed}: {flows:?}");
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much memory a flow takes.

use netnice_scenario::Scenario;

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// The most bytes that a run with so many flows has at once.
fn peak(flows: usize) -> usize {
    let text = format!(
        "name = \"m\"\nwarmup_s = 0\nmeasure_s = 1\ndrain_s = 0\n[bottleneck]\nrate_mbit = 1000\n\
         rtt_ms = 40\nlimit_packets = 3000\n[[background]]\nname = \"b\"\ncontrol = \"nice\"\n\
         flows = {flows}\n"
    );
    let scenario = Scenario::parse(&text, "m.toml").unwrap();
    let variant = scenario.variants().pop().unwrap();
    let _profiler = dhat::Profiler::builder().testing().build();
    netnice_sim::run(&scenario, &variant, 1, None, None).unwrap();
    dhat::HeapStats::get().max_bytes
}

#[test]
fn a_flow_takes_no_more_than_4_kib() {
    // What does not depend on the number of flows, the queue above all, is in both.
    let per_flow = (peak(10_000) - peak(1_000)) / 9_000;
    println!("{per_flow} bytes");
    assert!((100..=4096).contains(&per_flow), "{per_flow} bytes");
}

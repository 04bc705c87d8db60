// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! FAIRBAT beside TCP on the paper's link: what share a flow ends with, and that it does end there.

use netnice_scenario::Scenario;

/// Three FAIRBAT and three Reno flows on 14 Mbit/s with RED, short flows of 3 MB once in 6 s: the
/// throughput of one of each, in Mbit/s, over ten minutes after five.
fn share(algorithm: &str, mode: &str, start: f64) -> (f64, f64) {
    let text = format!(
        "name = \"fairbat\"\nprofile = \"ns2\"\nwarmup_s = 300\nmeasure_s = 600\n[bottleneck]\n\
         rate_mbit = 14\nrtt_ms = 60\nqueue = \"red\"\nlimit_packets = 100\n[foreground]\n\
         control = \"reno\"\nsizes = \"exponential\"\nmean_bytes = 3000000\n\
         max_bytes = 100000000\nload = 0.2857\n[[cross]]\nname = \"tcp\"\nkind = \"tcp\"\n\
         control = \"reno\"\nflows = 3\n[[background]]\nname = \"fb\"\ncontrol = \"{algorithm}\"\n\
         flows = 3\nset = {{ mode = \"{mode}\", start = {start} }}\n"
    );
    let scenario = Scenario::parse(&text, "fairbat.toml").unwrap();
    let variants = scenario.variants();
    let variant = variants.iter().find(|v| v.name == "fb").unwrap();
    let outcome = netnice_sim::run(&scenario, variant, 1, None, None).unwrap();
    let mbit = |bytes: u64| bytes as f64 * 8e-6 / 600.0 / 3.0;
    let own: u64 = outcome.background.iter().map(|flow| flow.window_bytes).sum();
    (mbit(own), mbit(outcome.cross[0].window_bytes))
}

#[test]
fn slower_growth_gets_the_share_of_theory_from_any_start() {
    for start in [0.1, 1.0] {
        // (3) and (4), gamma = 1
        let (own, tcp) = share("fairbat1", "alpha", start);
        let error = own / tcp * (1.0 + 1.0 / tcp) - 1.0;
        assert!(error.abs() < 0.1, "FAIRBAT-I from {start}: {own} and {tcp}, off by {error}");
        let (own, tcp) = share("fairbat2", "alpha", start);
        let error = own / tcp * (1.0 + tcp) - 1.0;
        assert!(error.abs() < 0.1, "FAIRBAT-II from {start}: {own} and {tcp}, off by {error}");
    }
}

#[test]
fn sending_for_a_share_of_the_time_gets_less_than_theory_but_not_much() {
    // while it is silent the others have more than the TCP that it measures itself against (III.C)
    for start in [0.5, 1.0] {
        let (own, tcp) = share("fairbat1", "tau", start);
        let error = own / tcp * (1.0 + 1.0 / tcp) - 1.0;
        assert!((-0.3..0.0).contains(&error), "from {start}: {own} and {tcp}, off by {error}");
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What one background flow carries of a link that nobody else wants.

use netnice_scenario::Scenario;
use netnice_sim::result::summarise;
use netnice_sim::sweep::{run_all, Plan};

const SCENARIO: &str = include_str!("../../../lab/scenarios/idle.toml");

#[test]
fn a_slow_link_is_used_whose_only_queue_is_ones_own() {
    // where two packets take longer on the link than a fifth of the RTT, up to ten times the RTT
    for (rate_mbit, delay_ms) in [(0.5, 2.5), (0.5, 10.0), (0.5, 25.0), (1.5, 2.5), (5.0, 2.5)] {
        assert!(SCENARIO.contains("rate_mbit = 1.5") && SCENARIO.contains("delay_ms = 15"));
        let text = SCENARIO
            .replace("rate_mbit = 1.5", &format!("rate_mbit = {rate_mbit}"))
            .replace("delay_ms = 15", &format!("delay_ms = {delay_ms}"));
        let plan = Plan::new(Scenario::parse(&text, "idle").unwrap(), &[], vec![1]).unwrap();
        let runs = run_all(&[plan], None, &|_| ()).unwrap().remove(0);
        let entries = summarise(&runs);
        // TCP Nice as in its report does not
        for name in ["netnice", "imtcp_bg"] {
            let entry = entries.iter().find(|e| e.background == name).expect("of the scenario");
            let share = entry.share.mean.unwrap();
            assert!(share > 0.4, "{name} at {rate_mbit} Mbit/s, {delay_ms} ms: {share}");
        }
    }
}

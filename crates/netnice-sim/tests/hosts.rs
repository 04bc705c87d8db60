// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which flows know of each other, and where packets leave: hosts.

use netnice_scenario::Scenario;
use netnice_sim::outcome::Outcome;

/// Eight flows of Nice beside four of CUBIC that keep the queue full, over 8 Mbit/s and 50 ms; some
/// keys of the background and of the other traffic.
fn run(background: &str, cross: &str) -> Outcome {
    let text = format!(
        "name = \"t\"\nwarmup_s = 5\nmeasure_s = 40\ndrain_s = 0\n[bottleneck]\nrate_mbit = 8\n\
         rtt_ms = 50\nlimit_packets = 50\n\
         [[background]]\nname = \"b\"\ncontrol = \"nice\"\nflows = 8\n{background}\n\
         [[cross]]\nname = \"c\"\nkind = \"tcp\"\nflows = 4\n{cross}\n"
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap();
    let variants = scenario.variants();
    netnice_sim::run(&scenario, &variants[2], 1, None, None).unwrap()
}

fn background_bytes(outcome: &Outcome) -> u64 {
    outcome.background.iter().map(|flow| flow.window_bytes).sum()
}

#[test]
fn the_count_of_a_hosts_flows_is_of_that_host() {
    // However long congestion lasts, the flows of a host keep a window in all of which each has its
    // part (core/window/sparse.h): on a host of its own each has the whole, eight times as much. What
    // they take beyond that, the same in all three, leaves a factor of at least three.
    let [one, two, eight] =
        ["", "senders = 2", "senders = 8"].map(|keys| background_bytes(&run(keys, "")));
    assert!(one < two && 3 * one < eight, "{one} {two} {eight}");
    // Flows under another algorithm do not count, wherever they are.
    assert_eq!(background_bytes(&run("host = \"x\"", "host = \"x\"")), one);
    assert_eq!(background_bytes(&run("host = \"x\"", "host = \"y\"")), one);
}

#[test]
fn two_hosts_share_a_bottleneck_but_not_an_egress() {
    let outcome = run("host = \"x\"", "host = \"y\"");
    let [y, x] = &outcome.hosts[..] else { panic!("{:?}", outcome.hosts) };
    assert_eq!((x.name.as_str(), y.name.as_str()), ("x", "y"));
    // All that leaves x is the background's, and nothing that leaves y.
    assert_eq!(x.egress.background_bytes, x.egress.bytes);
    assert_eq!(y.egress.background_bytes, 0);
    assert!(x.egress.bytes > background_bytes(&outcome));
    assert!(y.egress.bytes > outcome.cross[0].window_bytes);
    // What leaves either comes to the one queue, and leaves that, is dropped, or waits in it: at
    // most 50 packets.
    let out = x.egress.packets + y.egress.packets;
    let through = outcome.queue.sent_packets + outcome.queue.drops;
    assert!((through..=through + 50).contains(&out), "{out} {through}");
    // On one host they share the egress too, and nothing else changes.
    let [both] = &run("", "").hosts[..] else { panic!("one host") };
    assert_eq!(both.egress.packets, out);
    assert_eq!(both.egress.background_bytes, x.egress.bytes);
}

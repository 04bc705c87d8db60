// SPDX-License-Identifier: MIT OR GPL-2.0-only

use super::*;

/// A second of one connection that is always busy, and limited by its window alone.
fn busy() -> Facts {
    Facts {
        seconds: 1.0,
        sent: 250_000, // 2 Mbit/s
        unsent: 100_000,
        open: 1,
        shares: Some(Shares { busy: 1.0, receiver: 0.0, buffer: 0.0 }),
        others: others(0.0, false),
        window: Some((8.25, 50_000)),
        ..Facts::default()
    }
}

fn others(bits: f64, on_path: bool) -> Option<Others> {
    Some(Others { bits, device: "eth0".into(), on_path })
}

/// The same, held at a path of 8 Mbit/s where packets wait.
fn held(part: f64) -> Facts {
    let path = Path { rate_bits: Some(8e6), background_bits: 2e6, part, waits: true };
    Facts { path: Some(path), others: others(0.0, true), ..busy() }
}

/// The words of what these figures show.
fn said(facts: &Facts) -> String {
    Why::of(facts).to_string()
}

#[test]
fn a_job_without_a_connection_or_with_nothing_to_send_is_told_from_a_slow_one() {
    assert_eq!(said(&Facts { open: 0, ..busy() }), "it has no open connection");
    let idle = Facts { sent: 0, unsent: 0, ..held(1.0) };
    assert_eq!(said(&idle), "limited by the program: it sends nothing");
    // in other network namespaces TCP is not asked
    assert_eq!(Why::of(&Facts { shares: None, ..idle }), Why::Idle);
}

#[test]
fn a_program_that_sends_now_and_then_is_the_limit_also_where_it_yields_then() {
    let shares = Some(Shares { busy: 0.4, receiver: 0.0, buffer: 0.0 });
    let facts = Facts { shares, yields: 0.3, ..busy() };
    assert_eq!(said(&facts), "limited by the program: it has something to send 40 % of the time");
}

#[test]
fn a_loss_goes_before_the_path_and_the_window_but_not_before_what_it_yields_to() {
    let facts = Facts { recovers: 1, ..busy() };
    assert_eq!(said(&facts), "recovering a loss");
    assert_eq!(said(&Facts { recovers: 1, ..held(1.0) }), "recovering a loss");
    let yields = Facts { yields: 1.0, others: others(6.1e6, false), ..facts.clone() };
    assert!(said(&yields).starts_with("yielding; "));
    let of_several = Facts { open: 3, ..facts };
    assert_eq!(said(&of_several), "recovering a loss: 1 of 3 connections");
}

#[test]
fn the_receivers_window_and_the_send_buffer_are_what_tcp_counts() {
    let shares = Shares { busy: 1.0, receiver: 0.9, buffer: 0.0 };
    let receiver = Facts { shares: Some(shares), ..busy() };
    assert_eq!(said(&receiver), "the receiver's window, 90 % of the time");
    let shares = Some(Shares { receiver: 0.1, buffer: 0.6, ..shares });
    assert_eq!(said(&Facts { shares, ..busy() }), "the program's send buffer, 60 % of the time");
}

#[test]
fn where_packets_wait_in_this_host_it_is_the_path_or_who_else_uses_it() {
    assert_eq!(said(&held(1.0)), "the path's rate, 8.0 Mbit/s");
    let beside = Facts { others: others(6.1e6, true), ..held(1.0) };
    assert_eq!(said(&beside), "yielding to 6.1 Mbit/s of this host's other traffic");
    let hosts = "yielding to other hosts: this host has 40 % of the path's 8.0 Mbit/s";
    assert_eq!(said(&held(0.4)), hosts);
    // other hosts take 4.8 Mbit/s of it: more than this one, or less
    assert_eq!(said(&Facts { others: others(1e6, true), ..held(0.4) }), hosts);
    let less = Facts { others: others(5e6, true), ..held(0.4) };
    assert_eq!(said(&less), "yielding to 5.0 Mbit/s of this host's other traffic");
    // 2 % of 8 Mbit/s are 160 kbit/s
    let little = Facts { others: others(150e3, true), ..held(1.0) };
    assert_eq!(said(&little), "the path's rate, 8.0 Mbit/s");
}

#[test]
fn a_path_that_is_not_measured_or_not_full_is_not_named_as_the_limit() {
    let path = held(1.0).path.unwrap();
    let measuring = Facts { path: Some(Path { rate_bits: None, ..path }), ..held(1.0) };
    assert_eq!(said(&measuring), "the path's rate is being measured");
    // 2 of 8 Mbit/s, and nothing waits
    let free = Facts { path: Some(Path { waits: false, ..path }), ..held(1.0) };
    assert_eq!(said(&free), "its window: 8.2 packets in a round trip of 50.0 ms");
    let full = Path { waits: false, background_bits: 7e6, ..path };
    assert_eq!(said(&Facts { path: Some(full), ..held(1.0) }), "the path's rate, 8.0 Mbit/s");
}

#[test]
fn where_they_do_not_wait_a_window_that_gives_way_is_named_with_what_the_device_sends() {
    let beside = Facts { yields: 0.9, others: others(6.1e6, false), ..busy() };
    let text = "yielding; this host's other traffic is 6.1 Mbit/s through eth0";
    assert_eq!(said(&beside), text);
    let queue = "yielding to a queue";
    let alone = Facts { yields: 0.9, ..busy() };
    assert_eq!(said(&alone), format!("{queue}; this host sends nothing else through eth0"));
    assert_eq!(said(&Facts { others: None, ..alone }), queue);
    // others alone are no reason
    let free = Facts { yields: 0.1, ..beside };
    assert!(matches!(Why::of(&free), Why::Window { .. }));
    assert!(said(&Facts { slow_start: true, ..free.clone() }).starts_with("it has just begun"));
    assert_eq!(said(&Facts { window: None, ..free }), "not known");
}

#[test]
fn who_starves_has_something_to_send_and_next_to_nothing_of_what_others_have() {
    // 3000 bytes in a second are 24 kbit/s: two packets of 1514 are 24.2
    let slow = Facts { sent: 3000, others: others(6e6, true), ..held(1.0) };
    assert!(slow.starves());
    assert!(!Facts { unsent: 0, ..slow.clone() }.starves(), "there is nothing to send");
    // 112 kbit/s: beside 6 Mbit/s it is less than a fiftieth, beside 5 it is more
    let fiftieth = Facts { sent: 14_000, ..slow.clone() };
    assert!(fiftieth.starves());
    assert!(!Facts { others: others(5e6, true), ..fiftieth }.starves());
    // a path of 64 kbit/s gives 24 of them beside 40: not ten times as much
    assert!(!Facts { others: others(40e3, true), ..slow.clone() }.starves());
    let unknown = Facts { others: None, ..slow };
    assert!(!unknown.starves());
    assert!(Facts { yields: 0.6, ..unknown }.starves());
}

#[test]
fn who_starves_is_told_the_next_step() {
    let why = Why::Starving { seconds: 75.2, others_bits: Some(7.9e6) };
    let text = "starving: next to nothing for 75 s beside 7.9 Mbit/s; next step: --class fair";
    assert_eq!(why.to_string(), text);
}

#[test]
fn a_script_finds_the_name_of_each_reason() {
    let all = [
        Why::NotYetKnown,
        Why::Ended,
        Why::NoConnection,
        Why::Starving { seconds: 60.0, others_bits: None },
        Why::Idle,
        Why::Program { busy: 0.1 },
        Why::RecoveringLoss { connections: 1, of: 1 },
        Why::ReceiverWindow { share: 0.9 },
        Why::SendBuffer { share: 0.9 },
        Why::YieldingToHost { bits: 1e6, device: None },
        Why::YieldingToHosts { part: 0.5, path_bits: 8e6 },
        Why::YieldingToQueue { device: None },
        Why::PathRate { bits: 8e6 },
        Why::Measuring,
        Why::SlowStart,
        Why::Window { packets: 2.0, rtt_us: 1000 },
        Why::Unknown,
    ];
    for why in all {
        assert_eq!(serde_json::to_value(&why).unwrap()["reason"], why.name());
    }
}

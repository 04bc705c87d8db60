// SPDX-License-Identifier: MIT OR GPL-2.0-only
use netnice_scenario::{LinkChange, Scenario};

use super::*;

const MS: Nanos = 1_000_000;

/// A link of 8 Mbit/s, on which 1000 bytes take 1 ms, and 5 ms; with further keys.
fn link(keys: &str, transmitter: Transmitter) -> Link {
    let text = format!(
        "name = \"t\"\n[[link]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\nrate_mbit = 8.0\n\
         delay_ms = 5.0\nlimit_packets = 50\n{keys}\n\
         [[link]]\nname = \"ba\"\nfrom = \"b\"\nto = \"a\"\n"
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap();
    let network = scenario.network();
    Link::new(&network[0], None, transmitter, 1000, (0, Nanos::MAX), 1, 0).unwrap()
}

fn packet(number: u32, bytes: u32) -> Packet {
    Packet {
        flow: number,
        generation: 0,
        bytes,
        path: 0,
        hop: 0,
        low: false,
        ect: false,
        ce: false,
        enqueued_ns: 0,
        body: Body::Syn,
    }
}

/// Gives the link packets of these lengths at 0 and does what it asks for; who arrives, and when.
fn carry<const N: usize>(link: &mut Link, lengths: [u32; N]) -> Vec<(Nanos, u32)> {
    let mut events: Vec<(Nanos, bool)> = Vec::new();
    let mut arrived = Vec::new();
    let note = |events: &mut Vec<(Nanos, bool)>, schedule: Schedule| {
        events.extend(schedule.departure.map(|at| (at, true)));
        events.extend(schedule.arrival.map(|at| (at, false)));
    };
    for (number, bytes) in (0..).zip(lengths) {
        let schedule = link.push(packet(number, bytes), 0);
        note(&mut events, schedule);
    }
    while let Some(next) = (0..events.len()).min_by_key(|i| events[*i].0) {
        let (now, departure) = events.remove(next);
        if departure {
            let schedule = link.depart(now);
            note(&mut events, schedule);
        } else {
            let (packet, again) = link.arrive(now);
            events.extend(again.map(|at| (at, false)));
            arrived.extend(packet.map(|p| (now, p.flow)));
        }
    }
    arrived
}

#[test]
fn a_transmitter_sends_one_packet_after_the_other() {
    let mut link = link("", Transmitter::Serial);
    assert_eq!(carry(&mut link, [1000; 3]), [(6 * MS, 0), (7 * MS, 1), (8 * MS, 2)]);
    let (stats, _) = link.stats(10 * MS);
    assert_eq!((stats.packets, stats.bytes), (3, 3000));
    // The first did not wait, the others for 1 and 2 ms: 3 ms, and as much of packets times time.
    assert_eq!((stats.waited, stats.area), ((3, 3 * MS), 3.0 * MS as f64));
}

#[test]
fn a_token_bucket_lets_two_packets_pass_at_once_and_then_keeps_to_the_rate() {
    let mut link = link("", Transmitter::TokenBucket(2000));
    let arrived = carry(&mut link, [1000; 4]);
    assert_eq!(arrived, [(5 * MS, 0), (5 * MS, 1), (6 * MS, 2), (7 * MS, 3)]);
}

#[test]
fn a_token_bucket_makes_each_packet_wait_for_its_own_length_whatever_left_before() {
    let mut link = link("", Transmitter::TokenBucket(2000));
    // Two empty the bucket. 100 bytes are there after 0.1 ms, 1000 more 1 ms later.
    let arrived = carry(&mut link, [1000, 1000, 100, 1000]);
    assert_eq!(arrived[2..], [(5 * MS + MS / 10, 2), (6 * MS + MS / 10, 3)]);
}

#[test]
fn what_does_not_fit_is_dropped() {
    let mut link = link("", Transmitter::Serial);
    // one is being sent and fifty wait
    assert_eq!(carry(&mut link, [1000; 60]).len(), 51);
    assert_eq!(link.stats(0).1.drops, 9);
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let jitter = carry(&mut link("jitter_ms = 20.0", Transmitter::Serial), [1000; 40]);
    assert!(jitter.is_sorted());
    let late = jitter.iter().map(|(at, n)| at - u64::from(n + 6) * MS).max().unwrap();
    assert!((10 * MS..20 * MS).contains(&late), "{late}");
    let keys = "reorder = 0.3\nreorder_ms = 10.0";
    let reordered = carry(&mut link(keys, Transmitter::Serial), [1000; 40]);
    assert_eq!(reordered.len(), 40);
    assert!(reordered.iter().map(|p| p.0).is_sorted());
    // whoever overtakes comes after 5 ms, the others after 15
    let overtook = reordered.iter().filter(|(at, n)| *at == u64::from(n + 6) * MS).count();
    assert!((5..25).contains(&overtook), "{overtook}");
    assert!(!reordered.iter().map(|p| p.1).is_sorted());
}

#[test]
fn losses_come_as_often_as_asked() {
    let mut link = link("loss = 0.2", Transmitter::Serial);
    let lost: usize = (0..200).map(|_| 10 - carry(&mut link, [1000; 10]).len()).sum();
    // 2000 packets: 400, give or take 4 standard deviations of 18
    assert!((328..472).contains(&lost), "{lost}");
}

#[test]
fn a_rate_trace_lets_packets_leave_at_its_times_and_starts_again() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("rate"), "2\n2\n10\n").unwrap();
    let file = directory.path().join("s.toml");
    std::fs::write(
        &file,
        "name = \"t\"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 0\nlimit_packets = 50\ntrace = \"rate\"\n",
    )
    .unwrap();
    let scenario = Scenario::read(&file).unwrap();
    let network = scenario.network();
    let window = (0, Nanos::MAX);
    let mut link = Link::new(&network[0], None, Transmitter::Serial, 1000, window, 1, 0).unwrap();
    let times: Vec<_> = carry(&mut link, [1000; 5]).iter().map(|p| p.0 / MS).collect();
    assert_eq!(times, [2, 2, 10, 12, 12]);
}

#[test]
fn a_change_of_rate_and_delay_holds_from_then_on() {
    let mut link = link("", Transmitter::Serial);
    link.change(&LinkChange { at_s: 0.0, rate_mbit: Some(4.0), delay_ms: Some(1.0) });
    assert_eq!(carry(&mut link, [1000; 2]), [(3 * MS, 0), (5 * MS, 1)]);
}

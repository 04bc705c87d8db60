// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! LEDBAT's rules.

use super::*;

const MINUTE: u64 = 60_000_000;

/// Steering with `n` packets, knowing that [`BASE`] is the empty path.
fn steering(settings: &[&str], n: u32) -> Host {
    let mut h = Host::avoiding(&config("ledbat", settings), n);
    h.ack(0, BASE, HOLD);
    assert_eq!(h.shows("base_rtt"), BASE);
    h
}

#[test]
fn it_starts_with_two_packets_whatever_the_host_would_allow() {
    for initial in [2, 10, 1000] {
        assert_eq!(Host::start("ledbat", initial).cwnd(), packets(2));
    }
}

#[test]
fn slow_start_is_that_of_reno_until_the_queue_is_above_three_quarters_of_the_target() {
    let after = |queue_us| {
        let mut h = Host::start("ledbat", 10);
        h.ack(2, BASE, 0);
        for _ in 0..4 {
            h.ack(1, BASE + queue_us, 0);
        }
        (h.cwnd(), h.flags())
    };
    assert_eq!(after(75 * MS), (packets(8), SLOW_START));
    // the fourth sample of a queue ends it, with 7 packets: 65536 (100 - 75.001)/100 / 7 = 2340.5
    assert_eq!(after(75 * MS + 1), (packets(7) + 2340, 0));
}

#[test]
fn the_window_changes_by_the_distance_from_the_target() {
    // 65536/20 = 3276.8 for each packet with nothing queued
    for (queue_ms, change) in [(0, 3276), (50, 1638), (99, 32), (100, 0)] {
        assert_eq!(steering(&[], 20).change(queue_ms * MS), change, "{queue_ms}");
    }
    // and without limit above: 150, 200, 400 ms are -0.5, -1, -3
    for (queue_ms, change) in [(150, -1638), (200, -3276), (400, -9830)] {
        assert_eq!(steering(&[], 20).change(queue_ms * MS), change, "{queue_ms}");
    }
}

#[test]
fn the_target_can_be_set() {
    assert_eq!(steering(&["target=20"], 20).change(10 * MS), 1638);
    assert_eq!(steering(&["target=20"], 20).change(20 * MS), 0);
}

#[test]
fn the_gain_can_be_set() {
    assert_eq!(steering(&["gain=0.25"], 20).change(0), 819);
    assert_eq!(steering(&["gain=0.25"], 20).change(200 * MS), -819);
}

#[test]
fn the_window_approaches_what_fills_the_queue_to_the_target() {
    // a link of one packet a millisecond: 50 packets fill the path, 150 the queue to 100 ms. A round
    // covers 1/100 of the distance, so that 0.99^100 = 0.366 of it are left after 100 rounds
    for (start, after_100) in [(70, 150.0 - 80.0 * 0.366), (300, 150.0 + 150.0 * 0.366)] {
        let mut h = steering(&[], start);
        h.now.inflight = 1000;
        let mut rounds = |n| {
            for _ in 0..n {
                let in_flight = (h.cwnd() / ONE) as u32;
                h.round(in_flight, in_flight.max(50) * MS);
            }
            h.cwnd() as f64 / ONE as f64
        };
        let window = rounds(100);
        assert!((window - after_100).abs() < 2.0, "from {start} to {window}, not {after_100}");
        let window = rounds(900);
        assert!((window - 150.0).abs() < 1.1, "from {start} to {window}");
    }
}

#[test]
fn the_least_of_the_last_four_samples_counts() {
    let mut h = steering(&[], 20);
    let before = h.cwnd();
    // the sample of the empty path is the fourth last
    h.ack(0, 5 * BASE, HOLD);
    h.ack(0, 5 * BASE, HOLD);
    assert_eq!(h.ack(1, 5 * BASE, 0), before + 3276);
    assert!(h.ack(1, 5 * BASE, 0) < before + 3276);
}

#[test]
fn the_base_is_the_least_of_ten_minutes() {
    let mut h = steering(&[], 20);
    for minute in 1..=10 {
        assert_eq!(h.shows("base_rtt"), BASE, "{minute}");
        h.now.now_us = minute * MINUTE;
        h.ack(0, 3 * BASE, HOLD);
    }
    assert_eq!(h.shows("base_rtt"), 3 * BASE);
}

#[test]
fn a_minute_without_samples_is_none() {
    let mut h = steering(&[], 20);
    h.now.now_us = 30 * MINUTE;
    h.ack(0, 3 * BASE, HOLD);
    assert_eq!(h.shows("base_rtt"), BASE);
}

#[test]
fn the_window_grows_to_one_packet_more_than_was_in_flight() {
    let grown = |inflight| {
        let mut h = steering(&[], 20);
        h.now.inflight = inflight;
        h.ack(10, BASE, 0) - packets(20)
    };
    // ten are acknowledged: 20 and 19 were in flight
    assert_eq!(grown(10), 10 * 3276);
    assert_eq!(grown(9), 0);
    assert_eq!(grown(0), 0, "nor is it cut");
}

#[test]
fn two_packets_are_the_least_window_but_after_a_timeout() {
    let mut h = steering(&[], 2);
    for _ in 0..100 {
        h.change(1000 * MS);
    }
    assert_eq!(h.cwnd(), packets(2));
    assert_eq!(h.event(Event::NN_LOSS), packets(2));
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
    assert_eq!(h.ack(1, BASE, 0), packets(2));
}

#[test]
fn losses_undo_and_idling_are_those_of_reno() {
    for event in [Event::NN_LOSS, Event::NN_ECN] {
        let mut h = steering(&[], 40);
        assert_eq!(h.event(event), packets(20));
        assert_eq!(h.event(Event::NN_UNDO), packets(40));
    }
    let mut h = steering(&[], 40);
    assert_eq!((h.idle(10), h.flags()), (packets(10), SLOW_START));
}

#[test]
fn recovery_and_the_application_hold_growth_but_not_decrease() {
    for flags in [HOLD, APP_LIMITED] {
        let mut h = steering(&[], 20);
        assert_eq!(h.ack(10, BASE, flags), packets(20));
        for _ in 0..4 {
            h.ack(0, 250 * MS, flags);
        }
        assert_eq!(h.ack(1, 250 * MS, flags), packets(20) - 3276);
    }
}

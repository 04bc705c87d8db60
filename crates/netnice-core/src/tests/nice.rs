// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! TCP Nice's rules.

use super::*;

/// With two packets, in a round that began after one sample of [`BASE`].
pub(super) fn knowing_base(settings: &[&str]) -> Host {
    let mut h = Host::new(&config("nice", settings), 10);
    h.last_ack(0, BASE, HOLD);
    assert_eq!(h.shows("base_rtt"), BASE);
    assert_eq!((h.cwnd(), h.flags()), (packets(2), SLOW_START));
    h
}

/// In avoidance with `n` packets, knowing that [`BASE`] is the empty path.
pub(super) fn avoiding(settings: &[&str], n: u32) -> Host {
    let mut h = Host::avoiding(&config("nice", settings), n);
    h.last_ack(0, BASE, HOLD);
    h
}

/// With a window of 2 / 2^`halvings` packets, halved as in the paper.
fn below_two(settings: &[&str], halvings: u32) -> Host {
    let mut h = knowing_base(&[&["shrink=0.5"], settings].concat());
    for _ in 0..halvings {
        h.round(1, 2 * BASE);
    }
    h
}

#[test]
fn it_starts_with_two_packets_whatever_the_host_would_allow() {
    for initial in [1, 2, 10, 1000] {
        assert_eq!(Host::start("nice", initial).cwnd(), packets(2));
    }
}

#[test]
fn slow_start_is_that_of_vegas() {
    let mut h = Host::start("nice", 10);
    assert_eq!(h.round(2, BASE), packets(4));
    assert_eq!(h.round(4, BASE), packets(4));
    assert_eq!(h.round(4, BASE), packets(8));
    assert_eq!(h.flags(), SLOW_START);
}

#[test]
fn the_first_estimate_of_max_rtt_is_twice_min_rtt() {
    assert_eq!(knowing_base(&[]).shows("max_rtt"), 2 * BASE);
}

#[test]
fn max_rtt_and_min_rtt_follow_the_samples() {
    let mut h = knowing_base(&[]);
    h.full(250_000);
    h.ack(1, 40_000, 0);
    h.ack(1, 90_000, 0);
    assert_eq!((h.shows("base_rtt"), h.shows("max_rtt")), (40_000, 250_000));
}

#[test]
fn a_round_is_congested_above_the_threshold_of_the_span() {
    // 50 + 0.25 (100 - 50) = 62.5 ms
    let congested = |rtt| {
        let mut h = knowing_base(&["threshold=0.25"]);
        h.round(4, rtt);
        h.flags() & YIELDING != 0
    };
    assert!(!congested(62_500));
    assert!(congested(62_501));
}

#[test]
fn the_threshold_is_a_fifth_unless_set() {
    // 0.2 is 13107/65536: 50000 + 50000 * 13107/65536 = 59999.8
    for (rtt, yielding) in [(59_999, 0), (60_000, YIELDING)] {
        let mut h = knowing_base(&[]);
        h.round(4, rtt);
        assert_eq!(h.flags() & YIELDING, yielding, "{rtt}");
    }
}

#[test]
fn a_longer_max_rtt_raises_the_threshold() {
    let mut h = avoiding(&["threshold=0.25"], 16);
    for _ in 0..2 {
        h.now.now_us += 250_000;
        h.ack(2, 250_000, 0);
    }
    // 50 + 0.25 (250 - 50) = 100 ms: four of 22 packets were delayed
    h.round(18, 100_000);
    assert_eq!(h.flags() & YIELDING, 0);
    h.round(20, 100_001);
    assert_eq!(h.flags() & YIELDING, YIELDING);
}

#[test]
fn a_round_is_congested_when_more_than_the_fraction_of_packets_is_delayed() {
    let round = |settings: &[&str], delayed: u32| {
        let mut h = avoiding(settings, 16);
        h.ack(delayed, 2 * BASE, 0); // one ACK counts as the packets that it covers
        h.ack(8 - delayed, BASE, 0);
        h.last_ack(2, BASE, 0)
    };
    // of ten packets
    assert!(round(&[], 3) >= packets(16));
    assert_eq!(round(&[], 4), packets(8));
    assert!(round(&["fraction=0.5"], 5) >= packets(16));
    assert_eq!(round(&["fraction=0.5"], 6), packets(8));
    assert!(round(&["fraction=0.75"], 7) >= packets(16));
    assert_eq!(round(&["fraction=0.75"], 8), packets(8));
    assert_eq!(round(&["fraction=0"], 2), packets(8));
    assert!(round(&["fraction=1"], 8) >= packets(16));
}

#[test]
fn delayed_packets_are_counted_anew_each_round() {
    let mut h = avoiding(&["fraction=0.5"], 16);
    h.ack(5, 2 * BASE, 0);
    h.ack(4, BASE, 0);
    h.last_ack(1, BASE, 0); // five of ten
    h.ack(5, 2 * BASE, 0);
    h.ack(4, BASE, 0);
    assert!(h.last_ack(1, BASE, 0) >= packets(16));
}

#[test]
fn congestion_halves_a_window_down_to_a_48th() {
    let mut h = avoiding(&["shrink=0.5"], 16);
    let windows: Vec<u64> = (0..10).map(|_| h.round(8, 2 * BASE)).collect();
    // 16: 8 of 8 delayed at the end of the round; from there once a round, to 1/48: 65536/48 = 1365.3
    let expected: Vec<u64> = (0..9).map(|i| packets(8) >> i).chain([1365]).collect();
    assert_eq!(windows, expected);
}

#[test]
fn the_verdict_falls_as_soon_as_the_rest_of_the_round_cannot_change_it() {
    let mut h = avoiding(&["fraction=0.5"], 16);
    assert_eq!(h.ack(8, 2 * BASE, 0), packets(16), "half of 16 is not more than half");
    assert_eq!(h.ack(2, 2 * BASE, 0), packets(8));
    // what is still in flight tells of the same queue
    h.end = h.now.nxt;
    assert_eq!(h.ack(8, 2 * BASE, 0), packets(8));
    // what was sent after the cut tells whether that was enough
    assert_eq!(h.last_ack(2, 2 * BASE, 0), packets(4));
}

#[test]
fn what_was_sent_before_a_cut_does_not_keep_the_window_from_growing() {
    let mut h = avoiding(&[], 16);
    assert_eq!(h.ack(10, 2 * BASE, 0), packets(8));
    h.end = h.now.nxt;
    h.ack(6, 2 * BASE, 0);
    assert_eq!(h.last_ack(2, BASE, 0), packets(9));
}

#[test]
fn without_the_early_verdict_a_round_lasts_a_round_trip() {
    let mut h = avoiding(&["early=0"], 16);
    assert_eq!(h.ack(15, 2 * BASE, 0), packets(16));
    assert_eq!(h.last_ack(1, 2 * BASE, 0), packets(8));
}

#[test]
fn a_congested_round_leaves_the_share_that_is_asked_for() {
    assert_eq!(avoiding(&["decrease=0.75", "early=0"], 16).round(16, 2 * BASE), packets(12));
    // Without a decrease Vegas decides: Diff = 16 - 16/2 = 8 > beta, one packet less.
    assert_eq!(avoiding(&["decrease=1"], 16).round(16, 2 * BASE), packets(15));
}

#[test]
fn a_congested_round_cuts_a_window_below_two_by_more_than_half() {
    let mut h = knowing_base(&[]);
    assert_eq!(h.round(1, 2 * BASE), packets(1)); // two packets: half
    assert_eq!(h.round(1, 2 * BASE), 3277); // 0.05
    assert_eq!(h.round(1, 2 * BASE), 1365); // 1/48, above 0.0025
}

#[test]
fn between_quiet_and_threshold_the_window_stays() {
    // minRTT 50 ms, maxRTT 100 ms: quiet up to 52.5 ms, delayed above 60 ms
    let grown = |rtt_us| avoiding(&[], 20).round(20, rtt_us) > packets(20);
    assert!(grown(52_499));
    assert!(!grown(52_600));
    assert_eq!(avoiding(&[], 20).round(20, 59_900), packets(20));
    assert!(avoiding(&["quiet=0.1", "alpha=3"], 20).round(20, 54_900) > packets(20));
    // slow start too
    let mut h = knowing_base(&[]);
    assert_eq!(h.ack(1, 59_900, 0), packets(2));
}

#[test]
fn an_ack_that_the_receiver_may_have_delayed_shows_a_short_round_trip_but_not_a_long_one() {
    let lone = |rtt_us| {
        let mut h = knowing_base(&["fraction=0"]);
        h.now.inflight = 0;
        h.last_ack(1, rtt_us, 0);
        h
    };
    let h = lone(90_000); // 50 ms and a timer of 40 ms
    assert_eq!((h.cwnd(), h.shows("max_rtt")), (packets(2), 2 * BASE));
    assert_eq!(lone(40_000).shows("base_rtt"), 40_000);
    // two packets are acknowledged at once
    let mut h = knowing_base(&[]);
    h.now.inflight = 0;
    for _ in 0..2 {
        h.now.now_us += 190_000;
        h.last_ack(2, 190_000, 0);
    }
    assert_eq!((h.cwnd(), h.shows("max_rtt")), (3277, 190_000)); // 2, 1, 0.05
}

#[test]
fn an_odd_window_grows_though_the_receiver_delays_the_ack_of_its_last_packet() {
    // five packets: two ACKs of two each, and the fifth waits for a timer
    let round = |settings: &[&str], acks: [u32; 3], timer_us| {
        let mut h = avoiding(settings, 5);
        h.ack(acks[0], BASE, 0);
        h.ack(acks[1], BASE, 0);
        h.last_ack(acks[2], BASE + timer_us, 0)
    };
    assert!(round(&[], [2, 2, 1], 40_000) >= packets(6));
    // a receiver that acknowledges each packet delays none: a queue, for a third of three packets
    assert_eq!(round(&[], [1, 1, 1], 40_000), packets(5) / 2);
    // below the threshold, of 45 ms here, too; no timer is shorter than 40 ms, that is a queue
    assert!(round(&["threshold=0.9"], [2, 2, 1], 40_000) >= packets(6));
    assert_eq!(round(&["threshold=0.9"], [2, 2, 1], 39_000), packets(5));
}

#[test]
fn two_packets_that_are_acknowledged_late_one_by_one_do_not_keep_a_window_small() {
    // five packets, of which the last two are 40 ms apart: each waits for a second one in vain
    let round = |acks: [u32; 4]| {
        let mut h = avoiding(&[], 5);
        h.ack(acks[0], BASE, 0);
        h.ack(acks[1], BASE + 40_000, 0);
        h.ack(acks[2], BASE + 40_000, 0);
        h.last_ack(acks[3], BASE, 0)
    };
    assert_eq!(round([2, 1, 1, 2]), packets(6));
    // the third in a row is that of a receiver that acknowledges each packet
    let mut h = avoiding(&[], 5);
    for acked in [2, 1, 1, 1] {
        h.ack(acked, BASE + if acked == 1 { 40_000 } else { 0 }, 0);
    }
    assert_eq!(h.last_ack(2, BASE, 0), packets(5));
}

#[test]
fn the_least_window_can_be_set() {
    let mut h = knowing_base(&["least=0.5"]);
    for expected in [ONE, ONE / 2, ONE / 2] {
        assert_eq!(h.round(4, 2 * BASE), expected);
    }
}

#[test]
fn congestion_ends_slow_start() {
    let mut h = knowing_base(&[]);
    h.round(4, 2 * BASE);
    assert_eq!(h.flags() & SLOW_START, 0);
}

#[test]
fn a_window_below_two_is_two_packets_every_two_over_w_round_trips() {
    // halvings of 2 packets; gap in smoothed round trips: 2/W
    for (halvings, gap) in [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64)] {
        let ctl = below_two(&["spread=0"], halvings).flow.ctl();
        assert_eq!(ctl.cwnd_q16, packets(2) >> halvings);
        assert_eq!((ctl.gap_us, ctl.burst), (gap * u64::from(BASE), 2));
    }
    // at 1/48, 1365/65536: 2 * 50000 * 65536/1365 = 4801172.2, 96 round trips and a rounding
    assert_eq!(below_two(&[], 7).flow.ctl().gap_us, 4_801_172);
}

#[test]
fn the_gap_follows_the_smoothed_round_trip() {
    let mut h = below_two(&[], 5);
    h.now.srtt_us = 70_000;
    h.ack(1, 80_000, 0);
    assert_eq!(h.flow.ctl().gap_us, 32 * 70_000);
}

#[test]
fn the_gap_is_never_longer_than_a_host_can_wait() {
    let mut h = below_two(&[], 7);
    h.now.srtt_us = 2_000_000; // 192 s
    h.ack(1, 2_000_000, 0);
    assert_eq!(h.flow.ctl().gap_us, GAP_MAX);
    h.now.srtt_us = u32::MAX;
    h.ack(1, BASE, 0);
    assert_eq!(h.flow.ctl().gap_us, GAP_MAX);
}

#[test]
fn the_two_packets_of_a_window_below_two_leave_a_round_trip_apart() {
    // 30 ms at most, of 50 ms; 1/4 of a packet: 8 round trips from one burst to the next
    let mut h = below_two(&[], 3);
    let sends = |h: &mut Host, after_us: u64| {
        h.now.now_us += after_us;
        let ctl = h.flow.send(&h.now);
        (ctl.gap_us, ctl.burst)
    };
    for _ in 0..2 {
        assert_eq!(sends(&mut h, 0), (30_000, 1));
        assert_eq!(sends(&mut h, 30_000), (8 * 50_000 - 30_000, 1));
        h.now.now_us += 8 * 50_000 - 30_000;
    }
    // a second packet that the application wrote late has what is left
    assert_eq!(sends(&mut h, 0), (30_000, 1));
    assert_eq!(sends(&mut h, 200_000), (200_000, 1));
    // on a path of 10 ms: one round trip
    h.last_ack(2, 10_000, HOLD);
    assert_eq!(sends(&mut h, 200_000), (10_000, 1));
}

#[test]
fn a_window_leaves_evenly_over_most_of_a_round_trip() {
    // 0.8 of 50 ms: 20 ms apart with two packets, 0.4 with 100, 0.25 with 160
    let gap = |settings: &[&str], n: u32| {
        let mut h = avoiding(settings, n);
        h.ack(2, BASE, HOLD);
        let ctl = h.flow.send(&h.now);
        assert_eq!(
            (ctl.cwnd_q16, ctl.burst),
            (packets(u64::from(n)), 2 - u32::from(ctl.gap_us > 0))
        );
        ctl.gap_us
    };
    assert_eq!(gap(&[], 2), 20_000);
    assert_eq!(gap(&[], 100), 400);
    assert_eq!(gap(&[], 160), 250);
    assert_eq!(gap(&[], 161), 0, "ACKs clock it");
    assert_eq!(gap(&["spread=0.5"], 100), 250);
    assert_eq!(gap(&["spread=0"], 2), 0);
    // nothing is known of the path yet
    assert_eq!(Host::start("nice", 10).flow.ctl().gap_us, 0);
}

#[test]
fn quiet_rounds_add_one_to_a_window_below_one_too() {
    let mut h = below_two(&[], 7);
    let windows: Vec<u64> = (0..3).map(|_| h.round(2, BASE)).collect();
    assert_eq!(windows, [1, 2, 3].map(|n| 1365 + packets(n)));
}

#[test]
fn a_window_below_one_does_not_grow_unless_something_was_learnt() {
    for flags in [HOLD, APP_LIMITED] {
        let mut h = below_two(&[], 5);
        assert_eq!(h.last_ack(2, BASE, flags), ONE / 16);
    }
    // no sample
    assert_eq!(below_two(&[], 5).last_ack(2, 0, 0), ONE / 16);
}

#[test]
fn a_full_queue_is_taken_to_be_a_millisecond_long_at_least() {
    // As between two processes of one host: 10 us while it is busy, 150 us at most until now. A
    // fifth of that is 38 us, of a millisecond 199 us: 0.2 in Q16, rounded down.
    let round = |rtt_us| {
        let mut h = Host::new(&config("nice", &[]), 10);
        h.last_ack(0, 10, HOLD);
        h.ack(1, 150, HOLD);
        h.last_ack(2, rtt_us, HOLD);
        h.flags() & YIELDING != 0
    };
    assert!(!round(209));
    assert!(round(210));
}

/// With two packets, and so many flows of the host.
fn one_of(flows: u32, settings: &[&str]) -> Host {
    let mut h = knowing_base(settings);
    h.now.flows = flows;
    h
}

#[test]
fn a_hosts_flows_keep_half_a_packet_in_all() {
    for (flows, least) in [(1, ONE / 2), (4, ONE / 8), (64, 1365)] {
        let mut h = one_of(flows, &[]);
        for _ in 0..8 {
            h.round(1, 2 * BASE);
        }
        assert_eq!(h.cwnd(), least, "{flows}");
        assert_eq!(h.event(Event::NN_LOSS), least, "{flows}");
    }
}

#[test]
fn a_host_that_does_not_know_its_flows_keeps_the_least_window() {
    for mut h in [one_of(0, &[]), one_of(1, &["together=0"])] {
        for _ in 0..8 {
            h.round(1, 2 * BASE);
        }
        assert_eq!(h.cwnd(), 1365);
    }
}

#[test]
fn fewer_flows_never_raise_a_window() {
    let mut h = one_of(4, &[]);
    for _ in 0..8 {
        h.round(1, 2 * BASE);
    }
    h.now.flows = 1;
    assert_eq!(h.round(1, 2 * BASE), ONE / 8);
    assert_eq!(h.event(Event::NN_LOSS), ONE / 8);
}

#[test]
fn the_steps_of_vegas_do_not_lead_below_one_packet() {
    // 1.5 packets: 3 halved by a loss; Diff = 1.5 (59 - 50)/59 = 0.23
    let mut h = Host::new(&config("nice", &["alpha=0", "beta=0.1", "quiet=1"]), 10);
    h.ack(1, BASE, 0);
    assert_eq!(h.event(Event::NN_LOSS), packets(3) / 2);
    assert_eq!(h.round(3, 59_000), packets(1));
    assert_eq!(h.round(3, 59_000), packets(1));
}

#[test]
fn quiet_rounds_take_the_steps_of_vegas() {
    assert_eq!(avoiding(&[], 20).round(20, BASE), packets(21));
    // Diff = 20 (55 - 50)/55 = 1.8, and 20 (59 - 50)/59 = 3.05, both below the threshold
    assert_eq!(avoiding(&["quiet=1"], 20).round(20, 55_000), packets(20));
    assert_eq!(avoiding(&["quiet=1"], 20).round(20, 59_000), packets(19));
}

#[test]
fn it_yields_while_congested_or_below_two_packets() {
    let mut h = avoiding(&[], 16);
    h.round(16, BASE);
    assert_eq!(h.flags() & YIELDING, 0);
    h.ack(10, 2 * BASE, 0);
    assert_eq!(h.flags() & YIELDING, YIELDING);
    h.ack(1, BASE, 0); // until a quiet round says otherwise
    assert_eq!(h.flags() & YIELDING, YIELDING);
    h.end = h.now.nxt;
    h.last_ack(1, BASE, 0);
    assert_eq!(h.flags() & YIELDING, 0);

    let mut h = below_two(&[], 2);
    h.round(2, BASE); // quiet: 1/2 + 1
    assert_eq!((h.cwnd(), h.flags() & YIELDING), (packets(3) / 2, YIELDING));
    h.round(2, BASE);
    assert_eq!((h.cwnd(), h.flags() & YIELDING), (packets(5) / 2, 0));
}

#[test]
fn a_loss_halves_the_window_down_to_the_least_of_nice() {
    let mut h = knowing_base(&[]);
    assert_eq!(h.event(Event::NN_LOSS), packets(1));
    assert_eq!(h.event(Event::NN_ECN), packets(1) / 2);
    assert_eq!(h.flow.ctl().gap_us, 4 * u64::from(BASE));
    let mut h = below_two(&[], 7);
    assert_eq!(h.event(Event::NN_LOSS), 1365);
}

#[test]
fn a_timeout_never_raises_a_window() {
    let mut h = below_two(&[], 5);
    assert_eq!(h.event(Event::NN_TIMEOUT), ONE / 16);
    assert_eq!(avoiding(&[], 20).event(Event::NN_TIMEOUT), packets(1));
}

#[test]
fn undo_and_idling_are_those_of_reno() {
    let mut h = avoiding(&[], 20);
    h.event(Event::NN_LOSS);
    assert_eq!(h.event(Event::NN_UNDO), packets(20));
    assert_eq!(h.idle(10), packets(10));
    assert_eq!(h.flags() & SLOW_START, SLOW_START);
    let mut h = below_two(&[], 5);
    assert_eq!(h.idle(1), ONE / 16);
}

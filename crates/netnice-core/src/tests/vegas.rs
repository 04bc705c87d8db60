// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Vegas' rules.

use super::*;

/// In avoidance with `n` packets, knowing that [`BASE`] is the empty path.
fn avoiding(settings: &[&str], n: u32) -> Host {
    let mut h = Host::avoiding(&config("vegas", settings), n);
    h.last_ack(0, BASE, HOLD);
    assert_eq!(h.shows("base_rtt"), BASE);
    h
}

#[test]
fn it_starts_with_two_packets_at_least() {
    assert_eq!(Host::start("vegas", 1).cwnd(), packets(2));
    assert_eq!(Host::start("vegas", 10).cwnd(), packets(10));
}

#[test]
fn slow_start_doubles_every_other_round() {
    let mut h = Host::start("vegas", 4);
    assert_eq!(h.round(4, BASE), packets(8));
    assert_eq!(h.round(8, BASE), packets(8));
    assert_eq!(h.round(8, BASE), packets(16));
    assert_eq!(h.round(16, BASE), packets(16));
    assert_eq!(h.flags(), SLOW_START);
}

#[test]
fn slow_start_ends_with_more_than_gamma_queued() {
    let mut h = Host::start("vegas", 10);
    h.round(10, BASE); // 20 packets now
                       // Diff = 20 (60 - 50)/60 = 3.3 > 1: W = 20 * 50/60 + 1 = 17.67 (1092266.7 + 65536)
    assert_eq!(h.round(20, 60_000), 1_157_802);
    assert_eq!(h.flags(), 0);
    assert_eq!(shown(&h.flow, "queue").value, 218_453); // 3.33 * 65536
}

#[test]
fn slow_start_goes_on_with_gamma_queued() {
    let mut h = Host::start("vegas", 10);
    h.round(10, 57_000);
    // Diff = 20 (60 - 57)/60 = 1
    h.round(20, 60_000);
    assert_eq!(h.flags(), SLOW_START);
    h.round(20, 57_000);
    h.round(20, 60_002);
    assert_eq!(h.flags(), 0);
}

#[test]
fn gamma_can_be_set() {
    let mut h = Host::new(&config("vegas", &["gamma=4"]), 10);
    h.round(10, BASE);
    h.round(20, 60_000); // 3.3
    assert_eq!(h.flags(), SLOW_START);
}

#[test]
fn less_than_alpha_queued_adds_a_packet_each_round() {
    let mut h = avoiding(&[], 20);
    assert_eq!(h.round(20, BASE), packets(21));
    // Diff = 21 (52 - 50)/52 = 0.81
    assert_eq!(h.round(21, 52_000), packets(22));
}

#[test]
fn alpha_to_beta_queued_keeps_the_window() {
    // Diff = 20 (53 - 50)/53 = 1.13 and 20 (58.5 - 50)/58.5 = 2.91
    for rtt in [53_000, 58_500] {
        assert_eq!(avoiding(&[], 20).round(20, rtt), packets(20));
    }
    // 20 (60 - 54)/60 = 2 is alpha itself, and 20 (60 - 51)/60 = 3 beta itself
    for (settings, base) in [(["alpha=2"], 54_000), (["alpha=1"], 51_000)] {
        let mut h = Host::avoiding(&config("vegas", &settings), 20);
        h.last_ack(0, base, HOLD);
        // the two ACKs that know the path's base are in a round of their own
        let before = h.cwnd();
        assert_eq!(h.round(20, 60_000), before, "{settings:?}");
    }
}

#[test]
fn more_than_beta_queued_takes_a_packet_each_round() {
    // Diff = 20 (60 - 50)/60 = 3.3, then 19 * 10/60 = 3.17, then 18 * 10/60 = 3
    let mut h = avoiding(&[], 20);
    assert_eq!(h.round(20, 60_000), packets(19));
    assert_eq!(h.round(19, 60_000), packets(18));
    assert_eq!(h.round(18, 60_000), packets(18));
}

#[test]
fn alpha_and_beta_can_be_set() {
    // Diff = 3.3
    assert_eq!(avoiding(&["alpha=4", "beta=6"], 20).round(20, 60_000), packets(21));
    assert_eq!(avoiding(&["beta=5"], 20).round(20, 60_000), packets(20));
}

#[test]
fn two_packets_are_the_least_window() {
    let mut h = avoiding(&["alpha=0.5", "beta=1"], 2);
    // Diff = 2 (200 - 50)/200 = 1.5
    assert_eq!(h.round(3, 200_000), packets(2));
    assert_eq!(h.event(Event::NN_LOSS), packets(2));
}

#[test]
fn the_least_round_trip_of_a_round_counts() {
    let mut h = avoiding(&[], 20);
    h.ack(1, BASE, 0);
    assert_eq!(h.round(19, 90_000), packets(21));
}

#[test]
fn fewer_than_three_samples_add_a_packet_whatever_they_say() {
    assert_eq!(avoiding(&[], 20).round(2, 90_000), packets(21));
    assert_eq!(avoiding(&[], 20).round(3, 90_000), packets(19));
    // an ACK without a sample is none
    let mut h = avoiding(&[], 20);
    h.ack(1, 0, 0);
    assert_eq!(h.round(2, 90_000), packets(21));
}

#[test]
fn fewer_than_three_samples_do_not_end_slow_start() {
    let mut h = Host::start("vegas", 10);
    h.round(10, BASE);
    assert_eq!(h.round(2, 90_000), packets(20));
    assert_eq!(h.flags(), SLOW_START);
}

#[test]
fn recovery_and_the_application_hold_growth_but_not_decrease() {
    for flags in [HOLD, APP_LIMITED] {
        let mut h = avoiding(&[], 20);
        h.ack(19, BASE, flags);
        assert_eq!(h.last_ack(1, BASE, flags), packets(20));
        h.ack(1, 60_000, flags);
        h.ack(1, 60_000, flags);
        assert_eq!(h.last_ack(1, 60_000, flags), packets(19));
    }
}

#[test]
fn losses_timeouts_undo_and_idling_are_those_of_reno() {
    let mut h = Host::start("vegas", 40);
    assert_eq!(h.event(Event::NN_LOSS), packets(20));
    assert_eq!(h.event(Event::NN_UNDO), packets(40));
    assert_eq!(h.event(Event::NN_ECN), packets(20));
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
    assert_eq!(h.flags(), SLOW_START);
    let mut h = avoiding(&[], 20);
    assert_eq!(h.idle(10), packets(10));
    assert_eq!(h.flags(), SLOW_START);
}

#[test]
fn samples_from_before_a_loss_do_not_count() {
    let mut h = avoiding(&[], 40);
    h.ack(1, 90_000, 0);
    h.ack(1, 90_000, 0);
    assert_eq!(h.event(Event::NN_LOSS), packets(20));
    assert_eq!(h.round(2, 90_000), packets(21), "two samples, not four");
}

#[test]
fn rounds_end_across_the_wrap_of_sequence_numbers() {
    let mut h = Host::numbered_from(u32::MAX - 10, &config("vegas", &[]), 40);
    h.event(Event::NN_LOSS);
    for round in 1..=4 {
        assert_eq!(h.round(3, BASE), packets(20 + round));
    }
    assert_eq!(h.now.nxt, 13);
}

#[test]
fn with_alpha_and_beta_zero_it_gives_up_whatever_it_has_queued_and_grows_for_nothing() {
    let mut h = avoiding(&["alpha=0", "beta=0"], 20);
    // Diff = 20 (51 - 50)/51 = 0.39 > 0 already
    for left in (2..20).rev() {
        assert_eq!(h.round(20, 51_000), packets(left));
    }
    assert_eq!(h.round(20, 51_000), packets(2), "the least window");
    // with nothing queued it is never below alpha either
    for _ in 0..1000 {
        assert_eq!(h.round(20, BASE), packets(2));
    }
}

#[test]
fn with_alpha_and_beta_zero_small_windows_do_not_grow_beyond_three_samples() {
    // fewer than three samples tell nothing, and add a packet: 2, 3; then 3 samples take it away
    let mut h = avoiding(&["alpha=0", "beta=0"], 2);
    for _ in 0..100 {
        let n = (h.cwnd() / ONE) as u32;
        assert!(h.round(n, 51_000) <= packets(3));
    }
    // an ACK for every other packet: 2 to 5 packets are up to three samples
    let mut h = avoiding(&["alpha=0", "beta=0"], 2);
    for _ in 0..100 {
        let n = (h.cwnd() / ONE).div_ceil(2) as u32;
        assert!(h.round(n, 51_000) <= packets(5));
    }
}

/// In doubt: rounds have lasted `rtt_us`, far above [`BASE`], for three seconds.
fn looking(rtt_us: u32) -> Host {
    let mut h = avoiding(&[], 20);
    for _ in 0..4 {
        h.now.now_us += 1_000_000;
        h.round(20, rtt_us);
    }
    h.now.inflight = 0;
    assert_eq!(h.ack(0, rtt_us, 0), packets(2));
    h
}

#[test]
fn while_it_looks_packets_that_wait_for_the_receivers_timer_are_brought_together() {
    let mut h = looking(150_000);
    h.now.inflight = 1;
    assert_eq!(h.ack(1, 90_000, 0), packets(1), "40 ms above minRTT: it may hold the timer");
    assert_eq!(h.ack(1, 89_999, 0), packets(2));
    assert_eq!(h.ack(2, 90_000, 0), packets(2), "there is no timer for two");
    h.now.inflight = 0;
    assert_eq!(h.ack(1, 90_000, 0), packets(2), "the second has come");
}

#[test]
fn a_look_lasts_until_a_long_path_is_known() {
    // one RTT until the queue is empty, and four blocks of eight RTTs of half a second: 16.5 s
    let mut h = looking(500_000);
    let mut rounds = 0;
    while h.last_ack(2, 500_000, 0) == packets(2) {
        h.now.now_us += 500_000;
        rounds += 1;
        assert!(rounds <= 34, "minRTT has not risen");
    }
    assert_eq!(h.shows("base_rtt"), 500_000);
    assert!(rounds >= 32);
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! TCP-LP's rules.

use super::*;

/// Early congestion is above 50 + 0.15 (100 - 50) = 57.5 ms; 0.15 is 9830/65536, which makes it
/// 57499.7 us.
const LIMIT: u32 = 57_499;
/// A queue of the whole buffer.
const FULL: u32 = 2 * BASE;

/// After a loss, with `n` packets, dmin = [`BASE`], dmax = [`FULL`], and sd = [`BASE`].
fn avoiding(settings: &[&str], n: u32) -> Host {
    let mut h = Host::avoiding(&config("lp", settings), n);
    h.full(FULL);
    h.last_ack(0, BASE, HOLD);
    assert_eq!((h.shows("base_rtt"), h.shows("max_rtt")), (BASE, FULL));
    h
}

impl Host {
    /// The round that a reaction begins ends with the next last ACK.
    fn begin_round(&mut self) {
        self.end = self.now.nxt;
    }
}

/// In an inference phase, with half of `n` packets.
fn inferring(settings: &[&str], n: u32) -> Host {
    let mut h = avoiding(settings, n);
    while h.flags() & YIELDING == 0 {
        h.ack(0, FULL, HOLD);
    }
    assert_eq!(h.cwnd(), packets(u64::from(n)) / 2);
    h.begin_round();
    h
}

#[test]
fn without_a_queue_it_is_reno() {
    let mut h = Host::start("lp", 10);
    assert_eq!((h.ack(3, BASE, 0), h.flags()), (packets(13), SLOW_START));
    let mut h = avoiding(&[], 20);
    assert_eq!(h.ack(1, BASE, 0), packets(20) + 3276); // 65536/20
    assert_eq!(h.flags(), 0);
}

#[test]
fn there_is_early_congestion_when_the_smoothed_delay_is_above_the_limit() {
    let after = |settings: &[&str], rtt| {
        let mut h = avoiding(settings, 20);
        for _ in 0..200 {
            h.ack(0, rtt, HOLD);
        }
        h.cwnd()
    };
    assert_eq!(after(&[], LIMIT), packets(20));
    assert_eq!(after(&[], LIMIT + 1), packets(10));
    assert_eq!(after(&["delta=0.5"], 75_000), packets(20));
    assert_eq!(after(&["delta=0.5"], 75_001), packets(10));
}

#[test]
fn delays_are_smoothed_by_an_eighth() {
    let mut h = avoiding(&[], 20);
    // 100 - 50 * 7/8 = 56.25 ms, then 100 - 50 * (7/8)^2 = 61.7 ms
    assert_eq!(h.ack(0, FULL, HOLD), packets(20));
    assert_eq!(h.ack(0, FULL, HOLD), packets(10));
}

#[test]
fn through_the_inference_phase_of_three_rounds_the_window_stays() {
    let mut h = inferring(&[], 20);
    for _ in 0..2 {
        assert_eq!(h.round(10, BASE), packets(10));
        assert_eq!(h.flags(), YIELDING);
    }
    // the ACK that ends the third round adds 65536/10 already
    assert_eq!(h.round(10, BASE), packets(10) + 6553);
    assert_eq!(h.flags(), 0);
    assert!(h.round(10, BASE) > packets(11));
}

#[test]
fn early_congestion_within_the_phase_leaves_one_packet_and_begins_it_anew() {
    for quiet in 0..2 {
        let mut h = inferring(&[], 20);
        for _ in 0..quiet {
            h.round(10, BASE);
        }
        assert_eq!(h.last_ack(0, FULL, HOLD), if quiet == 0 { packets(1) } else { packets(10) });
        h.ack(0, FULL, HOLD);
        assert_eq!((h.cwnd(), h.flags()), (packets(1), YIELDING));
        h.begin_round();
        for _ in 0..2 {
            assert_eq!(h.round(1, BASE), packets(1));
        }
        assert_eq!(h.round(1, BASE), packets(2));
    }
}

#[test]
fn early_congestion_after_the_phase_halves_again() {
    let mut h = inferring(&[], 20);
    for _ in 0..2 {
        h.round(10, BASE);
    }
    h.last_ack(0, BASE, HOLD);
    h.ack(0, FULL, HOLD);
    assert_eq!(h.ack(0, FULL, HOLD), packets(5));
}

#[test]
fn the_length_of_the_phase_can_be_set() {
    let mut h = inferring(&["inference=1"], 20);
    assert_eq!(h.round(10, BASE), packets(10) + 6553);
    let mut h = inferring(&["inference=10"], 20);
    for _ in 0..9 {
        assert_eq!(h.round(10, BASE), packets(10));
    }
}

#[test]
fn what_was_sent_before_a_reaction_is_not_heard() {
    let mut h = inferring(&[], 20);
    for _ in 0..20 {
        assert_eq!(h.ack(1, FULL, 0), packets(10));
    }
    // and the first packet sent after it begins the smoothed delay anew
    assert_eq!(h.last_ack(1, LIMIT, 0), packets(10));
    assert_eq!(inferring(&[], 20).last_ack(1, LIMIT + 1, 0), packets(1));
}

#[test]
fn the_window_is_never_less_than_one_packet() {
    let mut h = inferring(&[], 2);
    assert_eq!(h.cwnd(), packets(1));
    assert_eq!(h.event(Event::NN_LOSS), packets(1));
    for _ in 0..3 {
        h.last_ack(0, BASE, HOLD);
    }
    h.ack(0, FULL, HOLD);
    assert_eq!(h.ack(0, FULL, HOLD), packets(1));
}

#[test]
fn the_first_slow_start_only_learns() {
    let mut h = Host::start("lp", 10);
    h.ack(1, BASE, 0);
    for _ in 0..10 {
        h.now.now_us += u64::from(10 * BASE);
        h.ack(1, 10 * BASE, 0);
    }
    assert_eq!((h.cwnd(), h.flags()), (packets(21), SLOW_START));
    assert_eq!(h.shows("max_rtt"), 10 * BASE);
    // an ECN mark is no full queue
    h.event(Event::NN_ECN);
    assert_eq!(h.last_ack(0, 10 * BASE, HOLD), packets(21) / 2);
    h.event(Event::NN_LOSS);
    assert_eq!(h.last_ack(0, 10 * BASE, HOLD), packets(21) / 8);
}

#[test]
fn losses_timeouts_undo_and_idling_are_those_of_reno() {
    let mut h = avoiding(&[], 40);
    assert_eq!(h.event(Event::NN_LOSS), packets(20));
    assert_eq!(h.event(Event::NN_UNDO), packets(40));
    assert_eq!(h.event(Event::NN_ECN), packets(20));
    assert_eq!((h.event(Event::NN_TIMEOUT), h.flags()), (packets(1), SLOW_START));
    let mut h = avoiding(&[], 40);
    assert_eq!((h.idle(10), h.flags()), (packets(10), SLOW_START));
}

#[test]
fn recovery_and_the_application_hold_growth_but_not_decrease() {
    for flags in [HOLD, APP_LIMITED] {
        let mut h = avoiding(&[], 20);
        assert_eq!(h.ack(10, BASE, flags), packets(20));
        h.ack(2, FULL, flags);
        assert_eq!(h.ack(2, FULL, flags), packets(10));
    }
}

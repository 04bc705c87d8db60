// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The one rule on delayed ACKs (core/measure/rtt.h), as each algorithm that compares RTTs shows it.

use super::*;

/// A round trip over the empty path, us: so short that Nice's first full queue, twice that, is
/// no longer than the receiver's timer.
const SHORT: u32 = 20_000;
/// Linux' TCP_DELACK_MIN.
const TIMER: u32 = 40_000;

/// Those that tell a queue from a timer.
const NAMES: [&str; 3] = ["nice", "lp", "imtcp_bg"];

/// So many ACKs, each for `acked` packets, of RTTs that are `above_us` beyond the empty path's, with
/// so many packets in flight behind.
type Acks = (u32, u32, u32, u32);

/// Hears ACKs with these flags.
fn hear(name: &str, acks: &[Acks], flags: u32) -> Host {
    let mut h = Host::start(name, 10);
    h.ack(1, SHORT, HOLD);
    for &(n, acked, above_us, inflight) in acks {
        for _ in 0..n {
            h.now.now_us += u64::from(SHORT + above_us);
            h.now.inflight = inflight;
            h.ack(acked, SHORT + above_us, flags);
        }
    }
    h
}

/// Whether what it hears is a queue of that length to it.
fn is_queue(name: &str, acks: &[Acks], above_us: u32) -> bool {
    says_queue(name, &hear(name, acks, HOLD), above_us)
}

fn says_queue(name: &str, h: &Host, above_us: u32) -> bool {
    match name {
        "imtcp_bg" => h.flags() & YIELDING != 0,
        _ => h.shows("max_rtt") == SHORT + above_us,
    }
}

#[test]
fn a_round_trip_shows_a_queue_unless_the_receivers_timer_may_be_in_it() {
    for name in NAMES {
        let queue = |acks: &[Acks]| is_queue(name, acks, TIMER);
        // a packet with nothing behind it
        assert!(!queue(&[(8, 1, TIMER, 0)]), "{name}");
        // the second packet was there
        assert!(queue(&[(8, 2, TIMER, 0)]), "{name}");
        // the next packet was there, and the receiver acknowledges each
        assert!(queue(&[(8, 1, TIMER, 9)]), "{name}");
    }
}

#[test]
fn where_the_receiver_tells_how_long_an_ack_waited_a_lone_packet_shows_a_queue_too() {
    for name in NAMES {
        let h = hear(name, &[(8, 1, TIMER, 0)], HOLD | sys::NN_ACK_EXACT);
        assert!(says_queue(name, &h, TIMER), "{name}");
    }
}

#[test]
fn a_round_trip_of_a_handshake_shows_no_queue_whatever_else_is_known_of_it() {
    for name in NAMES {
        let flags = HOLD | sys::NN_ACK_EXACT | sys::NN_ACK_HANDSHAKE;
        let h = hear(name, &[(8, 2, 5 * TIMER, 9)], flags);
        assert!(!says_queue(name, &h, 5 * TIMER), "{name}");
    }
}

#[test]
fn two_acks_after_one_of_a_pair_may_be_those_of_packets_that_waited_one_by_one() {
    for name in NAMES {
        let queue = |lone| is_queue(name, &[(1, 2, 0, 9), (lone, 1, TIMER, 9)], TIMER);
        assert!(!queue(2), "{name}");
        assert!(queue(2 + 8), "{name}");
    }
}

#[test]
fn an_ack_for_nothing_new_tells_nothing_of_how_the_receiver_acknowledges() {
    for name in NAMES {
        let acks = [(1, 2, 0, 9), (9, 0, 0, 9), (2, 1, TIMER, 9)];
        assert!(!is_queue(name, &acks, TIMER), "{name}");
    }
}

#[test]
fn a_short_round_trip_is_that_of_the_path_even_if_a_timer_may_be_in_it() {
    for name in NAMES {
        let mut h = Host::start(name, 10);
        h.now.inflight = 0;
        for rtt_us in [SHORT + TIMER, SHORT] {
            h.ack(1, rtt_us, HOLD);
            assert_eq!(h.shows("base_rtt"), rtt_us, "{name}");
        }
    }
}

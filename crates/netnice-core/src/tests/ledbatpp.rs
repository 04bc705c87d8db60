// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! LEDBAT++'s rules. Over [`BASE`], 2 target/base is 2.4, so that GAIN is a third.

use super::*;

/// Acknowledges nothing, at that time: only the phase may turn.
fn at(h: &mut Host, now_us: u64) -> u64 {
    h.now.now_us = now_us;
    h.ack(0, BASE, HOLD)
}

/// Steering with `n` packets since the clock's start, knowing that [`BASE`] is the empty path.
fn steering(settings: &[&str], n: u32) -> Host {
    let settings = [settings, &["wait=1000"]].concat();
    let mut h = Host::new(&config("ledbatpp", &settings), 2);
    at(&mut h, 0);
    let rounds = ONE as u32 / h.shows("gain");
    h.ack(rounds * (2 * n - 2), BASE, 0);
    assert_eq!(h.event(Event::NN_LOSS), packets(u64::from(n)));
    at(&mut h, 0);
    h
}

/// Returning to `n` packets since 200 ms: slow start ended at 0, and its slowdown began at 100 ms.
fn returning(n: u32) -> Host {
    let mut h = Host::start("ledbatpp", 2);
    h.ack(3 * (2 * n - 2), BASE, 0);
    h.event(Event::NN_LOSS);
    at(&mut h, 0);
    at(&mut h, 100_000);
    assert_eq!(at(&mut h, 200_000), packets(2));
    assert_eq!(h.flags(), SLOW_START);
    h
}

#[test]
fn the_gain_is_the_base_over_twice_the_target_in_whole_round_trips_and_a_sixteenth_at_least() {
    let rounds = |base_us| {
        let mut h = Host::start("ledbatpp", 2);
        h.ack(0, base_us, HOLD);
        ONE as u32 / h.shows("gain")
    };
    for (base_us, expected) in [
        (500 * MS, 1),
        (120 * MS, 1),
        (120 * MS - 1, 2),
        (60 * MS, 2),
        (50 * MS, 3),
        (10 * MS, 12),
        (8 * MS, 15),
        (7500, 16),
        (1, 16),
    ] {
        assert_eq!(rounds(base_us), expected, "{base_us}");
    }
    assert_eq!(ONE as u32 / Host::start("ledbatpp", 2).shows("gain"), 16, "of a path not known");
}

#[test]
fn slow_start_grows_by_the_gain_until_the_queue_is_above_three_quarters_of_the_target() {
    let after = |queue_us| {
        let mut h = Host::start("ledbatpp", 10);
        assert_eq!(h.ack(24, BASE, 0), packets(2 + 24 / 3));
        for _ in 0..4 {
            h.ack(3, BASE + queue_us, 0);
        }
        (h.cwnd(), h.flags())
    };
    assert_eq!(after(45 * MS), (packets(14), SLOW_START));
    // the fourth sample of a queue ends it, with 13 packets: 65536/13 are 5041.2
    assert_eq!(after(45 * MS + 1), (packets(13) + 5041, 0));
}

#[test]
fn the_window_grows_by_the_gain_in_a_round_trip_while_the_queue_is_not_above_the_target() {
    // 65536/3/20 for each packet
    for queue_ms in [0, 30, 59, 60] {
        assert_eq!(steering(&[], 20).change(queue_ms * MS), 1092, "{queue_ms}");
    }
}

#[test]
fn above_the_target_it_shrinks_by_that_share_of_the_window_less_the_gain() {
    // for each packet: 65536/10 and 65536/2, less 1092; at 61 ms both are 1092
    for (queue_ms, change) in [(61, 0), (66, 1092 - 6553), (89, 1092 - 31675), (90, 1092 - 32768)] {
        assert_eq!(steering(&[], 20).change(queue_ms * MS), change, "{queue_ms}");
    }
    // half of the window at most
    for queue_ms in [95, 1000, 60_000] {
        assert_eq!(steering(&[], 20).change(queue_ms * MS), -32768, "{queue_ms}");
    }
}

#[test]
fn the_target_the_constant_and_the_slowest_growth_can_be_set() {
    // 40/50 is rounded up to one round trip
    assert_eq!(steering(&["target=20"], 20).change(20 * MS), 3276);
    assert_eq!(steering(&["target=20"], 20).change(25 * MS), 3276 - 16384);
    assert_eq!(steering(&["decrease=0.5"], 20).change(90 * MS), 1092 - 16384);
    assert_eq!(steering(&["slowest=2"], 20).change(0), 1638);
}

#[test]
fn what_it_gave_up_does_not_come_back_by_slow_start() {
    let mut h = steering(&[], 20);
    for _ in 0..8 {
        h.change(90 * MS);
    }
    assert_eq!(h.flags(), 0);
    // 65536/3/16.15 packets; slow start's would be 21845
    assert_eq!(h.change(0), 1352);
}

#[test]
fn two_packets_are_the_least_window_but_after_a_timeout() {
    let mut h = steering(&[], 4);
    for _ in 0..100 {
        h.change(1000 * MS);
    }
    assert_eq!(h.cwnd(), packets(2));
    assert_eq!(h.event(Event::NN_LOSS), packets(2));
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
}

#[test]
fn the_first_slowdown_is_two_round_trips_after_slow_start_and_its_window_two_packets_for_two() {
    let mut h = Host::start("ledbatpp", 2);
    h.ack(54, BASE, 0);
    h.now.now_us = 1_000_000;
    for _ in 0..4 {
        h.ack(0, BASE + 46 * MS, HOLD);
    }
    assert_eq!((at(&mut h, 1_099_999), h.flags()), (packets(20), 0));
    for now_us in [1_100_000, 1_199_999] {
        assert_eq!((at(&mut h, now_us), h.flags()), (packets(2), YIELDING));
        assert_eq!(h.ack(5, BASE, 0), packets(2), "acknowledged packets change nothing");
    }
    assert_eq!((at(&mut h, 1_200_000), h.flags()), (packets(2), SLOW_START));
    // slow start to 20 packets
    assert_eq!(h.ack(53, BASE, 0), packets(2) + 53 * ONE / 3);
    assert_eq!((h.ack(10, BASE, 0), h.flags()), (packets(20), 0));
}

#[test]
fn the_next_slowdown_is_nine_times_as_long_after_one_as_that_took() {
    let mut h = returning(20);
    h.ack(54, BASE, 0);
    // from 100 to 500 ms: 3.6 s
    assert_eq!(at(&mut h, 500_000), packets(20));
    assert_eq!(at(&mut h, 4_099_999), packets(20));
    assert_eq!(at(&mut h, 4_100_000), packets(2));
}

#[test]
fn slowdowns_are_ten_minutes_apart_at_most() {
    let mut h = returning(20);
    // the application has nothing to send for five minutes
    at(&mut h, 300_000_000);
    h.ack(54, BASE, 0);
    assert_eq!(at(&mut h, 300_000_000), packets(20));
    assert_eq!(at(&mut h, 899_999_999), packets(20));
    assert_eq!(at(&mut h, 900_000_000), packets(2));
}

#[test]
fn the_return_from_a_slowdown_does_not_end_by_delay_but_by_loss() {
    let mut h = returning(20);
    for _ in 0..8 {
        h.ack(3, BASE + 50 * MS, 0);
    }
    assert_eq!((h.cwnd(), h.flags()), (packets(10), SLOW_START));
    assert_eq!((h.event(Event::NN_LOSS), h.flags()), (packets(5), 0));
    // that ends the slowdown, too: it took 300 ms
    at(&mut h, 400_000);
    assert_eq!(at(&mut h, 3_099_999), packets(5));
    assert_eq!(at(&mut h, 3_100_000), packets(2));
}

#[test]
fn a_loss_in_a_slowdown_halves_the_window_to_return_to_unless_it_is_undone() {
    for (undone_us, window) in [(None, 10), (Some(150_000), 20), (Some(250_000), 20)] {
        let mut h = Host::start("ledbatpp", 2);
        h.ack(3 * 38, BASE, 0);
        h.event(Event::NN_LOSS);
        at(&mut h, 0);
        at(&mut h, 100_000);
        assert_eq!(h.event(Event::NN_LOSS), packets(2));
        for now_us in [150_000, 200_000, 250_000] {
            assert_eq!(at(&mut h, now_us), packets(2));
            if Some(now_us) == undone_us {
                // not the whole window at once, even when that is known to be right
                assert_eq!(h.event(Event::NN_UNDO), packets(2));
            }
        }
        assert_eq!(h.ack(1000, BASE, 0), packets(window), "{undone_us:?}");
    }
}

#[test]
fn a_timeout_in_a_slowdown_begins_the_return_from_one_packet() {
    let mut h = Host::start("ledbatpp", 2);
    h.ack(3 * 38, BASE, 0);
    h.event(Event::NN_LOSS);
    at(&mut h, 0);
    at(&mut h, 100_000);
    h.event(Event::NN_LOSS);
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
    assert_eq!((h.ack(3, BASE, 0), h.flags()), (packets(2), SLOW_START));
    assert_eq!(h.ack(1000, BASE, 0), packets(10));
}

#[test]
fn no_slowdown_begins_in_the_slow_start_after_a_timeout() {
    let mut h = steering(&["frozen=0"], 20);
    h.event(Event::NN_LOSS);
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
    // 1000 round trips after slow start
    assert_eq!((at(&mut h, 60_000_000), h.flags()), (packets(1), SLOW_START));
    // ten packets are left of twenty
    assert_eq!(h.ack(27, BASE, 0), packets(10));
    assert_eq!((at(&mut h, 60_000_000), h.flags()), (packets(2), YIELDING));
}

#[test]
fn slow_start_is_the_first_one_still_if_its_loss_was_none() {
    let mut h = Host::start("ledbatpp", 2);
    h.ack(54, BASE, 0);
    assert_eq!(h.event(Event::NN_LOSS), packets(10));
    assert_eq!(h.event(Event::NN_UNDO), packets(20));
    assert_eq!((h.ack(3, BASE, 0), h.flags()), (packets(21), SLOW_START));
    for _ in 0..4 {
        h.ack(0, BASE + 46 * MS, HOLD);
    }
    assert_eq!(h.flags(), 0);
}

#[test]
fn recovery_and_the_application_hold_growth_but_not_decrease() {
    for flags in [HOLD, APP_LIMITED] {
        let mut h = steering(&[], 20);
        assert_eq!(h.ack(10, BASE, flags), packets(20));
        for _ in 0..4 {
            h.ack(0, BASE + 90 * MS, flags);
        }
        assert_eq!(h.ack(1, BASE + 90 * MS, flags), packets(20) + 1092 - 32768);
    }
}

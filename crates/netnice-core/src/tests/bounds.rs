// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The RTT of the empty path, of a full queue, and jitter, on a path that changes
//! (core/measure/bounds.h): base and top by what TCP-LP shows, jitter by what TCP Nice tolerates.

use super::nice::{avoiding, knowing_base};
use super::*;

/// A block: the eighth RTT comes 3.5 s after the first, and 3 s are enough.
const BLOCK: usize = 8;

/// A flow of two packets that has heard [`BASE`].
fn small(name: &str) -> Host {
    let mut h = Host::start(name, 2);
    h.now.now_us = 1;
    h.last_ack(2, BASE, HOLD);
    h
}

/// Hears RTTs that are half a second apart, and so many above [`BASE`].
fn hear(h: &mut Host, above_us: impl IntoIterator<Item = u32>) {
    for us in above_us {
        h.now.now_us += 500_000;
        h.ack(2, BASE + us, HOLD);
    }
}

/// Base and top, by which they exceed [`BASE`].
fn heard(h: &Host) -> (u32, u32) {
    (h.shows("base_rtt") - BASE, h.shows("max_rtt") - BASE)
}

#[test]
fn a_longer_path_is_known_after_four_blocks_and_a_full_queue_is_longer_by_as_much() {
    let mut h = small("lp");
    hear(&mut h, [40_000; 4 * BLOCK - 1]);
    assert_eq!(heard(&h), (0, 40_000));
    hear(&mut h, [40_000]);
    assert_eq!(heard(&h), (40_000, 80_000));
}

#[test]
fn a_path_that_changes_for_and_back_leaves_a_full_queue_as_it_was() {
    let mut h = small("lp");
    for _ in 0..10 {
        hear(&mut h, [40_000; 4 * BLOCK]);
        assert_eq!(heard(&h), (40_000, 80_000));
        hear(&mut h, [0; 4 * BLOCK]);
        assert_eq!(heard(&h), (0, 40_000));
    }
    hear(&mut h, [40_000; 4 * BLOCK]);
    hear(&mut h, [15_000]); // by 25 of the 40 ms
    assert_eq!(heard(&h), (15_000, 55_000));
}

#[test]
fn a_queue_that_varies_within_a_block_is_no_longer_path() {
    // near the least is 1000/4 + 40000/32 = 1500 us; the mean of 0 to 7 steps is 3.5 steps
    for (step_us, base_us) in [(428, 40_000), (429, 0)] {
        let mut h = small("lp");
        hear(&mut h, (0..4 * BLOCK).map(|i| 40_000 + step_us * (i % BLOCK) as u32));
        assert_eq!(heard(&h).0, base_us, "{step_us}");
    }
}

#[test]
fn a_queue_that_varies_from_block_to_block_is_no_longer_path() {
    // by 1500 us, or one more: the second row of blocks begins with each block anew
    for (step_us, base_us) in [(1500, 40_000), (1501, 0)] {
        let mut h = small("lp");
        let block = |n: usize| 40_000 + if n == 1 { 0 } else { step_us };
        hear(&mut h, (0..4 * BLOCK).map(|i| block(i / BLOCK)));
        assert_eq!(heard(&h).0, base_us, "{step_us}");
    }
}

#[test]
fn a_round_trip_of_the_empty_path_in_each_block_keeps_it_known() {
    let mut h = small("lp");
    hear(&mut h, (0..100 * BLOCK).map(|i| if i % BLOCK == 5 { 1000 } else { 40_000 }));
    assert_eq!(heard(&h).0, 0, "1 ms is what hosts vary by");
}

#[test]
fn a_loss_says_that_it_was_a_queue() {
    let mut h = small("lp");
    for _ in 0..10 {
        hear(&mut h, [40_000; 4 * BLOCK - 1]);
        h.event(Event::NN_LOSS);
        assert_eq!(heard(&h).0, 0);
    }
}

#[test]
fn a_window_of_more_than_two_packets_says_nothing_of_the_empty_path() {
    let mut h = Host::start("lp", 3);
    h.ack(2, BASE, HOLD);
    hear(&mut h, [40_000; 10 * BLOCK]);
    assert_eq!(heard(&h).0, 0);
}

#[test]
fn a_stall_of_the_path_is_no_full_queue() {
    let mut h = small("lp");
    hear(&mut h, [0, 450_000]);
    // in flight with it: 0.4 s after it was sent the first is known for 0.1 s only
    h.now.now_us += 100_000;
    h.ack(2, 400_000, HOLD);
    assert_eq!(heard(&h).1, 0);
    // ten seconds later nobody remembers
    hear(&mut h, [0; 20]);
    hear(&mut h, [350_000]);
    assert_eq!(heard(&h).1, 0);
}

#[test]
fn a_full_queue_is_as_long_as_two_packets_say_one_after_the_other() {
    let mut h = small("lp");
    hear(&mut h, [0, 450_000, 300_000]);
    assert_eq!(heard(&h).1, 300_000);
    hear(&mut h, [400_000]);
    assert_eq!(heard(&h).1, 400_000);
}

#[test]
fn a_loss_says_that_the_queue_was_full_for_those_that_arrived_last() {
    for (later_us, top_us) in [(500_000, 450_000), (500_001, 0)] {
        let mut h = small("lp");
        hear(&mut h, [0, 450_000]);
        h.now.now_us += later_us;
        h.event(Event::NN_LOSS);
        assert_eq!(heard(&h).1, top_us, "{later_us}");
    }
}

/// RTTs of a block, in ms above the path's: their mean is 4.75 and 7 steps between them are 38.
const JITTER: [u32; BLOCK] = [0, 9, 3, 8, 1, 7, 4, 6];

/// A flow of Nice after so many blocks.
fn after(blocks: usize, block_ms: [u32; BLOCK]) -> Host {
    let mut h = small("nice");
    for _ in 0..blocks {
        hear(&mut h, block_ms.map(|ms| 1000 * ms));
    }
    h
}

/// Whether Nice takes an RTT of so many us above 50 + 0.2 (100 - 50) ms (59999.2) for congestion.
fn is_congested(h: &Host, above_us: u32) -> bool {
    let mut h = h.clone();
    h.last_ack(0, 0, HOLD);
    let before = h.cwnd();
    h.last_ack(2, 59_999 + above_us, HOLD) < before
}

fn tolerates(h: &Host, us: u32) -> bool {
    !is_congested(h, us) && is_congested(h, us + 1)
}

#[test]
fn jitter_is_tolerated_after_four_blocks() {
    assert!(tolerates(&after(3, JITTER), 0));
    // the greatest is 9 ms, and half more
    assert!(tolerates(&after(4, JITTER), 13_500));
}

#[test]
fn a_queue_that_rises_and_falls_is_no_jitter() {
    // the same RTTs, but from each to the next there are 7 steps of 9 ms in all
    let mut queue = JITTER;
    queue.sort_unstable();
    assert!(tolerates(&after(10, queue), 0));
}

#[test]
fn traffic_that_comes_and_goes_is_no_jitter() {
    // most RTTs are near the least: their mean is 2.125, below 13/32 of 9
    assert!(tolerates(&after(10, [0, 9, 0, 0, 8, 0, 0, 0]), 0));
}

#[test]
fn a_narrower_block_takes_the_tolerance_back() {
    let mut h = after(4, JITTER);
    hear(&mut h, [0, 2000, 0, 0, 0, 0, 0, 0]);
    assert!(tolerates(&h, 3000));
}

#[test]
fn a_loss_takes_the_tolerance_back() {
    let mut h = after(4, JITTER);
    h.event(Event::NN_LOSS);
    assert!(tolerates(&h, 0));
}

/// On a path whose full queue has made 500 ms, after a round of 50 ms.
fn after_a_full_queue(settings: &[&str]) -> Host {
    let mut h = knowing_base(settings);
    h.full(500_000);
    h.last_ack(1, BASE, 0);
    assert_eq!((h.shows("max_rtt"), h.now.now_us), (500_000, 1_000_000));
    h
}

#[test]
fn ageing_moves_max_rtt_towards_the_round_by_the_share_of_time_passed() {
    // 500 - (500 - 50)/10; 500 - (500 - 50)/60; all of it after 1 s of 1 s or of less
    for (age, max_rtt_us) in
        [("age=10", 455_000), ("age=60", 492_500), ("age=1", BASE), ("age=0.5", BASE)]
    {
        let mut h = after_a_full_queue(&[age]);
        h.now.now_us += 1_000_000;
        h.round(4, BASE);
        assert_eq!(h.shows("max_rtt"), max_rtt_us, "{age}");
        // and it is twice minRTT at least before it is used again
        h.ack(1, BASE, 0);
        assert_eq!(h.shows("max_rtt"), max_rtt_us.max(2 * BASE), "{age}");
    }
}

#[test]
fn ageing_is_not_lost_in_rounds_that_are_short_against_its_time_constant() {
    let mut h = after_a_full_queue(&["age=100"]);
    for _ in 0..1000 {
        h.now.now_us += 100_000;
        h.round(4, BASE);
    }
    // after one time constant 1 - 1/e of the 450 ms between the two are gone, in steps of 1/64
    let max_us = h.shows("max_rtt");
    assert!((212_000..219_000).contains(&max_us), "{max_us}");
}

#[test]
fn with_ageing_jitter_is_not_taken_for_congestion() {
    let mut h = avoiding(&["age=10"], 16);
    for second in 1..200 {
        h.now.now_us = second * 1_000_000;
        h.ack(1, BASE + 10, 0);
        h.round(9, BASE + 300);
        assert_eq!(h.flags() & YIELDING, 0);
    }
}

#[test]
fn a_longer_path_is_full_speed_again() {
    // the fourth block of 4 s ends after 16 s, and a packet a round leads from below 2 to 16
    let after = |settings: &[&str]| {
        let mut h = avoiding(settings, 16);
        for second in 1..40 {
            h.now.now_us = second * 1_000_000;
            h.round(4, 3 * BASE);
        }
        h
    };
    assert!(after(&[]).cwnd() >= packets(16), "{}", after(&[]).cwnd());
    assert_eq!(after(&["age=0"]).cwnd(), 1365, "in the paper the longer path is a queue for ever");
}

#[test]
fn without_ageing_one_stall_is_a_full_queue_for_ever_as_in_the_paper() {
    for (age, max_rtt_us) in [("age=60", 2 * BASE), ("age=0", 500_000)] {
        let mut h = knowing_base(&[age]);
        h.ack(1, 500_000, 0);
        h.ack(1, BASE, 0);
        assert_eq!(h.shows("max_rtt"), max_rtt_us);
    }
}

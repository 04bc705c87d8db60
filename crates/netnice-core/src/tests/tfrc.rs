// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! TFRC's rules. Expected windows are those of RFC 5348, 3.1, with b = 1 and t_RTO = 4R:
//! W = 1/f(p), f(p) = sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2).

use super::mpat::close_to;
use super::*;

/// A flow that met its first loss event with a window of 20 packets, and so goes on with 10.
fn after_first_event() -> Host {
    let mut h = Host::start("tfrc", 20);
    h.now.now_us += u64::from(BASE);
    h.event(Event::NN_LOSS);
    h
}

/// Delivers so many packets and then loses one, a round trip or more after the last loss.
fn interval(h: &mut Host, packets: u32) {
    h.ack(packets - 1, BASE, 0); // the event's own packet is the first of them
    h.now.now_us += 2 * u64::from(BASE);
    h.event(Event::NN_LOSS);
}

fn window(h: &Host) -> f64 {
    h.cwnd() as f64 / ONE as f64
}

#[test]
fn before_the_first_loss_event_it_is_in_slow_start() {
    let mut h = Host::start("tfrc", 10);
    assert_eq!(h.ack(3, BASE, 0), packets(13));
    assert_eq!(h.flags(), SLOW_START);
}

#[test]
fn the_first_loss_event_leaves_half_the_window() {
    // 6.3.1: I_1 is 1/p of half the rate. f(1/82.15) = 0.09010 + 0.00987 * 1.0047 = 1/10.00
    let mut h = after_first_event();
    close_to(window(&h), 10.0, 0.01);
    assert_eq!(h.flags(), 0);
    // and I_0 does not count before it is above 82 packets
    let left = h.cwnd();
    assert_eq!(h.ack(80, BASE, 0), left);
    assert!(h.ack(10, BASE, 0) > left);
}

#[test]
fn the_window_is_what_the_equation_gives_for_the_mean_interval() {
    // p = 1/10:     f = 0.25820 + 0.23238 * 1.32     = 1/1.7701
    // p = 1/100:    f = 0.08165 + 0.0073485 * 1.0032 = 1/11.233
    // p = 1/10,000: f = 0.0081650 + 0.0000073        = 1/122.36
    for (packets, expected) in [(10, 1.7701), (100, 11.233), (10_000, 122.36)] {
        let mut h = after_first_event();
        (0..8).for_each(|_| interval(&mut h, packets));
        h.ack(packets - 1, BASE, 0); // as I_0 it leaves the mean as it is
        close_to(window(&h), expected, 0.001);
    }
}

#[test]
fn the_latest_four_intervals_count_most() {
    // 100 packets each, then one of 400. Of the weights 1 1 1 1 .8 .6 .4 .2, 6 in all:
    // (400 + 5 * 100)/6 = 150 packets. f(1/150) = 0.066667 + 0.0040000 * 1.0014 = 1/14.150
    let mut h = after_first_event();
    (0..8).for_each(|_| interval(&mut h, 100));
    h.ack(399, BASE, 0); // as I_0, whose weight is that of I_1
    close_to(window(&h), 14.150, 0.001);
    // four intervals later its weight is .8: (400 * .8 + 5.2 * 100)/6 = 140 packets,
    // f(1/140) = 0.069007 + 0.0044362 * 1.0016 = 1/13.616
    interval(&mut h, 1);
    (0..4).for_each(|_| interval(&mut h, 100));
    h.ack(99, BASE, 0);
    close_to(window(&h), 13.616, 0.001);
}

#[test]
fn it_grows_by_about_a_tenth_of_a_packet_in_a_round_trip() {
    let mut h = after_first_event();
    (0..8).for_each(|_| interval(&mut h, 100));
    h.ack(99, BASE, 0);
    let before = window(&h);
    (0..10).for_each(|_| _ = h.ack(11, BASE, 0)); // ten windows
                                                  // I_0 is 210: (210 + 500)/6 = 118.3 packets. f(1/118.3) = 0.075059 + 0.005709 * 1.0023 = 1/12.379,
                                                  // from 1/11.233
    close_to(window(&h), 12.379, 0.001);
    close_to(window(&h) - before, 1.146, 0.02);
}

#[test]
fn losses_within_a_round_trip_are_one_event() {
    let mut h = after_first_event();
    (0..8).for_each(|_| interval(&mut h, 100));
    let left = h.cwnd();
    h.now.now_us += u64::from(BASE) - 1;
    h.event(Event::NN_ECN);
    assert_eq!(h.cwnd(), left);
    h.now.now_us += 2;
    // I_1 = 1: (1 + 5 * 100)/6 = 83.5 packets. f(1/83.5) = 0.089353 + 0.009631 * 1.0046 = 1/10.098
    h.event(Event::NN_ECN);
    close_to(window(&h), 10.098, 0.001);
}

#[test]
fn an_undo_makes_one_interval_of_two() {
    let mut h = after_first_event();
    (0..8).for_each(|_| interval(&mut h, 100));
    h.ack(399, BASE, 0);
    let (before, mut other) = (h.clone(), h.clone());
    h.now.now_us += 2 * u64::from(BASE);
    h.event(Event::NN_LOSS);
    h.event(Event::NN_UNDO);
    assert_eq!(h.cwnd(), before.cwnd());
    // the packet that was taken for lost was counted once: it is still to be delivered
    other.ack(101, BASE, 0);
    h.ack(100, BASE, 0);
    assert_eq!(h.cwnd(), other.cwnd());
    // another one undoes nothing
    h.event(Event::NN_UNDO);
    assert_eq!(h.cwnd(), other.cwnd());
}

#[test]
fn the_undo_of_the_first_event_leads_back_to_slow_start() {
    let mut h = after_first_event();
    assert_eq!(h.event(Event::NN_UNDO), packets(20));
    assert_eq!(h.ack(5, BASE, 0), packets(25));
}

#[test]
fn after_a_timeout_it_climbs_from_one_packet_to_what_the_equation_allows() {
    let mut h = after_first_event();
    (0..8).for_each(|_| interval(&mut h, 100));
    h.ack(99, BASE, 0);
    let before = h.cwnd();
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
    assert_eq!(h.ack(1, BASE, 0), packets(2));
    assert_eq!(h.flags(), SLOW_START);
    assert!(h.ack(20, BASE, 0) >= before);
    assert_eq!(h.flags(), 0);
}

#[test]
fn a_window_below_two_packets_is_a_burst_of_two_each_2_over_w_round_trips() {
    let mut h = after_first_event();
    (0..8).for_each(|_| interval(&mut h, 10));
    h.ack(9, BASE, 0); // W = 1.7701, see above
    let ctl = h.flow.ctl();
    assert_eq!(ctl.burst, 2);
    close_to(ctl.gap_us as f64, 2.0 / 1.7701 * f64::from(BASE), 0.001);
}

#[test]
fn a_packet_is_the_least_window() {
    // the equation has less above p = 1/6.855: f = 0.31185 + 0.40943 * 1.681 = 1
    let mut h = after_first_event();
    (0..8).for_each(|_| interval(&mut h, 7));
    h.ack(6, BASE, 0);
    close_to(window(&h), 1.0368, 0.001); // f(1/7) = 0.30861 + 0.39678 * 1.6531 = 1/1.0368
    (0..9).for_each(|_| interval(&mut h, 1));
    assert_eq!(h.cwnd(), packets(1));
}

#[test]
fn an_unused_window_does_not_grow_though_packets_count() {
    let mut h = after_first_event();
    let left = h.cwnd();
    assert_eq!(h.ack(1000, BASE, APP_LIMITED), left);
    assert!(h.ack(1, BASE, 0) > left);
}

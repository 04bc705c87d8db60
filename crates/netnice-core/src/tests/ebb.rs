// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! ebb's rules: Nice on its own, CUBIC while its host holds its packets.

use super::*;

const HELD: u32 = sys::NN_ACK_HELD;

#[test]
fn where_nothing_holds_it_it_is_nice_step_by_step() {
    let (mut ebb, mut nice) = (Host::start("ebb", 10), Host::start("nice", 10));
    // up in slow start, down in a full queue, below two packets, and up again
    let path = [BASE; 12].into_iter().chain([3 * BASE; 8]).chain([BASE; 12]);
    for rtt in path {
        let n = (nice.cwnd() / ONE).max(1) as u32;
        assert_eq!(ebb.round(n, rtt), nice.round(n, rtt));
        assert_eq!(ebb.flags(), nice.flags());
    }
    assert_eq!(ebb.event(Event::NN_LOSS), nice.event(Event::NN_LOSS));
}

#[test]
fn from_the_first_ack_of_a_held_packet_on_the_window_grows_whatever_the_rtt() {
    let mut h = Host::start("ebb", 10);
    assert_eq!(h.cwnd(), packets(2));
    // slow start: two, and two that were acknowledged
    assert_eq!(h.ack(2, BASE, HELD), packets(4));
    assert_eq!(shown(&h.flow, "held").value, ONE);
    // they wait in their host, ten round trips long: that is no queue of the path's
    assert_eq!(h.ack(2, 10 * BASE, HELD), packets(6));
    assert_eq!(h.flags() & YIELDING, 0);
}

#[test]
fn a_held_flow_halts_at_a_loss_as_cubic_does() {
    let (mut ebb, mut cubic) = (Host::start("ebb", 2), Host::start("cubic", 2));
    for _ in 0..8 {
        assert_eq!(ebb.ack(2, BASE, HELD), cubic.ack(2, BASE, 0));
    }
    ebb.now.flags = HELD;
    assert_eq!(ebb.event(Event::NN_LOSS), cubic.event(Event::NN_LOSS));
}

#[test]
fn once_nothing_holds_it_it_begins_as_nice_with_two_packets_and_no_rtt_of_before() {
    let mut h = Host::start("ebb", 10);
    for _ in 0..20 {
        h.ack(2, 10 * BASE, HELD);
    }
    h.ack(1, BASE, 0);
    assert!(h.cwnd() <= packets(3));
    assert_eq!(shown(&h.flow, "held").value, 0);
    assert_eq!(h.shows("base_rtt"), BASE);
    assert_eq!(h.shows("max_rtt"), 2 * BASE);
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The rules of Reno with a fixed greatest window.

use super::*;

#[test]
fn the_window_is_one_packet_unless_set() {
    let mut h = Host::start("fixed", 10);
    assert_eq!((h.cwnd(), h.flags(), h.flow.ctl().gap_us), (packets(1), 0, 0));
    for event in [Event::NN_LOSS, Event::NN_TIMEOUT, Event::NN_UNDO, Event::NN_ECN] {
        assert_eq!(h.round(10, BASE), packets(1));
        assert_eq!(h.event(event), packets(1));
    }
}

#[test]
fn slow_start_leads_to_the_limit_and_not_beyond() {
    let mut h = Host::new(&config("fixed", &["window=16"]), 10);
    assert_eq!((h.cwnd(), h.flags()), (packets(10), SLOW_START));
    assert_eq!((h.ack(5, BASE, 0), h.flags()), (packets(15), SLOW_START));
    assert_eq!((h.ack(5, BASE, 0), h.flags()), (packets(16), 0));
    assert_eq!(h.round(100, BASE), packets(16));
}

#[test]
fn after_a_loss_renos_avoidance_leads_back_to_the_limit() {
    let mut h = Host::new(&config("fixed", &["window=16"]), 100);
    assert_eq!(h.event(Event::NN_LOSS), packets(8));
    // 2^32 / (8 * 2^16)
    assert_eq!(h.ack(1, BASE, 0), packets(8) + 8192);
    for _ in 0..8 {
        h.round(16, BASE);
    }
    assert_eq!(h.cwnd(), packets(16));
}

#[test]
fn an_undo_restores_the_window_up_to_the_limit() {
    let mut h = Host::new(&config("fixed", &["window=4"]), 100);
    h.event(Event::NN_LOSS);
    h.event(Event::NN_TIMEOUT);
    assert_eq!(h.event(Event::NN_UNDO), packets(4));
}

#[test]
fn the_limit_may_lie_between_whole_packets() {
    let mut h = Host::new(&config("fixed", &["window=2.5"]), 1);
    assert_eq!(h.round(10, BASE), packets(5) / 2);
}

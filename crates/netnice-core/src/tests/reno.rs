// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Reno's rules.

use super::*;

#[test]
fn slow_start_adds_a_packet_for_each_packet_acknowledged() {
    let mut h = Host::start("reno", 10);
    assert_eq!((h.cwnd(), h.flags()), (packets(10), SLOW_START));
    assert_eq!(h.ack(1, BASE, 0), packets(11));
    assert_eq!(h.ack(3, BASE, 0), packets(14));
    assert_eq!((h.flow.ctl().gap_us, h.flags()), (0, SLOW_START));
}

#[test]
fn avoidance_adds_one_over_the_window_for_each_packet_acknowledged() {
    let mut h = Host::avoiding(&config("reno", &[]), 10);
    // 2^32 / (10 * 2^16) = 6553.6
    assert_eq!(h.ack(1, BASE, 0), packets(10) + 6553);
}

#[test]
fn avoidance_adds_nearly_a_packet_in_a_round() {
    let mut h = Host::avoiding(&config("reno", &[]), 100);
    let grown = h.round(100, BASE) - packets(100);
    // the sum of 1/(100 + k/100) for k = 0..99 is 0.995
    assert!((ONE * 99 / 100..ONE).contains(&grown), "{grown}");
}

#[test]
fn what_an_ack_has_left_at_ssthresh_goes_to_avoidance() {
    let mut h = Host::avoiding(&config("reno", &[]), 10);
    h.event(Event::NN_TIMEOUT);
    // from 1: nine packets lead to ssthresh = 10, three add 3/10: 3 * 2^32 / (10 * 2^16) = 19660.8
    assert_eq!(h.ack(12, BASE, 0), packets(10) + 19_660);
    assert_eq!(h.flags(), 0);
}

#[test]
fn a_loss_and_an_ecn_mark_halve_the_window_and_end_slow_start() {
    for event in [Event::NN_LOSS, Event::NN_ECN] {
        let mut h = Host::start("reno", 20);
        assert_eq!(h.event(event), packets(10));
        assert_eq!(h.flags(), 0);
    }
}

#[test]
fn two_packets_are_the_least_window_after_a_loss() {
    let mut h = Host::start("reno", 3);
    assert_eq!(h.event(Event::NN_LOSS), packets(2));
    assert_eq!(h.event(Event::NN_LOSS), packets(2));
}

#[test]
fn after_a_timeout_slow_start_leads_from_one_packet_to_half_the_window() {
    let mut h = Host::start("reno", 20);
    h.event(Event::NN_LOSS);
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
    assert_eq!(h.flags(), SLOW_START);
    assert_eq!(h.ack(8, BASE, 0), packets(9));
    assert_eq!(h.flags(), SLOW_START);
    assert_eq!(h.ack(1, BASE, 0), packets(10));
    assert_eq!(h.flags(), 0);
}

#[test]
fn undo_restores_the_window_from_before_the_loss() {
    let mut h = Host::start("reno", 20);
    h.event(Event::NN_LOSS);
    assert_eq!(h.event(Event::NN_UNDO), packets(20));
    h.event(Event::NN_LOSS);
    h.event(Event::NN_TIMEOUT);
    assert_eq!(h.event(Event::NN_UNDO), packets(20));
    // and slow start, which the loss had ended, goes on
    assert_eq!(h.flags(), SLOW_START);
}

#[test]
fn after_an_undo_a_timeout_remembers_the_restored_window() {
    let mut h = Host::start("reno", 20);
    h.event(Event::NN_LOSS);
    h.event(Event::NN_UNDO);
    h.event(Event::NN_TIMEOUT);
    assert_eq!(h.ack(19, BASE, 0), packets(20));
}

#[test]
fn undo_never_takes_away_what_grew_since() {
    let mut h = Host::start("reno", 4);
    h.event(Event::NN_LOSS);
    h.ack(100, BASE, 0); // 2 + 100/2
    assert_eq!(h.event(Event::NN_UNDO), packets(52));
}

#[test]
fn after_idling_slow_start_leads_back_to_three_quarters() {
    let mut h = Host::avoiding(&config("reno", &[]), 40);
    assert_eq!(h.idle(10), packets(10));
    assert_eq!(h.flags(), SLOW_START);
    assert_eq!(h.ack(100, BASE, 0), packets(40) + 70 * ONE / 40); // ssthresh was 40
    let mut h = Host::avoiding(&config("reno", &[]), 10);
    h.ack(300, BASE, 0); // 10 + 300/10 = 40, ssthresh 10
    h.idle(10);
    h.ack(20, BASE, 0); // ssthresh 3/4 of 40
    assert_eq!((h.cwnd(), h.flags()), (packets(30), 0));
}

#[test]
fn idling_never_raises_the_window() {
    let mut h = Host::avoiding(&config("reno", &[]), 5);
    assert_eq!(h.idle(10), packets(5));
}

#[test]
fn recovery_and_the_application_hold_the_window() {
    for flags in [HOLD, APP_LIMITED] {
        let mut h = Host::start("reno", 10);
        assert_eq!(h.ack(5, BASE, flags), packets(10));
        h.event(Event::NN_LOSS);
        assert_eq!(h.ack(5, BASE, flags), packets(5));
    }
}

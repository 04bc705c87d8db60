// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The facts that an algorithm is told.

use super::*;

/// The facts of the last ACK.
fn last_ack(s: &Sender) -> Ack {
    let heard = s.control.heard();
    heard.iter().rev().find(|(what, _)| matches!(what, Heard::Ack)).expect("an ACK").1
}

#[test]
fn an_ack_tells_what_it_delivered_and_how_long_that_took() {
    let mut s = Sender::of("reno", &[]);
    let start = s.control.heard()[0].1.now_us;
    s.send();
    s.wait(BASE);
    s.ack(3);
    let ack = last_ack(&s);
    let expected = Ack {
        now_us: start + 50_000,
        rtt_us: 50_000,
        srtt_us: 50_000,
        acked: 3,
        inflight: 7,
        una: 3,
        nxt: 10,
        mss: 1200,
        flows: ack.flows,
        ..Ack::default()
    };
    assert_eq!(ack, expected);
    // RFC 6298: (7 * 50 + 90)/8 = 55 ms
    s.wait(Duration::from_millis(40));
    s.ack(2);
    let ack = last_ack(&s);
    assert_eq!((ack.rtt_us, ack.srtt_us, ack.una), (90_000, 55_000, 5));
}

#[test]
fn losses_are_counted_at_the_ack_that_shows_them() {
    let mut s = Sender::of("reno", &[]);
    s.send();
    s.wait(BASE);
    s.lose(2, false);
    s.ack(1);
    let ack = last_ack(&s);
    assert_eq!((ack.lost, ack.acked, ack.flags & sys::NN_ACK_HOLD), (2, 1, sys::NN_ACK_HOLD));
    s.ack(1);
    assert_eq!(last_ack(&s).lost, 0);
}

#[test]
fn the_delay_of_a_lone_packets_ack_is_learned_from_what_s2n_quic_leaves_out() {
    let mut s = Sender::of("reno", &[]);
    let delay = Duration::from_millis(25);
    let max = s2n_quic_core::transport::parameters::MaxAckDelay::default();
    s.rtt.on_max_ack_delay(max);
    // two at a time are acknowledged at once: that is the least RTT
    s.send();
    s.wait(BASE);
    s.ack(s.out.len());
    let mut told = Vec::new();
    for _ in 0..4 {
        s.send_one(s.stamp(), false);
        s.wait(BASE + delay + Duration::from_millis(1));
        s.ack_delayed(1, delay);
        told.push(last_ack(&s).rtt_us);
    }
    // the first shows the delay, the others have it left out
    assert_eq!(told[0], 76_000);
    assert!(told[1..].iter().all(|us| (50_950..=51_050).contains(us)), "{told:?}");
}

#[test]
fn mtu_discovery_makes_full_packets_larger() {
    let mut s = Sender::of("reno", &[]);
    s.control.on_mtu_update(1452, &mut Quiet);
    assert_eq!(s.control.congestion_window(), 10 * 1452);
    s.send_one(s.stamp(), false);
    s.wait(BASE);
    s.ack(1);
    assert_eq!(last_ack(&s).mss, 1452);
}

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
        flags: sys::NN_ACK_HANDSHAKE,
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
fn the_delay_of_an_ack_is_known_from_what_s2n_quic_leaves_out_however_many_packets_it_is_for() {
    let mut s = Sender::of("reno", &[]);
    let delay = Duration::from_millis(24);
    s.rtt.on_max_ack_delay(Default::default()); // 25 ms
    s.send();
    s.wait(BASE);
    s.ack(s.out.len());
    for (packets, queue) in [(1, 1), (1, 5), (3, 1), (2, 10)] {
        let queue = Duration::from_millis(queue);
        (0..packets).for_each(|_| s.send_one(s.stamp(), false));
        s.wait(BASE + delay + queue);
        s.ack_delayed(packets, delay);
        let (told, expected) = (last_ack(&s).rtt_us, (BASE + queue).as_micros() as u32);
        assert!(told.abs_diff(expected) <= 10, "{packets} packets: {told} us, not {expected}");
    }
    // one that was not delayed
    s.send_one(s.stamp(), false);
    s.wait(2 * BASE);
    s.ack(1);
    assert!(last_ack(&s).rtt_us.abs_diff(100_000) <= 10);
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

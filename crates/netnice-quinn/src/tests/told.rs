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
fn the_first_ten_packets_are_the_handshakes_and_what_leaves_later_has_exact_round_trips() {
    let mut s = Sender::of("reno", &[]);
    let flags = |s: &Sender| last_ack(s).flags & (sys::NN_ACK_HANDSHAKE | sys::NN_ACK_EXACT);
    s.send();
    s.wait(BASE);
    s.ack(9);
    s.send();
    s.wait(BASE);
    s.ack(1);
    assert_eq!(flags(&s), sys::NN_ACK_HANDSHAKE, "the tenth");
    s.ack(1);
    assert_eq!(flags(&s), sys::NN_ACK_EXACT, "the eleventh");
}

#[test]
fn losses_are_counted_at_the_ack_after_them() {
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
fn when_nothing_is_out_nothing_is_missing() {
    let mut s = Sender::of("reno", &[]);
    s.send();
    s.wait(BASE);
    // numbers 10 and 11 carried ACKs alone, which nobody acknowledges
    s.control.on_sent(s.now, 40, 11);
    s.next = 12;
    s.control.delivered(s.now, s.out[9], BASE);
    s.control.on_end_acks(s.now, 0, false, Some(9));
    let ack = last_ack(&s);
    assert_eq!((ack.una, ack.nxt, ack.inflight), (12, 12, 0));
}

#[test]
fn an_ack_of_older_packets_than_were_acknowledged_before_measures_nothing() {
    let mut s = Sender::of("reno", &[]);
    s.send();
    let old = s.now;
    s.wait(Duration::from_millis(1));
    s.control.on_sent(s.now, MTU.into(), 10);
    let new = s.now;
    s.wait(BASE);
    s.control.delivered(s.now, new, BASE);
    s.control.on_end_acks(s.now, 12_000, false, Some(10));
    assert_eq!(last_ack(&s).rtt_us, 50_000);
    s.wait(BASE);
    s.control.delivered(s.now, old, BASE);
    s.control.on_end_acks(s.now, 10_800, false, Some(10));
    assert_eq!((last_ack(&s).rtt_us, last_ack_count(&s)), (0, 0));
}

/// ACKs that were told since the facts were last read.
fn last_ack_count(s: &Sender) -> usize {
    s.control.heard().iter().filter(|(what, _)| matches!(what, Heard::Ack)).count()
}

#[test]
fn the_delay_of_a_lone_packets_ack_is_learned_from_what_quinn_leaves_out() {
    let mut s = Sender::of("reno", &[]);
    let delay = Duration::from_millis(25);
    // quinn's smoothed RTT as it follows an ACK that was delayed by 25 ms: it stays 50 ms
    let mut told = Vec::new();
    for _ in 0..4 {
        s.control.on_sent(s.now, MTU.into(), s.next);
        s.out.push_back(s.now);
        s.next += 1;
        s.wait(BASE + delay);
        s.ack(1);
        told.push(last_ack(&s).rtt_us);
        if told.len() == 1 {
            s.smoothed = BASE + delay; // the first sample, whole
        } else {
            s.smoothed = (s.smoothed * 7 + BASE) / 8;
        }
    }
    // the first is all that is known, the second shows the delay, the third has it left out
    assert_eq!(told[..2], [75_000, 75_000]);
    assert!((49_990..=50_010).contains(&told[3]), "{told:?}");
}

#[test]
fn mtu_discovery_makes_full_packets_larger() {
    let mut s = Sender::of("reno", &[]);
    s.control.on_mtu_update(1452);
    assert_eq!(s.control.window(), 10 * 1452 + 1);
    s.send();
    s.wait(BASE);
    s.ack(2);
    assert_eq!(last_ack(&s).mss, 1452);
}

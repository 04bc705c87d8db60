// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Windows below two packets: a burst, then a gap, by the time before which nothing leaves.

use super::*;

/// As in the paper, with losses that leave less than one packet; nothing is out, and no gap is left.
fn with_a_gap() -> (Sender, Background) {
    let background = Background::new(config("nice", &["together=0", "spread=0"]));
    let mut s = Sender::new(&background);
    s.run(200);
    while s.control.gap() < 40 * BASE {
        s.send();
        s.wait(BASE);
        if !s.out.is_empty() {
            s.lose(s.out.len(), false);
        }
    }
    s.wait(s.control.gap() + Duration::from_millis(2));
    (s, background)
}

#[test]
fn below_one_packet_a_burst_leaves_then_nothing_until_the_gap_is_over() {
    let (mut s, _) = with_a_gap();
    for arrives in [false, false, true] {
        let sent = s.send();
        assert!((1..=2).contains(&sent), "{sent}");
        let (gap, began) = (s.control.gap(), s.time);
        let window = s.control.host(|host| host.flow().ctl().cwnd_q16);
        assert!(window < 65_536, "less than a packet: {window}");
        assert!(gap > BASE * sent as u32, "{sent} packets, then {gap:?}");
        s.wait(BASE);
        if arrives {
            s.ack(sent); // and the gap goes on
        } else {
            s.lose(sent, false);
        }
        while s.time < began + gap {
            assert!(!s.may_send(), "{:?} after a burst, of a gap of {gap:?}", s.time - began);
            s.wait(Duration::from_micros(500).min(began + gap - s.time));
        }
        s.wait(Duration::from_millis(2));
        assert!(s.may_send());
    }
}

#[test]
fn whoever_waits_in_a_gap_looks_again_within_a_tenth_of_a_second() {
    let (mut s, _) = with_a_gap();
    s.send();
    let began = s.time;
    let gap = s.control.gap();
    let mut looks = 0;
    while s.time < began + gap {
        let at = s.control.earliest_departure_time().expect("it is in a gap");
        let wait = at - s.stamp();
        assert!(wait > Duration::from_millis(1), "else s2n-quic takes it for over: {wait:?}");
        assert!(wait <= Duration::from_millis(101), "{wait:?}");
        s.wait(wait);
        looks += 1;
    }
    assert!(looks >= 4, "{looks}");
    assert!(s.may_send());
}

#[test]
fn a_switch_to_the_foreground_ends_a_gap() {
    let (mut s, background) = with_a_gap();
    s.send();
    assert!(!s.may_send());
    background.switch().to_foreground();
    assert!(s.may_send());
    assert!(s.send() >= 8, "CUBIC begins with ten");
}

#[test]
fn no_gap_lasts_longer_than_ten_seconds() {
    let (mut s, _) = with_a_gap();
    // a path of a second, on which 1/48 of a packet in a round trip is a gap of a minute and more
    for _ in 0..40 {
        let sent = s.send();
        s.wait(Duration::from_secs(1));
        s.ack(sent);
        s.wait(Duration::from_secs(10));
        s.send();
        s.lose(s.out.len(), false);
        s.wait(Duration::from_secs(10) + Duration::from_millis(1));
    }
    s.send();
    assert!(s.control.gap() > Duration::from_secs(11), "{:?}", s.control.gap());
    assert!(!s.may_send());
    s.wait(Duration::from_secs(10) + Duration::from_millis(2));
    assert!(s.may_send());
}

#[test]
fn the_algorithm_is_asked_once_for_each_burst_before_it_leaves() {
    let (mut s, _) = with_a_gap();
    s.control.heard();
    let out = s.control.bytes_in_flight();
    let sent = s.send();
    let asked: Vec<_> = s.control.heard();
    let sends: Vec<_> = asked.iter().filter(|(what, _)| matches!(what, Heard::Send)).collect();
    assert_eq!(sends.len(), 1, "for {sent} packets");
    assert_eq!(sends[0].1.inflight, out / u32::from(MTU), "before the first of it");
}

#[test]
fn no_gap_holds_back_the_first_ten_packets() {
    let group = crate::Group::new(false);
    let mut s = Sender::new(&Background::new(config("mpat", &[])).in_group(&group));
    s.send_one(s.stamp(), false);
    s.wait(BASE);
    s.ack(1);
    // members are paced from the first RTT on
    let sent = [s.send(), s.send()];
    assert!(s.control.gap() > Duration::ZERO);
    assert!(sent[0] >= 9 && sent[1] == 0, "{sent:?}");
}

#[test]
fn a_clock_that_lags_when_a_connection_begins_makes_no_gap_shorter() {
    let (mut s, _) = with_a_gap();
    // the process was busy for a second before it read its clock for the first time
    NOW.set(Some(now() - Duration::from_secs(1)));
    s.send();
    let at = s.control.earliest_departure_time().expect("it is in a gap");
    assert!(at > s.stamp() + Duration::from_millis(1));
}

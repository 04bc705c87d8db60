// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Windows below two packets: a burst, then a gap.

use super::*;
use crate::gaps;

/// Twelve losses, which leave much less than two packets; then nothing is out, and no gap is left.
fn with_a_gap() -> (Sender, Background) {
    after_losses(true)
}

/// The same where nobody waits for the ends of gaps.
fn with_a_gap_for_nobody() -> Sender {
    after_losses(false).0
}

fn after_losses(awaits: bool) -> (Sender, Background) {
    let background = Background::new(config("nice", &["together=0"]));
    let mut s = Sender::new(&background);
    s.awaits = awaits;
    s.run(200);
    for _ in 0..12 {
        while s.step() == 0 {}
        s.lose(1, false);
        s.wait(Duration::from_millis(1)); // else what leaves now was out at the loss
    }
    while !s.out.is_empty() {
        s.wait(BASE);
        s.ack(s.out.len().min(2));
    }
    s.wait(s.control.gap());
    assert!(s.control.gap() > 10 * BASE, "{:?}", s.control.gap());
    (s, background)
}

#[test]
fn whoever_waits_for_gaps_is_told_when_one_ends_and_gets_a_burst_for_each() {
    let (mut s, _) = with_a_gap();
    let (sent, again) = gaps(s.now, || s.send());
    let began = s.now;
    assert!((1..=2).contains(&sent), "{sent}");
    let gap = s.control.gap();
    assert_eq!(again, Some(began + gap), "data waits");
    // all of it arrived, and the gap goes on
    s.wait(gap / 2);
    s.ack(sent);
    assert_eq!(gaps(s.now, || s.control.window()), (1, Some(began + gap)));
    assert_eq!(gaps(s.now, || s.send()), (0, Some(began + gap)));
    s.wait(gap - gap / 2);
    let (sent, _) = gaps(s.now, || s.send());
    assert!((1..=2).contains(&sent), "{sent}");
}

#[test]
fn where_nobody_waits_a_gap_ends_when_nothing_is_out() {
    let mut s = with_a_gap_for_nobody();
    let sent = s.send();
    assert!((1..=2).contains(&sent), "{sent}");
    s.wait(BASE);
    assert_eq!(s.send(), 0, "within the gap, and packets are out");
    s.ack(sent);
    let more = s.send();
    assert!((1..=2).contains(&more), "{more}: else quinn would never look again");
}

#[test]
fn where_nobody_waits_a_packet_that_carries_an_ack_alone_neither_begins_nor_prolongs_a_gap() {
    let mut s = with_a_gap_for_nobody();
    s.send_ack();
    let sent = s.send();
    assert!((1..=2).contains(&sent), "{sent}");
    s.wait(BASE);
    s.ack(sent);
    s.send_ack();
    let more = s.send();
    assert!((1..=2).contains(&more), "{more}: nobody acknowledges that packet");
}

#[test]
fn where_nobody_waits_a_lost_probe_of_the_mtu_does_not_prolong_a_gap() {
    let mut s = with_a_gap_for_nobody();
    let sent = s.send();
    s.wait(BASE);
    let out: Vec<_> = s.out.drain(..).collect();
    out.iter().for_each(|sent| s.control.delivered(s.now, *sent, BASE));
    // the probe is in flight, and quinn does not say when it gives it up
    s.control.on_end_acks(s.now, 1452, false, Some(s.next - 1));
    let more = s.send();
    assert!((1..=2).contains(&more), "{more} after {sent}");
}

#[test]
fn a_gap_that_a_switch_ends_wakes_whoever_waits() {
    let (mut s, background) = with_a_gap();
    let (_, again, switches) = crate::gaps::watched(s.now, || {
        while s.send() > 0 {}
        s.control.window()
    });
    assert!(again.is_some() && !switches.is_empty());
    background.switch().to_foreground();
    assert_eq!(gaps(s.now, || s.control.window()), (12_000, None));
}

#[test]
fn no_gap_lasts_longer_than_ten_seconds() {
    let mut s = Sender::of("nice", &["together=0", "spread=0"]);
    let second = Duration::from_secs(1);
    s.smoothed = second;
    gaps(s.now, || s.send());
    s.wait(second);
    s.ack(s.out.len());
    // 1/48 of a packet in a round trip of a second is a gap of a minute and more
    for _ in 0..12 {
        gaps(s.now, || s.send());
        s.wait(second);
        s.lose(s.out.len(), false);
        s.wait(10 * second);
    }
    let (sent, again) = gaps(s.now, || s.send());
    assert!(s.control.gap() > 11 * second, "{:?} after {sent}", s.control.gap());
    assert_eq!(again, Some(s.now + 10 * second));
    s.wait(10 * second);
    assert!(gaps(s.now, || s.send()).0 > 0);
}

#[test]
fn whoever_only_looks_at_a_connection_does_not_end_its_gap() {
    let (mut s, _) = with_a_gap();
    let (sent, again) = gaps(s.now, || s.send());
    s.wait(s.control.gap() / 2);
    s.ack(sent);
    s.control.heard();
    // as quinn's `Connection::stats` does
    assert_eq!(s.control.window(), s.control.metrics().congestion_window);
    assert!(s.control.heard().is_empty(), "no burst is to leave");
    assert_eq!(gaps(s.now, || s.send()), (0, again));
}

#[test]
fn asking_twice_asks_the_algorithm_once_for_each_burst() {
    let (mut s, _) = with_a_gap();
    s.control.heard();
    let asked = |s: &Sender| {
        s.control.heard().iter().filter(|(what, _)| matches!(what, Heard::Send)).count()
    };
    gaps(s.now, || (s.control.window(), s.control.window()));
    assert_eq!(asked(&s), 1);
    gaps(s.now, || s.send());
    assert_eq!(asked(&s), 0, "it was asked already");
}

#[test]
fn a_burst_is_asked_for_again_where_an_ack_or_a_loss_came_since_but_not_once_it_leaves() {
    let (mut s, _) = with_a_gap();
    let asks = |s: &mut Sender| {
        s.control.heard();
        gaps(s.now, || s.control.window());
        matches!(s.control.heard()[..], [(Heard::Send, _)])
    };
    // a probe, which quinn sends whatever the window
    let probe = |s: &mut Sender| {
        s.out.push_back(s.now);
        s.next += 1;
    };
    assert!(asks(&mut s) && !asks(&mut s));
    probe(&mut s);
    s.ack(1);
    assert!(asks(&mut s) && !asks(&mut s));
    probe(&mut s);
    s.lose(1, false);
    assert!(asks(&mut s) && !asks(&mut s));
    gaps(s.now, || s.send());
    s.ack(1);
    assert!(!asks(&mut s));
}

#[test]
fn no_gap_holds_back_the_first_ten_packets() {
    let group = crate::Group::new(false);
    let background = Background::new(config("mpat", &[])).in_group(&group);
    let mut s = Sender::new(&background);
    let mut one = || {
        let window = gaps(s.now, || s.control.window());
        s.control.on_sent(s.now, MTU.into(), s.next);
        s.out.push_back(s.now);
        s.next += 1;
        window
    };
    one();
    s.wait(BASE);
    s.ack(1);
    // members are paced from the first RTT on
    let sent: Vec<_> = (0..4).map(|_| gaps(s.now, || s.send())).collect();
    assert!(s.control.gap() > Duration::ZERO);
    assert!(sent[0].0 >= 9 && sent[1].0 == 0, "{sent:?}");
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! From the background to another controller and back, with packets in flight.

use super::*;

#[test]
fn a_switch_changes_the_controller_at_the_next_question_and_begins_anew() {
    let background = Background::new(config("reno", &[]));
    let switch = background.switch();
    let mut s = Sender::new(&background);
    while s.round() < 80 {}
    assert_eq!(s.window(), 160);
    switch.to_foreground();
    assert_eq!(s.window(), 10, "CUBIC's initial window");
    s.send_one(s.stamp(), false);
    switch.to_background();
    assert_eq!(s.window(), 10);
    let heard = s.control.heard();
    let Some((Heard::Start(10), facts)) = heard.first() else {
        panic!("{heard:?}");
    };
    let sent = 10 + 20 + 40 + 80 + 1;
    assert_eq!((facts.inflight, facts.nxt), (1, sent), "it knows what is out");
    assert!(facts.srtt_us > 49_000, "and the path: {}", facts.srtt_us);
}

#[test]
fn the_window_that_is_in_flight_drains_before_the_foreground_sends() {
    let background = Background::new(config("reno", &[]));
    let mut s = Sender::new(&background);
    while s.round() < 40 {}
    assert_eq!(s.send(), 80);
    background.switch().to_foreground();
    assert_eq!(s.control.bytes_in_flight(), 80 * u32::from(MTU), "they are CUBIC's now");
    assert_eq!(s.send(), 0);
    s.wait(BASE);
    s.ack(60);
    s.lose(5, false);
    s.control.on_packet_discarded(usize::from(MTU), &mut Quiet);
    s.out.pop_front();
    assert_eq!(s.control.bytes_in_flight(), 14 * u32::from(MTU));
    s.ack(14);
    assert_eq!(s.control.bytes_in_flight(), 0);
    assert!(s.send() >= 5);
}

#[test]
fn packets_of_two_turns_in_the_foreground_are_each_counted_once() {
    let background = Background::new(config("reno", &[]));
    let mut s = Sender::new(&background);
    for turn in 0..4 {
        background.switch().to_foreground();
        s.send();
        background.switch().to_background();
        s.send();
        assert!(s.out.len() >= 10, "turn {turn}");
        s.wait(BASE);
        s.ack(2);
        background.switch().to_foreground();
        s.ack(s.out.len());
        assert_eq!(s.control.bytes_in_flight(), 0, "turn {turn}");
        background.switch().to_background();
        assert_eq!(s.control.bytes_in_flight(), 0, "turn {turn}");
    }
}

#[test]
fn from_a_small_foreground_the_background_begins_as_small() {
    let background = Background::new(config("reno", &[]));
    background.switch().to_foreground();
    let mut s = Sender::new(&background);
    s.send_one(s.stamp(), false);
    s.wait(BASE);
    s.lose(1, true); // s2n-quic's CUBIC falls to two packets
    assert_eq!(s.window(), 2);
    background.switch().to_background();
    assert_eq!(s.window(), 2);
}

#[test]
fn another_controller_can_be_the_foreground() {
    let foreground = s2n_quic_core::recovery::bbr::Endpoint::default();
    let mut background = Background::new(config("reno", &[])).foreground(foreground);
    let address = SocketAddress::default();
    let path = PathInfo::new(&mtu::Config::default(), &address);
    let mut control = background.new_congestion_controller(path);
    let (rtt, now) = (RttEstimator::default(), NoopClock.get_time() + BASE);
    let sent = control.on_packet_sent(now, 1200, Some(false), &rtt, &mut Quiet);
    background.switch().to_foreground();
    assert_eq!(control.bytes_in_flight(), 1200);
    let later = control.on_packet_sent(now, 1200, Some(false), &rtt, &mut Quiet);
    assert!(later.other.is_some() && sent.other.is_none());
    control.on_ack(now, 2400, later, &rtt, &mut Zeroes, now + BASE, &mut Quiet);
    assert_eq!(control.bytes_in_flight(), 0);
}

#[test]
fn a_clone_is_the_same_controller() {
    let mut s = Sender::of("reno", &[]);
    let clone = s.control.clone();
    s.round();
    assert_eq!(clone.congestion_window(), 20 * u32::from(MTU));
}

#[test]
fn a_factory_makes_controllers_that_know_the_number_of_connections() {
    let background = Background::new(config("multcp", &[]));
    let (one, two) = (Sender::new(&background), Sender::new(&background));
    let flows = |s: &Sender| s.control.heard()[0].1.flows;
    assert_eq!((flows(&one), flows(&two)), (1, 2));
    drop(one);
    assert_eq!(flows(&Sender::new(&background)), 2);
}

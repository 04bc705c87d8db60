// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a controller tells and how it obeys, call by call as quinn makes them.

mod gaps;
mod golden;
mod groups;
mod runtime;
mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use netnice_core::{sys, Ack, Algorithm, Config, Event};
use netnice_host::{AckDelay, Control, Heard, Host};
use quinn_proto::congestion::Controller;

use crate::controller::Controlled;
use crate::Background;

/// What tests see of a controller.
impl Controlled {
    fn delivered(&self, now: Instant, sent: Instant, smoothed: Duration) {
        self.at(Some(now)).told.delivered(1, sent, AckDelay::Smoothed(smoothed));
    }

    fn host<T>(&self, f: impl FnOnce(&mut Host) -> T) -> T {
        match &mut self.inner().control {
            Control::Yields(host) => f(host),
            Control::Competes(_) => panic!("it is in the foreground"),
        }
    }

    /// What the algorithm was told since the last call.
    fn heard(&self) -> Vec<(Heard, Ack)> {
        self.host(Host::heard)
    }

    /// The gap of the algorithm's last answer.
    fn gap(&self) -> Duration {
        self.host(|host| Duration::from_micros(host.flow().ctl().gap_us))
    }
}

/// Bytes of a full packet, and the round trip of the path.
const MTU: u16 = 1200;
const BASE: Duration = Duration::from_millis(50);

/// A sender beside quinn: it has data, and numbers its packets from 0.
struct Sender {
    control: Controlled,
    now: Instant,
    next: u64,
    /// When each packet that is out was sent.
    out: std::collections::VecDeque<Instant>,
    /// quinn's smoothed RTT.
    smoothed: Duration,
    /// Whether `step` waits for the ends of gaps.
    awaits: bool,
}

impl Sender {
    fn new(background: &Background) -> Sender {
        let now = Instant::now();
        let control = listening(background, now);
        let out = Default::default();
        Sender { control, now, next: 0, out, smoothed: BASE, awaits: true }
    }

    fn of(name: &str, settings: &[&str]) -> Sender {
        Sender::new(&Background::new(config(name, settings)))
    }

    fn in_flight(&self) -> u64 {
        self.out.len() as u64 * u64::from(MTU)
    }

    fn wait(&mut self, time: Duration) {
        self.now += time;
    }

    /// As quinn does: a packet leaves while less than the window is in flight with it.
    fn send(&mut self) -> usize {
        let mut sent = 0;
        while self.in_flight() + u64::from(MTU) < self.control.window() {
            self.out.push_back(self.now);
            self.control.on_sent(self.now, MTU.into(), self.next);
            self.next += 1;
            sent += 1;
        }
        sent
    }

    /// The ACK of the first so many packets that are out.
    fn ack(&mut self, packets: usize) {
        let first = self.next - self.out.len() as u64;
        for sent in self.out.drain(..packets) {
            self.control.delivered(self.now, sent, self.smoothed);
        }
        let largest = first + packets as u64 - 1;
        self.control.on_end_acks(self.now, self.in_flight(), false, Some(largest));
    }

    /// A packet that carries an ACK alone leaves: quinn does not count it as in flight.
    fn send_ack(&mut self) {
        self.control.on_sent(self.now, 40, self.next);
        self.next += 1;
    }

    /// The first so many packets that are out are lost.
    fn lose(&mut self, packets: usize, all: bool) {
        let newest = self.out.drain(..packets).next_back().expect("one packet at least");
        self.control.on_congestion_event(self.now, newest, all, packets as u64 * u64::from(MTU));
    }

    /// Sends, and gets the ACKs of it a round trip later, two packets each.
    fn round(&mut self) -> usize {
        self.send();
        self.wait(BASE);
        let sent = self.out.len();
        while !self.out.is_empty() {
            self.ack(self.out.len().min(2));
        }
        sent
    }

    /// A path of 50 ms and no queue for so long, looked at each millisecond; ACKs of up to two packets.
    fn run(&mut self, ms: u32) -> usize {
        (0..ms).map(|_| self.step()).sum()
    }

    fn step(&mut self) -> usize {
        loop {
            let due = self.out.iter().take(2).filter(|sent| **sent + BASE <= self.now).count();
            if due == 0 {
                break;
            }
            self.ack(due);
        }
        let sent = match self.awaits {
            true => crate::gaps(self.now, || self.send()).0,
            false => self.send(),
        };
        self.wait(Duration::from_millis(1));
        sent
    }
}

/// A controller that keeps what it tells the algorithm.
fn listening(background: &Background, now: Instant) -> Controlled {
    let mut background = background.clone();
    background.setting.listens = true;
    Controlled::new(&background, now, MTU)
}

fn config(name: &str, settings: &[&str]) -> Config {
    let mut config = Config::new(Algorithm::by_name(name).expect("an algorithm of the list"));
    for setting in settings {
        config.set(setting).expect("within the range");
    }
    config
}

/// A window in packets as quinn sees it.
fn fits(packets: u64) -> u64 {
    packets * u64::from(MTU) + 1
}

#[test]
fn a_connection_begins_with_ten_packets_and_slow_start() {
    let mut s = Sender::of("reno", &[]);
    assert_eq!((s.control.window(), s.control.initial_window()), (fits(10), 12_000));
    // as many as it is told, and as many more for each that arrives
    assert_eq!([s.round(), s.round(), s.round()], [10, 20, 40]);
    assert_eq!(s.control.window(), fits(80));
}

#[test]
fn a_loss_halves_the_window_once_for_all_that_was_out() {
    let mut s = Sender::of("reno", &[]);
    s.round();
    assert_eq!(s.send(), 20);
    s.wait(BASE);
    s.lose(1, false);
    assert_eq!(s.control.window(), fits(10));
    s.lose(3, false);
    assert_eq!(s.control.window(), fits(10), "these were out at the first loss");
    s.ack(16); // so were they: nothing grows
    assert_eq!(s.control.window(), fits(10));
    assert_eq!(s.control.metrics().ssthresh, Some(12_000));
    s.wait(BASE);
    assert_eq!(s.send(), 10);
    s.wait(BASE);
    s.lose(1, false);
    assert_eq!(s.control.window(), fits(5), "a new loss");
}

#[test]
fn a_mark_is_answered_like_a_loss() {
    let mut s = Sender::of("reno", &[]);
    s.round();
    s.send();
    let newest = *s.out.back().expect("sent");
    s.control.on_congestion_event(s.now, newest, false, 0);
    assert!(matches!(s.control.heard().last(), Some((Heard::Event(Event::NN_ECN), _))));
    assert_eq!(s.control.window(), fits(10));
}

#[test]
fn what_was_all_lost_for_long_leaves_one_packet() {
    let mut s = Sender::of("reno", &[]);
    s.round();
    s.send();
    s.wait(20 * BASE);
    s.lose(20, true);
    assert_eq!(s.control.window(), fits(1));
    // 20 packets out: ssthresh is 10, and the window grows by what arrives until there
    for expected in [1, 2, 4, 8] {
        assert_eq!(s.round(), expected);
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut s = Sender::of("reno", &[]);
    s.out.push_back(s.now);
    s.control.on_sent(s.now, MTU.into(), 0);
    s.next = 1;
    s.wait(BASE);
    let sent = s.out.pop_front().expect("sent");
    s.control.delivered(s.now, sent, BASE);
    s.control.on_end_acks(s.now, 0, true, Some(0));
    assert_eq!(s.control.window(), fits(10));
}

#[test]
fn a_switch_changes_the_controller_at_the_next_question_and_begins_anew() {
    let background = Background::new(config("reno", &[]));
    let switch = background.switch();
    let mut s = Sender::new(&background);
    while s.round() < 80 {}
    switch.to_foreground();
    // quinn's own: its initial window, without the byte more
    assert_eq!(s.control.window(), 12_000);
    assert!(s.control.show().is_empty() && s.control.metrics().ssthresh == Some(u64::MAX));
    s.control.on_sent(s.now, MTU.into(), s.next);
    switch.to_background();
    assert_eq!(s.control.window(), fits(10));
    let heard = s.control.heard();
    let Some((Heard::Start(10), facts)) = heard.first() else {
        panic!("{heard:?}");
    };
    assert_eq!((facts.inflight, facts.nxt), (1, s.next as u32 + 1), "it knows what is out");
    assert!(facts.srtt_us > 49_000, "and the path: {}", facts.srtt_us);
}

#[test]
fn from_a_small_foreground_the_background_begins_as_small() {
    let background = Background::new(config("reno", &[]));
    background.switch().to_foreground();
    let mut s = Sender::new(&background);
    s.out.push_back(s.now);
    s.control.on_sent(s.now, MTU.into(), 0);
    s.wait(BASE);
    s.lose(1, true); // quinn's CUBIC falls to two packets
    assert_eq!(s.control.window(), 2 * u64::from(MTU));
    background.switch().to_background();
    assert_eq!(s.control.window(), fits(2));
}

#[test]
fn a_clone_is_the_same_controller_and_what_quinn_boxes_can_be_found_again() {
    let mut s = Sender::of("reno", &[]);
    let clone = s.control.clone_box();
    s.round();
    assert_eq!(clone.window(), fits(20));
    assert!(clone.into_any().downcast::<Controlled>().is_ok());
}

#[test]
fn a_factory_makes_controllers_that_know_the_number_of_connections() {
    let background = Arc::new(Background::new(config("multcp", &[])));
    let make = || listening(&background, Instant::now());
    let (one, two) = (make(), make());
    let flows = |c: &Controlled| c.heard()[0].1.flows;
    assert_eq!((flows(&one), flows(&two)), (1, 2));
    drop(one);
    assert_eq!(flows(&make()), 2);
}

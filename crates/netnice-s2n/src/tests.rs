// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a controller tells and how it obeys, call by call as s2n-quic makes them, in virtual time.

mod gaps;
mod golden;
mod groups;
mod path;
mod switch;
mod told;

use std::cell::Cell;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use netnice_core::{sys, Ack, Algorithm, Config, Event};
use netnice_host::{Control, Heard, Host};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::path::mtu;
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Endpoint, PathInfo};
use s2n_quic_core::recovery::{CubicCongestionController as Cubic, RttEstimator};
use s2n_quic_core::time::{Clock as _, NoopClock, Timestamp};

use crate::clock::Clock;
use crate::controller::Controlled;
use crate::other::Quiet;
use crate::{Background, Packet};

/// Bytes of a full packet, and the round trip of the path.
const MTU: u16 = 1200;
const BASE: Duration = Duration::from_millis(50);

thread_local! {
    static NOW: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The clock of the process, as a test sets it.
fn now() -> Instant {
    NOW.get().unwrap_or_else(|| {
        let now = Instant::now();
        NOW.set(Some(now));
        now
    })
}

/// Nothing here is random.
struct Zeroes;

impl Generator for Zeroes {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
    fn private_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
}

/// What tests see of a controller.
impl<C: CongestionController> Controlled<C> {
    fn host<T>(&self, f: impl FnOnce(&mut Host) -> T) -> T {
        match &mut self.settled().control {
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

/// A packet that is out: what s2n-quic keeps of it.
#[derive(Clone, Copy)]
struct Out {
    info: Packet<()>,
    sent: Timestamp,
}

/// A sender beside s2n-quic. It has data.
struct Sender {
    control: Controlled<Cubic>,
    /// Since the clock of its endpoint began.
    time: Duration,
    out: VecDeque<Out>,
    rtt: RttEstimator,
}

impl Sender {
    fn new(background: &Background) -> Sender {
        let mut background = background.clone();
        background.setting.listens = true;
        background.clock = Clock::over(now);
        Sender::of_endpoint(&mut background)
    }

    /// A connection of that endpoint.
    fn of_endpoint(background: &mut Background) -> Sender {
        let address = SocketAddress::default();
        let mut path = PathInfo::new(&mtu::Config::default(), &address);
        path.max_datagram_size = MTU;
        let control = background.new_congestion_controller(path);
        let rtt = RttEstimator::default();
        Sender { control, time: Duration::from_secs(1), out: VecDeque::new(), rtt }
    }

    fn of(name: &str, settings: &[&str]) -> Sender {
        Sender::new(&Background::new(config(name, settings)))
    }

    fn stamp(&self) -> Timestamp {
        NoopClock.get_time() + self.time
    }

    fn wait(&mut self, time: Duration) {
        self.time += time;
        NOW.set(Some(now() + time));
    }

    fn window(&self) -> u32 {
        self.control.congestion_window() / u32::from(MTU)
    }

    /// Whether a packet may leave now, as s2n-quic asks.
    fn may_send(&self) -> bool {
        let time = self.control.earliest_departure_time();
        time.is_none_or(|at| at.has_elapsed(self.stamp())) && !self.control.is_congestion_limited()
    }

    fn send_one(&mut self, sent: Timestamp, app_limited: bool) {
        let bytes = MTU.into();
        let info =
            self.control.on_packet_sent(sent, bytes, Some(app_limited), &self.rtt, &mut Quiet);
        self.out.push_back(Out { info, sent });
    }

    fn send(&mut self) -> usize {
        let before = self.out.len();
        while self.may_send() {
            self.send_one(self.stamp(), false);
        }
        self.out.len() - before
    }

    /// The ACK of the first so many packets that are out, delayed by the receiver.
    fn ack_delayed(&mut self, packets: usize, delay: Duration) {
        let acked: Vec<_> = self.out.drain(..packets).collect();
        self.acked(&acked, delay);
    }

    fn acked(&mut self, acked: &[Out], delay: Duration) {
        let (now, newest) = (self.stamp(), acked.last().expect("one packet at least"));
        let space = PacketNumberSpace::ApplicationData;
        // s2n-quic takes the units of 8 us in which the delay is told for microseconds
        self.rtt.update_rtt(delay / 8, now - newest.sent, now, true, space);
        self.control.on_rtt_update(newest.sent, now, &self.rtt, &mut Quiet);
        let bytes = acked.len() * usize::from(MTU);
        let (info, sent) = (newest.info, newest.sent);
        self.control.on_ack(sent, bytes, info, &self.rtt, &mut Zeroes, now, &mut Quiet);
    }

    fn ack(&mut self, packets: usize) {
        self.ack_delayed(packets, Duration::ZERO);
    }

    /// The first so many packets that are out are lost.
    fn lose(&mut self, packets: usize, all: bool) {
        let lost: Vec<_> = self.out.drain(..packets).collect();
        self.lost(&lost, all);
    }

    fn lost(&mut self, lost: &[Out], all: bool) {
        for (i, out) in lost.iter().enumerate() {
            let (info, now) = (out.info, self.stamp());
            let bytes = MTU.into();
            self.control.on_packet_lost(bytes, info, all, i == 0, &mut Zeroes, now, &mut Quiet);
        }
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

    /// A millisecond of a path of 50 ms and no queue; ACKs of up to two packets.
    fn step(&mut self) -> usize {
        loop {
            let now = self.stamp();
            let due = self.out.iter().take(2).filter(|out| out.sent + BASE <= now).count();
            if due == 0 {
                break;
            }
            self.ack(due);
        }
        let sent = self.send();
        self.wait(Duration::from_millis(1));
        sent
    }

    fn run(&mut self, ms: u32) -> usize {
        (0..ms).map(|_| self.step()).sum()
    }
}

fn config(name: &str, settings: &[&str]) -> Config {
    let mut config = Config::new(Algorithm::by_name(name).expect("an algorithm of the list"));
    for setting in settings {
        config.set(setting).expect("within the range");
    }
    config
}

#[test]
fn a_connection_begins_with_ten_packets_and_slow_start() {
    let mut s = Sender::of("reno", &[]);
    assert_eq!(s.window(), 10);
    // as many as it is told, and as many more for each that arrives
    assert_eq!([s.round(), s.round(), s.round()], [10, 20, 40]);
    assert_eq!(s.window(), 80);
    assert_eq!(s.control.bytes_in_flight(), 0);
}

#[test]
fn a_loss_halves_the_window_once_for_all_that_was_out() {
    let mut s = Sender::of("reno", &[]);
    s.round();
    assert_eq!(s.send(), 20);
    s.wait(BASE);
    s.lose(1, false);
    assert_eq!(s.window(), 10);
    s.lose(3, false);
    assert_eq!(s.window(), 10, "these were out at the first loss");
    s.ack(16); // so were they: nothing grows
    assert_eq!(s.window(), 10);
    s.wait(BASE);
    assert_eq!(s.send(), 10);
    s.wait(BASE);
    s.lose(1, false);
    assert_eq!(s.window(), 5, "a new loss");
}

#[test]
fn a_mark_is_answered_like_a_loss_once_a_round() {
    let mut s = Sender::of("reno", &[]);
    s.round();
    assert_eq!(s.send(), 20);
    s.wait(BASE);
    // s2n-quic tells of the RTT, then of marks, then of what was acknowledged
    for _ in 0..2 {
        let (sent, now) = (s.out[0].sent, s.stamp());
        s.control.on_rtt_update(sent, now, &s.rtt, &mut Quiet);
        s.control.on_explicit_congestion(1, now, &mut Quiet);
        s.ack(1);
        assert_eq!(s.window(), 10);
    }
    let heard = s.control.heard();
    let marks = heard.iter().filter(|(what, _)| matches!(what, Heard::Event(Event::NN_ECN)));
    assert_eq!(marks.count(), 1);
}

#[test]
fn what_was_all_lost_for_long_leaves_one_packet() {
    let mut s = Sender::of("reno", &[]);
    s.round();
    s.send();
    s.wait(20 * BASE);
    s.lose(20, true);
    assert_eq!(s.window(), 1);
    // 20 packets out: ssthresh is 10, and the window grows by what arrives until there
    for expected in [1, 2, 4, 8] {
        assert_eq!(s.round(), expected);
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut s = Sender::of("reno", &[]);
    s.send_one(s.stamp(), true);
    s.wait(BASE);
    s.ack(1);
    assert_eq!(s.window(), 10);
}

#[test]
fn packets_that_are_given_up_are_in_flight_no_more_and_are_no_loss() {
    let mut s = Sender::of("reno", &[]);
    assert_eq!(s.send(), 10);
    s.control.on_packet_discarded(4 * usize::from(MTU), &mut Quiet);
    assert_eq!((s.control.bytes_in_flight(), s.window()), (6 * u32::from(MTU), 10));
    // ACKs alone count for nothing
    s.control.on_packet_sent(s.stamp(), 0, None, &s.rtt, &mut Quiet);
    assert_eq!(s.control.bytes_in_flight(), 6 * u32::from(MTU));
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The inline measurement, ImTCP that runs it and ImTCP-bg that obeys it, on a path whose available
//! bandwidth is known: a link of one packet every 100 us, of which others take a constant share.

use std::collections::VecDeque;

use super::*;

/// Time of a packet on the link, us: 10,000 packets a second.
const SERVICE: f64 = 100.0;
const CAPACITY: f64 = 1e6 / SERVICE;
const SECOND: u64 = 1_000_000;

/// A path with a queue without limit, and a host that obeys window, gap and burst.
struct Path {
    flow: Flow,
    /// Share of the link that others take.
    cross: f64,
    /// Round trip over the empty path, us.
    base: f64,
    /// Packets that one ACK covers.
    per_ack: u32,
    now: f64,
    /// Work that waits at the link, us, at the time of the last arrival.
    backlog: (f64, f64),
    /// Sending time and time of arrival at the sender's end, of packets on their way.
    way: VecDeque<(f64, f64)>,
    una: u32,
    nxt: u32,
    gap_until: f64,
    srtt: f64,
    /// The most packets in flight beyond the window.
    beyond: i64,
    gaps: Vec<u64>,
}

impl Path {
    fn new(name: &str, settings: &[&str], cross: f64, per_ack: u32) -> Path {
        let flow = Flow::new(&config(name, settings), &Ack::default(), 10);
        Path {
            flow,
            cross,
            base: f64::from(BASE),
            per_ack,
            now: 0.0,
            backlog: (0.0, 0.0),
            way: VecDeque::new(),
            una: 0,
            nxt: 0,
            gap_until: 0.0,
            srtt: 0.0,
            beyond: 0,
            gaps: Vec::new(),
        }
    }

    fn available(&self) -> f64 {
        CAPACITY * (1.0 - self.cross)
    }

    fn estimate(&self) -> f64 {
        self.measured().value as f64
    }

    fn measured(&self) -> sys::nn_value {
        shown(&self.flow, "available")
    }

    fn facts(&self) -> Ack {
        Ack {
            now_us: self.now as u64,
            srtt_us: self.srtt as u32,
            inflight: self.nxt - self.una,
            una: self.una,
            nxt: self.nxt,
            ..Ack::default()
        }
    }

    fn window(&self) -> u32 {
        let ctl = self.flow.ctl();
        let least = if ctl.gap_us > 0 { 2 * u64::from(ctl.burst) } else { 1 };
        (ctl.cwnd_q16 / ONE).max(least) as u32
    }

    fn send(&mut self) {
        let ctl = self.flow.send(&self.facts());
        let mut room = self.window().saturating_sub(self.nxt - self.una);
        if ctl.gap_us > 0 {
            room = room.min(ctl.burst);
            self.gap_until = self.now + ctl.gap_us as f64;
            self.gaps.push(ctl.gap_us);
        }
        for _ in 0..room {
            let drained = (self.now - self.backlog.1) * (1.0 - self.cross);
            let waits = (self.backlog.0 - drained).max(0.0) + SERVICE;
            self.backlog = (waits, self.now);
            self.way.push_back((self.now, self.now + waits + self.base - SERVICE));
            self.nxt += 1;
        }
        self.beyond = self.beyond.max(i64::from(self.nxt - self.una) - i64::from(self.window()));
    }

    fn acknowledge(&mut self) {
        let (sent, arrived) = self.way[self.per_ack as usize - 1];
        self.way.drain(..self.per_ack as usize);
        self.una += self.per_ack;
        let rtt = arrived - sent;
        self.srtt = if self.srtt > 0.0 { self.srtt * 0.875 + rtt * 0.125 } else { rtt };
        let ack = Ack { rtt_us: rtt as u32, acked: self.per_ack, ..self.facts() };
        self.flow.ack(&ack);
    }

    /// What happens until `end`, us.
    fn until(&mut self, end: u64) {
        loop {
            let ack = self.way.get(self.per_ack as usize - 1).map_or(f64::MAX, |p| p.1);
            let room = self.nxt - self.una < self.window();
            let send = if room { self.gap_until.max(self.now) } else { f64::MAX };
            let next = ack.min(send);
            if next > end as f64 {
                self.now = end as f64;
                return;
            }
            self.now = next;
            if send < ack {
                self.send();
            } else {
                self.acknowledge();
            }
        }
    }
}

#[test]
fn the_estimate_is_what_others_leave_of_the_link() {
    for name in ["imtcp", "imtcp_bg"] {
        for per_ack in [1, 2] {
            for share in [0.1, 0.3, 0.5, 0.7] {
                let mut path = Path::new(name, &[], share, per_ack);
                path.until(5 * SECOND);
                let error = path.estimate() / path.available() - 1.0;
                assert!(error.abs() < 0.1, "{name}, {share}, {per_ack}: {error}");
            }
        }
    }
}

#[test]
fn the_interval_is_a_fifth_to_both_sides_of_a_steady_estimate() {
    let mut path = Path::new("imtcp_bg", &[], 0.5, 2);
    path.until(5 * SECOND);
    let (low, high) = (f64::from(path.measured().low), f64::from(path.measured().high));
    assert!((low / path.estimate() - 0.8).abs() < 0.02, "{low}");
    assert!((high / path.estimate() - 1.2).abs() < 0.02, "{high}");
    assert!(low < path.available() && path.available() < high);
}

#[test]
fn a_result_comes_every_four_round_trips_or_sooner() {
    // the queue is short, so that a round trip takes little more than the 50 ms of the empty path:
    // 10 s are 200 of them, so 50 results
    let mut path = Path::new("imtcp_bg", &[], 0.5, 2);
    path.until(2 * SECOND);
    let before = path.measured().results;
    path.until(12 * SECOND);
    let results = path.measured().results - before;
    assert!((50..=200).contains(&results), "{results}");
}

#[test]
fn the_estimate_follows_a_step_within_two_seconds() {
    for (from, to) in [(0.2, 0.7), (0.7, 0.2)] {
        let mut path = Path::new("imtcp_bg", &[], from, 2);
        path.until(5 * SECOND);
        path.cross = to;
        path.until(7 * SECOND);
        let error = path.estimate() / path.available() - 1.0;
        assert!(error.abs() < 0.2, "from {from} to {to}: {error}");
    }
}

#[test]
fn no_packet_is_sent_beyond_the_window() {
    for name in ["imtcp", "imtcp_bg"] {
        let mut path = Path::new(name, &["gamma=1"][..usize::from(name == "imtcp_bg")], 0.5, 2);
        path.until(5 * SECOND);
        assert!(path.beyond <= 0, "{name}: {}", path.beyond);
    }
}

#[test]
fn streams_are_spaced_around_the_available_bandwidth() {
    // A is 5000 packets a second, so 200 us; from a fifth below to twice that: 100 to 250 us
    let mut path = Path::new("imtcp_bg", &[], 0.5, 2);
    path.until(5 * SECOND);
    path.gaps.clear();
    path.until(6 * SECOND);
    let inside = path.gaps.iter().filter(|g| (95..=260).contains(*g)).count();
    assert!(inside * 2 > path.gaps.len(), "{inside} of {}", path.gaps.len());
}

#[test]
fn nothing_is_measured_or_spaced_with_a_window_below_sixteen_packets() {
    let mut path = Path::new("imtcp", &[], 0.5, 1);
    path.flow.event(Event::NN_LOSS, &path.facts()); // 5 packets, which become 6 in a round
    path.until(SECOND / 4);
    assert!(path.window() < 16);
    assert_eq!(sys::NN_AVAIL_WINDOW, 16);
    assert_eq!(path.measured(), sys::nn_value::default());
}

#[test]
fn a_loss_gives_up_the_measurement_until_what_was_sent_is_acknowledged() {
    let mut path = Path::new("imtcp_bg", &[], 0.5, 2);
    path.until(5 * SECOND);
    while path.flow.ctl().gap_us == 0 {
        path.send();
    }
    let before = path.measured();
    assert!(before.results > 0);
    assert_eq!(path.flow.event(Event::NN_LOSS, &path.facts()).gap_us, 0);
    assert_eq!(path.flow.send(&path.facts()).gap_us, 0);
    assert_eq!(path.measured(), before, "what was known remains");
    path.until(8 * SECOND);
    assert!(path.measured().results > before.results);
}

#[test]
fn the_window_of_imtcp_is_that_of_reno() {
    // a queue without limit loses nothing: the window grows by one packet a round trip, or less
    // where a stream waited for room meanwhile and a window took longer than that to leave
    let mut path = Path::new("imtcp", &[], 0.5, 1);
    path.flow.event(Event::NN_LOSS, &path.facts());
    let before = path.flow.ctl().cwnd_q16 / ONE;
    // while a stream's room is gathered the window is what is in flight: the greatest counts
    let windows = (0..20).map(|step| {
        path.until(SECOND + step * 10_000);
        path.window()
    });
    let after = u64::from(windows.max().unwrap_or(0));
    let rounds = (1.2e6 / path.srtt) as u64;
    let range = before + rounds * 2 / 3..=before + rounds + 3;
    assert!(range.contains(&after), "{before} to {after}");
}

#[test]
fn the_window_of_imtcp_bg_is_the_available_bandwidth_times_the_round_trip_that_delta_tolerates() {
    // 5000 packets a second and 50 ms: 250 packets; with delta 1.35 it is 337, of which 87 queue
    for (settings, most) in [(&["swell=0"][..], 250), (&[], 337)] {
        let mut path = Path::new("imtcp_bg", settings, 0.5, 2);
        path.until(5 * SECOND);
        let window = path.window();
        // while a stream's room is gathered the window is what is in flight
        assert!((150..=most + 20).contains(&window), "{window} of {most}");
        // of what waits, others' is half
        let queued = path.backlog.0 / SERVICE / 2.0;
        assert!(queued < f64::from(most) - 225.0, "{queued} packets queued");
    }
}

#[test]
fn below_its_bound_the_window_grows_by_climb_packets_in_a_round_trip_besides_renos() {
    // others leave all of it at once: A moves from 3000 towards 9000 packets a second
    let after = |setting: &str| {
        let mut path = Path::new("imtcp_bg", &[setting], 0.7, 2);
        path.until(5 * SECOND);
        let before = path.window();
        path.cross = 0.1;
        path.until(7 * SECOND);
        path.window() - before
    };
    // in each of the 40 round trips of 2 s, of which the first are over before A has moved
    for (setting, packets) in [("climb=0", 40), ("climb=1", 80), ("climb=2", 120)] {
        let grown = after(setting);
        assert!((packets * 3 / 4..=packets * 5 / 4).contains(&grown), "{setting}: {grown}");
    }
}

#[test]
fn once_the_bandwidth_is_known_a_decrease_leaves_the_queue_that_delta_tolerates() {
    // mean sRTT, ms, once others took more while the bound remains (gamma=0)
    let mean = |setting: &str| {
        let mut path = Path::new("imtcp_bg", &["gamma=0", "delta=1.2", "climb=0", setting], 0.5, 2);
        path.until(5 * SECOND);
        path.cross = 0.65;
        let steps = (0..200).map(|step| {
            path.until(7 * SECOND + step * 10_000);
            path.srtt / 1000.0
        });
        steps.sum::<f64>() / 200.0
    };
    // between an empty path's 50 ms and the 60 that delta tolerates: all the way down, or not
    let (some, all) = (mean("drain=0"), mean("drain=1"));
    assert!((54.0..61.0).contains(&some) && all < 52.0, "{some} and {all}");
}

#[test]
fn without_the_bandwidth_mechanism_the_window_stops_at_delta() {
    // sRTT is 1.2 times 50 ms when 10 ms are queued: then the window shrinks by a sixth
    let mut path = Path::new("imtcp_bg", &["bandwidth=0", "delta=1.2"], 0.5, 2);
    path.until(10 * SECOND);
    assert!((50_000.0..66_000.0).contains(&path.srtt), "{}", path.srtt);
    let mut neither = Path::new("imtcp_bg", &["bandwidth=0", "rtt=0"], 0.5, 2);
    neither.until(10 * SECOND);
    assert!(neither.srtt > 100_000.0, "{}", neither.srtt);
}

#[test]
fn the_window_shrinks_by_the_ratio_of_the_round_trips_once_a_round() {
    let mut h = Host::avoiding(&config("imtcp_bg", &["delta=1.2"]), 40);
    h.round(2, BASE);
    let before = h.cwnd();
    // sRTT moves by an eighth of the distance with each sample, not above 1.2 with the first of
    // 2 BASE: 1.125; with the second it is 1 + 1 - (7/8)^2 = 1.234
    h.ack(2, 2 * BASE, HOLD);
    assert_eq!((h.cwnd(), h.flags() & YIELDING), (before, 0));
    h.ack(2, 2 * BASE, HOLD);
    assert_eq!(h.flags() & YIELDING, YIELDING);
    h.last_ack(2, 2 * BASE, HOLD);
    let ratio = h.cwnd() as f64 / before as f64;
    // at whichever of the last two samples the round was over: 1/1.234 or 1/1.330
    assert!((0.74..0.82).contains(&ratio), "{ratio}");
}

#[test]
fn gamma_is_the_weight_of_a_new_result() {
    // the first result is taken whole; with no weight for others, it remains
    let after = |gamma: &str| {
        let mut path = Path::new("imtcp_bg", &[gamma, "rtt=0"], 0.7, 2);
        path.until(3 * SECOND);
        path.cross = 0.1;
        path.until(10 * SECOND);
        path.window()
    };
    // 3000 packets a second and 1.35 times 50 ms are 202 packets; then 9000 are 607
    assert!(after("gamma=0") < 240);
    assert!(after("gamma=1") > 400);
}

#[test]
fn a_window_below_two_leaves_its_two_packets_apart_and_keeps_half_a_packet() {
    let mut h = Host::avoiding(&config("imtcp_bg", &[]), 2);
    h.now.flows = 1;
    h.round(2, BASE);
    for _ in 0..4 {
        h.event(Event::NN_LOSS);
    }
    assert_eq!(h.cwnd(), ONE / 2);
    // 30 ms of the 50, then the rest of four round trips
    for gap in [30_000, 4 * 50_000 - 30_000, 30_000] {
        let ctl = h.flow.send(&h.now);
        assert_eq!((ctl.gap_us, ctl.burst), (gap, 1));
        h.now.now_us += gap;
    }
}

#[test]
fn a_window_below_two_has_its_whole_gap_before_the_first_rtt() {
    // the host may know an RTT, of the handshake, that no ACK has told the algorithm
    let mut h = Host::new(&config("imtcp_bg", &[]), 10);
    h.event(Event::NN_TIMEOUT);
    h.event(Event::NN_LOSS);
    assert_eq!(h.cwnd(), ONE / 2);
    h.now.srtt_us = BASE;
    let gap = 2 * u64::from(BASE) * ONE / h.cwnd();
    assert_eq!(h.flow.send(&h.now).gap_us, gap);
}

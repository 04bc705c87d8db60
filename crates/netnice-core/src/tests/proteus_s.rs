// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Proteus-S's rules, over a path whose RTTs the test chooses.
//!
//! A packet carries 10^4 bits and RTT and interval are 50 ms: ten packets in the first window are 2 Mbit/s,
//! and n packets in an interval n/5.

use super::*;

const MS: u64 = 1000;

/// The RTT that a packet meets which leaves so many us after the last turn.
type Rtt<'a> = &'a dyn Fn(u64) -> u32;

struct Path {
    h: Host,
    /// Packets sent that are not acknowledged: when they left, and what they met.
    flying: std::collections::VecDeque<(u64, u32)>,
    next_us: u64,
    /// The last turn.
    since_us: u64,
    lost: f64,
    owed: f64,
}

impl Path {
    fn new(settings: &[&str]) -> Path {
        let mut h = Host::new(&config("proteus_s", settings), 10);
        h.now.now_us = 1_000_000;
        // the first ACK tells the RTT: the first interval begins
        h.now.inflight = 0;
        h.ack(10, BASE, 0);
        let next_us = h.now.now_us;
        Path { h, flying: Default::default(), next_us, since_us: next_us, lost: 0.0, owed: 0.0 }
    }

    fn mbit(&self) -> f64 {
        f64::from(self.h.shows("rate")) / ONE as f64
    }

    /// What the gap makes it send, Mbit/s.
    fn sends(&self) -> f64 {
        let ctl = self.h.flow.ctl();
        f64::from(ctl.burst) * 1e4 / ctl.gap_us as f64
    }

    /// Sends and acknowledges, in steps of 100 us, for so long. A packet meets what `rtt` says of the time
    /// since the last turn; pairs are acknowledged together.
    fn run(&mut self, for_us: u64, rtt: Rtt) {
        let end = self.h.now.now_us + for_us;
        while self.h.now.now_us < end {
            self.h.now.now_us += 100;
            let now = self.h.now.now_us;
            while self.next_us <= now {
                let ctl = self.h.flow.ctl();
                for _ in 0..ctl.burst / 2 {
                    self.flying
                        .push_back((self.next_us, rtt(self.next_us.saturating_sub(self.since_us))));
                }
                self.next_us += ctl.gap_us;
            }
            while let Some((sent, met)) = self.flying.front().copied() {
                if sent + u64::from(met) > now {
                    break;
                }
                self.flying.pop_front();
                self.owed += 2.0 * self.lost;
                let lost = (self.owed as u32).min(2);
                self.owed -= f64::from(lost);
                let ack = Ack {
                    acked: 2 - lost,
                    lost,
                    rtt_us: met,
                    inflight: 2 * self.flying.len() as u32,
                    now_us: sent + u64::from(met),
                    ..self.h.now
                };
                self.h.flow.ack(&ack);
            }
        }
    }

    /// Runs until the rate has changed, for two seconds at most; returns it.
    fn turn(&mut self, rtt: Rtt) -> f64 {
        let before = self.mbit();
        self.since_us = self.h.now.now_us;
        for _ in 0..200 {
            self.run(10 * MS, rtt);
            if self.mbit() != before {
                break;
            }
        }
        self.mbit()
    }
}

fn flat(_: u64) -> u32 {
    BASE
}

#[test]
fn it_starts_with_the_first_window_in_a_round_trip_and_doubles_while_the_utility_grows() {
    let mut p = Path::new(&[]);
    assert_eq!(p.mbit(), 2.0);
    // x^0.9 grows for ever
    for expected in [4.0, 8.0, 16.0, 32.0] {
        assert_eq!(p.turn(&flat), expected);
    }
}

/// Whether the step from 2 to 4 Mbit/s is followed by one to 8. It is where the utility has grown: with 4
/// Mbit/s that cost C each, if 4^0.9 - 4 C > 2^0.9, which is C < (3.4822 - 1.8661) / 4 = 0.4040.
fn doubles(settings: &[&str], lost: f64, rtt: Rtt) -> bool {
    let mut p = Path::new(settings);
    assert_eq!(p.turn(&flat), 4.0);
    p.lost = lost;
    let rate = p.turn(rtt);
    assert!(rate == 8.0 || rate == 2.0, "{rate}");
    rate == 8.0
}

#[test]
fn each_mbit_costs_11_35_times_the_share_of_packets_lost() {
    // 0.4040 / 11.35 is 3.56 %; of the 20 packets of the interval none, or one and more
    assert!(doubles(&[], 0.0, &flat));
    assert!(!doubles(&[], 0.1, &flat));
    assert!(doubles(&["c=2"], 0.1, &flat));
}

/// An RTT that rises by so many us in each interval from the second one on, and is as the path's else.
fn rising(us: f64) -> impl Fn(u64) -> u32 {
    move |t| BASE + (us * t as f64 / 50e3) as u32
}

#[test]
fn each_mbit_costs_900_times_the_slope_of_the_rtt_and_1500_times_its_deviation() {
    // a rise of r us in 50 ms: 900 r / 50000, and a deviation of r / sqrt(12) us: 1500e-6 r / 3.464:
    // 0.018 r + 0.000433 r < 0.4040 is r < 21.9
    assert!(doubles(&[], 0.0, &rising(18.0)));
    assert!(!doubles(&[], 0.0, &rising(26.0)));
    // by the slope alone 22.4; with b = 90 it is 0.0018 r + 0.000433 r: 181
    assert!(doubles(&["b=90"], 0.0, &rising(150.0)));
    assert!(!doubles(&["b=90"], 0.0, &rising(220.0)));
    // by the deviation alone, 933
    assert!(doubles(&["b=0"], 0.0, &rising(800.0)));
    assert!(!doubles(&["b=0"], 0.0, &rising(1100.0)));
    assert!(doubles(&["b=0", "d=0"], 0.0, &rising(1100.0)));
}

#[test]
fn an_rtt_that_falls_costs_its_deviation_and_no_slope() {
    let falling = |us: f64| move |t: u64| BASE - (us * t as f64 / 50e3) as u32;
    assert!(doubles(&[], 0.0, &falling(800.0)));
    assert!(!doubles(&[], 0.0, &falling(1100.0)));
}

#[test]
fn rtts_that_are_farther_off_their_line_than_it_rises_cost_nothing() {
    // 10 ms up and down, each other millisecond: a deviation of 5 ms, which would cost 7.5
    let noise = |t: u64| BASE + if (t / MS).is_multiple_of(2) { 0 } else { 10_000 };
    assert!(doubles(&[], 0.0, &noise));
    // with a rise of 12 ms in an interval it is a line
    let steep = |t: u64| noise(t) + (12e3 * t as f64 / 50e3) as u32;
    assert!(!doubles(&[], 0.0, &steep));
}

/// Probing around 4 Mbit/s, a second after the start: 8 lost a tenth, and cost more than it brought.
fn probing(settings: &[&str]) -> Path {
    let mut p = Path::new(settings);
    assert_eq!(p.turn(&flat), 4.0);
    assert_eq!(p.turn(&flat), 8.0);
    p.lost = 0.1;
    assert_eq!(p.turn(&flat), 4.0);
    p.lost = 0.0;
    p
}

#[test]
fn three_pairs_of_probes_are_a_twentieth_above_and_below_the_rate() {
    let mut p = probing(&[]);
    let mut probes = vec![];
    for _ in 0..6 {
        p.run(30 * MS, &flat);
        probes.push((p.sends() * 10.0).round() as u32);
        p.run(20 * MS + 100, &flat);
    }
    // the gap is whole microseconds of a pair's 4762 and 5263
    for pair in probes.chunks(2) {
        assert!(pair == [42, 38] || pair == [38, 42], "{probes:?}");
    }
}

#[test]
fn it_moves_from_the_better_probe_by_the_slope_of_the_utility_a_twentieth_at_most() {
    let mut p = probing(&[]);
    // 4.2^0.9 is 3.6385 and 3.8^0.9 is 3.3252: 0.783 for each Mbit/s, above 4.2/20 = 0.21
    assert!((p.turn(&flat) - 4.41).abs() < 0.001, "{}", p.mbit());
    // the utility still grows: 15 % and 25 % at most; twice 0.77, 3 times 0.76: 0.66, and 1.27
    assert!((p.turn(&flat) - 4.41 * 1.15).abs() < 0.001, "{}", p.mbit());
    assert!((p.turn(&flat) - 4.41 * 1.15 * 1.25).abs() < 0.001, "{}", p.mbit());
}

#[test]
fn a_small_theta_makes_small_steps() {
    // a tenth of 0.783 from 4.2; then twice a tenth of (4.2783^0.9 - 4.2^0.9) / 0.0783 = 0.778
    let mut p = probing(&["theta=0.1"]);
    assert!((p.turn(&flat) - 4.2783).abs() < 0.001, "{}", p.mbit());
    assert!((p.turn(&flat) - 4.4340).abs() < 0.002, "{}", p.mbit());
}

#[test]
fn it_moves_down_where_a_lower_rate_has_the_greater_utility_and_says_that_it_yields() {
    let mut p = probing(&[]);
    // x^0.9 - x C falls where C is above 0.9 x^-0.1: 0.78. A rise of 63 us costs 1.16
    assert!((p.turn(&rising(63.0)) - 3.8 * 0.95).abs() < 0.001, "{}", p.mbit());
    assert_eq!(p.h.flags() & YIELDING, YIELDING);
}

#[test]
fn it_is_never_slower_than_the_slowest_rate() {
    let mut p = probing(&[]);
    p.lost = 0.5;
    p.run(60_000 * MS, &flat);
    assert!((p.mbit() - 0.1).abs() < 0.02, "{}", p.mbit());
}

#[test]
fn a_timeout_leaves_a_packet_and_half_of_the_rate() {
    let mut p = probing(&[]);
    assert_eq!(p.h.event(Event::NN_TIMEOUT), packets(1));
    assert_eq!(p.mbit(), 2.0);
    // back by what is acknowledged
    assert_eq!(p.h.ack(2, BASE, 0), packets(3));
}

#[test]
fn losses_marks_and_undos_change_no_rate_by_themselves() {
    let mut p = probing(&[]);
    let before = (p.h.cwnd(), p.mbit());
    for event in [Event::NN_LOSS, Event::NN_ECN, Event::NN_UNDO] {
        p.h.event(event);
        assert_eq!((p.h.cwnd(), p.mbit()), before);
    }
}

#[test]
fn an_application_with_less_to_send_teaches_nothing() {
    let mut p = Path::new(&[]);
    for _ in 0..100 {
        p.h.now.now_us += 10 * MS;
        p.h.ack(2, BASE, APP_LIMITED);
    }
    assert_eq!(p.mbit(), 2.0);
}

#[test]
fn a_rate_that_cannot_leave_is_the_rate_that_leaves() {
    let mut p = probing(&[]);
    // two packets in 20 ms, whatever the gap: 1 Mbit/s of 4
    for _ in 0..20 {
        p.h.now.now_us += 20 * MS;
        p.h.now.inflight = 5;
        p.h.ack(2, BASE, 0);
    }
    assert!((0.8..1.2).contains(&p.mbit()), "{}", p.mbit());
}

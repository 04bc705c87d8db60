// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The rules of FAIRBAT-I and FAIRBAT-II. A packet is 10^4 bits, so 100 packets/s are 1 Mbit/s.

use super::*;

const SECOND: u64 = 1_000_000;

/// A flow of `name` with these settings, out of slow start at a window of `n` packets; T and the gains are
/// those that the numbers below are derived from.
fn avoiding(name: &str, settings: &[&str], n: u32) -> Host {
    Host::avoiding(&config(name, &[&["T=5", "g_e=0.1", "g_w=0.05"], settings].concat()), n)
}

fn weight(h: &Host) -> f64 {
    shown(&h.flow, "weight").value as f64 / ONE as f64
}

fn tcp_mbit(h: &Host) -> f64 {
    shown(&h.flow, "tcp").value as f64 / ONE as f64
}

fn near(is: f64, wanted: f64, error: f64) {
    assert!((is - wanted).abs() <= error, "{is} is not {wanted} within {error}");
}

/// `seconds` at `mbit`, an ACK each 10 ms; the window is held.
fn send_at(h: &mut Host, mbit: f64, seconds: u64) {
    let mut sent = 0.0;
    for _ in 0..seconds * 100 {
        h.now.now_us += SECOND / 100;
        let packets = sent + mbit;
        h.ack(packets as u32 - sent as u32, BASE, HOLD);
        sent = packets;
    }
}

/// Asks before a packet leaves, with nothing outstanding.
fn ask_drained(h: &mut Host) -> Ctl {
    let now = Ack { una: h.now.nxt, inflight: 0, ..h.now };
    h.flow.send(&now)
}

fn wait_until(h: &mut Host, us: u64) -> Ctl {
    h.now.now_us = us;
    h.ack(1, BASE, 0);
    h.flow.ctl()
}

#[test]
fn alpha_grows_by_the_square_of_the_weight() {
    // alpha = 1/4: 2^32/4 / (10 * 2^16) = 1638.4
    assert_eq!(avoiding("fairbat1", &["start=0.5"], 10).ack(1, BASE, 0), packets(10) + 1638);
    // alpha = 1: Reno's 6553.6
    assert_eq!(avoiding("fairbat1", &["start=1"], 10).ack(1, BASE, 0), packets(10) + 6553);
}

#[test]
fn growth_below_the_resolution_of_the_window_is_kept() {
    let mut h = avoiding("fairbat1", &["start=0.02"], 100);
    // w = 1311/65536, alpha = 0.00040017: 2^32 alpha / (100 * 2^16) = 0.26225 for a packet
    assert_eq!(h.ack(3, BASE, 0), packets(100));
    assert_eq!(h.ack(1, BASE, 0), packets(100) + 1);
    assert_eq!(h.ack(996, BASE, 0), packets(100) + 262);
}

#[test]
fn slow_start_and_losses_are_renos() {
    let mut h = Host::new(&config("fairbat2", &["start=0.1"]), 10);
    assert_eq!((h.ack(4, BASE, 0), h.flags()), (packets(14), SLOW_START));
    assert_eq!(h.event(Event::NN_LOSS), packets(7));
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
}

#[test]
fn a_sample_over_the_weight_is_tcps_throughput_and_moves_the_weight() {
    // 1 Mbit/s at w = 1/2 makes y0 = 2. FB-I: R = 1 + 1/2, w R = 3/4; FB-II: R = 3, w R = 3/2
    for (name, step, wanted) in [
        ("fairbat1", "scaled", 0.5 + 0.05 * (1.0 / 1.5 - 0.5)),
        ("fairbat1", "paper", 0.5 + 0.05 * 0.25 / 1.0),
        ("fairbat2", "scaled", 0.5 - 0.05 * (0.5 - 1.0 / 3.0)),
        ("fairbat2", "paper", 0.5 - 0.05 * 0.5 / 1.0),
    ] {
        let mut h = avoiding(name, &["start=0.5", &format!("step={step}")], 10);
        send_at(&mut h, 9.0, 5);
        send_at(&mut h, 1.0, 4);
        assert_eq!(
            (weight(&h), tcp_mbit(&h)),
            (0.5, 0.0),
            "T is 5 s, and the first does not count"
        );
        send_at(&mut h, 1.0, 1);
        near(tcp_mbit(&h), 2.0, 2e-4);
        near(weight(&h), wanted, 1e-4);
    }
}

#[test]
fn the_second_sample_that_counts_does_so_with_the_gain() {
    let mut h = avoiding("fairbat1", &["start=1", "g_w=0", "g_e=0.25"], 10);
    send_at(&mut h, 9.0, 5);
    send_at(&mut h, 1.0, 5);
    send_at(&mut h, 3.0, 5);
    near(tcp_mbit(&h), 0.75 * 1.0 + 0.25 * 3.0, 1e-3);
}

#[test]
fn from_any_start_the_weight_ends_where_the_equilibrium_says() {
    // TCP would have 2 Mbit/s. FB-I: 1/(1 + gamma/2); FB-II: 1/(1 + gamma 2)
    for (name, gamma, wanted) in [
        ("fairbat1", 1.0, 2.0 / 3.0),
        ("fairbat1", 6.0, 0.25),
        ("fairbat2", 1.0, 1.0 / 3.0),
        ("fairbat2", 0.25, 2.0 / 3.0),
    ] {
        for start in ["start=0.05", "start=1"] {
            // the paper's step is stable for g_w < 2 w^2 y0, here 1/4 and more
            for gains in [
                ["g_e=0.1", "g_w=0.05", "step=scaled"],
                ["g_e=1", "g_w=0.3", "step=scaled"],
                ["g_e=0.1", "g_w=0.05", "step=paper"],
            ] {
                let gamma = format!("gamma={gamma}");
                let mut h = avoiding(name, &[&[&gamma, start], &gains[..]].concat(), 10);
                for _ in 0..600 {
                    let y = 2.0 * weight(&h);
                    send_at(&mut h, y, 5);
                }
                // 500 y packets of a sample are whole: 1 in 250 at the least weight here
                near(weight(&h), wanted, 0.005 * wanted);
            }
        }
    }
}

#[test]
fn the_weight_stays_between_its_least_and_one() {
    let mut h = avoiding("fairbat1", &["gamma=1000", "least_weight=0.1", "g_w=1"], 10);
    send_at(&mut h, 0.01, 20);
    near(weight(&h), 0.1, 1e-5);
    let mut h = avoiding("fairbat2", &["gamma=0", "g_w=1"], 10);
    send_at(&mut h, 5.0, 60);
    near(weight(&h), 1.0, 2e-5);
}

#[test]
fn time_in_which_the_application_had_nothing_to_send_is_not_counted() {
    let mut h = avoiding("fairbat1", &["start=1", "g_w=0"], 10);
    send_at(&mut h, 9.0, 5);
    send_at(&mut h, 2.0, 3);
    for _ in 0..100 {
        h.now.now_us += SECOND / 100;
        h.ack(1, BASE, APP_LIMITED);
    }
    h.now.now_us += 100 * SECOND;
    ask_drained(&mut h); // it was idle until now
    send_at(&mut h, 2.0, 2);
    near(tcp_mbit(&h), 2.0, 1e-3);
}

/// A sample: T, here 5 s, in which one ACK delivers `n` packets: n/500 Mbit/s.
fn sample(h: &mut Host, n: u32) {
    h.now.now_us += 5 * SECOND;
    h.ack(n, BASE, HOLD);
}

/// The weight in full, Q32, which status shows in Q16: the word after those of struct nn_reno.
fn exact_weight(h: &Host) -> f64 {
    let q32 = h.flow.state()[4];
    assert_eq!(q32 >> 16, shown(&h.flow, "weight").value);
    q32 as f64 / (1u64 << 32) as f64
}

/// A flow that takes 1/R for its weight and the last sample for y0 (gains of 1), after a sample of `n`
/// packets at the weight 1, and gamma: such that 1/R is about `wanted`. None if gamma is out of range.
fn adapted(name: &str, n: u32, wanted: f64) -> Option<(Host, f64)> {
    let y0 = f64::from(n) / 500.0;
    let gamma = (1.0 / wanted - 1.0) * if name == "fairbat1" { y0 } else { 1.0 / y0 };
    let gamma = (gamma * ONE as f64).round() / ONE as f64; // as the parameter is
    if gamma > 1000.0 {
        return None;
    }
    let settings = ["T=5", "g_e=1", "g_w=1", "start=1", "least_weight=0.001"];
    let gamma_is = format!("gamma={gamma}");
    let mut h = Host::avoiding(&config(name, &[&settings[..], &[&gamma_is]].concat()), 10);
    sample(&mut h, n); // does not count
    sample(&mut h, n);
    Some((h, gamma))
}

/// TCP's throughput, packets in T: 0.1 to 2000 Mbit/s.
const SAMPLES: [u32; 5] = [50, 333, 1000, 50_001, 1_000_000];

/// The last is just above the least weight, 66/2^16, and just below 67/2^16: the most that rounding takes.
const WEIGHTS: [f64; 5] = [0.9, 0.3, 0.1, 0.02, 66.99 / 65536.0];

#[test]
fn the_weight_is_one_over_r_to_its_stated_error() {
    let (mut tried, mut greatest) = (0, 0f64);
    for name in ["fairbat1", "fairbat2"] {
        for n in SAMPLES {
            for (h, gamma) in WEIGHTS.iter().filter_map(|w| adapted(name, n, *w)) {
                let y0 = tcp_mbit(&h);
                let r = 1.0 + if name == "fairbat1" { gamma / y0 } else { gamma * y0 };
                let error = (exact_weight(&h) * r - 1.0).abs();
                assert!(error * ONE as f64 <= 1.0, "{name} {y0} {gamma}: {error}");
                greatest = greatest.max(error);
                tried += 1;
            }
        }
    }
    // some R of nearly one is rounded by more than half a step
    assert!(tried >= 30 && greatest * ONE as f64 > 0.5, "{tried} {greatest}");
}

/// How far y0 is off x/w after a sample of `n` packets, which a gain of 1 takes for it, in units of
/// 2^-16/w: too low in Mbit/s, and too great as a share. Asserts the stated bounds: x is rounded down by
/// less than 2^-16, the weight too, and the quotient.
fn estimate_error(h: &Host, n: u32) -> (f64, f64) {
    let (w, x, one) = (exact_weight(h), f64::from(n) / 500.0, ONE as f64);
    let unit = 1.0 / (w * one).floor();
    let mut h = h.clone();
    sample(&mut h, n);
    let error = tcp_mbit(&h) - x / w;
    assert!(error >= -unit - 1.0 / one, "{x}/{w}: {error}");
    assert!(error <= unit * x / w, "{x}/{w}: {error}");
    (-error / unit, error / (x / w) / unit)
}

#[test]
fn tcps_throughput_is_a_sample_over_the_weight_to_its_stated_error() {
    let mut greatest = 0f64;
    for name in ["fairbat1", "fairbat2"] {
        for (h, _) in
            SAMPLES.iter().flat_map(|n| WEIGHTS.iter().filter_map(|w| adapted(name, *n, *w)))
        {
            // 0.002 to 200 Mbit/s: x/w is below 2^20
            for n in [1, 7, 50, 1001, 100_000] {
                let (_, share) = estimate_error(&h, n);
                if exact_weight(&h) < 67.0 / 65536.0 {
                    greatest = greatest.max(share);
                }
            }
        }
    }
    // 0.99 of a step of the weight is lost, which has 67: 1.5 %
    assert!(greatest > 0.95, "{greatest}");

    // the least weight is in whole steps. 0.026 Mbit/s: 1703.9 of 2^-16
    let mut h = avoiding("fairbat1", &["g_e=1", "g_w=0", "start=0.001", "least_weight=0.001"], 10);
    sample(&mut h, 1);
    let (low, _) = estimate_error(&h, 13);
    assert!(low > 0.9, "{low}");
}

/// tau at w = 1/4: of 10 s the first 2.5 are active.
const TAU: [&str; 5] = ["mode=tau", "start=0.25", "g_w=0", "d_c=10", "d_r=0"];

#[test]
fn tau_drains_after_its_share_of_the_period_and_then_is_silent_to_its_end() {
    for name in ["fairbat1", "fairbat2"] {
        let mut h = avoiding(name, &TAU, 40);
        let active = wait_until(&mut h, 2_499_999);
        assert_eq!((active.cwnd_q16, active.gap_us), (packets(40) + 1638, 0)); // 2^32/(40 * 2^16)
        let draining = wait_until(&mut h, 2_500_000);
        assert_eq!((draining.cwnd_q16, draining.gap_us, draining.flags), (ONE, 0, YIELDING));
        // something is outstanding: nothing leaves
        assert_eq!(h.flow.send(&Ack { una: h.now.nxt - 1, ..h.now }).gap_us, 0);
        h.now.now_us = 2_600_000;
        let last = ask_drained(&mut h);
        assert_eq!((last.gap_us, last.burst), (7_400_000, 1));
        assert_eq!(wait_until(&mut h, 9_999_999).gap_us, 1);
        h.now.now_us = 10_000_000;
        let awake = ask_drained(&mut h);
        // slow start from the initial window (twice 40) to the last one, here less than that
        assert_eq!((awake.cwnd_q16, awake.gap_us), (packets(40) + 1638, 0));
        assert_eq!(wait_until(&mut h, 12_499_999).gap_us, 0);
        assert_eq!(wait_until(&mut h, 12_500_000).cwnd_q16, ONE);
    }
}

#[test]
fn tau_restarts_in_slow_start_from_the_initial_window() {
    let mut h = Host::new(&config("fairbat1", &TAU), 10);
    h.ack(70, BASE, 0);
    h.event(Event::NN_LOSS); // 80/2
    wait_until(&mut h, 2_500_000);
    ask_drained(&mut h);
    h.now.now_us = 10_000_000;
    let awake = ask_drained(&mut h);
    assert_eq!((awake.cwnd_q16, awake.flags), (packets(10), SLOW_START));
    assert_eq!(h.ack(30, BASE, 0), packets(40));
    assert_eq!(h.flags(), 0);
}

#[test]
fn tau_does_not_grow_in_silence_but_halves_for_what_it_loses_there() {
    let mut h = avoiding("fairbat1", &TAU, 16);
    wait_until(&mut h, 2_500_000);
    for _ in 0..100 {
        assert_eq!(h.ack(1, BASE, 0), ONE);
    }
    assert_eq!(h.event(Event::NN_LOSS), ONE);
    h.now.now_us = 10_000_000;
    assert_eq!(ask_drained(&mut h).cwnd_q16, packets(8));
}

#[test]
fn tau_estimates_in_active_phases_only() {
    let mut h = avoiding("fairbat1", &TAU, 16);
    send_at(&mut h, 9.0, 2); // the first period does not count
    h.now.now_us = 10_000_000;
    ask_drained(&mut h);
    // 750 packets in the 2.5 s of the active phase, the ACKs of the last ones in the drain: 3 Mbit/s
    send_at(&mut h, 3.0, 2);
    h.now.now_us += SECOND / 2;
    h.ack(100, BASE, HOLD);
    h.now.now_us += SECOND / 10;
    h.ack(50, BASE, HOLD);
    ask_drained(&mut h);
    h.now.now_us = 19_999_999;
    assert_eq!((ask_drained(&mut h).gap_us, tcp_mbit(&h)), (1, 0.0), "a sample is a whole period");
    h.now.now_us = 20_000_000;
    ask_drained(&mut h);
    near(tcp_mbit(&h), 3.0, 1e-4);
}

#[test]
fn a_sample_of_several_t_counts_as_so_many_but_no_more_than_half() {
    // periods of 10 s; 2 Mbit/s after 4
    for (t, gain) in [("T=10", 0.1), ("T=5", 0.2), ("T=1", 0.5)] {
        let settings = [&["mode=tau", "start=1", "d_c=10", "d_r=0", "g_w=0"], &[t][..]].concat();
        let mut h = avoiding("fairbat1", &settings, 16);
        send_at(&mut h, 9.0, 10);
        send_at(&mut h, 4.0, 10);
        near(tcp_mbit(&h), 4.0, 1e-2);
        send_at(&mut h, 2.0, 10);
        near(tcp_mbit(&h), 4.0 - 2.0 * gain, 1e-2);
    }
}

#[test]
fn tau_at_the_weight_one_is_never_silent() {
    let mut h = avoiding("fairbat2", &["mode=tau", "start=1", "g_w=0"], 16);
    for _ in 0..1000 {
        h.now.now_us += SECOND / 10;
        h.ack(0, 0, 0);
        assert_eq!((ask_drained(&mut h).gap_us, h.flags()), (0, 0));
    }
}

#[test]
fn a_flow_that_idled_through_its_silent_phase_begins_a_period() {
    let mut h = avoiding("fairbat1", &TAU, 16);
    h.now.now_us = 3600 * SECOND;
    assert_eq!(ask_drained(&mut h).gap_us, 0);
    assert_eq!(wait_until(&mut h, 3602 * SECOND).gap_us, 0);
    assert_eq!(wait_until(&mut h, 3602 * SECOND + 500_000).cwnd_q16, ONE);
}

/// The ends of the active phases of a flow at w = 1/2 whose first sequence number is `first`.
fn phases(first: u32) -> Vec<u64> {
    let settings = ["mode=tau", "start=0.5", "g_w=0", "d_c=4", "d_r=6"];
    let mut h = Host::numbered_from(first, &config("fairbat1", &settings), 10);
    let (mut ends, mut active) = (Vec::new(), true);
    while ends.len() < 50 {
        h.now.now_us += 1000;
        let now = h.now;
        let silent = h.flow.send(&now).flags & YIELDING != 0;
        if std::mem::replace(&mut active, !silent) && silent {
            ends.push(h.now.now_us);
        }
    }
    ends
}

#[test]
fn periods_are_random_and_each_flows_own() {
    let (one, other) = (phases(1), phases(2));
    assert_eq!(one, phases(1));
    assert!(one.iter().zip(&other).all(|(a, b)| a != b));
    // half of one period and half of the next: from 4 to 10 s, with 50 draws neither close to 4 s nor to 10 s
    // in mean: 4 + 3 s, the standard error 6/sqrt(24)/10 s
    let gaps: Vec<f64> = one.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect();
    assert!(gaps.iter().all(|g| (4.0..=10.01).contains(g)), "{gaps:?}");
    near(gaps.iter().sum::<f64>() / gaps.len() as f64, 7.0, 4.0 * 6.0 / 24f64.sqrt() / 7.0);
}

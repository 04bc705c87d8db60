// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! CUBIC's rules, and HyStart's.

use super::*;

const SECOND: u32 = 1_000_000;
/// A base round trip so long that the Reno-friendly region stays below the cubic, us.
const LONG: u32 = 200_000;

/// A window in packets.
fn in_packets(cwnd_q16: u64) -> f64 {
    cwnd_q16 as f64 / ONE as f64
}

fn near(cwnd_q16: u64, expected: f64, by: f64) {
    let got = in_packets(cwnd_q16);
    assert!((got - expected).abs() <= by, "{got}, expected {expected} within {by}");
}

/// Knowing the base `rtt_us`, at 10 s, in slow start with `n` packets.
fn slow_start(settings: &[&str], n: u32, rtt_us: u32) -> Host {
    let mut h = Host::new(&config("cubic", settings), n);
    h.now.now_us = 10_000_000;
    h.now.srtt_us = rtt_us;
    h.ack(0, rtt_us, HOLD);
    h
}

/// After a loss with a window of `n` packets; the epoch has begun with an ACK of one packet.
fn after_loss(settings: &[&str], n: u32, rtt_us: u32) -> Host {
    let mut h = slow_start(settings, n, rtt_us);
    h.event(Event::NN_LOSS);
    h.ack(1, rtt_us, 0);
    h
}

impl Host {
    /// Acknowledges a whole window, `us` later.
    fn window_after(&mut self, us: u32, rtt_us: u32) -> u64 {
        self.now.now_us += u64::from(us);
        let acked = (self.cwnd() / ONE) as u32;
        self.last_ack(acked, rtt_us, 0)
    }
}

#[test]
fn slow_start_is_that_of_reno() {
    let mut h = slow_start(&[], 10, BASE);
    assert_eq!((h.ack(3, BASE, 0), h.flags()), (packets(13), SLOW_START));
}

#[test]
fn a_loss_and_an_ecn_mark_leave_beta_of_the_window() {
    for event in [Event::NN_LOSS, Event::NN_ECN] {
        let mut h = slow_start(&[], 100, BASE);
        assert_eq!(h.event(event), packets(70));
        assert_eq!(h.flags(), 0);
    }
    // 0.7 is 45875/65536, but what is left of 10 packets is 7 and not 6.9999
    assert_eq!(slow_start(&[], 10, BASE).event(Event::NN_LOSS), packets(7));
    assert_eq!(slow_start(&["beta=0.5"], 100, BASE).event(Event::NN_LOSS), packets(50));
    assert_eq!(slow_start(&[], 2, BASE).event(Event::NN_LOSS), packets(2));
}

#[test]
fn the_window_is_the_cubic_function_of_the_time_since_the_loss() {
    // W_max = 100, W0 = 70: K = cbrt(30/0.4) = 4.217 s, W(t) = 100 + 0.4 (t - K)^3, which is 86.7,
    // 95.6, 99.3, 100, 102.3, 121.6; the distance from 100 is rounded down
    let expected = [(1, 87.0), (2, 96.0), (3, 100.0), (4, 100.0), (6, 102.0), (8, 121.0)];
    let mut h = after_loss(&[], 100, LONG);
    // an ACK at t leads to W(t + minRTT)
    for (second, window) in expected {
        let target_us = 10_000_000 + second * u64::from(SECOND) - u64::from(LONG);
        while h.now.now_us < target_us {
            h.window_after(LONG, LONG);
        }
        near(h.cwnd(), window, 0.3);
    }
}

#[test]
fn as_long_after_w_max_as_before_it_the_window_is_as_far_above_as_it_was_below() {
    // W(2K) = W_max + 0.4 K^3 = 1.3 W_max, with K = cbrt(0.3 W_max/0.4)
    for (w_max, k_ms) in [(100, 4217), (1000, 9086), (100_000, 42_172), (700_000, 80_668)] {
        let mut h = after_loss(&[], w_max, LONG);
        h.window_after(2 * k_ms * 1000 - LONG, LONG); // limited to 1.05 W_max
        h.window_after(0, LONG);
        near(h.cwnd(), 1.3 * f64::from(w_max), 0.004 * f64::from(w_max) + 1.0);
    }
}

#[test]
fn c_can_be_set() {
    // K = cbrt(30/1.6) = 2.657 s; W(1 s) = 100 - 1.6 * 1.657^3 = 92.7
    let mut h = after_loss(&["c=1.6"], 100, LONG);
    h.window_after(SECOND - LONG, LONG);
    near(h.cwnd(), 93.0, 0.1);
}

#[test]
fn on_a_short_path_the_window_grows_as_fast_as_renos_would() {
    // beta 0.7: 3 * 0.3/1.7 = 0.529 packets a round, 26.5 in 50 of them, whereas the cubic is
    // below W_max = 10 until 1.96 s
    let mut h = after_loss(&[], 10, 10_000);
    for _ in 0..50 {
        h.window_after(10_000, 10_000);
    }
    // the rounds acknowledge whole packets, up to 1/7 less than the window
    near(h.cwnd(), 7.0 + 26.5, 1.5);
}

#[test]
fn one_packet_acknowledged_adds_half_a_packet_at_most() {
    let mut h = after_loss(&[], 100, LONG);
    h.now.now_us += 400_000_000;
    let before = h.cwnd();
    assert_eq!(h.ack(1, LONG, 0), before + ONE / 2);
}

#[test]
fn a_loss_below_the_last_one_aims_lower_still() {
    let plateau = |settings: &[&str]| {
        let mut h = slow_start(settings, 100, LONG);
        h.event(Event::NN_LOSS);
        h.event(Event::NN_LOSS); // 70 to 49
        h.ack(1, LONG, 0);
        h.window_after(2_924_000 - LONG, LONG);
        h.cwnd()
    };
    // 70 (1 + 0.7)/2 = 59.5, of which 59 count: K = cbrt(10/0.4) = 2.924 s
    near(plateau(&[]), 59.0, 0.1);
    // W_max = 70, K = cbrt(21/0.4) = 3.744 s: 70 - 0.4 * 0.82^3 = 69.8, rounded up
    near(plateau(&["fast_convergence=0"]), 70.0, 0.1);
}

#[test]
fn a_loss_with_as_many_whole_packets_as_the_last_one_is_not_below_it() {
    let mut h = slow_start(&[], 100, LONG);
    h.event(Event::NN_LOSS);
    h.event(Event::NN_TIMEOUT);
    assert_eq!(h.ack(79, LONG, 0), packets(70) + 10 * 3276); // 70.5: 69 of slow start, ten of 1/20
    for _ in 0..3 {
        h.event(Event::NN_LOSS); // with 70.5, 70.1, 70.1
        h.ack(1, LONG, 0);
        h.window_after(3_744_000 - LONG, LONG); // K = cbrt(21/0.4)
        near(h.cwnd(), 70.1, 0.1);
    }
}

#[test]
fn a_loss_above_the_last_one_is_the_new_w_max() {
    let mut h = after_loss(&[], 100, LONG);
    h.window_after(10 * SECOND, LONG);
    h.window_after(0, LONG);
    let above = h.cwnd();
    near(above, 157.5, 0.1); // W(10.2 s) = 185.7 is out of reach of two windows: 70 * 1.5^2
    h.event(Event::NN_LOSS);
    h.ack(1, LONG, 0);
    // K = cbrt(0.3 * 157.5/0.4) = 4.9 s
    h.window_after(4_900_000 - LONG, LONG);
    near(h.cwnd(), 157.5, 0.5);
}

#[test]
fn after_a_timeout_slow_start_leads_to_beta_of_the_window_and_nothing_is_known_beyond() {
    let mut h = slow_start(&[], 20, LONG);
    h.event(Event::NN_LOSS); // 14
    assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
    assert_eq!(h.flags(), SLOW_START);
    let at_ssthresh = h.ack(13, LONG, 0);
    assert_eq!((at_ssthresh, h.flags()), (packets(14), 0));
    // the least step without a W_max is 65536/20 for a packet; 0.2 s after the start of a convex
    // epoch, 0.4 * 0.2^3 = 0.003 packets more is no aim
    assert_eq!(h.ack(2, LONG, 0), at_ssthresh + 2 * 3276);
}

#[test]
fn undo_restores_the_window_and_the_epoch() {
    let mut h = after_loss(&[], 100, LONG);
    h.window_after(SECOND, LONG);
    let mut undone = h.clone();
    undone.event(Event::NN_LOSS);
    undone.event(Event::NN_TIMEOUT);
    assert_eq!(undone.event(Event::NN_UNDO), h.cwnd());
    assert_eq!(undone.window_after(SECOND, LONG), h.window_after(SECOND, LONG));
}

#[test]
fn time_without_anything_in_flight_does_not_count() {
    let mut h = after_loss(&[], 100, LONG);
    h.window_after(SECOND, LONG);
    let mut rested = h.clone();
    rested.now.now_us += 60_000_000;
    rested.flow.send(&Ack { inflight: 0, ..rested.now });
    assert_eq!(rested.window_after(SECOND, LONG), h.clone().window_after(SECOND, LONG));
    // with something in flight it does: W(62 s) is beyond the 1.5 of one window
    h.now.now_us += 60_000_000;
    h.flow.send(&h.now.clone());
    let before = h.cwnd();
    near(h.window_after(SECOND, LONG), 1.5 * in_packets(before), 1.0);
}

#[test]
fn idling_cuts_the_window_and_stops_the_clock() {
    let mut h = after_loss(&[], 100, LONG);
    h.window_after(SECOND, LONG); // 89 packets: W(1.2 s)
    let before = in_packets(h.cwnd());
    h.now.now_us += 60_000_000;
    assert_eq!(h.idle(10), packets(10));
    // slow start up to 3/4 of what there was, or the 70 of the last loss; the rest is for the cubic,
    // which goes on at t = 1 s: at most as far as it was
    assert_eq!(h.flags(), SLOW_START);
    h.ack(60, LONG, 0);
    assert!(in_packets(h.cwnd()) < before);
    h.window_after(0, LONG);
    near(h.cwnd(), before, 0.6);
}

#[test]
fn after_a_rest_the_window_comes_back_to_renos_by_half_a_packet_for_each() {
    let mut h = after_loss(&[], 100, 1000);
    // 5000 packets a millisecond apart, where the cubic stands still: Reno's window is well above 100
    for _ in 0..5000 {
        h.ack(1, 1000, 0);
    }
    let before = h.cwnd();
    assert!(before > packets(100));
    h.idle(10);
    while h.flags() & SLOW_START != 0 {
        h.ack(1, 1000, 0);
    }
    let rest = h.cwnd();
    near(rest, 0.75 * in_packets(before), 1.0);
    assert_eq!(h.ack(1, 1000, 0), rest + ONE / 2);
    h.ack(before.div_ceil(ONE) as u32, 1000, 0);
    near(h.cwnd(), in_packets(before), 1.0);
}

#[test]
fn time_of_the_application_does_not_count() {
    let mut h = after_loss(&[], 100, LONG);
    h.window_after(SECOND, LONG);
    let mut slow = h.clone();
    for _ in 0..60 {
        slow.now.now_us += u64::from(SECOND);
        slow.ack(1, LONG, APP_LIMITED);
    }
    assert_eq!(slow.window_after(SECOND, LONG), h.window_after(SECOND, LONG));
}

#[test]
fn recovery_and_the_application_hold_the_window() {
    for flags in [HOLD, APP_LIMITED] {
        let mut h = slow_start(&[], 10, LONG);
        assert_eq!(h.ack(5, LONG, flags), packets(10));
        let mut h = after_loss(&[], 100, LONG);
        h.now.now_us += 3_000_000;
        let before = h.cwnd();
        assert_eq!(h.ack(50, LONG, flags), before);
    }
}

mod hystart {
    use super::*;

    /// Rounds of ten packets of `rtt_us` from `n` packets on; whether slow start has ended.
    fn ends(settings: &[&str], n: u32, base_us: u32, rtt_us: u32) -> bool {
        let mut h = slow_start(settings, n, base_us);
        h.now.now_us += 10_000; // no train
        h.last_ack(0, rtt_us, HOLD);
        for _ in 0..10 {
            h.now.now_us += 10_000;
            h.ack(1, rtt_us, 0);
        }
        h.flags() & SLOW_START == 0
    }

    #[test]
    fn a_round_whose_least_delay_is_an_eighth_above_the_base_ends_slow_start() {
        // 50 ms/8 = 6.25 ms; 10 ms/8 is raised to 4 ms, and 400 ms/8 lowered to 16 ms
        for (base_us, slack_us) in [(50_000, 6_250), (10_000, 4_000), (400_000, 16_000)] {
            assert!(!ends(&[], 16, base_us, base_us + slack_us), "{base_us}");
            assert!(ends(&[], 16, base_us, base_us + slack_us + 1), "{base_us}");
        }
    }

    #[test]
    fn below_16_packets_and_when_off_delay_says_nothing() {
        assert!(!ends(&[], 5, BASE, 2 * BASE)); // 5 to 15
        assert!(!ends(&["hystart=0"], 16, BASE, 2 * BASE));
    }

    #[test]
    fn it_takes_nine_samples_of_one_round() {
        let mut h = slow_start(&[], 16, BASE);
        h.now.now_us += 10_000;
        h.last_ack(0, 2 * BASE, HOLD);
        for _ in 0..7 {
            h.now.now_us += 10_000;
            h.ack(1, 2 * BASE, 0);
        }
        assert_eq!(h.flags(), SLOW_START);
        let mut next_round = h.clone();
        next_round.now.now_us += 10_000;
        next_round.last_ack(1, 2 * BASE, 0);
        assert_eq!(next_round.flags(), SLOW_START);
        // the ninth finds 23 packets, and adds 1/20 as long as no W_max is known
        h.now.now_us += 10_000;
        assert_eq!((h.ack(1, 2 * BASE, 0), h.flags()), (packets(23) + 3276, 0));
    }

    #[test]
    fn one_short_delay_in_the_round_keeps_slow_start() {
        let mut h = slow_start(&[], 16, BASE);
        h.now.now_us += 10_000;
        h.last_ack(1, BASE, 0);
        for _ in 0..20 {
            h.now.now_us += 10_000;
            h.ack(1, 2 * BASE, 0);
        }
        assert_eq!(h.flags(), SLOW_START);
    }

    /// ACKs `gap_us` apart in one round; how many until slow start has ended.
    fn train(gap_us: u64) -> Option<u32> {
        let mut h = slow_start(&[], 16, BASE);
        h.last_ack(0, BASE, HOLD);
        (1..=100).find(|_| {
            h.now.now_us += gap_us;
            h.ack(1, BASE, 0);
            h.flags() & SLOW_START == 0
        })
    }

    #[test]
    fn a_train_of_acks_longer_than_half_a_round_trip_ends_slow_start() {
        // (50 + 1)/2 = 25.5 ms
        assert_eq!(train(1000), Some(26));
        assert_eq!(train(2000), Some(13));
        assert_eq!(train(2001), None);
    }

    #[test]
    fn it_ends_slow_start_once_until_a_timeout() {
        let mut h = slow_start(&[], 16, BASE);
        let full = |h: &mut Host| {
            h.now.now_us += 10_000;
            h.last_ack(0, 2 * BASE, HOLD);
            for _ in 0..10 {
                h.now.now_us += 10_000;
                h.ack(1, 2 * BASE, 0);
            }
            h.flags() & SLOW_START == 0
        };
        assert!(full(&mut h));
        h.ack(2000, BASE, 0);
        h.idle(16);
        assert!(!full(&mut h), "slow start after idling knows where to end");
        h.event(Event::NN_LOSS);
        h.event(Event::NN_UNDO);
        h.event(Event::NN_TIMEOUT);
        h.ack(15, BASE, 0);
        assert!(full(&mut h));
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The rules of the algorithms, one by one, as any host sees them; and what every algorithm of
//! the list must keep to.

use proptest::prelude::*;

use super::*;

const CWND_MAX: u64 = ONE << 20;
const GAP_MAX: u64 = sys::NN_GAP_MAX as u64;
const SLOW_START: u32 = sys::NN_CTL_SLOW_START;
const YIELDING: u32 = sys::NN_CTL_YIELDING;
const HOLD: u32 = sys::NN_ACK_HOLD;
const APP_LIMITED: u32 = sys::NN_ACK_APP_LIMITED;
/// A round trip over the empty path, us.
const BASE: u32 = 50_000;

/// Whole packets as a window.
fn packets(n: u64) -> u64 {
    n * ONE
}

fn algorithm(name: &str) -> Algorithm {
    Algorithm::by_name(name).expect("an algorithm of the list")
}

fn config(name: &str, settings: &[&str]) -> Config {
    let mut config = Config::new(algorithm(name));
    for setting in settings {
        config.set(setting).expect("within the range");
    }
    config
}

/// A host that counts packets as its sequence numbers, has more in flight than it needs to, and
/// sends two packets for each ACK.
#[derive(Clone, Debug)]
struct Host {
    flow: Flow,
    now: Ack,
    /// What was sent before this round started ends here.
    end: u32,
}

impl Host {
    fn new(config: &Config, initial_window: u32) -> Host {
        Host::numbered_from(0, config, initial_window)
    }

    fn numbered_from(first: u32, config: &Config, initial_window: u32) -> Host {
        let now =
            Ack { srtt_us: BASE, inflight: 100, una: first, nxt: first, ..Default::default() };
        Host { flow: Flow::new(config, &now, initial_window), now, end: first }
    }

    fn start(name: &str, initial_window: u32) -> Host {
        Host::new(&config(name, &[]), initial_window)
    }

    fn cwnd(&self) -> u64 {
        self.flow.ctl().cwnd_q16
    }

    fn flags(&self) -> u32 {
        self.flow.ctl().flags
    }

    /// One ACK, for packets in the middle of a round.
    fn ack(&mut self, acked: u32, rtt_us: u32, flags: u32) -> u64 {
        self.now.nxt = self.now.nxt.wrapping_add(2);
        let ack = Ack { acked, rtt_us, flags, una: self.end, ..self.now };
        self.flow.ack(&ack).cwnd_q16
    }

    /// The last ACK of a round: what was sent after the round's start is acknowledged.
    fn last_ack(&mut self, acked: u32, rtt_us: u32, flags: u32) -> u64 {
        self.end = self.end.wrapping_add(1);
        self.ack(acked, rtt_us, flags);
        self.end = self.now.nxt;
        self.cwnd()
    }

    /// A round of `n` packets, each acknowledged on its own after `rtt_us`.
    fn round(&mut self, n: u32, rtt_us: u32) -> u64 {
        for _ in 1..n {
            self.ack(1, rtt_us, 0);
        }
        self.last_ack(1, rtt_us, 0)
    }

    fn event(&mut self, event: Event) -> u64 {
        self.end = self.now.nxt;
        self.flow.event(event, &self.now).cwnd_q16
    }

    /// The host left `left` packets of an unused window.
    fn idle(&mut self, left: u64) -> u64 {
        self.flow.cut(packets(left));
        self.event(Event::NN_IDLE)
    }

    /// Out of slow start: loses a packet with a window of twice `n` packets.
    fn avoiding(config: &Config, n: u32) -> Host {
        let mut host = Host::new(config, 2 * n);
        if host.cwnd() < packets(2 * u64::from(n)) {
            host.ack(2 * n - (host.cwnd() / ONE) as u32, BASE, 0);
        }
        assert_eq!(host.event(Event::NN_LOSS), packets(u64::from(n)));
        assert_eq!(host.flags() & SLOW_START, 0);
        host
    }
}

mod reno {
    use super::*;

    #[test]
    fn slow_start_adds_a_packet_for_each_packet_acknowledged() {
        let mut h = Host::start("reno", 10);
        assert_eq!((h.cwnd(), h.flags()), (packets(10), SLOW_START));
        assert_eq!(h.ack(1, BASE, 0), packets(11));
        assert_eq!(h.ack(3, BASE, 0), packets(14));
        assert_eq!((h.flow.ctl().gap_us, h.flags()), (0, SLOW_START));
    }

    #[test]
    fn avoidance_adds_one_over_the_window_for_each_packet_acknowledged() {
        let mut h = Host::avoiding(&config("reno", &[]), 10);
        // 2^32 / (10 * 2^16) = 6553.6
        assert_eq!(h.ack(1, BASE, 0), packets(10) + 6553);
    }

    #[test]
    fn avoidance_adds_nearly_a_packet_in_a_round() {
        let mut h = Host::avoiding(&config("reno", &[]), 100);
        let grown = h.round(100, BASE) - packets(100);
        // the sum of 1/(100 + k/100) for k = 0..99 is 0.995
        assert!((ONE * 99 / 100..ONE).contains(&grown), "{grown}");
    }

    #[test]
    fn what_an_ack_has_left_at_ssthresh_goes_to_avoidance() {
        let mut h = Host::avoiding(&config("reno", &[]), 10);
        h.event(Event::NN_TIMEOUT);
        // from 1: nine packets lead to ssthresh = 10, three add 3/10: 3 * 2^32 / (10 * 2^16) = 19660.8
        assert_eq!(h.ack(12, BASE, 0), packets(10) + 19_660);
        assert_eq!(h.flags(), 0);
    }

    #[test]
    fn a_loss_and_an_ecn_mark_halve_the_window_and_end_slow_start() {
        for event in [Event::NN_LOSS, Event::NN_ECN] {
            let mut h = Host::start("reno", 20);
            assert_eq!(h.event(event), packets(10));
            assert_eq!(h.flags(), 0);
        }
    }

    #[test]
    fn two_packets_are_the_least_window_after_a_loss() {
        let mut h = Host::start("reno", 3);
        assert_eq!(h.event(Event::NN_LOSS), packets(2));
        assert_eq!(h.event(Event::NN_LOSS), packets(2));
    }

    #[test]
    fn after_a_timeout_slow_start_leads_from_one_packet_to_half_the_window() {
        let mut h = Host::start("reno", 20);
        h.event(Event::NN_LOSS);
        assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
        assert_eq!(h.flags(), SLOW_START);
        assert_eq!(h.ack(8, BASE, 0), packets(9));
        assert_eq!(h.flags(), SLOW_START);
        assert_eq!(h.ack(1, BASE, 0), packets(10));
        assert_eq!(h.flags(), 0);
    }

    #[test]
    fn undo_restores_the_window_from_before_the_loss() {
        let mut h = Host::start("reno", 20);
        h.event(Event::NN_LOSS);
        assert_eq!(h.event(Event::NN_UNDO), packets(20));
        h.event(Event::NN_LOSS);
        h.event(Event::NN_TIMEOUT);
        assert_eq!(h.event(Event::NN_UNDO), packets(20));
        // and slow start, which the loss had ended, goes on
        assert_eq!(h.flags(), SLOW_START);
    }

    #[test]
    fn after_an_undo_a_timeout_remembers_the_restored_window() {
        let mut h = Host::start("reno", 20);
        h.event(Event::NN_LOSS);
        h.event(Event::NN_UNDO);
        h.event(Event::NN_TIMEOUT);
        assert_eq!(h.ack(19, BASE, 0), packets(20));
    }

    #[test]
    fn undo_never_takes_away_what_grew_since() {
        let mut h = Host::start("reno", 4);
        h.event(Event::NN_LOSS);
        h.ack(100, BASE, 0); // 2 + 100/2
        assert_eq!(h.event(Event::NN_UNDO), packets(52));
    }

    #[test]
    fn after_idling_slow_start_leads_back_to_three_quarters() {
        let mut h = Host::avoiding(&config("reno", &[]), 40);
        assert_eq!(h.idle(10), packets(10));
        assert_eq!(h.flags(), SLOW_START);
        assert_eq!(h.ack(100, BASE, 0), packets(40) + 70 * ONE / 40); // ssthresh was 40
        let mut h = Host::avoiding(&config("reno", &[]), 10);
        h.ack(300, BASE, 0); // 10 + 300/10 = 40, ssthresh 10
        h.idle(10);
        h.ack(20, BASE, 0); // ssthresh 3/4 of 40
        assert_eq!((h.cwnd(), h.flags()), (packets(30), 0));
    }

    #[test]
    fn idling_never_raises_the_window() {
        let mut h = Host::avoiding(&config("reno", &[]), 5);
        assert_eq!(h.idle(10), packets(5));
    }

    #[test]
    fn recovery_and_the_application_hold_the_window() {
        for flags in [HOLD, APP_LIMITED] {
            let mut h = Host::start("reno", 10);
            assert_eq!(h.ack(5, BASE, flags), packets(10));
            h.event(Event::NN_LOSS);
            assert_eq!(h.ack(5, BASE, flags), packets(5));
        }
    }
}

mod vegas {
    use super::*;

    /// In avoidance with `n` packets, knowing that [`BASE`] is the empty path.
    fn avoiding(settings: &[&str], n: u32) -> Host {
        let mut h = Host::avoiding(&config("vegas", settings), n);
        h.last_ack(0, BASE, HOLD);
        assert_eq!(h.flow.info().base_rtt_us, BASE);
        h
    }

    #[test]
    fn it_starts_with_two_packets_at_least() {
        assert_eq!(Host::start("vegas", 1).cwnd(), packets(2));
        assert_eq!(Host::start("vegas", 10).cwnd(), packets(10));
    }

    #[test]
    fn slow_start_doubles_every_other_round() {
        let mut h = Host::start("vegas", 4);
        assert_eq!(h.round(4, BASE), packets(8));
        assert_eq!(h.round(8, BASE), packets(8));
        assert_eq!(h.round(8, BASE), packets(16));
        assert_eq!(h.round(16, BASE), packets(16));
        assert_eq!(h.flags(), SLOW_START);
    }

    #[test]
    fn slow_start_ends_with_more_than_gamma_queued() {
        let mut h = Host::start("vegas", 10);
        h.round(10, BASE); // 20 packets now
                           // Diff = 20 (60 - 50)/60 = 3.3 > 1: W = 20 * 50/60 + 1 = 17.67 (1092266.7 + 65536)
        assert_eq!(h.round(20, 60_000), 1_157_802);
        assert_eq!(h.flags(), 0);
        assert_eq!(h.flow.info().queue_q16, 218_453); // 3.33 * 65536
    }

    #[test]
    fn slow_start_goes_on_with_gamma_queued() {
        let mut h = Host::start("vegas", 10);
        h.round(10, 57_000);
        // Diff = 20 (60 - 57)/60 = 1
        h.round(20, 60_000);
        assert_eq!(h.flags(), SLOW_START);
        h.round(20, 57_000);
        h.round(20, 60_002);
        assert_eq!(h.flags(), 0);
    }

    #[test]
    fn gamma_can_be_set() {
        let mut h = Host::new(&config("vegas", &["gamma=4"]), 10);
        h.round(10, BASE);
        h.round(20, 60_000); // 3.3
        assert_eq!(h.flags(), SLOW_START);
    }

    #[test]
    fn less_than_alpha_queued_adds_a_packet_each_round() {
        let mut h = avoiding(&[], 20);
        assert_eq!(h.round(20, BASE), packets(21));
        // Diff = 21 (52 - 50)/52 = 0.81
        assert_eq!(h.round(21, 52_000), packets(22));
    }

    #[test]
    fn alpha_to_beta_queued_keeps_the_window() {
        // Diff = 20 (53 - 50)/53 = 1.13 and 20 (58.5 - 50)/58.5 = 2.91
        for rtt in [53_000, 58_500] {
            assert_eq!(avoiding(&[], 20).round(20, rtt), packets(20));
        }
        // 20 (60 - 54)/60 = 2 is alpha itself, and 20 (60 - 51)/60 = 3 beta itself
        for (settings, base) in [(["alpha=2"], 54_000), (["alpha=1"], 51_000)] {
            let mut h = Host::avoiding(&config("vegas", &settings), 20);
            h.last_ack(0, base, HOLD);
            // the two ACKs that know the path's base are in a round of their own
            let before = h.cwnd();
            assert_eq!(h.round(20, 60_000), before, "{settings:?}");
        }
    }

    #[test]
    fn more_than_beta_queued_takes_a_packet_each_round() {
        // Diff = 20 (60 - 50)/60 = 3.3, then 19 * 10/60 = 3.17, then 18 * 10/60 = 3
        let mut h = avoiding(&[], 20);
        assert_eq!(h.round(20, 60_000), packets(19));
        assert_eq!(h.round(19, 60_000), packets(18));
        assert_eq!(h.round(18, 60_000), packets(18));
    }

    #[test]
    fn alpha_and_beta_can_be_set() {
        // Diff = 3.3
        assert_eq!(avoiding(&["alpha=4", "beta=6"], 20).round(20, 60_000), packets(21));
        assert_eq!(avoiding(&["beta=5"], 20).round(20, 60_000), packets(20));
    }

    #[test]
    fn two_packets_are_the_least_window() {
        let mut h = avoiding(&["alpha=0.5", "beta=1"], 2);
        // Diff = 2 (200 - 50)/200 = 1.5
        assert_eq!(h.round(3, 200_000), packets(2));
        assert_eq!(h.event(Event::NN_LOSS), packets(2));
    }

    #[test]
    fn the_least_round_trip_of_a_round_counts() {
        let mut h = avoiding(&[], 20);
        h.ack(1, BASE, 0);
        assert_eq!(h.round(19, 90_000), packets(21));
    }

    #[test]
    fn fewer_than_three_samples_add_a_packet_whatever_they_say() {
        assert_eq!(avoiding(&[], 20).round(2, 90_000), packets(21));
        assert_eq!(avoiding(&[], 20).round(3, 90_000), packets(19));
        // an ACK without a sample is none
        let mut h = avoiding(&[], 20);
        h.ack(1, 0, 0);
        assert_eq!(h.round(2, 90_000), packets(21));
    }

    #[test]
    fn fewer_than_three_samples_do_not_end_slow_start() {
        let mut h = Host::start("vegas", 10);
        h.round(10, BASE);
        assert_eq!(h.round(2, 90_000), packets(20));
        assert_eq!(h.flags(), SLOW_START);
    }

    #[test]
    fn recovery_and_the_application_hold_growth_but_not_decrease() {
        for flags in [HOLD, APP_LIMITED] {
            let mut h = avoiding(&[], 20);
            h.ack(19, BASE, flags);
            assert_eq!(h.last_ack(1, BASE, flags), packets(20));
            h.ack(1, 60_000, flags);
            h.ack(1, 60_000, flags);
            assert_eq!(h.last_ack(1, 60_000, flags), packets(19));
        }
    }

    #[test]
    fn losses_timeouts_undo_and_idling_are_those_of_reno() {
        let mut h = Host::start("vegas", 40);
        assert_eq!(h.event(Event::NN_LOSS), packets(20));
        assert_eq!(h.event(Event::NN_UNDO), packets(40));
        assert_eq!(h.event(Event::NN_ECN), packets(20));
        assert_eq!(h.event(Event::NN_TIMEOUT), packets(1));
        assert_eq!(h.flags(), SLOW_START);
        let mut h = avoiding(&[], 20);
        assert_eq!(h.idle(10), packets(10));
        assert_eq!(h.flags(), SLOW_START);
    }

    #[test]
    fn samples_from_before_a_loss_do_not_count() {
        let mut h = avoiding(&[], 40);
        h.ack(1, 90_000, 0);
        h.ack(1, 90_000, 0);
        assert_eq!(h.event(Event::NN_LOSS), packets(20));
        assert_eq!(h.round(2, 90_000), packets(21), "two samples, not four");
    }

    #[test]
    fn rounds_end_across_the_wrap_of_sequence_numbers() {
        let mut h = Host::numbered_from(u32::MAX - 10, &config("vegas", &[]), 40);
        h.event(Event::NN_LOSS);
        for round in 1..=4 {
            assert_eq!(h.round(3, BASE), packets(20 + round));
        }
        assert_eq!(h.now.nxt, 13);
    }
}

mod nice {
    use super::*;

    /// With two packets, in a round that began after one sample of [`BASE`].
    fn knowing_base(settings: &[&str]) -> Host {
        let mut h = Host::new(&config("nice", settings), 10);
        h.last_ack(0, BASE, HOLD);
        assert_eq!(h.flow.info().base_rtt_us, BASE);
        assert_eq!((h.cwnd(), h.flags()), (packets(2), SLOW_START));
        h
    }

    /// In avoidance with `n` packets, knowing that [`BASE`] is the empty path.
    fn avoiding(settings: &[&str], n: u32) -> Host {
        let mut h = Host::avoiding(&config("nice", settings), n);
        h.last_ack(0, BASE, HOLD);
        h
    }

    /// With a window of 2 / 2^`halvings` packets, halved as in the paper.
    fn below_two(settings: &[&str], halvings: u32) -> Host {
        let mut h = knowing_base(&[&["shrink=0.5"], settings].concat());
        for _ in 0..halvings {
            h.round(1, 2 * BASE);
        }
        h
    }

    #[test]
    fn it_starts_with_two_packets_whatever_the_host_would_allow() {
        for initial in [1, 2, 10, 1000] {
            assert_eq!(Host::start("nice", initial).cwnd(), packets(2));
        }
    }

    #[test]
    fn slow_start_is_that_of_vegas() {
        let mut h = Host::start("nice", 10);
        assert_eq!(h.round(2, BASE), packets(4));
        assert_eq!(h.round(4, BASE), packets(4));
        assert_eq!(h.round(4, BASE), packets(8));
        assert_eq!(h.flags(), SLOW_START);
    }

    #[test]
    fn the_first_estimate_of_max_rtt_is_twice_min_rtt() {
        assert_eq!(knowing_base(&[]).flow.info().max_rtt_us, 2 * BASE);
    }

    #[test]
    fn max_rtt_and_min_rtt_follow_the_samples() {
        let mut h = knowing_base(&[]);
        h.ack(1, 250_000, 0);
        h.ack(1, 40_000, 0);
        h.ack(1, 90_000, 0);
        let info = h.flow.info();
        assert_eq!((info.base_rtt_us, info.max_rtt_us), (40_000, 250_000));
    }

    #[test]
    fn a_round_is_congested_above_the_threshold_of_the_span() {
        // 50 + 0.25 (100 - 50) = 62.5 ms
        let congested = |rtt| {
            let mut h = knowing_base(&["threshold=0.25"]);
            h.round(4, rtt);
            h.flags() & YIELDING != 0
        };
        assert!(!congested(62_500));
        assert!(congested(62_501));
    }

    #[test]
    fn the_threshold_is_a_fifth_unless_set() {
        // 0.2 is 13107/65536: 50000 + 50000 * 13107/65536 = 59999.8
        for (rtt, yielding) in [(59_999, 0), (60_000, YIELDING)] {
            let mut h = knowing_base(&[]);
            h.round(4, rtt);
            assert_eq!(h.flags() & YIELDING, yielding, "{rtt}");
        }
    }

    #[test]
    fn a_longer_max_rtt_raises_the_threshold() {
        let mut h = avoiding(&["threshold=0.25"], 16);
        h.ack(1, 250_000, 0);
        // 50 + 0.25 (250 - 50) = 100 ms: one of twenty packets was delayed
        h.round(19, 100_000);
        assert_eq!(h.flags() & YIELDING, 0);
        h.round(20, 100_001);
        assert_eq!(h.flags() & YIELDING, YIELDING);
    }

    #[test]
    fn a_round_is_congested_when_more_than_the_fraction_of_packets_is_delayed() {
        let round = |settings: &[&str], delayed: u32| {
            let mut h = avoiding(settings, 16);
            h.ack(delayed, 2 * BASE, 0); // one ACK counts as the packets that it covers
            h.ack(9 - delayed, BASE, 0);
            h.last_ack(1, BASE, 0)
        };
        // of ten packets
        assert!(round(&[], 5) >= packets(16));
        assert_eq!(round(&[], 6), packets(8));
        assert!(round(&["fraction=0.75"], 7) >= packets(16));
        assert_eq!(round(&["fraction=0.75"], 8), packets(8));
        assert_eq!(round(&["fraction=0"], 1), packets(8));
        assert!(round(&["fraction=1"], 9) >= packets(16));
    }

    #[test]
    fn delayed_packets_are_counted_anew_each_round() {
        let mut h = avoiding(&[], 16);
        h.ack(5, 2 * BASE, 0);
        h.ack(4, BASE, 0);
        h.last_ack(1, BASE, 0); // five of ten
        h.ack(5, 2 * BASE, 0);
        h.ack(4, BASE, 0);
        assert!(h.last_ack(1, BASE, 0) >= packets(16));
    }

    #[test]
    fn congestion_halves_a_window_down_to_a_48th() {
        let mut h = avoiding(&["shrink=0.5"], 16);
        let windows: Vec<u64> = (0..10).map(|_| h.round(8, 2 * BASE)).collect();
        // 16: 8 of 8 delayed at the end of the round. 8: the fifth is more than half of it, and of
        // the 4 that are left the third, so 2. 2: the second. From there once a round, to 1/48:
        // 65536/48 = 1365.3
        let below_two = (0..6).map(|i| ONE >> i).chain([1365, 1365]);
        let expected: Vec<u64> = [packets(8), packets(2)].into_iter().chain(below_two).collect();
        assert_eq!(windows, expected);
    }

    #[test]
    fn the_verdict_falls_as_soon_as_the_rest_of_the_round_cannot_change_it() {
        let mut h = avoiding(&[], 16);
        assert_eq!(h.ack(8, 2 * BASE, 0), packets(16), "half of 16 is not more than half");
        assert_eq!(h.ack(1, 2 * BASE, 0), packets(8));
        // what is still in flight tells of the same queue, and counts anew
        assert_eq!(h.ack(4, 2 * BASE, 0), packets(8));
        assert_eq!(h.ack(1, 2 * BASE, 0), packets(4));
    }

    #[test]
    fn a_congested_round_cuts_a_window_below_two_by_more_than_half() {
        let mut h = knowing_base(&[]);
        assert_eq!(h.round(1, 2 * BASE), packets(1)); // two packets: half
        assert_eq!(h.round(1, 2 * BASE), 11_141); // 0.17
        assert_eq!(h.round(1, 2 * BASE), 1893); // 0.0289
        assert_eq!(h.round(1, 2 * BASE), 1365);
    }

    #[test]
    fn between_quiet_and_threshold_the_window_stays() {
        // minRTT 50 ms, maxRTT 100 ms: quiet up to 52.5 ms, delayed above 60 ms
        let grown = |rtt_us| avoiding(&[], 20).round(20, rtt_us) > packets(20);
        assert!(grown(52_499));
        assert!(!grown(52_600));
        assert_eq!(avoiding(&[], 20).round(20, 59_900), packets(20));
        assert!(avoiding(&["quiet=0.1", "alpha=3"], 20).round(20, 54_900) > packets(20));
        // slow start too
        let mut h = knowing_base(&[]);
        assert_eq!(h.ack(1, 59_900, 0), packets(2));
    }

    #[test]
    fn an_ack_that_the_receiver_may_have_delayed_shows_a_short_round_trip_but_not_a_long_one() {
        let lone = |rtt_us| {
            let mut h = knowing_base(&["fraction=0"]);
            h.now.inflight = 0;
            h.last_ack(1, rtt_us, 0);
            h
        };
        let h = lone(90_000); // 50 ms and a timer of 40 ms
        assert_eq!((h.cwnd(), h.flow.info().max_rtt_us), (packets(2), 2 * BASE));
        assert_eq!(lone(40_000).flow.info().base_rtt_us, 40_000);
        // two packets are acknowledged at once
        let mut h = knowing_base(&[]);
        h.now.inflight = 0;
        h.last_ack(2, 190_000, 0);
        assert_eq!((h.cwnd(), h.flow.info().max_rtt_us), (packets(1), 190_000));
    }

    #[test]
    fn the_least_window_can_be_set() {
        let mut h = knowing_base(&["least=0.5"]);
        for expected in [ONE, ONE / 2, ONE / 2] {
            assert_eq!(h.round(4, 2 * BASE), expected);
        }
    }

    #[test]
    fn congestion_ends_slow_start() {
        let mut h = knowing_base(&[]);
        h.round(4, 2 * BASE);
        assert_eq!(h.flags() & SLOW_START, 0);
    }

    #[test]
    fn a_window_below_two_is_two_packets_every_two_over_w_round_trips() {
        // halvings of 2 packets; gap in smoothed round trips: 2/W
        for (halvings, gap) in [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64)] {
            let ctl = below_two(&[], halvings).flow.ctl();
            assert_eq!(ctl.cwnd_q16, packets(2) >> halvings);
            assert_eq!((ctl.gap_us, ctl.burst), (gap * u64::from(BASE), 2));
        }
        // at 1/48, 1365/65536: 2 * 50000 * 65536/1365 = 4801172.2, 96 round trips and a rounding
        assert_eq!(below_two(&[], 7).flow.ctl().gap_us, 4_801_172);
    }

    #[test]
    fn the_gap_follows_the_smoothed_round_trip() {
        let mut h = below_two(&[], 5);
        h.now.srtt_us = 70_000;
        h.ack(1, 80_000, 0);
        assert_eq!(h.flow.ctl().gap_us, 32 * 70_000);
    }

    #[test]
    fn the_gap_is_never_longer_than_a_host_can_wait() {
        let mut h = below_two(&[], 7);
        h.now.srtt_us = 2_000_000; // 192 s
        h.ack(1, 2_000_000, 0);
        assert_eq!(h.flow.ctl().gap_us, GAP_MAX);
        h.now.srtt_us = u32::MAX;
        h.ack(1, BASE, 0);
        assert_eq!(h.flow.ctl().gap_us, GAP_MAX);
    }

    #[test]
    fn two_packets_are_clocked_by_acks() {
        let h = knowing_base(&[]);
        assert_eq!((h.cwnd(), h.flow.ctl().gap_us), (packets(2), 0));
    }

    #[test]
    fn quiet_rounds_add_one_to_a_window_below_one_too() {
        let mut h = below_two(&[], 7);
        let windows: Vec<u64> = (0..3).map(|_| h.round(2, BASE)).collect();
        assert_eq!(windows, [1, 2, 3].map(|n| 1365 + packets(n)));
    }

    #[test]
    fn a_window_below_one_does_not_grow_unless_something_was_learnt() {
        for flags in [HOLD, APP_LIMITED] {
            let mut h = below_two(&[], 5);
            assert_eq!(h.last_ack(2, BASE, flags), ONE / 16);
        }
        // no sample
        assert_eq!(below_two(&[], 5).last_ack(2, 0, 0), ONE / 16);
    }

    #[test]
    fn the_steps_of_vegas_do_not_lead_below_one_packet() {
        // 1.5 packets: 3 halved by a loss; Diff = 1.5 (59 - 50)/59 = 0.23
        let mut h = Host::new(&config("nice", &["alpha=0", "beta=0.1", "quiet=1"]), 10);
        h.ack(1, BASE, 0);
        assert_eq!(h.event(Event::NN_LOSS), packets(3) / 2);
        assert_eq!(h.round(3, 59_000), packets(1));
        assert_eq!(h.round(3, 59_000), packets(1));
    }

    #[test]
    fn quiet_rounds_take_the_steps_of_vegas() {
        assert_eq!(avoiding(&[], 20).round(20, BASE), packets(21));
        // Diff = 20 (55 - 50)/55 = 1.8, and 20 (59 - 50)/59 = 3.05, both below the threshold
        assert_eq!(avoiding(&["quiet=1"], 20).round(20, 55_000), packets(20));
        assert_eq!(avoiding(&["quiet=1"], 20).round(20, 59_000), packets(19));
    }

    #[test]
    fn it_yields_while_congested_or_below_two_packets() {
        let mut h = avoiding(&[], 16);
        h.round(16, BASE);
        assert_eq!(h.flags() & YIELDING, 0);
        h.round(16, 2 * BASE);
        assert_eq!(h.flags() & YIELDING, YIELDING);
        h.ack(1, BASE, 0); // until a quiet round says otherwise
        assert_eq!(h.flags() & YIELDING, YIELDING);
        h.round(8, BASE);
        h.round(8, BASE);
        assert_eq!(h.flags() & YIELDING, 0);

        let mut h = below_two(&[], 2);
        h.round(2, BASE); // quiet: 1/2 + 1
        assert_eq!((h.cwnd(), h.flags() & YIELDING), (packets(3) / 2, YIELDING));
        h.round(2, BASE);
        assert_eq!((h.cwnd(), h.flags() & YIELDING), (packets(5) / 2, 0));
    }

    #[test]
    fn a_loss_halves_the_window_down_to_the_least_of_nice() {
        let mut h = knowing_base(&[]);
        assert_eq!(h.event(Event::NN_LOSS), packets(1));
        assert_eq!(h.event(Event::NN_ECN), packets(1) / 2);
        assert_eq!(h.flow.ctl().gap_us, 4 * u64::from(BASE));
        let mut h = below_two(&[], 7);
        assert_eq!(h.event(Event::NN_LOSS), 1365);
    }

    #[test]
    fn a_timeout_never_raises_a_window() {
        let mut h = below_two(&[], 5);
        assert_eq!(h.event(Event::NN_TIMEOUT), ONE / 16);
        assert_eq!(avoiding(&[], 20).event(Event::NN_TIMEOUT), packets(1));
    }

    #[test]
    fn undo_and_idling_are_those_of_reno() {
        let mut h = avoiding(&[], 20);
        h.event(Event::NN_LOSS);
        assert_eq!(h.event(Event::NN_UNDO), packets(20));
        assert_eq!(h.idle(10), packets(10));
        assert_eq!(h.flags() & SLOW_START, SLOW_START);
        let mut h = below_two(&[], 5);
        assert_eq!(h.idle(1), ONE / 16);
    }

    /// A path that has changed from [`BASE`] to twice that, for one round of 1 s.
    fn longer_path(settings: &[&str]) -> Info {
        let mut h = knowing_base(settings);
        h.now.now_us = 1_000_000;
        h.round(4, 2 * BASE);
        h.flow.info()
    }

    #[test]
    fn nothing_is_forgotten_by_default() {
        assert_eq!(longer_path(&[]).base_rtt_us, BASE);
    }

    #[test]
    fn ageing_moves_min_rtt_towards_the_round_by_the_share_of_time_passed() {
        // a tenth of the 50 ms between the two; all of them after 1 s of 1 s or of less
        assert_eq!(longer_path(&["age=10"]).base_rtt_us, 55_000);
        assert_eq!(longer_path(&["age=1"]).base_rtt_us, 100_000);
        assert_eq!(longer_path(&["age=0.5"]).base_rtt_us, 100_000);
    }

    #[test]
    fn ageing_moves_max_rtt_towards_the_round_too() {
        let mut h = knowing_base(&["age=10"]);
        h.last_ack(1, 500_000, 0);
        assert_eq!(h.flow.info().max_rtt_us, 500_000);
        h.now.now_us = 1_000_000;
        h.round(4, 50_000); // 500 - (500 - 50)/10
        assert_eq!(h.flow.info().max_rtt_us, 455_000);
    }

    #[test]
    fn ageing_is_not_lost_in_rounds_that_are_short_against_its_time_constant() {
        let mut h = knowing_base(&["age=100"]);
        for _ in 0..1000 {
            h.now.now_us += 100_000;
            h.round(4, 2 * BASE);
        }
        // after one time constant 1 - 1/e of the 50 ms between the two are gone, in steps of 1/64
        let base_us = h.flow.info().base_rtt_us;
        assert!((81_000..82_500).contains(&base_us), "{base_us}");
    }

    #[test]
    fn with_ageing_jitter_is_not_taken_for_congestion() {
        let mut h = avoiding(&["age=10"], 16);
        for second in 1..200 {
            h.now.now_us = second * 1_000_000;
            h.ack(1, BASE + 10, 0);
            h.round(9, BASE + 300);
            assert_eq!(h.flags() & YIELDING, 0);
        }
        assert_eq!(h.flow.info().max_rtt_us / 1000, 100);
    }

    #[test]
    fn with_ageing_a_longer_path_is_full_speed_again() {
        let mut h = avoiding(&["age=10"], 16);
        for second in 1..200 {
            h.now.now_us = second * 1_000_000;
            h.round(4, 3 * BASE);
        }
        assert!(h.cwnd() >= packets(16), "{}", h.cwnd());
        let mut h = avoiding(&[], 16);
        for _ in 1..200 {
            h.round(4, 3 * BASE);
        }
        assert_eq!(h.cwnd(), 1365, "without, the longer path is a queue for ever");
    }
}

mod every_algorithm {
    use super::*;

    const EVENTS: [Event; 5] =
        [Event::NN_LOSS, Event::NN_ECN, Event::NN_TIMEOUT, Event::NN_UNDO, Event::NN_IDLE];

    fn all() -> impl Strategy<Value = Algorithm> {
        proptest::sample::select(Algorithm::all().collect::<Vec<_>>())
    }

    /// A flow that has seen some rounds and events; nothing is in the middle of a round.
    fn used() -> impl Strategy<Value = Host> {
        let round = (1u32..40, BASE..3 * BASE, proptest::option::of(0usize..5));
        (all(), proptest::collection::vec(round, 0..30)).prop_map(|(a, rounds)| {
            let mut h = Host::new(&Config::new(a), 10);
            h.round(3, BASE);
            for (n, rtt, event) in rounds {
                h.now.now_us += u64::from(rtt);
                h.round(n, rtt);
                if let Some(event) = event {
                    h.event(EVENTS[event]);
                }
            }
            h
        })
    }

    #[test]
    fn has_a_name_that_the_kernel_accepts_and_a_summary_of_one_line() {
        let names: Vec<&str> = Algorithm::all().map(|a| a.name()).collect();
        for (i, name) in names.iter().enumerate() {
            // TCP_CA_NAME_MAX is 16, with the prefix nn_ and the final zero
            assert!((1..=12).contains(&name.len()), "{name}");
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()), "{name}");
            assert!(!names[..i].contains(name), "{name} is there twice");
        }
        for a in Algorithm::all() {
            assert!(a.summary().len() > 10 && !a.summary().contains('\n'), "{a:?}");
        }
    }

    #[test]
    fn explains_each_parameter_and_has_its_default_within_its_range() {
        for (a, p) in Algorithm::all().flat_map(|a| a.params().map(move |p| (a, p))) {
            let what = format!("{a:?} {}", p.name());
            assert!(p.least() < p.most(), "{what}");
            assert!((p.least()..=p.most()).contains(&p.default()), "{what}");
            assert!(p.least() >= 0.0 && p.most() < 65536.0, "{what}: does not fit into Q16");
            assert!(!p.unit().is_empty() && !p.source().is_empty(), "{what}");
            assert!(p.help().len() > 10, "{what}");
        }
    }

    #[test]
    fn takes_each_parameter_at_both_ends_of_its_range_and_nothing_beyond() {
        for a in Algorithm::all() {
            for (i, p) in a.params().enumerate() {
                let mut config = Config::new(a);
                let mut set =
                    |x: f64| config.set(&format!("{}={x}", p.name())).map(|()| config.values()[i]);
                assert_eq!(set(p.least()), Ok((p.least() * 65536.0 + 0.5) as u32));
                assert_eq!(set(p.most()), Ok((p.most() * 65536.0 + 0.5) as u32));
                for beyond in [p.least() - 0.01, p.most() + 0.01, -1e300, 1e300, f64::NAN] {
                    let error = set(beyond).expect_err("out of range").to_string();
                    let range =
                        format!("{} is from {} to {} {}", p.name(), p.least(), p.most(), p.unit());
                    assert!(error.contains("out of range") && error.contains(&range), "{error}");
                }
            }
        }
    }

    #[test]
    fn changes_one_value_for_one_setting() {
        for a in Algorithm::all() {
            for (i, p) in a.params().enumerate() {
                let mut config = Config::new(a);
                let before = config.values().to_vec();
                let other = if p.default() < p.most() { p.most() } else { p.least() };
                config.set(&format!(" {} = {other} ", p.name())).expect("within the range");
                for (j, (was, is)) in before.iter().zip(config.values()).enumerate() {
                    assert_eq!(was == is, i != j, "{a:?} {}", p.name());
                }
            }
        }
    }

    #[test]
    fn is_found_by_its_name_with_and_without_the_prefix_of_the_kernel() {
        for a in Algorithm::all() {
            assert_eq!(Algorithm::by_name(a.name()), Ok(a));
            assert_eq!(Algorithm::by_name(&format!("nn_{}", a.name())), Ok(a));
        }
    }

    #[test]
    fn keeps_nothing_from_one_flow_to_the_next() {
        for a in Algorithm::all() {
            let mut first = Host::new(&Config::new(a), 10);
            let fresh = first.clone();
            first.round(5, BASE);
            first.event(Event::NN_LOSS);
            let second = Host::new(&Config::new(a), 10);
            assert_eq!(second.flow.state(), fresh.flow.state(), "{a:?}");
            assert_eq!(second.flow.ctl(), fresh.flow.ctl(), "{a:?}");
        }
    }

    #[test]
    fn recovers_from_a_timeout_on_a_clean_path() {
        for a in Algorithm::all() {
            let mut h = Host::new(&Config::new(a), 10);
            for _ in 0..20 {
                h.round(3, 3 * BASE);
                h.event(Event::NN_LOSS);
                h.event(Event::NN_TIMEOUT);
            }
            let least = h.cwnd();
            assert!(least <= packets(1), "{a:?}");
            for _ in 0..30 {
                h.round(3, BASE);
            }
            assert!(h.cwnd() >= packets(2), "{a:?}: from {least} to {}", h.cwnd());
        }
    }

    proptest! {
        #[test]
        fn answers_within_bounds_whatever_a_host_reports(
            a in all(),
            initial in any::<u32>(),
            steps in proptest::collection::vec(
                (0usize..20, any::<(u64, u32, u32, u32)>(), any::<(u32, u32, u32, u32)>()), 0..300),
        ) {
            let mut flow = Flow::new(&Config::new(a), &Ack::default(), initial);
            for (event, (now_us, rtt_us, srtt_us, acked), (lost, una, nxt, flags)) in steps {
                let inflight = acked;
                let ack =
                    Ack { now_us, rtt_us, srtt_us, acked, lost, inflight, una, nxt, flags };
                let ctl = match EVENTS.get(event) {
                    Some(event) => flow.event(*event, &ack),
                    None => flow.ack(&ack),
                };
                prop_assert!((1..=CWND_MAX).contains(&ctl.cwnd_q16), "{ctl:?}");
                prop_assert!(ctl.gap_us <= GAP_MAX, "{ctl:?}");
                prop_assert!(ctl.gap_us == 0 || ctl.burst > 0, "{ctl:?}");
                prop_assert_eq!(ctl.flags & !(SLOW_START | YIELDING), 0);
            }
        }

        #[test]
        fn shrinks_on_loss_and_never_grows_before_two_packets_are_lost_or_held(
            h in used(), event in 0usize..3,
        ) {
            let before = h.cwnd().max(packets(2));
            prop_assert!(h.clone().event(EVENTS[event]) <= before);
            prop_assert!(h.clone().last_ack(5, BASE, HOLD) <= before);
            prop_assert!(h.clone().last_ack(5, BASE, APP_LIMITED) <= before);
        }

        #[test]
        fn gets_no_more_window_from_a_longer_round_trip(
            h in used(), n in 3u32..40, rtts in proptest::array::uniform2(BASE..10 * BASE),
        ) {
            // unless it shows that the buffer is larger than was known, and so the rest of it empty
            let most = match h.flow.info().max_rtt_us {
                0 => u32::MAX,
                known => known,
            };
            let (short, long) = (rtts[0].min(rtts[1]).min(most), rtts[0].max(rtts[1]).min(most));
            prop_assert!(h.clone().round(n, short) >= h.clone().round(n, long));
        }

        #[test]
        fn gets_no_less_window_from_more_packets_acknowledged(
            h in used(), acked in proptest::array::uniform2(0u32..1000),
        ) {
            let (few, many) = (acked[0].min(acked[1]), acked[0].max(acked[1]));
            prop_assert!(h.clone().ack(few, BASE, 0) <= h.clone().ack(many, BASE, 0));
        }

        #[test]
        fn gives_equal_states_for_equal_inputs(h in used(), n in 1u32..40, rtt in BASE..3 * BASE) {
            let (mut a, mut b) = (h.clone(), h);
            a.round(n, rtt);
            b.round(n, rtt);
            prop_assert_eq!(a.flow.state(), b.flow.state());
            prop_assert_eq!(a.flow.ctl(), b.flow.ctl());
        }

        #[test]
        fn refuses_or_takes_any_text_as_a_setting_without_panic(a in all(), text in ".*") {
            let mut config = Config::new(a);
            let before = config.clone();
            if config.set(&text).is_err() {
                prop_assert_eq!(config, before);
            }
        }

        #[test]
        fn takes_any_number_for_a_parameter_within_its_range_only(
            a in all(), number in "[-+]?[0-9]{0,20}(\\.[0-9]{0,20})?(e[-+]?[0-9]{1,4})?|nan|inf",
        ) {
            for (i, p) in a.params().enumerate() {
                let mut config = Config::new(a);
                let taken = config.set(&format!("{}={number}", p.name())).is_ok();
                let value: Option<f64> = number.parse().ok();
                let within = value.is_some_and(|v| p.least() <= v && v <= p.most());
                prop_assert_eq!(taken, within);
                if let (true, Some(v)) = (taken, value) {
                    let kept = f64::from(config.values()[i]) / 65536.0;
                    prop_assert!((kept - v).abs() <= 0.5 / 65536.0, "{} became {}", v, kept);
                }
            }
        }
    }
}

mod errors {
    use super::*;

    fn refusal(algorithm: &str, setting: &str) -> String {
        Config::new(super::algorithm(algorithm)).set(setting).expect_err("refused").to_string()
    }

    #[test]
    fn an_unknown_algorithm_names_the_nearest_one() {
        for (name, nearest) in [("ncie", "nice"), ("vega", "vegas"), ("nn_ren", "reno")] {
            assert_eq!(
                Algorithm::by_name(name).unwrap_err().to_string(),
                format!(
                    "there is no algorithm {name:?}; did you mean {nearest:?}? \
                     The list: netnice algorithms"
                )
            );
        }
    }

    #[test]
    fn an_unknown_parameter_names_the_nearest_one() {
        assert_eq!(
            refusal("nice", "treshold=0.1"),
            "nice has no parameter \"treshold\"; did you mean \"threshold\"? \
             The list: netnice algorithms nice"
        );
        assert_eq!(
            refusal("reno", "alpha=1"),
            "reno has no parameter \"alpha\"; it has none. The list: netnice algorithms reno"
        );
    }

    #[test]
    fn a_value_out_of_range_names_the_range_and_its_unit() {
        assert_eq!(
            refusal("nice", "threshold=1.5"),
            "threshold=1.5 is out of range; threshold is from 0 to 1 share of the buffer"
        );
        assert_eq!(
            refusal("vegas", "alpha=-1"),
            "alpha=-1 is out of range; alpha is from 0 to 1000 packets"
        );
    }

    #[test]
    fn what_is_no_setting_is_answered_with_an_example() {
        for text in ["", "alpha", "alpha=", "alpha=two", "alpha=1,5", "alpha:1"] {
            assert_eq!(
                refusal("vegas", text),
                format!("{text:?} is not a setting; write NAME=NUMBER, for example alpha=1")
            );
        }
    }

    #[test]
    fn values_from_another_build_are_refused_when_too_few() {
        let vegas = algorithm("vegas");
        assert_eq!(Config::from_values(vegas, &[1, 2]), None);
        let config = Config::from_values(vegas, &[1, 2, 3, 4]).expect("enough");
        assert_eq!(config.values(), [1, 2, 3]);
    }

    #[test]
    fn the_defaults_are_those_of_the_paper() {
        // alpha 1, beta 3, gamma 1; threshold 0.2, fraction 0.5, least 1/48; no ageing. Ours are
        // quiet 0.05 and shrink 0.17
        let nice = Config::new(algorithm("nice"));
        let papers = [65_536, 196_608, 65_536, 13_107, 32_768, 1365];
        assert_eq!(nice.values(), [&papers[..], &[3277, 11_141, 0]].concat());
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
use netnice_core::Algorithm;
use netnice_scenario as scenario;

use super::*;
use crate::tcp::MS;

const RTT: Nanos = 100 * MS;

/// A Reno sender whose handshake took `RTT`, at the time `RTT`.
struct Bench {
    profile: Profile,
    sender: Sender,
    now: Nanos,
    out: Vec<Step>,
}

impl Bench {
    fn new(profile: scenario::Profile, control: &str, packets: Seq) -> Self {
        let profile = Profile::of(profile);
        let config = Config::new(Algorithm::by_name(control).unwrap());
        let sender =
            Sender::new(&profile, (&config, None, &Peers::default()), packets, 1, None, RTT, RTT);
        Self { profile, sender, now: RTT, out: Vec::new() }
    }

    /// What leaves now, as numbers of packets.
    fn sent(&mut self) -> Vec<Seq> {
        self.out.clear();
        self.sender.transmit(&self.profile, self.now, &mut self.out);
        self.out.iter().map(|s| s.seq).collect()
    }

    /// An ACK of all before `next`, with one SACKed range; what leaves then.
    fn ack(&mut self, next: Seq, sack: (Seq, Seq)) -> Vec<Seq> {
        let sacks = [sack, (0, 0), (0, 0)];
        let ack =
            Ack { next, echo_ns: self.now - RTT, stamp: 0, sacks, ece: false, duplicate: false };
        self.sender.ack(&self.profile, &ack, self.now, |_| {});
        self.sent()
    }

    /// Wakes it when it wants to be; what leaves then.
    fn wake(&mut self) -> Vec<Seq> {
        self.now = self.sender.wake_at();
        self.sender.wake(&self.profile, self.now);
        self.sent()
    }
}

fn linux(packets: Seq) -> Bench {
    Bench::new(scenario::Profile::Linux, "reno", packets)
}

const NO_SACK: (Seq, Seq) = (0, 0);

#[test]
fn the_initial_window_is_that_of_the_profile_and_slow_start_doubles_it() {
    let mut b = linux(1000);
    assert_eq!(b.sent(), (0..10).collect::<Vec<_>>());
    b.now += RTT;
    // each packet acknowledged makes room for itself and for one more
    assert_eq!(b.ack(2, NO_SACK), [10, 11, 12, 13]);
    assert_eq!(Bench::new(scenario::Profile::Ns2, "reno", 1000).sent(), [0, 1]);
}

#[test]
fn three_packets_sacked_beyond_a_gap_mean_a_loss_and_half_the_window() {
    let mut b = linux(1000);
    b.sent();
    b.now += RTT;
    // Packet 0 is lost. No reordering was seen, so three packets beyond decide (RFC 8985, 6.2).
    assert_eq!(b.ack(0, (1, 2)), [10]); // limited transmit (RFC 3042)
    assert_eq!(b.ack(0, (1, 3)), [11]);
    assert_eq!(b.ack(0, (1, 4)), [0]);
    // The window heads from 10 to 5: PRR sends ceil(5/10 of what was delivered since), of which the
    // retransmission was the first. In flight are 12 - 3 SACKed - 1 lost + 1 again = 9; of six more
    // deliveries the 2nd and the 4th send a packet, and with the 6th 5 are in flight.
    let sent: Vec<_> = (5..11).map(|end| b.ack(0, (1, end)).len()).collect();
    assert_eq!(sent, [0, 1, 0, 1, 0, 0]);
    assert_eq!(b.sender.inflight(), 5);
    // The retransmission arrives with all others. It ends the recovery with a window of 5, which
    // grows by 1/5 for each of the five packets that this ACK newly delivers: 0 and 10 to 13.
    b.now += RTT;
    assert_eq!(b.ack(14, NO_SACK).len(), 6);
    assert_eq!(b.sender.retransmits(), 1);
}

#[test]
fn a_lost_tail_is_probed_after_two_rtts_and_the_probe_shows_what_is_missing() {
    let mut b = linux(10);
    b.sent();
    b.now += RTT;
    assert!(b.ack(8, NO_SACK).is_empty()); // 8 and 9 are lost
                                           // RFC 8985, 7.2: two smoothed RTTs of 100 ms, and Linux' slack of 8 ms.
    let asked = b.now;
    assert_eq!(b.wake(), [9]);
    assert_eq!(b.now - asked, 2 * RTT + 8 * MS);
    // The probe is SACKed: 8 was sent more than an RTT and a reordering window before it.
    b.now += RTT;
    assert_eq!(b.ack(8, (9, 10)), [8]);
    b.now += RTT;
    b.ack(10, NO_SACK);
    assert!(b.sender.done());
}

#[test]
fn without_any_answer_the_timer_sends_the_first_packet_again_and_backs_off() {
    let mut b = linux(1000);
    b.sent();
    assert_eq!(b.wake(), [10], "the tail loss probe is the next new packet");
    // RTO = 100 ms + max(4 x 50 ms, 200 ms) = 300 ms, anew after the probe
    let probed = b.now;
    assert_eq!(b.wake(), [0]);
    assert_eq!(b.now - probed, 300 * MS);
    assert_eq!(b.wake(), [0]);
    assert_eq!(b.now - probed, 900 * MS); // doubled: 600 ms later
    assert_eq!(b.wake(), [0]);
    assert_eq!(b.now - probed, 2100 * MS);
    // an answer: everything else is lost too, and slow start sends it again
    b.now += RTT;
    assert_eq!(b.ack(1, NO_SACK), [1, 2]);
}

#[test]
fn a_spurious_timeout_is_undone_by_the_time_stamp_of_the_answer() {
    let mut b = linux(1000);
    b.sent();
    b.wake();
    assert_eq!(b.wake(), [0]);
    // The path has grown longer: the answer echoes the time stamp of the original.
    b.now += 50 * MS;
    let ack =
        Ack { next: 2, echo_ns: RTT, stamp: 0, sacks: [NO_SACK; 3], ece: false, duplicate: false };
    b.sender.ack(&b.profile, &ack, b.now, |_| {});
    assert_eq!(b.sender.window(), 10.0, "the window is as before the timeout");
    assert!(b.sent().iter().all(|seq| *seq > 10), "nothing else is sent again");
}

#[test]
fn without_sack_each_partial_ack_repairs_one_loss() {
    // RFC 6582. The window is 8: 2, then 4, then 8 packets by slow start.
    let mut b = Bench::new(scenario::Profile::Ns2, "reno", 1000);
    b.sent();
    for next in [1, 2, 3, 4, 5, 6] {
        b.now += RTT / 2;
        b.ack(next, NO_SACK);
    }
    let inflight = b.sender.inflight();
    assert_eq!(inflight, 8);
    // 6 and 9 are lost: 7, 8, 10 give three duplicates of 6
    b.now += RTT;
    assert_eq!(b.ack(6, NO_SACK), [14]); // one packet has left the network, which limits transmission
    assert_eq!(b.ack(6, NO_SACK), [15]);
    assert_eq!(b.ack(6, NO_SACK)[0], 6);
    b.now += RTT;
    assert_eq!(b.ack(9, NO_SACK)[0], 9);
    b.now += RTT;
    assert_eq!(b.sender.window(), 4.0); // half of 8
    b.ack(16, NO_SACK);
    assert_eq!(b.sender.retransmits(), 2);
}

#[test]
fn an_ack_of_a_packet_sent_again_measures_no_rtt() {
    let mut b = Bench::new(scenario::Profile::Ns2, "reno", 1000);
    b.sent();
    b.now += RTT;
    b.ack(1, NO_SACK);
    assert_eq!(b.sender.measured_rtt(), RTT);
    b.wake(); // packet 1 is sent again; 2 and 3 have long arrived
    b.now += RTT;
    b.ack(4, NO_SACK);
    assert_eq!(b.sender.measured_rtt(), 0);
}

#[test]
fn a_window_below_two_packets_leaves_two_packets_after_each_gap() {
    let mut b = Bench::new(scenario::Profile::Linux, "nice", Seq::MAX);
    b.profile.unpaced = 0;
    // Nice starts with two packets. Longer and longer queues cut its window below that.
    assert_eq!(b.sent(), [0, 1]);
    b.now += RTT;
    b.ack(2, NO_SACK);
    let mut next = b.sender.inflight() + 2;
    for _ in 0..6 {
        b.now += 3 * RTT;
        let ack = Ack {
            next,
            echo_ns: b.now - 3 * RTT,
            stamp: 0,
            sacks: [NO_SACK; 3],
            ece: false,
            duplicate: false,
        };
        b.sender.ack(&b.profile, &ack, b.now, |_| {});
        next += b.sent().len() as Seq;
    }
    let ctl = b.sender.control.ctl();
    assert!(ctl.gap_us > 0, "window {}", b.sender.window());
    b.now = b.now.max(b.sender.gap_until);
    let first = (b.now, b.sent());
    assert!(first.1.len() <= 2);
    assert_eq!(
        b.sender.gap_at,
        if first.1.is_empty() { Nanos::MAX } else { first.0 + ctl.gap_us * 1000 }
    );
}

#[test]
fn a_mark_halves_the_window_once_a_round_and_the_next_packet_says_so() {
    let mut b = linux(1000);
    b.sent();
    b.now += RTT;
    let mut ack =
        Ack { next: 1, echo_ns: RTT, stamp: 0, sacks: [NO_SACK; 3], ece: true, duplicate: false };
    let mut told = 0;
    for next in 1..10 {
        ack.next = next;
        b.sender.ack(&b.profile, &ack, b.now, |_| {});
        b.sent();
        told += b.out.iter().filter(|s| s.cwr).count();
    }
    assert_eq!(b.sender.window(), 5.0);
    assert_eq!((told, b.sender.retransmits()), (1, 0));
}

#[test]
fn the_receivers_window_bounds_what_is_in_flight() {
    let profile = Profile::of(scenario::Profile::Linux);
    let config = Config::new(Algorithm::by_name("reno").unwrap());
    let mut sender =
        Sender::new(&profile, (&config, None, &Peers::default()), 100, 0, Some(3), RTT, RTT);
    let mut out = Vec::new();
    sender.transmit(&profile, RTT, &mut out);
    assert_eq!(out.len(), 3);
}

#[test]
fn paced_packets_are_spread_over_half_a_round_trip_in_slow_start() {
    let mut b = linux(1000);
    b.profile.pacing = true;
    assert_eq!(b.sent().len(), 10, "the first ten are not paced");
    b.now += RTT;
    let at = b.now;
    assert_eq!(b.ack(2, NO_SACK), [10]);
    // a window of 12, twice in a round trip; half of the first gap is forgiven after idling
    let gap = RTT / 24;
    assert_eq!(b.wake(), [11]);
    assert_eq!(b.now, at + gap - gap / 2);
    assert_eq!(b.wake(), [12]);
    assert_eq!(b.now, at + 2 * gap - gap / 2);
}

#[test]
fn with_an_overhead_the_window_leaves_whole_after_a_wait_but_a_retransmission_at_once() {
    let mut b = Bench::new(scenario::Profile::Ns2, "reno", 1000);
    b.profile.overhead_ns = 20 * MS;
    let at = b.now;
    assert!(b.sent().is_empty());
    assert_eq!(b.wake(), [0, 1]);
    assert!(b.now > at && b.now <= at + 20 * MS);
    b.now += RTT;
    assert!(b.ack(2, NO_SACK).is_empty());
    assert_eq!(b.wake(), [2, 3, 4, 5]);
    b.now += RTT;
    for _ in 0..2 {
        assert!(b.ack(2, NO_SACK).is_empty());
    }
    assert_eq!(b.ack(2, NO_SACK), [2]);
}

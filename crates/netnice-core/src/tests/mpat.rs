// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! MPAT and what it is compared with: windows of a group, and shares of their sum.

use super::*;

/// The members of a group, each a host of its own; `shares` are theirs.
pub(super) struct Members {
    pub group: Group,
    pub hosts: Vec<Flow>,
    pub now: Ack,
}

impl Members {
    pub fn new(name: &str, settings: &[&str], shares: &[f64]) -> Members {
        let group = Group::new(false);
        let now = Ack { now_us: 1_000_000, srtt_us: BASE, ..Default::default() };
        let hosts = shares.iter().map(|share| {
            let mut config = config(name, settings);
            config.set(&format!("share={share}")).expect("within the range");
            Flow::join(&config, &group, &now, 10)
        });
        let hosts = hosts.collect();
        Members { group, hosts, now }
    }

    /// The member has an ACK for `acked` packets, of which `lost` before it were not received.
    pub fn ack(&mut self, member: usize, acked: u32, lost: u32, flags: u32) -> Ctl {
        self.now.una = self.now.nxt;
        self.now.nxt += acked;
        let inflight = (self.hosts[member].ctl().cwnd_q16 / ONE) as u32;
        let ack = Ack { acked, lost, flags, inflight, rtt_us: BASE, ..self.now };
        self.hosts[member].ack(&ack)
    }

    /// A round trip: each member's window is acknowledged, packet by packet.
    pub fn round(&mut self) {
        let now = &self.now;
        let sent: Vec<u64> =
            self.hosts.iter_mut().map(|h| (h.send(now).cwnd_q16 / ONE).max(1)).collect();
        for (member, packets) in sent.into_iter().enumerate() {
            (0..packets).for_each(|_| _ = self.ack(member, 1, 0, 0));
        }
        self.now.now_us += u64::from(BASE);
    }

    /// Mean windows of the members over some round trips without loss, in packets.
    pub fn windows(&mut self, rounds: u32) -> Vec<f64> {
        let mut sums = vec![0.0; self.hosts.len()];
        for _ in 0..rounds {
            self.round();
            for (sum, host) in sums.iter_mut().zip(&self.hosts) {
                *sum += host.ctl().cwnd_q16 as f64 / ONE as f64;
            }
        }
        sums.iter().map(|sum| sum / f64::from(rounds)).collect()
    }

    /// Out of slow start: losses until each window was cut, then growth for 60 round trips.
    fn avoid(&mut self) {
        for _ in 0..200 {
            for member in 0..self.hosts.len() {
                self.ack(member, 30, 1, 0);
            }
            self.now.now_us += u64::from(2 * BASE);
        }
        (0..60).for_each(|_| self.round());
    }

    pub fn sum(&self) -> f64 {
        self.group.sum_q16() as f64 / ONE as f64
    }
}

pub(super) fn close_to(is: f64, should: f64, tolerance: f64) {
    assert!((is / should - 1.0).abs() <= tolerance, "{is}, not {should}");
}

#[test]
fn without_a_group_mpat_is_reno() {
    let (mut mpat, mut reno) = (Host::start("mpat", 10), Host::start("reno", 10));
    for round in 0..200 {
        assert_eq!(mpat.round(20, BASE), reno.round(20, BASE), "round {round}");
        if round % 17 == 0 {
            assert_eq!(mpat.event(Event::NN_LOSS), reno.event(Event::NN_LOSS));
        }
    }
}

#[test]
fn each_member_brings_the_hosts_initial_window_and_takes_its_window_along() {
    let mut m = Members::new("mpat", &[], &[1.0, 1.0, 1.0]);
    assert_eq!(m.group.windows_q16(), [packets(10), packets(10), packets(10)]);
    m.round();
    let before = m.group.windows_q16();
    let now = m.now;
    m.hosts[1].close(&now);
    assert_eq!(m.group.windows_q16(), [before[0], before[2]]);
    assert_eq!(m.group.sum_q16(), before[0] + before[2]);
    m.hosts[0].close(&now);
    m.hosts[2].close(&now);
    assert_eq!((m.group.members(), m.group.sum_q16()), (0, 0));
}

#[test]
fn windows_are_divided_by_the_shares() {
    let mut m = Members::new("mpat", &[], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    m.avoid();
    let before = m.sum();
    let windows = m.windows(100);
    // The sum over the 100 rounds is near the mean of C, which grows; C is without the fractions
    // of five windows, half a packet each on average.
    let all: f64 = windows.iter().sum();
    assert!(before - 5.0 < all && all < m.sum(), "{before} {all} {}", m.sum());
    for (i, window) in windows.iter().enumerate() {
        close_to(*window, all * (i + 1) as f64 / 15.0, 0.02);
    }
}

#[test]
fn so_many_windows_grow_by_so_many_packets_in_a_round_trip_whatever_the_shares() {
    for shares in [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 97.0]] {
        let mut m = Members::new("mpat", &[], &shares);
        m.avoid();
        let before = m.sum();
        (0..100).for_each(|_| m.round());
        // Each window of 60 to 160 packets grows by 1 in a round: 1 - O(1/W), less the fractions
        // that are not sent (2 of about 400 packets), and the draws scatter.
        close_to(m.sum() - before, 400.0, 0.06);
    }
}

#[test]
fn a_round_trip_of_slow_start_doubles_the_sum() {
    let mut m = Members::new("mpat", &[], &[1.0, 1.0]);
    let mut before = m.sum();
    for _ in 0..5 {
        m.round();
        // whole packets are sent and acknowledged: at most two of them less
        let doubled = 2.0 * before;
        assert!((doubled - 2.0..=doubled).contains(&m.sum()), "{} after {before}", m.sum());
        before = m.sum();
    }
}

#[test]
fn a_loss_halves_one_window_and_more_losses_of_its_round_trip_no_more() {
    let mut m = Members::new("mpat", &["run=16"], &[1.0, 1.0]);
    (0..3).for_each(|_| m.round());
    let before = m.group.windows_q16();
    m.ack(0, 1, 1, 0);
    m.ack(0, 1, 3, 0);
    let after = m.group.windows_q16();
    let halved: Vec<usize> = (0..2).filter(|i| after[*i] == before[*i] / 2).collect();
    assert_eq!(halved.len(), 1, "{before:?} {after:?}");
    let other = 1 - halved[0];
    assert!(after[other] >= before[other]);
    // a round trip later the same run cuts it again
    m.now.now_us += u64::from(BASE);
    m.ack(0, 1, 1, 0);
    assert!(m.group.windows_q16()[halved[0]] < after[halved[0]]);
}

#[test]
fn a_loss_is_charged_to_windows_in_proportion_to_their_size() {
    // One window of 10 packets, left alone, beside one that was grown to 30.
    let mut first = 0;
    const N: u32 = 2000;
    let group = Group::new(false);
    let now = Ack { now_us: 1_000_000, srtt_us: BASE, ..Default::default() };
    let small = Flow::join(&config("mpat", &["run=0"]), &group, &now, 10);
    let large = Flow::join(&config("mpat", &["run=0"]), &group, &now, 30);
    let mut hosts = [small, large];
    for i in 0..N {
        let at = Ack { now_us: now.now_us + u64::from(4 * BASE * i), ..now };
        let before = group.windows_q16();
        assert_eq!(before, [packets(10), packets(30)]);
        // nobody has data, so that nothing grows; the run of one packet ends
        hosts[0].ack(&Ack { acked: 1, flags: APP_LIMITED, ..at });
        hosts[0].event(Event::NN_LOSS, &at);
        first += u32::from(group.windows_q16()[0] < before[0]);
        hosts[0].event(Event::NN_UNDO, &at);
    }
    // 10 of 40: 500 of 2000, with a standard deviation of 19
    assert!((425..575).contains(&first), "{first}");
}

#[test]
fn what_a_member_leaves_idle_others_use_and_what_it_wants_back_it_gets() {
    let mut m = Members::new("mpat", &[], &[1.0, 1.0, 2.0]);
    m.avoid();
    (0..20).for_each(|_| m.round());
    // the third has nothing to send: its half goes to the others, who have equal shares
    let idle = Ack { acked: 1, flags: APP_LIMITED, inflight: 0, ..m.now };
    m.hosts[2].ack(&idle);
    for member in [0, 1] {
        let window = m.ack(member, 1, 0, 0).cwnd_q16 as f64 / ONE as f64;
        close_to(window, m.sum() / 2.0, 0.05);
    }
    // it has data again: doubling in each round trip it comes back to a half
    (0..8).for_each(|_| m.round());
    for (member, part) in [(0, 0.25), (1, 0.25), (2, 0.5)] {
        let window = m.hosts[member].ctl().cwnd_q16 as f64 / ONE as f64;
        close_to(window, m.sum() * part, 0.1);
    }
}

#[test]
fn windows_do_not_grow_while_no_member_fills_them() {
    let mut m = Members::new("mpat", &[], &[1.0, 1.0]);
    m.round();
    for member in [0, 1] {
        m.ack(member, 1, 0, APP_LIMITED);
    }
    let before = m.sum();
    for _ in 0..50 {
        for member in [0, 1] {
            m.ack(member, 1, 0, APP_LIMITED);
        }
    }
    assert_eq!(m.sum(), before);
}

#[test]
fn a_changed_share_counts_at_once() {
    let mut m = Members::new("mpat", &[], &[1.0, 1.0]);
    m.avoid();
    (0..10).for_each(|_| m.round());
    let now = m.now;
    m.hosts[0].configure(&config("mpat", &["share=3"]));
    let window = m.hosts[0].send(&now).cwnd_q16 as f64 / ONE as f64;
    close_to(window, m.sum() * 0.75, 0.05);
    let window = m.ack(1, 1, 0, 0).cwnd_q16 as f64 / ONE as f64;
    close_to(window, m.sum() * 0.25, 0.05);
}

#[test]
fn a_share_below_two_packets_is_two_packets_every_so_many_round_trips() {
    let mut m = Members::new("mpat", &[], &[1.0, 1000.0]);
    m.avoid();
    m.round();
    let ctl = m.ack(0, 1, 0, 0);
    // A = C / 1001; a burst of two every 2 / A round trips
    let a = ctl.cwnd_q16 as f64 / ONE as f64;
    close_to(a, m.sum() / 1001.0, 0.05);
    close_to(ctl.gap_us as f64, 2.0 * f64::from(BASE) / a, 0.001);
    assert_eq!(ctl.burst, 2);
}

#[test]
fn members_are_paced_at_twice_their_window() {
    let mut m = Members::new("mpat", &[], &[1.0, 3.0]);
    m.avoid();
    m.round();
    for member in [0, 1] {
        let ctl = m.ack(member, 1, 0, 0);
        let a = m.sum() * if member == 0 { 0.25 } else { 0.75 };
        // C is without the fractions of two windows; gaps are whole microseconds
        let rate = f64::from(ctl.burst) / ctl.gap_us as f64 * f64::from(BASE);
        close_to(rate, 2.0 * a, 0.02);
        assert_eq!(ctl.burst, 2 + member as u32); // 1.2 and 3.5 packets in a millisecond
    }
    let now = m.now;
    m.hosts[0].event(Event::NN_TIMEOUT, &now);
    for _ in 0..3 {
        m.ack(0, 1, 0, 0);
    }
    let ctl = m.ack(0, 1, 0, 0);
    assert_eq!((ctl.cwnd_q16, ctl.burst), (packets(5), 2));
    close_to(ctl.gap_us as f64, 2.0 * f64::from(BASE) / 10.0, 0.01);

    let mut unpaced = Members::new("mpat", &["pace=0"], &[1.0, 3.0]);
    unpaced.avoid();
    assert_eq!(unpaced.ack(1, 1, 0, 0).gap_us, 0);
}

#[test]
fn a_loss_that_an_event_and_an_ack_tell_is_one() {
    // ACKs that end a run, so that the window charged next is another
    let groups = [("mpat", "run=0", 1), ("reno", "share=1", 1000)];
    for ((name, setting, acked), event_first) in
        groups.into_iter().flat_map(|group| [(group, true), (group, false)])
    {
        let mut m = Members::new(name, &[setting], &[1.0; 8]);
        (0..3).for_each(|_| m.round());
        let before = m.group.windows_q16();
        let now = m.now;
        if event_first {
            m.hosts[0].event(Event::NN_LOSS, &now);
        }
        m.ack(0, acked, 1, 0);
        if !event_first {
            m.hosts[0].event(Event::NN_LOSS, &now);
        }
        let after = m.group.windows_q16();
        assert_eq!((0..8).filter(|i| after[*i] < before[*i]).count(), 1, "{name} {event_first}");
        // the next one is another
        m.now.now_us += u64::from(2 * BASE);
        m.ack(0, acked, 1, 0);
        let last = m.group.windows_q16();
        assert_eq!((0..8).filter(|i| last[*i] < after[*i]).count(), 1, "{name} {event_first}");
    }
}

#[test]
fn a_timeout_cuts_one_window_to_a_packet_and_its_member_starts_slowly() {
    let mut m = Members::new("mpat", &[], &[1.0, 1.0, 1.0]);
    m.avoid();
    (0..20).for_each(|_| m.round());
    let before = m.group.windows_q16();
    let now = m.now;
    m.hosts[0].event(Event::NN_LOSS, &now);
    let ctl = m.hosts[0].event(Event::NN_TIMEOUT, &now);
    let after = m.group.windows_q16();
    assert_eq!(ctl.cwnd_q16, ONE);
    let changed = (0..3).filter(|i| before[*i] != after[*i]).count();
    assert_eq!((changed, *after.iter().min().unwrap()), (1, ONE));
    // spurious: the window comes back, and the member has its share at once
    let ctl = m.hosts[0].event(Event::NN_UNDO, &now);
    assert_eq!(m.group.windows_q16(), before);
    close_to(ctl.cwnd_q16 as f64 / ONE as f64, m.sum() / 3.0, 0.05);
}

#[test]
fn beyond_the_places_of_a_group_a_flow_is_on_its_own() {
    let group = Group::new(false);
    let c = config("mpat", &[]);
    let flows: Vec<Flow> =
        (0..=sys::NN_GROUP_MAX).map(|_| Flow::join(&c, &group, &Ack::default(), 10)).collect();
    assert_eq!(group.members(), sys::NN_GROUP_MAX);
    assert_eq!(flows[sys::NN_GROUP_MAX as usize].ctl().cwnd_q16, packets(10));
    // 10240 packets in 1024 equal parts
    assert_eq!(flows[sys::NN_GROUP_MAX as usize - 1].ctl().cwnd_q16, packets(10));
}

#[test]
fn shares_of_nothing_and_less_are_refused() {
    for share in ["0", "-1", "0.0001", "1001", "nan"] {
        assert!(config("mpat", &[]).set(&format!("share={share}")).is_err(), "{share}");
    }
}

#[test]
fn packets_go_through_open_windows_by_the_rule_and_each_tag_comes_back_once() {
    for rule in 1..=3 {
        let group = Group::new(true);
        let c = config("mpat", &[&format!("mapping={rule}")]);
        let mut flows: Vec<Flow> =
            (0..4).map(|_| Flow::join(&c, &group, &Ack::default(), 10)).collect();
        assert!(flows[0].tagging().is_some());
        let place = |tag: u32| tag % sys::NN_GROUP_MAX;
        let mut tags = vec![group.send(0)];
        for _ in 1..40 {
            let last = *tags.last().unwrap();
            tags.push(group.send(last));
        }
        // 4 windows of 10 packets: 40 packets fill each of them
        for window in 0..4 {
            assert_eq!(tags.iter().filter(|tag| place(**tag) == window).count(), 10, "{rule}");
        }
        let same = tags.windows(2).filter(|t| place(t[0]) == place(t[1])).count();
        match rule {
            1 => assert_eq!(same, 36),         // a window is changed when it is full
            2 => assert!(same <= 3, "{same}"), // only where no other one is open
            _ => assert!((4..18).contains(&same), "{same}"), // a quarter of 39
        }
        // they have data; slow start: each packet acknowledged adds one, and one window is halved
        flows.iter_mut().for_each(|flow| _ = flow.ack(&Ack::default()));
        group.lost(tags[0], &Ack::default());
        tags[1..].iter().for_each(|tag| group.acked(*tag));
        let cut = tags.iter().filter(|tag| place(**tag) == place(tags[0])).count() as u64;
        // what was sent through it before that does not count
        assert_eq!((cut, group.sum_q16()), (10, packets(3 * 20 + 5)));
        flows.iter_mut().for_each(|flow| flow.close(&Ack::default()));
        assert_eq!((group.members(), group.sum_q16()), (0, 0));
    }
}

#[test]
fn multcp_grows_by_the_number_of_members_and_falls_by_half_a_window_of_one() {
    let mut m = Members::new("multcp", &[], &[1.0; 8]);
    let now = m.now;
    (0..6).for_each(|_| m.round());
    m.hosts[0].event(Event::NN_LOSS, &now);
    m.now.now_us += u64::from(4 * BASE);
    let c =
        |m: &Members| -> f64 { m.hosts.iter().map(|h| h.ctl().cwnd_q16 as f64 / ONE as f64).sum() };
    m.round();
    let before = c(&m);
    (0..20).for_each(|_| m.round());
    // 8 packets a round, in 20 rounds, up to the rounding of the windows
    close_to(c(&m) - before, 160.0, 0.1);
    let before = c(&m);
    let now = m.now;
    m.hosts[3].event(Event::NN_LOSS, &now);
    (0..8).for_each(|i| _ = m.ack(i, 1, 0, 0));
    // one part of 16, and the rounding of eight windows
    close_to(c(&m), before * 15.0 / 16.0, 0.02);
}

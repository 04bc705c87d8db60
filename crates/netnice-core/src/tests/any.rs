// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Groups whose windows are those of any algorithm.

use super::mpat::{close_to, Members};
use super::*;

const SHARES: [f64; 4] = [1.0, 2.0, 3.0, 4.0];

/// Members with windows of Nice that have met a queue: they have left slow start.
fn met_a_queue(shares: &[f64]) -> Members {
    let mut m = Members::new("nice", &[], shares);
    m.round();
    queue(&mut m, 0, 100);
    (0..60).for_each(|_| m.round());
    m
}

/// A member's packets, one in a millisecond, meet a queue of three times the path's round trip.
fn queue(m: &mut Members, member: usize, packets: u32) {
    for _ in 0..packets {
        m.now.una = m.now.nxt;
        m.now.nxt += 1;
        let ack = Ack { acked: 1, inflight: 9, rtt_us: 4 * BASE, ..m.now };
        m.hosts[member].ack(&ack);
        m.now.now_us += 1000;
    }
}

#[test]
fn flows_of_nice_divide_what_they_may_send_by_the_shares() {
    let mut m = met_a_queue(&SHARES);
    let mut all = [0; 4];
    for _ in 0..100 {
        let now = m.now;
        let sent = [0, 1, 2, 3].map(|i| m.hosts[i].send(&now).cwnd_q16 / ONE);
        // the packets of all are mixed, as they are on a path
        for packet in 0..sent.into_iter().max().unwrap_or(0) {
            (0..4).filter(|i| packet < sent[*i]).for_each(|i| _ = m.ack(i, 1, 0, 0));
        }
        m.now.now_us += u64::from(BASE);
        all.iter_mut().zip(sent).for_each(|(all, sent)| *all += sent);
    }
    let sum = all.iter().sum::<u64>() as f64;
    for (sent, share) in all.into_iter().zip(SHARES) {
        close_to(sent as f64, sum * share / 10.0, 0.05);
    }
}

/// Each window grows by one packet in each of a hundred quiet round trips.
fn grows(m: &mut Members) {
    let before = m.group.windows_q16();
    (0..100).for_each(|_| m.round());
    let grown: Vec<_> = std::iter::zip(m.group.windows_q16(), &before)
        .filter(|(_, before)| **before >= packets(2)) // one may sleep still, at 1/48 packet
        .map(|(after, before)| (after - before) as f64 / ONE as f64)
        .collect();
    assert!(grown.len() >= 3, "{before:?}");
    // a packet in a round trip each, or less: rounds end with the first packet charged after one
    grown.into_iter().for_each(|by| close_to(by, 100.0, 0.1));
}

#[test]
fn each_window_of_nice_starts_with_two_packets_and_grows_by_one_in_a_quiet_round_trip() {
    assert_eq!(Members::new("nice", &[], &SHARES).group.windows_q16(), [packets(2); 4]);
    grows(&mut met_a_queue(&SHARES));
}

#[test]
fn after_a_rest_of_any_length_windows_grow_as_before_it() {
    // rounds are compared in 32 bits of 64 us: 2^31 of them are 38.2 hours, all are 76.4
    for hours in [0, 1, 20, 39, 57, 76, 77, 1000] {
        let mut m = met_a_queue(&SHARES);
        m.now.now_us += hours * 3_600_000_000;
        m.round();
        grows(&mut m);
    }
}

#[test]
fn a_queue_that_some_members_meet_shrinks_all_windows() {
    // 97 of 100 packets are the last one's: the others alone would hear of little
    let mut m = met_a_queue(&[1.0, 1.0, 1.0, 97.0]);
    let before = m.group.windows_q16();
    queue(&mut m, 3, 600);
    for (after, before) in m.group.windows_q16().iter().zip(before) {
        assert!(*after < before / 2, "{after} of {before}");
    }
}

#[test]
fn a_loss_cuts_one_window_and_an_undo_restores_it() {
    let mut m = met_a_queue(&[1.0; 4]);
    let before = m.group.windows_q16();
    let now = m.now;
    m.hosts[2].event(Event::NN_LOSS, &now);
    let after = m.group.windows_q16();
    let cut: Vec<_> = (0..4).filter(|i| after[*i] != before[*i]).collect();
    assert_eq!(cut.len(), 1);
    // whole packets of half a window
    assert_eq!(after[cut[0]], packets(before[cut[0]] / ONE / 2));
    m.hosts[2].event(Event::NN_UNDO, &now);
    assert_eq!(m.group.windows_q16(), before);
}

#[test]
fn what_a_member_lacks_is_added_and_what_it_has_beyond_its_share_is_taken_off() {
    // Windows of five packets each, whatever happens: A is 10/32 and 310/32 packets.
    let mut m = Members::new("fixed", &["window=5"], &[1.0, 31.0]);
    let ctl = |m: &mut Members, i: usize| {
        let now = m.now;
        m.hosts[i].send(&now).cwnd_q16
    };
    m.ack(0, 1, 0, 0);
    m.ack(1, 8, 0, 0);
    // Packets over shares: 1 for the first; for all 1, and 8/32 since both have data. The first
    // lacks a quarter of a packet.
    assert_eq!(ctl(&mut m, 0), ONE * 10 / 32 + ONE / 4);
    // no more than as much again
    m.ack(1, 32, 0, 0);
    assert_eq!(ctl(&mut m, 0), 2 * ONE * 10 / 32);
    // of what it has beyond its share half is taken off, up to half of A
    m.ack(0, 9, 0, 0);
    assert_eq!(ctl(&mut m, 0), ONE * 10 / 32 / 2);
    // Of 310/32 packets likewise. It came when the first had one: for all 1 + (8 + 32 + 9)/32, for
    // it 40/31, so that it lacks (2.53 - 1.29) * 31 = 38 packets, and gets as much again.
    assert!([packets(19), packets(20)].contains(&ctl(&mut m, 1)));
}

#[test]
fn members_come_and_go_with_their_windows() {
    for a in Algorithm::all().filter(Algorithm::grouped) {
        let mut m = Members::new(a.name(), &[], &SHARES);
        m.round();
        assert_eq!(m.group.members(), 4, "{a:?}");
        let now = m.now;
        m.hosts.iter_mut().for_each(|flow| flow.close(&now));
        assert_eq!((m.group.members(), m.group.sum_q16()), (0, 0), "{a:?}");
    }
}

#[test]
fn what_measures_its_own_packets_stays_on_its_own() {
    for a in Algorithm::all().filter(|a| !a.grouped()) {
        let group = Group::new(false);
        let c = Config::new(a);
        let alone = Flow::new(&c, &Ack::default(), 10);
        let flow = Flow::join(&c, &group, &Ack::default(), 10);
        assert_eq!((group.members(), flow.state()), (0, alone.state()), "{a:?}");
        assert!(a.params().all(|p| p.name() != "share"), "{a:?}");
    }
}

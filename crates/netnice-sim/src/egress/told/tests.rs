// SPDX-License-Identifier: MIT OR GPL-2.0-only
use super::*;
use crate::packet::Body;
use crate::tcp::MS;

const FULL: u32 = 1500;
/// A full packet takes this long at 12 Mbit/s.
const TIME: Nanos = MS;
const RTT: Nanos = 50 * MS;
/// Of another host.
const THEIRS: Key = (7, 0);

/// A path of 12 Mbit/s behind which nothing leaves at once.
fn told(oracle: Option<Knowing>) -> Told {
    Told::new(12.0, FULL, FULL, oracle)
}

fn knowing() -> Knowing {
    Knowing { late: RTT, rtt: RTT, part: 1.0, brings: 2, opening: 0 }
}

fn packet(low: bool) -> Packet {
    let body = Body::Data { seq: 0, sent_ns: 0, cwr: false };
    let (flow, bytes) = (1, FULL);
    let (generation, path, hop, ect, ce, enqueued_ns) = (0, 0, 0, false, false, 0);
    Packet { flow, generation, bytes, path, hop, low, ect, ce, enqueued_ns, body }
}

fn seen(at: Nanos, what: What, work: Nanos) -> Seen {
    Seen { at, of: THEIRS, what, work, per_byte: 8e3 / 12.0 }
}

/// When a packet of the background may leave, from `now` on.
fn opens(told: &mut Told, mut now: Nanos, seen: &[Seen]) -> Nanos {
    while let Some(at) = told.gate(now, seen) {
        assert!(at > now);
        now = at;
    }
    now
}

#[test]
fn at_a_typed_rate_a_packet_leaves_when_all_that_the_host_sent_before_has_been_served() {
    let mut told = told(None);
    assert_eq!(opens(&mut told, 0, &[]), 0);
    told.left(&packet(true), 0);
    (0..3).for_each(|_| told.left(&packet(false), 0));
    assert_eq!(opens(&mut told, 0, &[]), 4 * TIME);
}

#[test]
fn an_oracle_knows_of_a_queue_when_it_is_a_round_trip_old() {
    // 60 packets wait at 10 ms: that is known from 60 ms on, and then they need another 10
    let (begin, known) = (10 * MS, 10 * MS + RTT);
    let queue = [seen(begin, What::Other, 60 * TIME)];
    assert_eq!(told(Some(knowing())).gate(known - 1, &queue), None);
    assert_eq!(opens(&mut told(Some(knowing())), known, &queue), begin + 60 * TIME);
    let mut at_once = told(Some(Knowing { late: 0, ..knowing() }));
    assert_eq!(opens(&mut at_once, begin, &queue), begin + 60 * TIME);
}

#[test]
fn what_an_oracle_has_sent_itself_it_knows_at_once() {
    let mut told = told(Some(knowing()));
    (0..3).for_each(|_| told.left(&packet(false), RTT));
    assert_eq!(opens(&mut told, RTT, &[]), RTT + 3 * TIME);
}

#[test]
fn an_oracle_expects_two_packets_for_each_that_left_until_the_last_one_has_come() {
    let left = [seen(0, What::Left, 0), seen(0, What::Left, 0)];
    assert_eq!(opens(&mut told(Some(knowing())), RTT, &left), RTT + 4 * TIME);
    let ended = [left[0], seen(0, What::Ends, 0), left[1]];
    assert_eq!(opens(&mut told(Some(knowing())), RTT, &ended), RTT);
}

#[test]
fn an_oracle_that_is_told_of_openings_expects_a_first_window_a_round_trip_later() {
    let opening = [seen(0, What::Opens, 0)];
    assert_eq!(opens(&mut told(Some(knowing())), RTT, &opening), RTT);
    let mut open = told(Some(Knowing { opening: 10, ..knowing() }));
    assert_eq!(opens(&mut open, RTT, &opening), RTT + 10 * TIME);
}

#[test]
fn a_strict_oracle_takes_only_its_part_of_a_link_on_which_it_expects_nobody() {
    let mut told = told(Some(Knowing { part: 0.25, ..knowing() }));
    told.left(&packet(true), RTT);
    assert_eq!(opens(&mut told, RTT, &[]), RTT + 4 * TIME);
}

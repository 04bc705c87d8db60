// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Each number is derived in a comment from the discipline's definition.

use super::*;
use crate::packet::Body;

pub(super) const MS: Nanos = 1_000_000;

/// A full packet of a flow.
pub(super) fn packet(flow: u32) -> Packet {
    Packet {
        flow,
        generation: 0,
        bytes: FULL_PACKET,
        path: 0,
        hop: 0,
        low: false,
        ect: false,
        ce: false,
        enqueued_ns: 0,
        body: Body::Udp { sent_ns: 0 },
    }
}

pub(super) fn limited(packets: u32) -> Limits {
    Limits { packets: Some(packets), bytes: None }
}

pub(super) fn random() -> Pcg64 {
    Pcg64::new(1, 1)
}

fn queue(kind: scenario::Queue, limits: Limits) -> Queue {
    Queue::new(kind, limits, 8e6, false, 1).unwrap()
}

/// The flows of the packets that are left, in the order of leaving.
fn flows(queue: &mut Queue) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop(0)).map(|p| p.flow).collect()
}

#[test]
fn drop_tail_keeps_the_first_packets_in_their_order() {
    let mut q = queue(scenario::Queue::DropTail, limited(3));
    (0..5).for_each(|flow| q.push(packet(flow), 7));
    assert_eq!((q.packets(), q.bytes()), (3, 3 * 1514));
    assert_eq!(q.stats(), Stats { drops: 2, marks: 0 });
    assert_eq!(flows(&mut q), [0, 1, 2]);
    assert_eq!((q.packets(), q.bytes()), (0, 0));
}

#[test]
fn a_limit_in_bytes_lets_a_small_packet_in_where_a_full_one_is_dropped() {
    // 2 x 1514 = 3028 leaves 72 of 3100 bytes: room for 66, then 6 bytes for nothing.
    let limits = Limits { packets: None, bytes: Some(3100) };
    let mut q = queue(scenario::Queue::DropTail, limits);
    (0..3).for_each(|flow| q.push(packet(flow), 0));
    (3..5).for_each(|flow| q.push(Packet { bytes: 66, ..packet(flow) }, 0));
    assert_eq!(flows(&mut q), [0, 1, 3]);
    assert_eq!(q.stats().drops, 2);
}

#[test]
fn of_two_limits_the_first_reached_counts() {
    for (packets, bytes, kept) in [(2, 10_000, 2), (10, 2 * 1514, 2), (10, 3 * 1514 - 1, 2)] {
        let limits = Limits { packets: Some(packets), bytes: Some(bytes) };
        let mut q = queue(scenario::Queue::DropTail, limits);
        (0..10).for_each(|flow| q.push(packet(flow), 0));
        assert_eq!(q.packets(), kept);
    }
}

#[test]
fn no_limit_drops_nothing() {
    let mut q = queue(scenario::Queue::DropTail, Limits::default());
    (0..100_000).for_each(|flow| q.push(packet(flow), 0));
    assert_eq!((q.packets(), q.stats().drops), (100_000, 0));
}

#[test]
fn a_packet_knows_when_it_was_queued() {
    let mut q = queue(scenario::Queue::DropTail, limited(3));
    q.push(packet(0), 5 * MS);
    assert_eq!(q.pop(9 * MS).unwrap().enqueued_ns, 5 * MS);
}

#[test]
fn strict_priority_serves_the_background_last_and_gives_each_class_the_whole_limit() {
    let mut q = queue(scenario::Queue::Priority, limited(2));
    (0..3).for_each(|flow| q.push(Packet { low: true, ..packet(flow) }, 0));
    (10..13).for_each(|flow| q.push(packet(flow), 0));
    assert_eq!((q.packets(), q.bytes()), (4, 4 * 1514));
    assert_eq!(q.stats().drops, 2); // the third of each class
    assert_eq!(flows(&mut q), [10, 11, 0, 1]);
}

#[test]
fn cake_is_refused_with_what_to_do() {
    let refused = Queue::new(scenario::Queue::Cake, limited(9), 8e6, false, 1).unwrap_err();
    assert!(refused.to_string().contains("--engine kernel"), "{refused}");
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
use super::*;
use crate::tcp::MS;

const MSS: u32 = 1448;
const HEADER: u32 = 66;
/// Packets that leave before anything is known.
const TRAIN: usize = 10;

fn data(flow: u32, seq: Seq, now: Nanos) -> Packet {
    Packet {
        flow,
        generation: 0,
        bytes: MSS + HEADER,
        path: 0,
        hop: 0,
        low: true,
        ect: false,
        ce: false,
        enqueued_ns: 0,
        body: Body::Data { seq, sent_ns: now, cwr: false },
    }
}

/// A packet of the host's other traffic.
fn passing(bytes: u32) -> Packet {
    Packet { bytes, low: false, ..data(9, 0, 0) }
}

fn acknowledge(next: Seq) -> Ack {
    Ack { next, echo_ns: 0, stamp: 0, sacks: [(0, 0); 3], ece: false, duplicate: false }
}

/// Flow and number of each packet that leaves now.
fn leave(line: &mut Line, agenda: &mut Agenda) -> Vec<(u32, Seq)> {
    std::iter::from_fn(|| line.next(0, &[], agenda))
        .map(|packet| match packet.body {
            Body::Data { seq, .. } => (packet.flow, seq),
            _ => panic!("only data waits"),
        })
        .collect()
}

/// A line of which the first train of flow 0 has left.
fn waiting() -> (Line, Agenda) {
    let (mut line, mut agenda) = (Line::new(0, MSS, HEADER, None), Agenda::default());
    (0..TRAIN as Seq).for_each(|seq| line.put(data(0, seq, 0)));
    assert_eq!(leave(&mut line, &mut agenda).len(), TRAIN);
    (line, agenda)
}

/// As [`waiting`]; the ACKs of all but the last packet of the train have come, a millisecond apart.
fn known() -> (Line, Agenda) {
    let (mut line, mut agenda) = waiting();
    for next in 1..TRAIN as Seq {
        agenda.now = 50 * MS + u64::from(next) * MS;
        line.ack((0, 0), &acknowledge(next), agenda.now);
    }
    assert_eq!(line.path().rate(), u64::from(MSS + HEADER) * 1000);
    (line, agenda)
}

#[test]
fn the_packets_of_all_connections_leave_in_the_order_in_which_they_came() {
    let (mut line, mut agenda) = waiting();
    for (flow, seq) in [(1, 0), (2, 0), (1, 1), (0, 10)] {
        line.put(data(flow, seq, 0));
    }
    assert_eq!(leave(&mut line, &mut agenda), []);
    // without an answer the next train leaves after a second
    let mut left = Vec::new();
    while let Some((time, Event::Gate { host: 0 })) = agenda.next() {
        agenda.now = time;
        left.extend(leave(&mut line, &mut agenda));
    }
    assert_eq!(left, [(1, 0), (2, 0), (1, 1), (0, 10)]);
    assert!((1000 * MS..1020 * MS).contains(&agenda.now), "{}", agenda.now);
}

#[test]
fn a_connection_has_room_for_four_packets_and_again_when_a_pair_has_left() {
    let (mut line, mut agenda) = (Line::new(0, MSS, HEADER, None), Agenda::default());
    let rooms = [4, 0, 0, 2, 0, 4]; // with 0, 4, 3, 2, 4 and none waiting
    assert_eq!(line.room((0, 0), 0), rooms[0]);
    (0..4).for_each(|seq| line.put(data(0, seq, 0)));
    assert_eq!(line.room((0, 0), 0), rooms[1]);
    line.next(0, &[], &mut agenda);
    assert_eq!(line.room((0, 0), 0), rooms[2]);
    line.next(0, &[], &mut agenda);
    assert_eq!(line.room((0, 0), 0), rooms[3]);
    (4..6).for_each(|seq| line.put(data(0, seq, 0)));
    assert_eq!(line.room((0, 0), 0), rooms[4]);
    assert_eq!(line.room((0, 1), 0), 4, "another connection in the same place");
    leave(&mut line, &mut agenda);
    assert_eq!(line.room((0, 0), 0), rooms[5]);
}

#[test]
fn a_packet_that_waits_does_not_come_again_but_one_that_left_does() {
    let (mut line, mut agenda) = waiting();
    line.put(data(0, 10, 0));
    line.put(data(0, 10, MS)); // a timeout in between
    line.put(data(0, 3, MS));
    agenda.now = 2000 * MS;
    assert_eq!(leave(&mut line, &mut agenda), [(0, 10), (0, 3)]);
}

#[test]
fn what_passes_by_another_link_does_not_enter_the_virtual_queue() {
    let (mut line, _) = known();
    let before = line.path().queue();
    line.pass(&passing(1000), 1, 59 * MS);
    assert_eq!(line.path().queue(), before);
    line.pass(&passing(1000), 0, 59 * MS);
    assert_eq!(line.path().queue(), before + 1000);
}

/// By how much the virtual queue grows when the ACK of the last two packets of the train comes 100
/// packets' times late, echoing `echo_ns`, after what `before` does.
fn learned(echo_ns: Nanos, before: impl Fn(&mut Line, Nanos)) -> u64 {
    let (mut line, mut agenda) = (Line::new(0, MSS, HEADER, None), Agenda::default());
    (0..TRAIN as Seq).for_each(|seq| line.put(data(0, seq, 0)));
    leave(&mut line, &mut agenda);
    for next in 1..TRAIN as Seq - 1 {
        line.ack((0, 0), &acknowledge(next), 50 * MS + u64::from(next) * MS);
    }
    // the virtual queue does not empty until then, or else what was late may have drained
    line.pass(&passing(400_000), 0, 60 * MS);
    let late = 160 * MS;
    before(&mut line, late);
    line.pass(&passing(0), 0, late);
    let queue = line.path().queue();
    line.ack((0, 0), &Ack { echo_ns, ..acknowledge(TRAIN as Seq) }, late);
    line.path().queue() - queue
}

#[test]
fn an_ack_tells_of_a_queue_unless_it_waited_for_a_gap_or_its_packet_left_twice() {
    // A packet takes a millisecond. 160 ms are 109 more than the least RTT, and nine packets of the train
    // are known to have been before the last. From the sixth ACK on, at 56 ms, the rate is known, and
    // the virtual queue was empty until 60 ms, which could have drained .99 * 4 packets: 96.04 are new.
    let packet = f64::from(MSS + HEADER);
    assert_eq!(learned(0, |_, _| ()), (96.04 * packet) as u64);
    let duplicate = |line: &mut Line, now| line.ack((0, 0), &acknowledge(8), now);
    assert_eq!(learned(0, duplicate), 0);
    let again = |line: &mut Line, now| {
        line.put(data(0, 9, now));
        let packet = line.packets.pop_front().unwrap();
        let sent = line.path.left(now, packet.bytes, true);
        line.remember(&packet, sent, now);
    };
    assert_eq!(learned(0, again), 0);
    assert_eq!(learned(1, |_, _| ()), 0, "it echoes what left later");
}

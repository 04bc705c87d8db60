// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The path out of a host (core/host/path.h), over a link that is simulated as far as ACKs tell it.

use proptest::prelude::*;

use super::*;
use crate::{Base, Path, Sent};

/// A full packet on the wire and its payload, bytes.
const PACKET: u64 = 1514;
const PAYLOAD: u64 = 1448;
/// Round trip of an empty link, ns.
const EMPTY: u64 = 50_000_000;
/// The first train, packets.
const TRAIN: u64 = 10;

/// A host and the link that it sends on, whose queue others may fill too.
struct Bench {
    path: Path,
    base: Base,
    now: u64,
    /// Bytes/s.
    rate: u64,
    /// The receiver's clock, ns a tick; 0: it has none.
    tick: u64,
    /// How long ACKs wait on their way back, ns.
    back: u64,
}

impl Bench {
    /// At the time of the last ACK of a train over an empty link.
    fn known(start: u64, rate: u64) -> Bench {
        Bench::with_clock(start, rate, 0)
    }

    fn with_clock(start: u64, rate: u64, tick: u64) -> Bench {
        let (path, base, now) = (Path::new(start), Base::default(), start);
        let mut b = Bench { path, base, now, rate, tick, back: 0 };
        let train: Vec<Sent> = (0..TRAIN).map(|_| b.leave()).collect();
        for (i, sent) in (1..).zip(&train) {
            b.now = start + EMPTY + i * b.packet_ns();
            b.acknowledge(sent, 1);
        }
        b
    }

    /// Time that a packet takes at the bottleneck.
    fn packet_ns(&self) -> u64 {
        PACKET * 1_000_000_000 / self.rate
    }

    /// A packet of the background asks and leaves.
    fn leave(&mut self) -> Sent {
        assert_eq!(self.path.gate(self.now), None);
        self.path.left(self.now, PACKET as u32, true).expect("the background's has a record")
    }

    /// The ACK of so many packets up to this one.
    fn acknowledge(&mut self, sent: &Sent, packets: u64) {
        let left = (self.now - self.back).checked_div(self.tick);
        let stamp = left.map_or(0, |ticks| (ticks as u32).wrapping_sub(1000)); // it wraps soon
        self.path.delivered(packets * PACKET);
        self.path.ack(&mut self.base, self.now, sent, packets * PAYLOAD, stamp);
    }

    /// A packet leaves, meets a queue of so many others, and its ACK comes.
    fn meet(&mut self, others: u64) {
        let sent = self.leave();
        self.now += EMPTY + (1 + others) * self.packet_ns() + self.back;
        self.acknowledge(&sent, 2);
    }

    /// The part of the rate that this host has beside others, in percent.
    fn part(&self) -> u64 {
        self.path.part_q16() * 100 / ONE
    }
}

#[test]
fn ten_packets_leave_at_once_and_then_none_for_a_second_without_an_answer() {
    let mut path = Path::new(7);
    for _ in 0..10 {
        assert_eq!(path.gate(7), None);
        path.left(7, 1514, true);
    }
    let second = 1_000_000_000;
    let mut now = 7;
    while let Some(at) = path.gate(now) {
        assert!(now < at && at <= now + second / 100, "{at}");
        now = at;
    }
    assert!((7 + second..7 + second + second / 50).contains(&now), "{now}");
    assert_eq!(path.rate(), 0);
}

#[test]
fn a_train_of_ten_packets_gives_the_rate_of_the_link() {
    // The ACKs are a packet's time apart; the first packet did not wait, so the second is the first
    // that counts. Rates of which that time is whole nanoseconds come out exactly.
    // On the slowest an ACK comes 15 ms after the one before: it is of a packet that waited, not delayed
    // by its receiver, though it is of one packet and 38 ms late.
    for rate in [100_000, 1_000_000, 20_000_000] {
        assert_eq!(Bench::known(0, rate).path.rate(), rate);
    }
}

#[test]
fn a_queue_of_three_packets_at_1_mb_per_s_opens_after_what_is_above_the_slack_has_drained() {
    let mut b = Bench::known(0, 1_000_000);
    // All of the train has drained, and the probe that begins with the next question has ended.
    for later in [1_000_000_000, EMPTY * 2] {
        b.now += later;
        assert_eq!(b.path.gate(b.now), None);
    }
    b.leave();
    for _ in 0..2 {
        assert!(b.path.left(b.now, 1514, false).is_none());
    }
    assert_eq!(b.path.queue(), 3 * PACKET);
    // 3 x 1514 bytes less a slack of 1.5 x 1514 are 2271; at .99 MB/s they take 2293939 ns. The gate
    // asks 1000 ns later, so that it does not ask too early by a rounding.
    let opens = b.path.gate(b.now).expect("a queue above the slack");
    assert_eq!(opens - b.now, 2_293_939 + 1000);
    assert_eq!(b.path.gate(opens), None);
}

/// A round trip of the least that was seen: a packet's time, and that of the empty link.
const RTT: u64 = EMPTY + 1_514_000;

/// A bench at 1 MB/s whose packets met queues of others until no more may leave; and when the last one left.
fn crowded() -> (Bench, u64) {
    let mut b = Bench::known(0, 1_000_000);
    let mut left = 0;
    while b.path.gate(b.now).is_none() {
        left = b.now;
        b.meet(20);
        b.now += 100_000_000; // the probe has ended, and what was added to the virtual queue has drained
        assert!(b.now < 10_000_000_000, "it may still leave");
    }
    (b, left)
}

/// Asks when it is told to, until a packet may leave.
fn opens(b: &mut Bench) -> u64 {
    while let Some(at) = b.path.gate(b.now) {
        assert!(at > b.now);
        b.now = at;
    }
    b.now
}

/// A packet leaves whose ACK can be read.
fn read(b: &mut Bench) {
    b.path.left(b.now, PACKET as u32, true);
}

/// How many packets may leave now, one after the other as the virtual queue allows.
fn may_leave(b: &mut Bench, leave: fn(&mut Bench)) -> u32 {
    let since = b.now;
    for packets in 0.. {
        while let Some(at) = b.path.gate(b.now) {
            if at > since + 2 * RTT {
                return packets;
            }
            b.now = at;
        }
        leave(b);
    }
    unreachable!()
}

#[test]
fn acks_that_show_a_queue_of_others_let_one_packet_leave_in_four_round_trips() {
    let (mut b, left) = crowded();
    // the typical RTT grows by 1/256 of what one is above it
    let waited = opens(&mut b) - left;
    assert!((4 * RTT..4 * RTT + RTT / 4).contains(&waited), "{waited}");
}

#[test]
fn an_ack_that_shows_no_queue_lets_leave_what_it_acknowledges_and_more_unless_there_was_a_loss() {
    // Two packets; and an eighth of what 1 MB/s carries in a round trip, the longest time that counts: 6439 bytes, four
    // packets and 383 bytes. What was left is less than a packet.
    for (lost, least) in [(false, 6), (true, 2)] {
        let (mut b, _) = crowded();
        if lost {
            b.path.again(b.now);
        }
        opens(&mut b);
        b.meet(0);
        let packets = may_leave(&mut b, read);
        assert!((least..=least + 1).contains(&packets), "{lost}: {packets}");
    }
}

#[test]
fn packets_whose_acks_nobody_can_read_take_from_what_others_leave_and_give_it_back() {
    fn unread(b: &mut Bench) {
        b.path.left_unread(b.now, PACKET as u32);
    }
    let (mut b, _) = crowded();
    opens(&mut b);
    b.meet(0);
    let packets = may_leave(&mut b, unread);
    assert!((6..=7).contains(&packets), "{packets}");
    // one that left after them is acknowledged: they arrived, or were lost
    opens(&mut b);
    b.meet(0);
    assert!(may_leave(&mut b, read) >= packets + 5);
}

#[test]
fn a_queue_of_others_is_added_once_though_two_packets_met_it() {
    let mut b = Bench::known(0, 1_000_000);
    b.now += 100_000_000;
    let (one, two) = (b.leave(), b.leave());
    // The virtual queue never empties until the ACK, or else what it lacks of others' packets may have
    // drained by then: every packet's time one of the foreground leaves.
    let late = b.now + EMPTY + 6 * b.packet_ns();
    while b.now < late {
        b.path.left(b.now, PACKET as u32, false);
        b.now += b.packet_ns();
    }
    b.now = late;
    assert!(b.path.gate(b.now).is_some()); // time passes up to now
    let before = b.path.queue();
    b.acknowledge(&one, 2); // five packets' time above the least RTT, of which it had none before it
    assert_eq!(b.path.queue(), before + 5 * PACKET);
    b.acknowledge(&two, 2); // five too, of which one was the first of the two
    assert_eq!(b.path.queue(), before + 5 * PACKET);
}

#[test]
fn acks_that_come_late_and_together_raise_no_rate() {
    let mut b = Bench::known(0, 1_000_000);
    b.now += 1_000_000_000;
    // Of four connections a packet leaves and its receiver delays the ACK, while 16 packets of another one
    // leave at the link's rate and are acknowledged. What left between the last of these packets and one
    // that is acknowledged later is less than nothing: no run of 12 packets, which would show a rate.
    let leave = |b: &mut Bench| {
        b.now = b.path.gate(b.now).unwrap_or(b.now);
        b.leave()
    };
    let late: Vec<Sent> = (0..4).map(|_| leave(&mut b)).collect();
    let train: Vec<(u64, Sent)> = (0..16).map(|_| (b.now, leave(&mut b))).collect();
    let known = b.path.rate();
    for (left, sent) in &train {
        b.now = left + EMPTY + b.packet_ns();
        b.acknowledge(sent, 1);
    }
    for sent in &late {
        b.now += b.packet_ns() / 4;
        b.base = Base::default();
        b.acknowledge(sent, 1);
        // the probe's one percent at most, of which a first packet is not counted
        assert!(b.path.rate() <= known + known / 50, "{}", b.path.rate());
    }
}

#[test]
fn an_ack_that_waited_on_its_way_back_leaves_the_background_its_part() {
    // 40 ms are 26 packets' time. A second passes before a clock other than of milliseconds is known.
    for (tick, known) in [(1_000_000, true), (1000, true), (10_000_000, false), (0, false)] {
        let mut b = Bench::with_clock(0, 1_000_000, tick);
        for _ in 0..20 {
            b.now += 100_000_000;
            b.meet(0);
        }
        b.back = 40_000_000;
        let mut wait = |others: u64| {
            for _ in 0..6 {
                b.now += 200_000_000;
                b.meet(others);
            }
            b.part()
        };
        // two packets in 290 ms are 1 % of the rate
        let part = wait(0);
        assert!(if known { part == 100 } else { part <= 1 }, "{tick}: {part}");
        // a queue on the way out is one, whatever waits on the way back
        assert!(wait(10) <= 1, "{tick}");
    }
}

/// So many seconds in which the foreground sends 2 MB/s on another way, unless nothing is held.
fn beside(b: &mut Bench, seconds: u64) {
    for _ in 0..100 * seconds {
        b.now += 10_000_000;
        b.path.left(b.now, 20_000, false);
        if b.path.away(b.now) {
            return;
        }
        let mut out = Vec::new();
        while out.len() < TRAIN as usize && b.path.gate(b.now).is_none() {
            out.extend(b.path.left(b.now, PACKET as u32, true));
        }
        b.now += if out.is_empty() { 0 } else { EMPTY };
        for sent in &out {
            b.now += b.packet_ns();
            b.acknowledge(sent, 1);
        }
    }
}

#[test]
fn nothing_is_held_for_a_minute_where_the_foreground_takes_another_way_and_then_for_longer() {
    let mut b = Bench::known(0, 1_000_000);
    let second = 1_000_000_000;
    // four spans of two seconds and more, each with a packet that met none of the virtual queue
    beside(&mut b, 6);
    assert!(!b.path.away(b.now));
    beside(&mut b, 20);
    let mut away = 60;
    for _ in 0..3 {
        assert!(b.path.away(b.now));
        assert_eq!(b.path.gate(b.now), None);
        let (last, end) = (b.now + (away - 1) * second, b.now + away * second);
        assert!(b.path.away(last) && !b.path.away(end), "{away}");
        // it is the first span that shows the same again
        b.now = end;
        beside(&mut b, 6);
        away *= 2;
    }
}

#[test]
fn a_foreground_that_the_path_can_carry_is_held_for_however_long_it_lasts() {
    let mut b = Bench::known(0, 3_000_000);
    beside(&mut b, 100);
    assert!(!b.path.away(b.now));
}

/// A virtual queue that lasts for seconds, of packets that the path does not have.
fn phantom(b: &mut Bench, packets: u32) {
    for _ in 0..packets {
        b.path.left(b.now, PACKET as u32, false);
    }
}

#[test]
fn however_long_the_virtual_queue_is_one_packet_leaves_after_a_second() {
    let mut b = Bench::known(0, 1_000_000);
    phantom(&mut b, 3000);
    let second = 1_000_000_000;
    let opens = b.path.gate(b.now).expect("3000 packets are before it");
    assert_eq!(opens, second); // the train left at 0
    b.now = opens;
    b.leave();
    assert_eq!(b.path.gate(b.now), Some(2 * second));
}

#[test]
fn a_virtual_queue_that_a_packet_did_not_meet_is_lowered_to_what_it_met() {
    let mut b = Bench::known(0, 1_000_000);
    phantom(&mut b, 3000);
    b.now = 1_000_000_000;
    let sent = b.leave();
    // 3000 packets less .99 MB/s for a second and what the train left: more than 2300
    assert!(b.path.queue() > 2300 * PACKET);
    // It met ten packets. Two slacks, which are three packets, may be an error; the rest never was there,
    // or has drained. So v is 13 packets and the packet itself less .99 MB/s for 50 ms and 11 packets' time,
    // which is more: the gate opens at once.
    b.now += EMPTY + 11 * b.packet_ns();
    b.acknowledge(&sent, 2);
    assert_eq!(b.path.queue(), 0);
    assert_eq!(b.path.gate(b.now), None);
}

#[test]
fn a_rate_that_the_foreground_alone_exceeds_for_long_is_measured_anew() {
    // 1450 packets take 1.1 s, and come each second. Less a tenth, which may have been dropped, they are 1.98 MB/s.
    let mut b = Bench::known(0, 2_000_000);
    for round in 0..5 {
        assert_eq!(b.path.rate(), 2_000_000, "{round}");
        phantom(&mut b, 1450);
        b.now = b.path.gate(b.now).expect("it waits");
        let sent = b.leave();
        b.now += EMPTY + b.packet_ns();
        b.acknowledge(&sent, 2); // it met nothing
    }
    assert_eq!(b.path.rate(), 0);
    // the path is twice as fast; a train leaves when nothing else is in flight
    b.rate = 4_000_000;
    b.now += 1_000_000_000;
    let train: Vec<Sent> = (0..TRAIN).map(|_| b.leave()).collect();
    let left = b.now;
    for (i, sent) in (1..).zip(&train) {
        b.now = left + EMPTY + i * b.packet_ns();
        b.acknowledge(sent, 1);
    }
    assert_eq!(b.path.rate(), 4_000_000);
}

#[test]
fn a_rate_grows_to_nine_tenths_of_what_the_foreground_carries_for_two_seconds() {
    // 1900 packets come each second, and no packet meets them: 2.88 MB/s, less than 1.5 times mu
    let mut b = Bench::known(0, 2_000_000);
    let mut carried = 0;
    while b.path.rate() == 2_000_000 {
        assert!(b.now < 4_000_000_000);
        phantom(&mut b, 1900);
        carried += 1900 * PACKET;
        b.now = b.path.gate(b.now).expect("it waits");
        let sent = b.leave();
        b.now += EMPTY + b.packet_ns();
        b.acknowledge(&sent, 2);
    }
    // in two seconds and at most two round trips more: the span ends with an ACK
    let of_two_seconds = carried / 2 / 10 * 9;
    assert!(b.path.rate() <= of_two_seconds, "{}", b.path.rate());
    assert!(b.path.rate() >= of_two_seconds / 10 * 9, "{}", b.path.rate());
}

/// What happens at a host within so many microseconds.
#[derive(Clone, Debug)]
enum Step {
    Foreground(u32),
    Ask,
    /// The ACK of the oldest packet that is out, up to so many packets.
    Acknowledge(u64),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        (60..1515u32).prop_map(Step::Foreground),
        Just(Step::Ask),
        Just(Step::Ask),
        (1..3u64).prop_map(Step::Acknowledge),
    ];
    prop::collection::vec((0..3000u64, step), 1..400)
}

/// Gate, rate, queue and part after each step, clocks as of the start.
fn answers(start: u64, steps: &[(u64, Step)]) -> Vec<(Option<u64>, u64, u64, u64)> {
    let (mut path, mut base) = (Path::new(start), Base::default());
    let mut out = std::collections::VecDeque::new();
    let mut now = start;
    let mut answers = Vec::new();
    for (us, step) in steps {
        now += us * 1000;
        let mut gate = None;
        match step {
            Step::Foreground(bytes) => assert!(path.left(now, *bytes, false).is_none()),
            Step::Ask => {
                gate = path.gate(now);
                if gate.is_none() {
                    out.extend(path.left(now, PACKET as u32, true));
                }
            }
            Step::Acknowledge(packets) => {
                let last = out.drain(..(*packets as usize).min(out.len())).next_back();
                path.delivered(packets * PACKET);
                if let Some(sent) = last {
                    path.ack(&mut base, now, &sent, packets * PAYLOAD, 0);
                }
            }
        }
        answers.push((gate.map(|at| at - start), path.rate(), path.queue(), path.part_q16()));
    }
    answers
}

proptest! {
    #[test]
    fn where_the_clock_begins_changes_no_answer(
        steps in steps(), other in 1..1u64 << 60,
    ) {
        prop_assert_eq!(answers(1, &steps), answers(other, &steps));
    }
}

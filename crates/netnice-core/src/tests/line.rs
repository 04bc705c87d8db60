// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The line of connections (core/host/line.h).

use proptest::prelude::*;

use crate::{Line, Place};

/// Packets of a turn.
const TURN: usize = 12;

/// A host that asks the connection with the fewest packets before its own.
struct Host {
    line: Line,
    places: Vec<Place>,
}

impl Host {
    fn new(connections: u64) -> Host {
        Host { line: Line::default(), places: (1..=connections).map(Place::new).collect() }
    }

    fn put(&mut self, of: usize, packets: usize) {
        (0..packets).for_each(|_| self.line.put(&mut self.places[of]));
    }

    fn before(&self, of: usize) -> u32 {
        self.line.before(&self.places[of])
    }

    /// Whose packet leaves.
    fn next(&mut self) -> Option<usize> {
        let waiting = (0..self.places.len()).filter(|i| self.places[*i].waits() > 0);
        let first = waiting.min_by_key(|i| self.before(*i))?;
        self.line.leave(&mut self.places[first]);
        Some(first)
    }

    /// The turns that follow: whose, and of how many packets.
    fn turns(&mut self) -> Vec<(usize, usize)> {
        let mut turns: Vec<(usize, usize)> = Vec::new();
        while let Some(of) = self.next() {
            match turns.last_mut() {
                Some((last, packets)) if *last == of => *packets += 1,
                _ => turns.push((of, 1)),
            }
        }
        turns
    }
}

#[test]
fn each_sends_what_waits_of_it_in_the_order_in_which_they_came() {
    let mut host = Host::new(3);
    for of in [2, 0, 1, 0, 2] {
        host.put(of, 2);
    }
    assert_eq!(host.turns(), [(2, 4), (0, 4), (1, 2)]);
}

#[test]
fn who_has_more_than_a_turn_waiting_goes_to_the_end_of_the_line() {
    let mut host = Host::new(3);
    (0..3).for_each(|of| host.put(of, 10 * (of + 1)));
    // of 30 packets 18 are left once the others have ended: no turn ends another
    assert_eq!(host.turns(), [(0, 10), (1, TURN), (2, TURN), (1, 8), (2, 18)]);
}

#[test]
fn what_comes_during_a_turn_leaves_in_it() {
    let mut host = Host::new(2);
    (0..2).for_each(|of| host.put(of, 2));
    let mut left = Vec::new();
    for _ in 0..2 * TURN {
        let of = host.next().unwrap();
        host.put(of, 1); // a transport sends another one
        left.push(of);
    }
    assert_eq!(left, [[0; TURN], [1; TURN]].concat());
}

#[test]
fn who_has_sent_what_waited_keeps_the_turn_until_another_takes_it() {
    let mut host = Host::new(2);
    host.put(0, 1);
    assert_eq!(host.next(), Some(0));
    host.put(1, 1);
    host.put(0, 1);
    assert_eq!(host.next(), Some(0));
    assert_eq!(host.next(), Some(1));
    host.put(0, 1);
    host.put(1, 1);
    assert_eq!(host.next(), Some(1));
}

#[test]
fn a_wait_is_told_in_turns_of_the_size_that_they_have() {
    let mut host = Host::new(40);
    (0..40).for_each(|of| host.put(of, 4));
    assert_eq!(host.before(39), 39); // no turn has been yet: it is of a packet, as far as anybody knows
    assert_eq!(host.turns().len(), 40);
    (0..40).for_each(|of| host.put(of, 4));
    // whose turn it was has it still: its 4, and 38 turns of 4, less what eighths of sixteenths lose
    let told = host.before(38);
    assert!((4 + 38 * 4 - 20..=4 + 38 * 4).contains(&told), "{told}");
    assert_eq!((0..5).map(|_| host.next().unwrap()).collect::<Vec<_>>(), [39, 39, 39, 39, 0]);
    assert_eq!(host.before(1), 3); // what is left of this turn
}

#[test]
fn a_place_of_which_nobody_comes_holds_up_none_of_those_behind_once_one_has_left() {
    let mut host = Host::new(4);
    (0..4).for_each(|of| host.put(of, 2));
    host.turns();
    (0..4).for_each(|of| host.put(of, 2));
    assert!(host.before(2) > 2);
    // the others have gone; a host that waited for them in vain lets 2 leave
    host.line.leave(&mut host.places[2]);
    host.put(2, 20);
    assert_eq!(host.before(2), 0);
    // and those, should they come all the same, are next
    assert_eq!(host.before(0), 11);
    host.line.lose(&mut host.places[2]);
    assert_eq!(host.before(0), 0, "nothing of the turn is left to wait for");
}

proptest! {
    #[test]
    fn all_that_comes_leaves_and_nobody_has_two_turns_while_another_waits(
        steps in prop::collection::vec((0..8usize, 0..20usize, 0..30usize), 1..50),
    ) {
        let mut host = Host::new(8);
        let (mut came, mut left) = (0, 0);
        // turns that others had since each of those that wait came
        let mut passed = [0; 8];
        let mut last = None;
        for (of, packets, leave) in steps {
            if host.places[of].waits() == 0 {
                passed[of] = 0;
            }
            host.put(of, packets);
            came += packets;
            for _ in 0..leave {
                let Some(next) = host.next() else { break };
                left += 1;
                if last != Some(next) {
                    passed.iter_mut().for_each(|turns| *turns += 1);
                }
                passed[next] = 0;
                last = Some(next);
                for (place, passed) in host.places.iter().zip(passed) {
                    prop_assert!(place.waits() == 0 || passed <= 16);
                }
            }
        }
        left += host.turns().iter().map(|(_, packets)| packets).sum::<usize>();
        prop_assert_eq!(came, left);
    }

    /// Shifted places change nothing.
    #[test]
    fn it_tells_the_same_wherever_its_places_begin(
        first: u32, steps in prop::collection::vec((0..5usize, 0..9usize, 0..9usize), 1..40),
    ) {
        let (mut host, mut other) = (Host::new(5), Host::new(5));
        other.line = Line::begin_at(first);
        other.places = (1..=5).map(|id| Place::begin_at(id, first)).collect();
        for (of, packets, leave) in steps {
            for host in [&mut host, &mut other] {
                host.put(of, packets);
            }
            for _ in 0..leave {
                prop_assert_eq!(host.next(), other.next());
            }
            prop_assert_eq!((0..5).map(|of| host.before(of)).collect::<Vec<_>>(),
                (0..5).map(|of| other.before(of)).collect::<Vec<_>>());
        }
    }
}

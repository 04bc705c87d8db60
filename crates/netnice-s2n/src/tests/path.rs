// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Several connections over one bottleneck, in virtual time: do those in the background yield?

use super::*;

/// A bottleneck of 8 Mbit/s with room for 50 packets.
const SERVICE: Duration = Duration::from_micros(1200);
const ROOM: u32 = 50;
/// RFC 9002, 6.1.1: a packet is lost when the third after it has arrived.
const REORDERED: usize = 3;

struct World {
    senders: Vec<Sender>,
    /// For each sender, when each packet that is out is acknowledged; `None`: it was dropped.
    acks: Vec<VecDeque<Option<Duration>>>,
    delivered: Vec<usize>,
    /// When the bottleneck has nothing left to send.
    free: Duration,
    time: Duration,
}

impl World {
    fn new(senders: Vec<Sender>) -> World {
        let time = senders[0].time;
        let mut world =
            World { senders: vec![], acks: vec![], delivered: vec![], free: time, time };
        senders.into_iter().for_each(|sender| world.join(sender));
        world
    }

    fn join(&mut self, sender: Sender) {
        self.senders.push(sender);
        self.acks.push(VecDeque::new());
        self.delivered.push(0);
    }

    /// Packets of each sender that arrive within so many milliseconds.
    fn run(&mut self, ms: u32) -> Vec<usize> {
        let before = self.delivered.clone();
        for _ in 0..ms {
            self.time += Duration::from_millis(1);
            NOW.set(Some(now() + Duration::from_millis(1)));
            for i in 0..self.senders.len() {
                self.senders[i].time = self.time;
                self.hear(i);
                self.leave(i);
            }
        }
        self.delivered.iter().zip(before).map(|(now, before)| now - before).collect()
    }

    /// ACKs of up to two packets, and the losses that they show.
    fn hear(&mut self, i: usize) {
        let (s, acks) = (&mut self.senders[i], &mut self.acks[i]);
        let due = |at: &Option<Duration>| at.is_some_and(|at| at <= self.time);
        while let Some(first) = acks.iter().position(due) {
            let n = if acks.get(first + 1).is_some_and(due) { 2 } else { 1 };
            self.delivered[i] += n;
            acks.drain(first..first + n);
            let acked: Vec<_> = s.out.drain(first..first + n).collect();
            let newest = first + n - 1;
            let lost = (0..first).filter(|place| newest - place >= REORDERED || newest > 8).count();
            if lost > 0 {
                acks.drain(..lost);
                s.lose(lost, false);
            }
            s.acked(&acked, Duration::ZERO);
        }
        // nothing is left that could be acknowledged: as after probes
        let silent = s.out.front().is_some_and(|out| out.sent + 20 * BASE < s.stamp());
        if silent && acks.iter().all(Option::is_none) {
            s.lose(acks.len(), true);
            acks.clear();
        }
    }

    fn leave(&mut self, i: usize) {
        let s = &mut self.senders[i];
        while s.may_send() {
            s.send_one(s.stamp(), false);
            let begins = self.free.max(self.time);
            let dropped = begins - self.time > SERVICE * ROOM;
            self.acks[i].push_back((!dropped).then_some(begins + SERVICE + BASE));
            if !dropped {
                self.free = begins + SERVICE;
            }
        }
    }
}

/// As s2n-quic's CUBIC, from the start.
fn user() -> Sender {
    let background = Background::new(config("reno", &[]));
    background.switch().to_foreground();
    Sender::new(&background)
}

#[test]
fn a_connection_in_the_background_has_what_is_free_and_leaves_it_to_users() {
    let background = Background::of_class(crate::Class::default());
    let mut world = World::new(vec![Sender::new(&background)]);
    world.run(5000);
    // 8 Mbit/s are 833 packets of 1200 bytes in a second
    let alone = world.run(5000)[0];
    world.join(user());
    world.run(5000);
    let beside = world.run(10_000);
    println!("{alone} alone in 5 s, {beside:?} beside a user in 10 s");
    assert!(alone > 3000, "{alone} packets alone");
    assert!(beside[0] * 20 < beside[1], "{beside:?}");
}

#[test]
fn a_switch_to_the_background_frees_the_bottleneck_and_one_back_takes_a_share() {
    let background = Background::of_class(crate::Class::default());
    let switch = background.switch();
    switch.to_foreground();
    let mut world = World::new(vec![Sender::new(&background), user()]);
    world.run(10_000);
    let competing = world.run(10_000);
    switch.to_background();
    world.run(1000);
    let yielding = world.run(10_000);
    switch.to_foreground();
    world.run(10_000);
    let again = world.run(10_000);
    println!("{competing:?}, then {yielding:?}, then {again:?}");
    assert!(competing[0] * 4 > competing[1], "{competing:?}");
    assert!(yielding[0] * 20 < yielding[1], "{yielding:?}");
    assert!(again[0] * 4 > again[1], "{again:?}");
}

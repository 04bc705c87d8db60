// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Datagrams of the background (core/host/down_datagram.h): over a link with a sender that fills it,
//! and one by one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const BYTES: u32 = 1500;
const RTT: u64 = 50 * MS;
const BUFFER: u64 = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A packet of the background, or of the foreground, comes out of the link.
    Came {
        background: bool,
    },
    /// The host looks at one that waits.
    Looks {
        ticket: u32,
    },
    /// The sender hears that one arrived, or was lost.
    Acked,
    Lost,
    /// The foreground asks for a page of ten packets; the request has reached its server.
    Asks,
    Asked,
}

/// A link of a rate, 50 ms of RTT behind it and 50 packets before it; a sender with Reno's window.
struct Link {
    down: Down,
    user: Fetched,
    events: BinaryHeap<Reverse<(u64, u32, Event)>>,
    serial: u32,
    now: u64,
    /// Nanoseconds of a packet, and when the link has sent what waits.
    each: u64,
    free: u64,
    /// The sender's, packets.
    window: f64,
    slow_start: bool,
    out: u32,
    cut_at: u64,
    /// What came of the background in all, and the waits of the foreground's packets, ns.
    got: u64,
    waits: Vec<u64>,
    /// The host does nothing.
    plain: bool,
}

impl Link {
    fn new(plain: bool) -> Link {
        let mut link = Link {
            down: down(0),
            user: Fetched::default(),
            events: BinaryHeap::new(),
            serial: 0,
            now: 0,
            each: 3 * MS / 2, // 1 MB/s
            free: 0,
            window: 10.0,
            slow_start: true,
            out: 0,
            cut_at: 0,
            got: 0,
            waits: Vec::new(),
            plain,
        };
        link.send();
        link
    }

    fn at(&mut self, clock: u64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((clock, self.serial, event)));
    }

    fn queue(&self) -> u64 {
        self.free.saturating_sub(self.now) / self.each
    }

    fn enters(&mut self, background: bool) {
        if self.queue() >= BUFFER {
            if background {
                self.at(self.now + RTT + BUFFER * self.each, Event::Lost);
            }
            return;
        }
        if !background {
            self.waits.push(self.queue() * self.each);
        }
        self.free = self.free.max(self.now) + self.each;
        self.at(self.free, Event::Came { background });
    }

    fn send(&mut self) {
        while f64::from(self.out) < self.window {
            self.out += 1;
            self.enters(true);
        }
    }

    fn decided(&mut self, what: Datagram) {
        match what {
            Datagram::GoesOn => {
                self.got += u64::from(BYTES);
                self.at(self.now + RTT, Event::Acked);
            }
            Datagram::Dropped => self.at(self.now + RTT, Event::Lost),
            Datagram::Waits { ticket, until } => self.at(until, Event::Looks { ticket }),
        }
    }

    fn run_to(&mut self, clock: u64) {
        while let Some(Reverse((at, _, event))) = self.events.peek().copied() {
            if at > clock {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Came { background } => {
                    self.down.count(at, BYTES);
                    let what = match background {
                        true if !self.plain => self.down.datagram(at, BYTES, 0),
                        true => Datagram::GoesOn,
                        false => {
                            self.down.user_came(&mut self.user, at, BYTES, false, false);
                            continue;
                        }
                    };
                    self.decided(what);
                }
                Event::Looks { ticket } => {
                    let what = self.down.look_again(ticket, at, BYTES, 0);
                    self.decided(what);
                }
                Event::Acked => {
                    self.out -= 1;
                    self.window += if self.slow_start { 1.0 } else { 1.0 / self.window };
                    self.send();
                }
                Event::Lost => {
                    self.out -= 1;
                    if at > self.cut_at + 2 * RTT {
                        self.window = (self.window / 2.0).max(2.0);
                        self.slow_start = false;
                        self.cut_at = at;
                    }
                    self.send();
                }
                Event::Asks => {
                    self.down.leaves(&mut self.user, at, 100, None);
                    self.at(at + RTT, Event::Asked);
                    self.at(at + 400 * MS, Event::Asks);
                }
                Event::Asked => (0..10).for_each(|_| self.enters(false)),
            }
        }
        self.now = clock;
    }

    /// What comes of the background from here on for so long, bytes/s.
    fn rate(&mut self, ns: u64) -> f64 {
        let before = self.got;
        self.run_to(self.now + ns);
        (self.got - before) as f64 * 1e9 / ns as f64
    }

    /// The mean of the foreground's waits, ms.
    fn wait_ms(&self) -> f64 {
        self.waits.iter().sum::<u64>() as f64 / self.waits.len() as f64 / 1e6
    }
}

#[test]
fn alone_they_fill_the_link_and_their_queue_is_in_the_host() {
    let mut link = Link::new(false);
    link.run_to(5 * S);
    let queues: Vec<_> = (0..2000)
        .map(|_| {
            link.rate(10 * MS);
            link.queue()
        })
        .collect();
    // a probe of half a second with 1.07 of the rate queues 35 ms, or 23 packets; a window grows meanwhile
    let (longest, sum) = (queues.iter().max().unwrap(), queues.iter().sum::<u64>());
    assert!(*longest <= 30, "{longest}");
    assert!(sum <= 2 * 2000, "{sum}");
    // .95, and what windows lose of it after a cut
    let rate = link.rate(20 * S);
    assert!((0.88e6..1e6).contains(&rate), "{rate}");
}

#[test]
fn beside_pages_they_take_what_is_left_and_hardly_anything_waits_for_them() {
    let run = |plain| {
        let mut link = Link::new(plain);
        link.run_to(5 * S);
        link.at(link.now, Event::Asks);
        let rate = link.rate(60 * S);
        (rate, link.wait_ms())
    };
    // ten packets at once wait for each other: 4.5 of 1.5 ms
    let ((_, plain), (rate, wait)) = (run(true), run(false));
    assert!(plain > 40.0, "{plain} ms");
    assert!(wait < 14.0, "{wait} ms");
    // pages take 37.5 of 1000 kB/s
    assert!(rate > 0.6e6, "{rate}");
}

#[test]
fn a_rate_that_halves_or_doubles_is_found_by_the_next_probes() {
    // of .95 the window of one sender lacks some after each cut
    for (each, bounds) in [(3 * MS, 0.42e6..0.5e6), (3 * MS / 4, 1.5e6..2e6)] {
        let mut link = Link::new(false);
        link.run_to(10 * S);
        link.each = each;
        link.run_to(30 * S);
        let rate = link.rate(10 * S);
        assert!(bounds.contains(&rate), "{rate}");
    }
}

/// A path that carries 1 MB/s, as a second of datagrams has shown.
fn known() -> (Down, u64) {
    let mut down = down(0);
    for i in 0..800 {
        down.count(i * 3 * MS / 2, BYTES);
        down.datagram(i * 3 * MS / 2, BYTES, 0);
    }
    let now = 1200 * MS + S; // what they left has drained
    assert_eq!(down.datagram(now, BYTES, 0), Datagram::GoesOn);
    (down, now)
}

#[test]
fn an_upload_beside_them_leaves_the_rate_to_them() {
    let (mut alone, now) = known();
    let mut beside = down(0);
    begun(&mut beside, 0); // a connection to which nothing comes
    for i in 0..800 {
        beside.count(i * 3 * MS / 2, BYTES);
        beside.datagram(i * 3 * MS / 2, BYTES, 0);
    }
    for down in [&mut alone, &mut beside] {
        down.count(now, BYTES);
        down.datagram(now, BYTES, 0);
    }
    assert_eq!(beside.rate(), alone.rate());
}

#[test]
fn a_burst_after_a_pause_waits_if_50_ms_can_take_it() {
    let (mut down, now) = known();
    let now = now + 2 * S;
    down.leaves(&mut Fetched::default(), now, 100, None);
    let burst = [(); 10].map(|()| down.datagram(now, BYTES, 0));
    // none went on for long: the first does
    assert_eq!(burst[0], Datagram::GoesOn);
    assert!(burst[1..].iter().all(|what| matches!(what, Datagram::Waits { .. })), "{burst:?}");
}

#[test]
fn the_segments_of_a_packet_that_was_cut_count_as_one_that_waits_no_longer() {
    let (mut down, now) = known();
    down.leaves(&mut Fetched::default(), now, 100, None);
    let Datagram::Waits { ticket, .. } = down.datagram(now, BYTES, 2) else { panic!() };
    (0..34).for_each(|_| assert_ne!(down.datagram(now, BYTES, 1), Datagram::GoesOn));
    let waits = |what| matches!(what, Datagram::Waits { .. });
    assert!(waits(down.datagram(now, BYTES, 2)) && !waits(down.datagram(now, BYTES, 2)));
    let now = now + 20 * MS; // 15 ms were announced
    let segments = [(); 2].map(|()| down.look_again(ticket, now, BYTES, 2));
    assert_eq!(segments, [(); 2].map(|()| Datagram::GoesOn));
    down.leaves(&mut Fetched::default(), now, 100, None);
    // one of two is left
    assert!(waits(down.datagram(now, BYTES, 2)) && !waits(down.datagram(now, BYTES, 2)));
}

#[test]
fn what_comes_slowly_goes_on() {
    let mut down = down(0);
    for i in 0..200 {
        // 60 kB/s
        down.count(i * 25 * MS, BYTES);
        assert_eq!(down.datagram(i * 25 * MS, BYTES, 0), Datagram::GoesOn);
    }
}

#[test]
fn a_connection_that_hardly_gets_anything_does_not_make_the_link_slow() {
    let (mut down, now) = known();
    let rate = down.rate();
    for i in 0..1000 {
        let now = now + i * S / 2;
        down.count(now, BYTES);
        assert_eq!(down.datagram(now, BYTES, 0), Datagram::GoesOn);
    }
    assert_eq!(down.rate(), rate);
}

#[test]
fn no_more_than_50_ms_of_the_rate_wait() {
    let (mut down, now) = known();
    down.leaves(&mut Fetched::default(), now, 100, None); // 15 ms
    let all: Vec<_> = (0..100).map(|_| down.datagram(now, BYTES, 0)).collect();
    let waits = all.iter().filter(|what| matches!(what, Datagram::Waits { .. })).count();
    // the rate is .97 of 1 MB/s: 32.3 packets, and the one that makes it more
    assert_eq!(waits, 33);
    assert!(all[33..].iter().all(|what| *what == Datagram::Dropped));
}

#[test]
fn one_that_does_not_come_back_is_not_waited_for() {
    let (mut down, now) = known();
    down.leaves(&mut Fetched::default(), now, 100, None);
    let lost = down.datagram(now, BYTES, 0);
    let Datagram::Waits { ticket, until } = down.datagram(now, BYTES, 0) else {
        panic!("{lost:?}")
    };
    let Datagram::Waits { until, .. } = down.look_again(ticket, until, BYTES, 0) else {
        panic!("it passed {lost:?}")
    };
    assert_eq!(down.look_again(ticket, until + 200 * MS, BYTES, 0), Datagram::GoesOn);
    // nor do those that come later, if none comes back
    assert_eq!(down.datagram(now + S, BYTES, 0), Datagram::GoesOn);
    down.leaves(&mut Fetched::default(), now + S, 100, None);
    let late = [(); 5].map(|()| down.datagram(now + S, BYTES, 0));
    assert!(matches!(late[4], Datagram::Waits { .. }));
    assert_eq!(down.datagram(now + 3 * S, BYTES, 0), Datagram::GoesOn);
}

#[test]
fn of_each_connection_two_may_wait_however_long_the_line_is() {
    let (mut down, now) = known();
    down.leaves(&mut Fetched::default(), now, 100, None);
    (0..100).for_each(|_| assert_ne!(down.datagram(now, BYTES, 1), Datagram::GoesOn));
    let of_another = [(); 3].map(|()| down.datagram(now, BYTES, 2));
    assert!(matches!(
        of_another,
        [Datagram::Waits { .. }, Datagram::Waits { .. }, Datagram::Dropped]
    ));
}

#[test]
fn one_that_shares_its_count_with_another_that_always_waits_gets_its_turn() {
    let (mut down, now) = known();
    down.leaves(&mut Fetched::default(), now, 100, None);
    (0..33).for_each(|of| assert_ne!(down.datagram(now, BYTES, of), Datagram::GoesOn));
    let waits = |what| matches!(what, Datagram::Waits { .. });
    let (one, other, third) = (40, 40 + 64, 40 + 128);
    assert!([(); 2].map(|()| down.datagram(now, BYTES, one)).into_iter().all(waits));
    assert_eq!(down.datagram(now, BYTES, one), Datagram::Dropped);
    assert!(waits(down.datagram(now, BYTES, other)));
    assert_eq!(down.datagram(now, BYTES, other), Datagram::Dropped);
    assert!(waits(down.datagram(now, BYTES, third)));
    assert_eq!(down.datagram(now, BYTES, one), Datagram::Dropped);
}

#[test]
fn where_the_foreground_takes_all_one_goes_on_ten_times_a_second_and_two_of_a_connection_wait() {
    let (mut down, mut now) = known();
    let (mut gone, mut dropped, end) = (0, 0, now + 10 * S);
    let mut waiting = Vec::new();
    while now < end {
        down.other(now, 150_000); // ten times what the line carries
        let again: Vec<_> = waiting.extract_if(.., |(until, _)| *until <= now).collect();
        let looks = again.into_iter().map(|(_, ticket)| down.look_again(ticket, now, BYTES, 0));
        let mut all: Vec<_> = looks.collect();
        all.push(down.datagram(now, BYTES, 0));
        for what in all {
            match what {
                Datagram::GoesOn => gone += 1,
                Datagram::Dropped => dropped += 1,
                Datagram::Waits { ticket, until } => waiting.push((until, ticket)),
            }
        }
        now += 10 * MS;
    }
    // as late as the clock's step, 10 ms
    assert!((85..=100).contains(&gone), "{gone}");
    assert_eq!(waiting.len(), 2);
    assert_eq!(gone + dropped + 2, 1000);
}

proptest! {
    #[test]
    fn they_go_on_in_the_order_in_which_they_came(
        steps in prop::collection::vec((0..30u64, 0..8u32, 100..1500u32), 1..200),
        late in 0..5u64,
    ) {
        let (mut down, mut now) = known();
        let mut waiting: BinaryHeap<Reverse<(u64, usize, u32, u32)>> = BinaryHeap::new();
        let mut gone = Vec::new();
        let mut user = Fetched::default();
        for (number, (pause, what, bytes)) in steps.into_iter().enumerate() {
            now += pause * MS / 4;
            while let Some(Reverse((_, of, ticket, size))) =
                waiting.peek().copied().filter(|Reverse((until, ..))| *until + late * MS <= now)
            {
                waiting.pop();
                match down.look_again(ticket, now, size, 0) {
                    Datagram::GoesOn => gone.push(of),
                    Datagram::Waits { ticket, until } => waiting.push(Reverse((until, of, ticket, size))),
                    Datagram::Dropped => {}
                }
            }
            if what == 0 {
                down.leaves(&mut user, now, 100, None);
                continue;
            }
            down.count(now, bytes);
            match down.datagram(now, bytes, 0) {
                Datagram::GoesOn => gone.push(number),
                Datagram::Waits { ticket, until } => {
                    prop_assert!(until > now && until <= now + S);
                    waiting.push(Reverse((until, number, ticket, bytes)));
                }
                Datagram::Dropped => {}
            }
        }
        prop_assert!(gone.is_sorted(), "{gone:?}");
    }
}

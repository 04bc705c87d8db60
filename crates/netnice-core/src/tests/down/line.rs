// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A whole round trip of a download: the queue that it shows, the rate, and where its edge stops.

use super::*;

/// A download whose packets come one round trip after they were allowed.
struct Line {
    down: Down,
    pulled: Pulled,
    user: Fetched,
    now: u64,
    edge: u32,
}

impl Line {
    /// One that carries 1 MB/s, with an RTT of 50 ms, and that is known.
    fn new() -> Line {
        Line::of(50)
    }

    /// The same, with another RTT.
    fn of(rtt: u64) -> Line {
        let (mut down, now) = (down(0), 200 * MS);
        (1..200).for_each(|i| down.count(i * MS, 1000));
        let pulled = begun(&mut down, 200 * MS);
        let mut line = Line { down, pulled, user: Fetched::default(), now, edge: 0 };
        (0..8).for_each(|_| line.round(rtt, rtt, 0));
        line
    }

    /// A round trip of so many ms; its server sent so many ms ago, and users got so many bytes meanwhile.
    fn round(&mut self, rtt: u64, on_the_way: u64, users: u32) {
        let ack = self.edge;
        while self.edge == ack {
            self.now += MS; // the algorithm may ask for a gap
            self.edge = self.down.offer(&mut self.pulled, self.now, ack, ack.wrapping_add(OWN));
        }
        self.now += rtt * MS;
        self.down.user_came(&mut self.user, self.now, users, false, false);
        let sent = (self.now / MS - on_the_way) as u32;
        self.down.came(&mut self.pulled, self.now, MSS, self.edge, sent, false);
    }
}

#[test]
fn a_raise_of_the_rate_that_makes_a_queue_is_taken_back_at_once() {
    let mut line = Line::new();
    // .9 of 1 MB/s come all the time
    let pass = |line: &mut Line, ms: u64| {
        line.now += ms * MS;
        line.down.count(line.now, 900 * ms as u32);
    };
    // the virtual queue keeps an edge, and the foreground's last sign is 250 ms old: the rate is probed
    line.down.other(line.now, 400_000);
    (0..5).for_each(|_| pass(&mut line, 50));
    line.down.offer(&mut line.pulled, line.now, line.edge, line.edge.wrapping_add(OWN));
    (0..4).for_each(|_| pass(&mut line, 50));
    assert_eq!(line.down.rate(), 1_000_000);
    line.round(50, 50, 0);
    assert_eq!(line.down.rate(), 1_500_000);
    // 40 ms of queue, a round trip later: not 1/64, but a third
    line.round(90, 90, 0);
    line.round(90, 90, 0);
    assert_eq!(line.down.rate(), 1_000_000);
    line.round(90, 90, 0);
    assert_eq!(line.down.rate(), 1_000_000 - 1_000_000 / 64);
}

#[test]
fn edges_wait_three_times_as_long_as_a_queue_of_others_is_and_200_ms_at_most() {
    let waited = |queue: u64| {
        let mut line = Line::new();
        line.round(50 + queue, 50 + queue, 0);
        let (mut now, ack) = (line.now, line.edge);
        while line.down.offer(&mut line.pulled, now, ack, ack.wrapping_add(OWN)) == ack {
            now += MS;
        }
        (now - line.now) / MS
    };
    assert!(waited(6) < 20, "{}", waited(6)); // for the algorithm's gap, at most
    assert!((110..=135).contains(&waited(40)), "{}", waited(40));
    assert!((190..=220).contains(&waited(150)), "{}", waited(150));
}

#[test]
fn a_queue_of_others_takes_the_window_away_but_not_what_this_host_fetches_meanwhile() {
    // 60 ms of queue at 1 MB/s are 60,000 bytes
    let after = |users| {
        let mut line = Line::new();
        let before = line.down.window();
        (0..8).for_each(|_| line.round(110, 110, users));
        line.down.window() / before
    };
    assert!(after(0) < 0.5, "{}", after(0));
    assert!(after(60_000) >= 1.0, "{}", after(60_000));
    // what came before the packet waited was not before it in the queue
    let mut line = Line::new();
    let before = line.down.window();
    for _ in 0..8 {
        line.down.user_came(&mut line.user, line.now, 60_000, false, false);
        line.round(110, 110, 0);
    }
    assert!(line.down.window() / before < 0.5);
}

#[test]
fn a_server_that_is_far_shows_no_queue_beside_one_that_is_near_nor_do_a_few_packets() {
    let mut line = Line::new();
    let before = line.down.window();
    let mut far = (begun(&mut line.down, line.now), 0);
    for n in 0..40 {
        std::mem::swap(&mut line.pulled, &mut far.0);
        std::mem::swap(&mut line.edge, &mut far.1);
        let rtt = if n % 2 == 0 { 150 } else { 50 };
        // of every fourth, 10 ms are a wait for packets that met it
        line.round(rtt + 10 * u64::from(n % 4 == 0 && n > 0), rtt, 0);
        assert!(line.down.window() >= before, "{n}");
    }
}

#[test]
fn on_a_short_path_a_shorter_queue_is_that_of_others() {
    // a fifth of 20 ms is less than 6 ms, which count; a fifth of 50 ms is 10 ms
    for (least, yields) in [(20, true), (50, false)] {
        let mut line = Line::of(least);
        let before = line.down.window();
        (0..8).for_each(|_| line.round(least + 8, least + 8, 0));
        assert_eq!(line.down.window() < before, yields, "{least} ms");
    }
}

#[test]
fn a_server_that_waits_before_it_sends_shows_no_queue() {
    let mut line = Line::new();
    let before = line.down.window();
    (0..8).for_each(|_| line.round(110, 50, 0));
    assert!(line.down.window() >= before);
}

#[test]
fn what_windows_are_rounded_up_by_does_not_add_up() {
    let mut line = Line::new();
    for _ in 0..50 {
        line.round(50, 50, 0);
        // all that was allowed has come but for the rest of a packet
        assert_eq!(line.down.allowed(), 0);
    }
    let mut pulled = begun(&mut line.down, line.now);
    let mut end = 0;
    for _ in 0..50 {
        let edge = line.down.offer(&mut pulled, line.now, end, end.wrapping_add(OWN));
        end += (edge - end) / MSS * MSS;
        assert!(edge - end < 128, "{}", edge - end);
        line.now += 50 * MS;
        line.down.came(&mut pulled, line.now, MSS, end, 0, false);
    }
}

#[test]
fn a_connection_that_waits_for_its_next_response_may_get_a_packet_of_it_and_counts_for_nothing() {
    let mut line = Line::new();
    let (mut kept, now) = (begun(&mut line.down, line.now), line.now + S);
    assert_eq!(line.down.offer(&mut kept, now, 0, OWN), 1536);
    // a segment of 100 bytes with PSH
    line.down.came(&mut kept, now + 50 * MS, MSS, 100, 0, true);
    assert_eq!(line.down.allowed(), 0);
    // 1436 are left: less than a packet. It is told of one, once, and asks no more
    assert_eq!(line.down.offer(&mut kept, now + 50 * MS, 100, OWN), 100 + 1536);
    assert_eq!(line.down.offer(&mut kept, now + 20 * S, 100, OWN), 100 + 1536);
    assert_eq!(line.down.again(&kept, now + 20 * S, 0), None);
    assert_eq!(line.down.allowed(), 0);
    // and when that comes, it goes on as the others do
    line.down.came(&mut kept, now + 21 * S, MSS, 100 + MSS, 0, false);
    assert!(line.down.offer(&mut kept, now + 21 * S, 100 + MSS, OWN) >= 100 + 2 * MSS);
    assert!(line.down.allowed() >= u64::from(MSS));
}

#[test]
fn what_a_window_cuts_short_is_no_end_of_a_response() {
    let mut line = Line::new();
    let (mut pulled, now) = (begun(&mut line.down, line.now), line.now + S);
    // a packet is 1448 bytes, its window 1536: a server sends the rest too, with PSH
    assert_eq!(line.down.offer(&mut pulled, now, 0, OWN), 1536);
    assert_eq!(line.down.offer(&mut pulled, now + 2 * MS, 0, OWN), 23 * 128); // 2 packets
    line.down.came(&mut pulled, now + 50 * MS, MSS, MSS, 0, false);
    let edge = line.down.offer(&mut pulled, now + 50 * MS, MSS, OWN);
    assert!(edge >= 3 * MSS);
    line.down.came(&mut pulled, now + 51 * MS, MSS, 1536, 0, true);
    // more still comes, and is counted, and the edge moves on: 88 bytes make no room for a packet
    assert_eq!(line.down.allowed(), u64::from((edge - 1536) / MSS * MSS));
    line.down.came(&mut pulled, now + 52 * MS, MSS, 1536 + MSS, 0, false);
    assert!(line.down.offer(&mut pulled, now + 52 * MS, 1536 + MSS, OWN) > edge);
}

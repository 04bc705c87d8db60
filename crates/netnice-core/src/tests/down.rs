// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The path into a host (core/host/down.h).

use proptest::prelude::*;

use crate::{Class, Config, Down, Fetched, Pulled};

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;
const MSS: u32 = 1448;
/// What its own TCP would allow beyond an ACK, bytes.
const OWN: u32 = 1 << 20;
/// Windows in units of 128 bytes.
const SCALE: u32 = 7;

fn down(now: u64) -> Down {
    Down::new(&Config::new(Class::default().algorithm()), now)
}

/// A download of which nothing has come, and nothing is allowed.
fn begun(down: &mut Down, now: u64) -> Pulled {
    let mut pulled = Pulled::default();
    down.begin(&mut pulled, now, 0, 0, SCALE);
    pulled
}

#[test]
fn what_a_request_announces_drains_at_98_per_cent_of_the_rate() {
    let mut down = down(0);
    down.leaves(&mut Fetched::default(), 0, 100, None);
    assert_eq!(down.queue(), 15_000); // ten packets
    down.leaves(&mut Fetched::default(), 50 * MS, 0, Some(1)); // of no request: nothing but time passes
    down.other(50 * MS, 0);
    // 150,000 bytes/s at first: 15000 - .98 * 150000 / 20
    assert_eq!(down.queue(), 7650);
}

#[test]
fn an_edge_waits_until_the_path_has_room_for_what_it_brings() {
    let mut down = down(0);
    down.leaves(&mut Fetched::default(), 0, 100, None);
    let mut pulled = begun(&mut down, 0);
    assert_eq!(down.offer(&mut pulled, 0, 0, OWN), 0);
    // v falls from 15000 to the slack, 2271, in 12729 / 147000 s; at most 40 ms are waited for
    let again = down.again(&pulled, 0, 0).unwrap();
    assert_eq!(again, 40 * MS);
    assert_eq!(down.offer(&mut pulled, 86 * MS, 0, OWN), 0);
    // a packet, rounded up to units of 128 bytes
    assert_eq!(down.offer(&mut pulled, 87 * MS, 0, OWN), 1536);
    assert_eq!(down.allowed(), u64::from(MSS), "the rest of a packet is not sent");
}

#[test]
fn what_did_not_come_of_a_response_is_taken_back_at_its_end() {
    let mut down = down(0);
    let mut user = Fetched::default();
    down.leaves(&mut user, 0, 100, None);
    down.user_came(&mut user, 50 * MS, 3000, true, true);
    // 7650 are left, 12000 have not come: all of it
    assert_eq!(down.queue(), 0);
}

#[test]
fn what_came_is_announced_by_its_acks_one_and_a_half_times() {
    let mut down = down(0);
    let mut user = Fetched::default();
    down.leaves(&mut user, 0, 0, Some(0));
    down.user_came(&mut user, 0, 10_000, false, false);
    down.leaves(&mut user, 0, 0, Some(10_000));
    assert_eq!(down.queue(), 15_000);
    down.user_came(&mut user, 0, 50_000, false, false);
    down.leaves(&mut user, 0, 0, Some(60_000));
    assert_eq!(down.queue(), 90_000);
}

#[test]
fn after_a_response_of_a_connection_its_acks_announce_nothing_and_a_request_what_is_usual() {
    let mut down = down(0);
    let mut user = Fetched::default();
    let (mut now, mut acked) = (0, 0);
    down.leaves(&mut user, now, 0, Some(acked));
    let mut asks = |down: &mut Down, user: &mut Fetched| {
        now += 1000 * MS; // all has drained
        down.leaves(user, now, 100, None);
        (now, down.queue())
    };
    for (size, usual) in [(40_000, 15_000), (24_000, 40_000), (200_000, 36_000), (15_000, 60_000)] {
        let (now, announced) = asks(&mut down, &mut user);
        // 3/4 of the mean before, and 1/4 of the last: 40, 36, and 77 kB
        assert_eq!(announced, usual, "before {size}");
        down.user_came(&mut user, now, size, true, false);
        let left = down.queue();
        acked += size;
        down.leaves(&mut user, now, 0, Some(acked));
        assert_eq!(down.queue(), left);
    }
}

#[test]
fn a_download_that_waited_for_ten_seconds_gets_a_packet_whatever_the_others_do() {
    let mut down = down(0);
    let mut pulled = begun(&mut down, 0);
    down.other(9 * S, 100_000_000);
    assert_eq!(down.offer(&mut pulled, 9 * S, 0, OWN), 0);
    down.other(10 * S, 100_000_000);
    assert_eq!(down.offer(&mut pulled, 10 * S, 0, OWN), 1536);
    assert_eq!(down.offer(&mut pulled, 11 * S, 0, OWN), 1536);
}

#[test]
fn a_wide_window_is_narrowed_once_and_never_below_what_was_told_since() {
    let mut down = down(0);
    let mut pulled = Pulled::default();
    down.begin(&mut pulled, 0, 0, OWN, SCALE);
    let first = down.offer(&mut pulled, 0, 0, OWN);
    assert!(first < OWN / 100, "{first}");
    assert!(down.offer(&mut pulled, S, 0, OWN) >= first);
}

#[test]
fn what_connections_that_ended_without_a_word_were_allowed_is_forgotten() {
    let mut down = down(0);
    let mut gone = begun(&mut down, 0);
    // what a slack of 2271 bytes has room for
    assert_eq!(down.offer(&mut gone, 0, 0, OWN), 2944);
    let mut other = begun(&mut down, 0);
    assert_eq!(down.allowed(), 2 * u64::from(MSS));
    // at the end of the period in which it was told, and of the next
    down.offer(&mut other, 5 * S, 0, 0);
    assert_eq!(down.allowed(), 2 * u64::from(MSS));
    down.offer(&mut other, 10 * S, 0, 0);
    assert_eq!(down.allowed(), 0);
}

#[test]
fn what_is_allowed_and_does_not_come_for_a_while_counts_no_longer_and_is_told_once_more() {
    // Connections that had ended while nobody saw it were allowed ever more, up to what their own TCP would
    // take. That was most of the window: downloads stalled for many seconds.
    let mut down = down(0);
    let mut gone = begun(&mut down, 0);
    let edge = down.offer(&mut gone, 0, 0, OWN);
    assert!(down.tells(&gone));
    assert_eq!(down.allowed(), 2 * u64::from(MSS));
    let mut ask = |down: &mut Down, now| {
        assert_eq!(down.offer(&mut gone, now, 0, OWN), edge);
        (down.tells(&gone), down.allowed(), down.again(&gone, now, 0).is_some())
    };
    down.other(S / 5 - MS, 10_000); // v keeps the edge
    assert_eq!(ask(&mut down, S / 5 - MS), (false, 2 * u64::from(MSS), true));
    assert_eq!(ask(&mut down, S / 5), (true, 0, false));
    assert_eq!(ask(&mut down, 2 * S), (false, 0, false));
    // its server had waited: something comes, and the rest is to come
    down.came(&mut gone, 2 * S, MSS, MSS, 0, false);
    assert_eq!(down.allowed(), u64::from(MSS));
    assert!(down.offer(&mut gone, 3 * S, MSS, OWN) > edge);
}

#[test]
fn what_is_acknowledged_has_come_though_nobody_saw_it() {
    // Two packets that were allowed came before the program that counts what comes. While they were taken for
    // allowed still, no edge moved where the window is two packets: downloads stalled for seconds.
    let mut down = down(0);
    let mut pulled = Pulled::default();
    down.begin(&mut pulled, 0, 0, 2 * MSS, SCALE);
    assert_eq!(down.allowed(), 2 * u64::from(MSS));
    down.offer(&mut pulled, 0, 2 * MSS, OWN);
    assert_eq!(down.allowed(), 0);
}

#[test]
fn a_connection_that_ran_before_counts_for_nothing_until_something_comes() {
    // It is narrowed to ten packets, the window at first. It may have ended: they might never come.
    let mut down = down(0);
    let mut pulled = Pulled::default();
    down.begin(&mut pulled, 0, 0, OWN, SCALE);
    assert_eq!(down.allowed(), 0);
    down.came(&mut pulled, 20 * MS, MSS, MSS, 0, false);
    assert!(down.allowed() > 0);
}

#[test]
fn the_rate_is_what_came_in_two_spans_in_a_row() {
    let mut down = down(0);
    // 1 MB/s: 1500 bytes in 1.5 ms
    for i in 1..100 {
        down.count(i * 1500 * 1000, 1500);
    }
    assert!((990_000..=1_030_000).contains(&down.rate()), "{}", down.rate());
    // a burst in one span alone says nothing
    let was = down.rate();
    down.count(160 * MS, 100_000);
    down.count(400 * MS, 1500);
    assert_eq!(down.rate(), was);
}

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

/// What can happen to a host.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Passes(u64),
    Asks(u32),
    Fetches(u32, bool),
    Other(u32),
    Offers(u8),
    Comes(u8, u32, bool),
    Ends(u8),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        (0u64..200 * MS).prop_map(Happens::Passes),
        (0u32..3000).prop_map(Happens::Asks),
        (0u32..70_000, any::<bool>()).prop_map(|(n, last)| Happens::Fetches(n, last)),
        (0u32..70_000).prop_map(Happens::Other),
        (0u8..3).prop_map(Happens::Offers),
        (0u8..3, 1u32..70_000, any::<bool>()).prop_map(|(f, n, last)| Happens::Comes(f, n, last)),
        (0u8..3).prop_map(Happens::Ends),
    ]
}

/// What three downloads are told, beginning at a time, with sequence numbers from `first` on.
fn told(start: u64, first: u32, story: &[Happens]) -> Vec<u32> {
    let mut down = down(start);
    let mut user = Fetched::default();
    let mut fetched = 0u32;
    let mut now = start;
    let mut all = [Pulled::default(); 3];
    let mut acked = [first; 3];
    let mut edge = [first; 3];
    let mut open = [false; 3];
    let mut said = Vec::new();
    for event in story {
        match *event {
            Happens::Passes(ns) => now += ns,
            Happens::Asks(bytes) => down.leaves(&mut user, now, bytes, Some(fetched)),
            Happens::Fetches(bytes, last) => {
                fetched = fetched.wrapping_add(bytes);
                down.count(now, bytes);
                down.user_came(&mut user, now, bytes, last, false);
            }
            Happens::Other(bytes) => down.other(now, bytes),
            Happens::Offers(f) => {
                let f = usize::from(f);
                if !open[f] {
                    down.begin(&mut all[f], now, acked[f], edge[f], SCALE);
                    open[f] = true;
                }
                let next = down.offer(&mut all[f], now, acked[f], acked[f].wrapping_add(OWN));
                assert!(next.wrapping_sub(edge[f]) < 1 << 31, "an edge moved back");
                assert!(next.wrapping_sub(acked[f]) <= OWN + 128, "more than its own TCP allows");
                edge[f] = next;
                said.push(next.wrapping_sub(first));
                if let Some(at) = down.again(&all[f], now, 7) {
                    assert!(at > now && at <= now + S, "it asks again in time");
                }
            }
            // a sender obeys
            Happens::Comes(f, bytes, last) if open[usize::from(f)] => {
                let f = usize::from(f);
                let end = acked[f].wrapping_add(bytes.min(edge[f].wrapping_sub(acked[f])));
                down.count(now, bytes);
                let stamp = ((now - start) / MS) as u32 + 1;
                down.came(&mut all[f], now, MSS, end, stamp, last);
                acked[f] = end;
            }
            Happens::Ends(f) if open[usize::from(f)] => {
                down.end(&mut all[usize::from(f)]);
                all[usize::from(f)] = Pulled::default();
                open[usize::from(f)] = false;
                // the next connection there goes on with the numbers, but was told of nothing
                edge[usize::from(f)] = acked[usize::from(f)];
            }
            Happens::Comes(..) | Happens::Ends(_) => {}
        }
        let most: u64 = (0..3).map(|f| u64::from(edge[f].wrapping_sub(acked[f]))).sum();
        assert!(down.allowed() <= most, "it believes more to be allowed than is");
        assert!(down.rate() > 0);
    }
    (0..3).filter(|f| open[*f]).for_each(|f| down.end(&mut all[f]));
    assert_eq!(down.allowed(), 0, "nothing is allowed when all have ended");
    said
}

proptest! {
    #[test]
    fn whatever_happens_edges_never_move_back_and_all_that_is_allowed_is_known(
        story in prop::collection::vec(happens(), 1..300),
    ) {
        told(0, 0, &story);
    }

    #[test]
    fn another_clock_and_other_sequence_numbers_change_nothing(
        story in prop::collection::vec(happens(), 1..300),
        start in 0u64..1 << 50,
        first in any::<u32>(),
    ) {
        // microseconds are what the algorithm sees
        prop_assert_eq!(told(start / 1000 * 1000, first, &story), told(0, 0, &story));
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The path into a host (core/host/down.h).

mod datagram;
mod line;

use proptest::prelude::*;

use crate::{Class, Config, Datagram, Down, Fetched, Pulled};

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
fn an_edge_counts_with_the_headers_that_the_hosts_packets_have() {
    // two packets, rounded up to units of 128 bytes: 2896 or 2856 become 2944
    for (headers, queue) in [(0, 2944 + 2 * 66), (66, 2944 + 2 * 66), (86, 2944 + 2 * 86)] {
        let mut down = down(0);
        let mut pulled = Pulled::default();
        pulled.0.headers = headers;
        down.begin(&mut pulled, 0, 0, 0, SCALE);
        assert_eq!(down.offer(&mut pulled, 0, 0, OWN), 2944);
        assert_eq!(down.queue(), queue, "headers of {headers} bytes");
    }
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

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! QUIC in the background beside users, against TCP in the background beside the same users.

mod world;

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use netnice_core::{Class, Config};
use netnice_quinn::Background;
use world::{config, k1, Beside, Span, World, MS, SECOND};

const SEEDS: u64 = 8;

/// Connections of the process count as those of one host: no test runs beside another.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Mean time of fetches, and Mbit/s of the background.
fn mean(span: Span, beside: &dyn Fn() -> Beside) -> (f64, f64) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let seen: Vec<_> = (1..=SEEDS).map(|seed| k1(seed, span, &beside())).collect();
    let n = seen.len() as f64;
    let fetch_s = seen.iter().map(|s| s.fetch_s).sum::<f64>() / n;
    (fetch_s, seen.iter().map(|s| s.background_mbit).sum::<f64>() / n)
}

fn compare(span: Span, config: &Config, most_harm: f64, rates: &[(usize, Range<f64>)]) {
    let (alone_s, _) = mean(span, &|| Beside::Nothing);
    for (flows, rates) in rates {
        let (tcp_s, tcp) = mean(span, &|| Beside::Tcp(config.clone(), *flows));
        let (quic_s, quic) = mean(span, &|| Beside::Quic(Background::new(config.clone()), *flows));
        let harm = [tcp_s / alone_s, quic_s / alone_s];
        println!(
            "{:?} x{flows}, {span:?}: TCP {:.3} {tcp:.3}, QUIC {:.3} {quic:.3}",
            config.algorithm(),
            harm[0],
            harm[1]
        );
        assert!(harm[1] <= most_harm * harm[0], "x{flows}: harm {harm:?}");
        assert!(rates.contains(&(quic / tcp)), "x{flows}: {quic} Mbit/s beside TCP's {tcp}");
    }
}

/// The algorithm of connections of a group.
fn background() -> Config {
    Config::new(Class::default().algorithm_of_groups())
}

#[test]
fn quic_in_the_foreground_harms_and_carries_as_tcp_does() {
    let rates = [1, 4, 16].map(|flows| (flows, 0.95..1.05));
    compare(Span::FIRST, &config("reno"), 1.1, &rates);
}

#[test]
fn quic_in_the_background_harms_as_little_as_tcp_does_and_carries_as_much() {
    let rates = [1, 4, 16].map(|flows| (flows, 0.9..1.1));
    compare(Span::LATER, &background(), 1.02, &rates);
}

#[test]
fn quic_that_has_just_begun_harms_as_little_as_tcp_that_has() {
    // docs/quic.md has why it carries more or less
    let rates = [(1, 0.9..1.2), (4, 1.1..1.5), (16, 0.5..1.0)];
    compare(Span::FIRST, &background(), 1.05, &rates);
}

#[test]
fn without_whoever_waits_for_gaps_sixteen_connections_harm_more() {
    let quic = mean(Span::FIRST, &|| Beside::Quic(Background::new(background()), 16));
    let without = mean(Span::FIRST, &|| Beside::QuicWithoutGaps(Background::new(background()), 16));
    println!("s, Mbit/s: with gaps {quic:.3?}, without {without:.3?}");
    assert!(without.0 > quic.0 && without.1 > quic.1);
}

/// Datagrams that a client sends in so many milliseconds.
fn sent_in(world: &mut World, ms: u64) -> u64 {
    let before = world.quic.as_ref().expect("it is QUIC").sent;
    world.run_until(world.now + ms * MS);
    world.quic.as_ref().expect("it is QUIC").sent - before
}

#[test]
fn a_switch_takes_effect_within_a_round_trip() {
    let background = Background::of_class(Class::default());
    let switch = background.switch();
    switch.to_foreground();
    let mut world = World::new(1, Span::FIRST, &Beside::Quic(background, 1));
    world.run_until(10 * SECOND);
    // CUBIC alone: 8 Mbit/s are 67 datagrams of 1480 bytes in 100 ms
    let competing = sent_in(&mut world, 100);
    assert!(competing > 50, "{competing}");
    // 33 packets are on the path and up to 50 in the queue: until ten are left, nothing leaves
    switch.to_background();
    let draining = sent_in(&mut world, 50);
    assert!(draining <= 2, "{draining}");
    world.run_until(world.now + 5 * SECOND);
    switch.to_foreground();
    world.drive_quic();
    let again = sent_in(&mut world, 50);
    assert!(again >= 8, "{again}");
}

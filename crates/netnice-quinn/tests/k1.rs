// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! QUIC in the background beside users, against TCP in the background beside the same users.

mod world;

use std::sync::LazyLock;

use netnice_core::{Class, Config};
use netnice_quinn::Background;
use world::{config, k1, Beside, World, MS, SECOND};

const SEEDS: u64 = 8;

/// Mean time of fetches, and Mbit/s of the background.
fn mean(beside: &dyn Fn() -> Beside) -> (f64, f64) {
    let seen: Vec<_> = (1..=SEEDS).map(|seed| k1(seed, &beside())).collect();
    let n = seen.len() as f64;
    let fetch_s = seen.iter().map(|s| s.fetch_s).sum::<f64>() / n;
    (fetch_s, seen.iter().map(|s| s.background_mbit).sum::<f64>() / n)
}

static ALONE_S: LazyLock<f64> = LazyLock::new(|| mean(&|| Beside::Nothing).0);

/// Times that fetches take beside that, as multiples of what they take alone, and Mbit/s of the background.
fn harm_and_rate(beside: &dyn Fn() -> Beside) -> (f64, f64) {
    let (fetch_s, mbit) = mean(beside);
    (fetch_s / *ALONE_S, mbit)
}

fn compare(config: &Config, most_harm: f64, rates: std::ops::Range<f64>) {
    for flows in [1, 4, 16] {
        let tcp = harm_and_rate(&|| Beside::Tcp(config.clone(), flows));
        let quic = harm_and_rate(&|| Beside::Quic(Background::new(config.clone()), flows));
        println!("{:?} x{flows}: TCP {tcp:.3?}, QUIC {quic:.3?}", config.algorithm());
        assert!(quic.0 <= most_harm * tcp.0, "x{flows}: harm {} beside TCP's {}", quic.0, tcp.0);
        let rate = quic.1 / tcp.1;
        assert!(rates.contains(&rate), "x{flows}: {} Mbit/s beside TCP's {}", quic.1, tcp.1);
    }
}

#[test]
fn quic_in_the_foreground_harms_and_carries_as_tcp_does() {
    compare(&config("reno"), 1.1, 0.95..1.05);
}

#[test]
fn quic_in_the_background_harms_as_little_as_tcp_does() {
    // docs/library.md has why it carries less with 16 connections, and more with 4
    compare(&Config::new(Class::default().algorithm_of_groups()), 1.05, 0.7..1.6);
}

#[test]
fn without_whoever_waits_for_gaps_sixteen_connections_harm_more() {
    let config = Config::new(Class::default().algorithm_of_groups());
    let quic = harm_and_rate(&|| Beside::Quic(Background::new(config.clone()), 16));
    let without = harm_and_rate(&|| Beside::QuicWithoutGaps(Background::new(config.clone()), 16));
    println!("with gaps {quic:.3?}, without {without:.3?}");
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
    let mut world = World::new(1, &Beside::Quic(background, 1));
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

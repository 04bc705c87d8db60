// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Random numbers: one stream for each use, so that one use does not disturb another.

use netnice_scenario::pattern;
use rand::Rng;
use rand_pcg::Pcg64;

/// What random numbers are for.
#[derive(Debug, Clone, Copy)]
pub enum Stream {
    /// The link of that index: losses, jitter, reordering, and what its queue draws.
    Link(usize),
    /// The start of the background's flow of that index.
    Start(usize),
    /// The UDP source of that index.
    Source(usize),
    /// The initial sequence numbers of connections.
    Sequence,
    /// The hosts of fetches.
    Hosts,
    /// When hosts look again at their downloads.
    Turns,
}

/// The random numbers of a stream of the run with that seed.
pub fn stream(seed: u64, stream: Stream) -> Pcg64 {
    let (use_, index) = match stream {
        Stream::Link(index) => (1, index),
        Stream::Start(index) => (2, index),
        Stream::Source(index) => (3, index),
        Stream::Sequence => (4, 0),
        Stream::Hosts => (5, 0),
        Stream::Turns => (6, 0),
    };
    Pcg64::new(u128::from(pattern::mix(seed)), (use_ << 64) | index as u128)
}

/// One of these, all alike likely; of one alone nothing is drawn.
pub fn one_of<'a, T>(of: &'a [T], random: &mut Pcg64) -> &'a T {
    match of {
        [only] => only,
        _ => &of[(random.random::<f64>() * of.len() as f64) as usize],
    }
}

/// A draw in (0, 1].
pub fn above_zero(random: &mut Pcg64) -> f64 {
    1.0 - random.random::<f64>()
}

/// A draw of the exponential distribution with that mean.
pub fn exponential(random: &mut Pcg64, mean: f64) -> f64 {
    -mean * libm::log(above_zero(random))
}

/// A draw of the Pareto distribution with that mean; `shape` is above 1.
pub fn pareto(random: &mut Pcg64, shape: f64, mean: f64) -> f64 {
    let least = mean * (shape - 1.0) / shape;
    least * libm::pow(above_zero(random), -1.0 / shape)
}

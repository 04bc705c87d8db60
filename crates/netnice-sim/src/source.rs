// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! UDP sources: when their packets leave.

use netnice_scenario::{Cross, CrossKind};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::network::Paths;
use crate::packet::Nanos;
use crate::random;

/// A UDP source.
#[derive(Debug)]
pub(crate) struct Source {
    /// Whose it is: an index of the scenario's `[[cross]]`.
    pub(crate) cross: usize,
    pub(crate) host: usize,
    pub(crate) bytes: u32,
    pub(crate) paths: Paths,
    /// Time between packets; of a Poisson process the mean.
    gap: Nanos,
    poisson: bool,
    stop: Nanos,
    /// Mean times on and off in nanoseconds, and the shape of both; `None`: always on.
    bursts: Option<(f64, f64, f64)>,
    /// End of this burst.
    until: Nanos,
    random: Pcg64,
}

impl Source {
    /// A source of number `index` of the scenario's `[[cross]]`, and how long after its start it
    /// sends first: sources of one kind are out of step from the start.
    pub(crate) fn new(
        (index, cross): (usize, &Cross),
        (host, paths): (usize, Paths),
        stop: Nanos,
        mut random: Pcg64,
    ) -> (Self, Nanos) {
        let rate = cross.rate_mbit.unwrap_or(1.0);
        let bursts = (cross.kind == CrossKind::Onoff).then_some((
            cross.on_ms * 1e6,
            cross.off_ms * 1e6,
            cross.shape,
        ));
        let gap = (f64::from(cross.packet_bytes) * 8e3 / rate).round() as Nanos;
        let phase = match bursts {
            None => random.random::<f64>() * gap as f64,
            Some((on, off, _)) => random.random::<f64>() * (on + off),
        };
        let source = Self {
            cross: index,
            host,
            bytes: cross.packet_bytes,
            paths,
            gap,
            poisson: cross.kind == CrossKind::Poisson,
            stop,
            bursts,
            until: 0,
            random,
        };
        (source, phase as Nanos)
    }

    /// A packet is due at `now`. When the next one is; `None`: the source has stopped, and that one
    /// does not leave either.
    pub(crate) fn due(&mut self, now: Nanos) -> Option<Nanos> {
        if now >= self.stop {
            return None;
        }
        let Some((on, off, shape)) = self.bursts else {
            let gap = match self.poisson {
                true => random::exponential(&mut self.random, self.gap as f64) as Nanos,
                false => self.gap,
            };
            return Some(now + gap);
        };
        if now >= self.until {
            // a burst begins; after it comes the time off
            self.until = now + random::pareto(&mut self.random, shape, on) as Nanos;
        }
        if now + self.gap < self.until {
            return Some(now + self.gap);
        }
        let rest = random::pareto(&mut self.random, shape, off) as Nanos;
        Some(std::mem::take(&mut self.until) + rest)
    }
}

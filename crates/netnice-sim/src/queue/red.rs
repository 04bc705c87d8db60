// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Random early detection (Floyd and Jacobson, 1993), with the parameters that the lab gives tc-red.
//!
//! The average length, in bytes, takes a share `w` of the length that each packet finds. Below `min`
//! nothing is dropped; from `max` on everything; between them each packet with probability
//! `p_b = 0.02 (average - min) / (max - min)`, spread such that the packets between two drops are
//! uniform on `[1, 1/p_b]` (section 7, "method 2"). As Linux has it, the step at `max` is sharp: this
//! is not the "gentle" variant. `min` is a sixth of the limit, `max` half of it.
//!
//! `w` is the greatest 1/2^k with which a burst of `(2 min + max) / 3` into an empty queue leaves
//! the average below `min` (section 6, equation 3; tc-red(8) for the length of the burst). While the
//! queue is empty the average decays as if packets of 1000 bytes came at the rate of the link.

use rand::Rng;
use rand_pcg::Pcg64;

use super::fifo::Fifo;
use super::{Discipline, Limits, Stats, FULL_PACKET};
use crate::packet::{Nanos, Packet};

/// Drop probability of a packet where the average reaches `max`.
const MAX_P: f64 = 0.02;

/// Bytes of an average packet: the unit of the burst and of time while the queue is empty.
const AVERAGE_PACKET: u64 = 1000;

/// A queue under random early detection.
#[derive(Debug)]
pub(super) struct Red {
    fifo: Fifo,
    limits: Limits,
    min: f64,
    max: f64,
    weight: f64,
    ecn: bool,
    /// Nanoseconds that the link needs for an average packet.
    slot_ns: f64,
    /// Average length in bytes.
    average: f64,
    /// Since when the queue is empty.
    idle_since: Option<Nanos>,
    /// Packets since the last drop or since the average passed `min`; `None` below that.
    count: Option<u32>,
    /// The `p_b count` at which to drop next.
    threshold: f64,
    random: Pcg64,
}

impl Red {
    /// A limit in packets counts as so many full Ethernet frames, here as in the lab. `limits` has
    /// one.
    pub(super) fn new(limits: Limits, rate_bits_per_s: f64, ecn: bool, random: Pcg64) -> Red {
        let frames = limits.packets.map(|n| u64::from(n) * u64::from(FULL_PACKET));
        let room = frames.into_iter().chain(limits.bytes).min().unwrap_or(u64::MAX);
        let (min, max) = (room / 6, room / 2);
        let burst = (2 * min + max) / (3 * AVERAGE_PACKET) + 1;
        Red {
            fifo: Fifo::default(),
            limits: Limits { packets: None, bytes: Some(room) },
            min: min as f64,
            max: max as f64,
            weight: weight(min as f64 / AVERAGE_PACKET as f64, burst as f64),
            ecn,
            slot_ns: AVERAGE_PACKET as f64 * 8e9 / rate_bits_per_s,
            average: 0.0,
            idle_since: None,
            count: None,
            threshold: 0.0,
            random,
        }
    }

    fn sample(&mut self, now: Nanos) {
        match self.idle_since {
            Some(since) if self.fifo.packets() == 0 => {
                let slots = (now - since) as f64 / self.slot_ns;
                self.average *= libm::pow(1.0 - self.weight, slots);
                self.idle_since = Some(now);
            }
            _ => self.average += self.weight * (self.fifo.bytes() as f64 - self.average),
        }
    }

    /// Whether the packet that comes now is to be dropped or marked.
    fn unlucky(&mut self) -> bool {
        if self.average < self.min {
            self.count = None;
            return false;
        }
        if self.average >= self.max {
            self.count = None;
            return true;
        }
        let count = self.count.map_or(0, |n| n + 1);
        let p_b = MAX_P * (self.average - self.min) / (self.max - self.min);
        let drop = count > 0 && p_b * f64::from(count) >= self.threshold;
        if drop || count == 0 {
            self.threshold = self.random.random();
        }
        self.count = Some(if drop { 0 } else { count });
        drop
    }
}

impl Discipline for Red {
    fn push(&mut self, mut packet: Packet, now: Nanos, stats: &mut Stats) {
        self.sample(now);
        if self.unlucky() {
            if !(self.ecn && packet.ect) {
                stats.drops += 1;
                return;
            }
            packet.ce = true;
            stats.marks += 1;
        }
        if self.limits.admit(&self.fifo, packet.bytes) {
            self.fifo.push(packet);
        } else {
            stats.drops += 1;
        }
    }

    fn pop(&mut self, now: Nanos, _: &mut Stats) -> Option<Packet> {
        let packet = self.fifo.pop()?;
        if self.fifo.packets() == 0 {
            self.idle_since = Some(now);
        }
        Some(packet)
    }

    fn lists(&self) -> impl Iterator<Item = &Fifo> {
        std::iter::once(&self.fifo)
    }
}

/// The weight with which `burst` packets leave the average below `min` packets.
fn weight(min: f64, burst: f64) -> f64 {
    let excess = burst + 1.0 - min;
    let mut w = 0.5;
    while excess > (1.0 - libm::pow(1.0 - w, burst)) / w && w > f64::EPSILON {
        w /= 2.0;
    }
    w
}

#[cfg(test)]
mod tests {
    use super::super::tests::{limited, packet, random, MS};
    use super::*;

    /// 50 full packets at 8 Mbit/s: 75700 bytes, min 12616, max 37850, burst 22 packets.
    fn red(ecn: bool) -> Red {
        Red::new(limited(50), 8e6, ecn, random())
    }

    #[test]
    fn the_weight_is_the_greatest_that_lets_the_burst_pass() {
        // min is 12.616 average packets: 22 + 1 - 12.616 = 10.384 must not exceed
        // (1 - (1-w)^22) / w, which is 7.58 for w = 1/8 and 12.13 for w = 1/16.
        assert_eq!(red(false).weight, 1.0 / 16.0);
        assert_eq!((red(false).min, red(false).max), (12616.0, 37850.0));
    }

    #[test]
    fn the_average_after_n_packets_follows_the_paper() {
        // Packet i finds i-1 packets: after n of them the average is n - (1 - (1-w)^n) / w packets;
        // for w = 1/16 and n = 20 that is 20 - 16 (1 - 0.27506) = 8.4009 packets of 1514 bytes.
        let (mut q, mut stats) = (red(false), Stats::default());
        (0..20).for_each(|flow| q.push(packet(flow), 0, &mut stats));
        assert!((q.average - 8.4009 * 1514.0).abs() < 1.0, "{}", q.average);
        assert_eq!(stats.drops, 0);
    }

    #[test]
    fn an_empty_queue_forgets_its_average_at_the_rate_of_the_link() {
        // 1000 bytes take 1 ms at 8 Mbit/s: after 16 ms (15/16)^16 = 0.35607 is left.
        let mut q = red(false);
        q.push(packet(0), 0, &mut Stats::default());
        q.pop(0, &mut Stats::default()).unwrap();
        q.average = 10_000.0;
        q.sample(16 * MS);
        assert!((q.average - 3560.7).abs() < 0.1, "{}", q.average);
    }

    #[test]
    fn halfway_between_the_thresholds_a_drop_follows_after_1_to_100_packets_all_alike() {
        // p_b = 0.02 / 2 = 0.01: uniform on 1..100, mean 50.5, standard deviation 28.9; the mean of
        // 2000 draws has one of 0.65, and is within four of them.
        let mut q = red(false);
        q.average = (q.min + q.max) / 2.0;
        assert!(!q.unlucky());
        let gaps: Vec<u32> = (0..2000).map(|_| (1..).find(|_| q.unlucky()).unwrap()).collect();
        let mean = f64::from(gaps.iter().sum::<u32>()) / 2000.0;
        assert!((mean - 50.5).abs() < 2.6, "{mean}");
        assert!(gaps.iter().all(|g| (1..=100).contains(g)));
        assert!(gaps.iter().any(|&g| g <= 2) && gaps.iter().any(|&g| g >= 99));
    }

    #[test]
    fn from_max_on_every_packet_is_dropped_and_with_ecn_marked() {
        let (mut q, mut stats) = (red(true), Stats::default());
        for flow in 0..2 {
            // What is just below max after the next packet has found nothing.
            q.average = q.max * 16.0 / 15.0 + 1.0;
            q.push(Packet { ect: flow == 1, ..packet(flow) }, 0, &mut stats);
        }
        assert_eq!(stats, Stats { drops: 1, marks: 1 });
        let left = q.pop(0, &mut Stats::default()).unwrap();
        assert!(left.ce && left.flow == 1);
    }

    #[test]
    fn a_limit_in_packets_counts_full_frames() {
        // 75700 bytes hold 50 of 1514 and 71 of 1064; all come before the average passes min.
        for (bytes, kept) in [(1514, 50), (1064, 71)] {
            let (mut q, mut stats) = (red(false), Stats::default());
            q.weight = 0.0;
            (0..100).for_each(|flow| q.push(Packet { bytes, ..packet(flow) }, 0, &mut stats));
            assert_eq!((q.packets(), stats.drops), (kept, 100 - kept as u64));
        }
    }
}

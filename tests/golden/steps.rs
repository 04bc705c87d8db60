// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The steps of the golden traces, the same as in steps.h, and what is printed of them.

use netnice_core::sys::nn_step as Step;
use netnice_core::{Ack, Algorithm, Config};

/// The traces as tests/golden/record keeps them.
pub const RECORDED: &str = include_str!("traces.txt");

/// What traces of a group are called, beside those of [`configs`].
pub const GROUP: &str = "group";

const N_STEPS: u32 = 20_000;
const MSS: u32 = 1448;
const EVENTS: u32 = netnice_core::Event::NN_EVENTS as u32;

struct Path {
    random: u64,
    now_us: u64,
    una: u32,
    window: u32,
    queue_us: u32,
    target_us: u32,
    srtt_us: u32,
}

impl Path {
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e3779b97f4a7c15);
        let z = self.random;
        let z = (z ^ z >> 30).wrapping_mul(0xbf58476d1ce4e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d049bb133111eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.draw() % u64::from(n)) as u32
    }

    fn any(&mut self) -> u32 {
        let bits = self.draw();
        (bits >> self.below(64)) as u32
    }

    fn path_step(&mut self, i: u32) -> Step {
        if i.is_multiple_of(256) {
            self.target_us = if i / 256 % 2 == 1 { self.below(40_000) } else { 0 };
        }
        if i.is_multiple_of(64) {
            self.window = self.below(48); // after the ACK
        }
        self.queue_us = (self.queue_us * 15 + self.target_us) / 16;
        self.now_us += u64::from(500 + self.below(3000));

        let event = self.below(1000).min(EVENTS);
        let sampled = self.below(16) != 0;
        let rtt_us = if sampled { 50_000 + self.queue_us + self.below(300) } else { 0 };
        let acked = if self.below(64) != 0 { 1 + self.below(2) } else { self.below(20) };
        let lost = self.below(100) / 98;
        let flags = Some(self.below(60)).filter(|f| *f < 8).unwrap_or(0);
        if sampled {
            self.srtt_us = (7 * self.srtt_us + rtt_us) / 8;
        }
        self.una = self.una.wrapping_add(acked * MSS);
        let ack = Ack {
            now_us: self.now_us,
            rtt_us,
            srtt_us: self.srtt_us,
            acked,
            lost,
            inflight: self.window,
            una: self.una,
            nxt: self.una.wrapping_add(self.window * MSS),
            flags,
            mss: MSS,
            flows: i / 256 % 64,
        };
        Step { event, reserved: 0, ack }
    }

    fn hostile_step(&mut self) -> Step {
        let event = self.below(4 * EVENTS);
        let ack = Ack {
            now_us: self.draw(),
            rtt_us: self.any(),
            srtt_us: self.any(),
            acked: self.any(),
            lost: self.any(),
            inflight: self.any(),
            una: self.any(),
            nxt: self.any(),
            flags: self.any(),
            mss: self.any(),
            flows: self.any(),
        };
        Step { event, reserved: 0, ack }
    }
}

/// All steps, in order.
pub fn steps() -> Vec<Step> {
    let mut path = Path {
        random: 20021209,
        now_us: 0,
        una: 0u32.wrapping_sub(500 * MSS),
        window: 10,
        queue_us: 0,
        target_us: 0,
        srtt_us: 50_000,
    };
    (0..N_STEPS)
        .map(|i| if i < N_STEPS / 4 * 3 { path.path_step(i) } else { path.hostile_step() })
        .collect()
}

/// The two sets of parameters that are traced, with their names.
pub fn configs(algorithm: Algorithm) -> [(&'static str, Config); 2] {
    let all_at = |end: fn(&netnice_core::Param) -> f64| {
        let mut config = Config::new(algorithm);
        for p in algorithm.params() {
            config.set(&format!("{}={}", p.name(), end(&p))).expect("within its own range");
        }
        config
    };
    let (least, most) = (all_at(|p| p.least()), all_at(|p| p.most()));
    let values: Vec<u32> =
        least.values().iter().zip(most.values()).map(|(l, m)| l + (m - l) / 64).collect();
    let others = Config::from_values(algorithm, &values).expect("as many values");
    [("defaults", Config::new(algorithm)), ("others", others)]
}

/// One line of traces.txt.
pub fn line(algorithm: Algorithm, parameters: &str, hash: u64, cwnd_q16: u64) -> String {
    format!("{} {parameters} {hash:016x} {cwnd_q16}", algorithm.name())
}

/// Whether traces.txt has `line`; if not, what to do about it.
pub fn check(line: &str) -> Result<(), String> {
    let key = |l: &str| l.split(' ').take(2).collect::<Vec<_>>().join(" ");
    match RECORDED.lines().find(|l| key(l) == key(line)) {
        Some(recorded) if recorded == line => Ok(()),
        Some(recorded) => Err(format!(
            "the golden trace differs from the recorded one:\n  now       {line}\n  recorded  \
             {recorded}\nIf the algorithm was changed on purpose, record it again: tests/golden/record"
        )),
        None => Err(format!(
            "tests/golden/traces.txt has no trace {:?}; record it: tests/golden/record",
            key(line)
        )),
    }
}

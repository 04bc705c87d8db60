// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The schedule of foreground flows: a pure function of scenario and seed.
//!
//! It depends on the foreground, the rate of the bottleneck, the durations and the seed, on nothing
//! else: every background of a run, and every engine, meets the same flows. A longer experiment
//! continues the schedule of a shorter one. Times are whole microseconds and logarithms come from
//! `libm`, so that platforms agree.
//!
//! **Poisson arrivals.** Gaps are exponential with mean `E[size] / (load x rate)`. `E[size]` is that
//! of the *cut* sizes `min(X, max_bytes)`, so the expected offered load is exactly `load`:
//!
//! | sizes | X | `E[min(X, M)]` |
//! |---|---|---|
//! | pareto | `P(X > x) = (x_m/x)^a`, `x_m = mean (a-1)/a`, so `E[X] = mean` | `mean - M (x_m/M)^a / (a-1)` |
//! | exponential | `P(X > x) = e^(-x/mean)` | `mean (1 - e^(-M/mean))` |
//! | empirical | a request of the log, each equally likely | mean of the cut sizes |
//! | fixed | mean | mean |
//!
//! With shape 1.5, mean 30 kB and M = 10 MB the cut takes 2 % off the mean.
//!
//! **Periodic arrivals.** Gaps are `E[size] / (load x rate)`, all of them; the first flow starts after
//! half a gap.
//!
//! **Log arrivals.** The log is replayed in its order. Its times have a resolution of one second, so
//! the seed places each request uniformly within its second. The replay starts at a place that the
//! seed draws, goes on from the beginning after the end, and runs faster than the log by one
//! constant factor, chosen such that the mean load over the *whole* log is `load`. A window of some
//! seconds sees more or less than that, since the log varies by hour and its sizes have a heavy
//! tail; use several seeds.

use rand::Rng;
use rand_pcg::Pcg64;
use serde::Serialize;

use crate::weblog::WebLog;
use crate::{pattern, Arrivals, Foreground, Scenario, Sizes};

/// One foreground flow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Flow {
    /// When it starts, in seconds; a whole number of microseconds.
    pub start_s: f64,
    /// Its size in bytes, at least 1.
    pub bytes: u64,
    /// Whether it starts in the measured window.
    pub counted: bool,
    /// Seed of its content.
    #[serde(skip)]
    pub seed: u64,
}

/// Streams of random numbers, one for each use, so that uses do not disturb each other.
enum Stream {
    Gaps,
    Sizes,
    LogPlace,
    LogSeconds,
}

fn random(seed: u64, stream: Stream) -> Pcg64 {
    Pcg64::new(u128::from(pattern::mix(seed)), stream as u128)
}

/// The flows of a scenario in the order of their starts.
///
/// The log is used only if [`Foreground::needs_log`].
///
/// # Panics
/// If the log is needed and not given.
pub fn schedule(scenario: &Scenario, log: Option<&WebLog>, seed: u64) -> Vec<Flow> {
    let Some(foreground) = scenario.foreground.as_ref().filter(|f| f.load > 0.0) else {
        return Vec::new();
    };
    let target = foreground.load * scenario.rate_bytes();
    let needed = || log.expect("the caller gives the log when the foreground needs it");
    let flows: Box<dyn Iterator<Item = (f64, u64)>> = match foreground.arrivals {
        Arrivals::Log => Box::new(replay(needed(), foreground.max_bytes, target, seed)),
        Arrivals::Poisson | Arrivals::Periodic => {
            let log = foreground.needs_log().then(needed);
            let mean_gap_s = mean_size(foreground, log) / target;
            let times: Box<dyn Iterator<Item = f64>> = match foreground.arrivals {
                Arrivals::Periodic => {
                    Box::new((0..).map(move |n| (f64::from(n) + 0.5) * mean_gap_s))
                }
                _ => Box::new(arrivals(mean_gap_s, seed)),
            };
            Box::new(times.zip(sizes(foreground, log, seed)))
        }
    };
    let end_s = scenario.arrivals_end_s();
    flows
        .map(|(start_s, bytes)| ((start_s * 1e6).round() / 1e6, bytes))
        .take_while(|&(start_s, _)| start_s < end_s)
        .enumerate()
        .map(|(index, (start_s, bytes))| Flow {
            start_s,
            bytes,
            counted: start_s >= scenario.warmup_s,
            seed: pattern::derive(seed, index as u64),
        })
        .collect()
}

/// Expected size in bytes, after the cut to `max_bytes`; see the table above.
fn mean_size(foreground: &Foreground, log: Option<&WebLog>) -> f64 {
    let (mean, max) = (foreground.mean_bytes as f64, foreground.max_bytes as f64);
    match (foreground.sizes(), log) {
        (Sizes::Empirical, Some(log)) => {
            log.total_bytes(foreground.max_bytes) as f64 / log.requests().len() as f64
        }
        (Sizes::Pareto, _) => {
            let beyond = libm::pow(pareto_least(foreground) / max, foreground.shape);
            mean - max * beyond / (foreground.shape - 1.0)
        }
        (Sizes::Exponential, _) => mean * (1.0 - libm::exp(-max / mean)),
        (Sizes::Fixed | Sizes::Empirical, _) => mean,
    }
}

/// The least size of the Pareto distribution, in bytes.
fn pareto_least(foreground: &Foreground) -> f64 {
    foreground.mean_bytes as f64 * (foreground.shape - 1.0) / foreground.shape
}

/// A draw in (0, 1].
fn above_zero(random: &mut Pcg64) -> f64 {
    1.0 - random.random::<f64>()
}

/// Times of a Poisson process in seconds.
fn arrivals(mean_gap_s: f64, seed: u64) -> impl Iterator<Item = f64> {
    let mut random = random(seed, Stream::Gaps);
    let mut now_s = 0.0;
    std::iter::repeat_with(move || {
        now_s -= mean_gap_s * libm::log(above_zero(&mut random));
        now_s
    })
}

/// Sizes in bytes, by inversion of the distribution function.
fn sizes<'a>(
    foreground: &'a Foreground,
    log: Option<&'a WebLog>,
    seed: u64,
) -> impl Iterator<Item = u64> + 'a {
    let mut random = random(seed, Stream::Sizes);
    let mean = foreground.mean_bytes as f64;
    std::iter::repeat_with(move || {
        let u = above_zero(&mut random);
        let size = match (foreground.sizes(), log) {
            (Sizes::Empirical, Some(log)) => {
                let requests = log.requests();
                let index = (1.0 - u) * requests.len() as f64;
                requests[index as usize].bytes as f64
            }
            (Sizes::Pareto, _) => pareto_least(foreground) * libm::pow(u, -1.0 / foreground.shape),
            (Sizes::Exponential, _) => -mean * libm::log(u),
            (Sizes::Fixed | Sizes::Empirical, _) => mean,
        };
        // Rounding keeps the mean; the cast saturates, so even an infinite draw is cut.
        (size.round() as u64).clamp(1, foreground.max_bytes)
    })
}

/// Times in seconds and sizes in bytes of the log's replay at `target` bytes per second.
fn replay(
    log: &WebLog,
    max_bytes: u64,
    target: f64,
    seed: u64,
) -> impl Iterator<Item = (f64, u64)> {
    let span_s = log.span_s() as f64;
    let speed = target * span_s / log.total_bytes(max_bytes) as f64;
    let mut within = random(seed, Stream::LogSeconds);
    let mut requests: Vec<(f64, u64)> = log
        .requests()
        .iter()
        .map(|r| {
            let second = (r.time_s - log.first_s()) as f64;
            (second + within.random::<f64>(), r.bytes.min(max_bytes))
        })
        .collect();
    requests.sort_by(|a, b| a.0.total_cmp(&b.0));
    let from_s = random(seed, Stream::LogPlace).random::<f64>() * span_s;
    let first = requests.partition_point(|&(time_s, _)| time_s < from_s);
    (0..)
        .flat_map(move |pass| {
            let requests = requests.clone();
            requests
                .into_iter()
                .map(move |(time_s, bytes)| (f64::from(pass) * span_s + time_s, bytes))
        })
        .skip(first)
        .map(move |(time_s, bytes)| ((time_s - from_s) / speed, bytes))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::weblog::Request;

    fn scenario(foreground: &str) -> Scenario {
        let text = format!(
            "name = \"t\"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\nlimit_packets = 50\n\
             [foreground]\n{foreground}\n"
        );
        Scenario::parse(&text, "t.toml").unwrap()
    }

    fn web_log() -> WebLog {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/data/web-requests.csv.gz");
        WebLog::read(Path::new(path)).unwrap()
    }

    /// Start in microseconds and size of the first flows.
    fn start(foreground: &str) -> Vec<(u64, u64)> {
        schedule(&scenario(foreground), Some(&web_log()), 1)[..4]
            .iter()
            .map(|f| ((f.start_s * 1e6).round() as u64, f.bytes))
            .collect()
    }

    #[test]
    fn the_schedule_of_a_seed_is_the_same_in_every_version_and_on_every_platform() {
        assert_eq!(
            start(""),
            [(102_719, 23_978), (143_192, 15_017), (241_380, 25_907), (275_465, 34_809)]
        );
        assert_eq!(
            start("sizes = \"exponential\""),
            [(104_931, 39_355), (146_276, 18_296), (246_578, 42_837), (281_397, 56_129)]
        );
        assert_eq!(
            start("sizes = \"empirical\""),
            [(347_373, 24_747), (484_246, 1_791), (816_296, 1_015), (931_564, 11_024)]
        );
        assert_eq!(
            start("sizes = \"fixed\""),
            [(104_931, 30_000), (146_276, 30_000), (246_578, 30_000), (281_397, 30_000)]
        );
        assert_eq!(
            start("arrivals = \"log\""),
            [(76_353, 6_217), (90_129, 8_809), (193_973, 9_183), (1_098_385, 992)]
        );
    }

    #[test]
    fn periodic_flows_start_at_constant_gaps_and_have_one_size() {
        // Load 0.5 of 1 MB/s in flows of 30000 bytes: a gap of 60 ms, the first after 30 ms.
        assert_eq!(
            start("arrivals = \"periodic\""),
            [(30_000, 30_000), (90_000, 30_000), (150_000, 30_000), (210_000, 30_000)]
        );
        // Sizes can be drawn all the same, and are then those of Poisson arrivals.
        let drawn = start("arrivals = \"periodic\"\nsizes = \"exponential\"");
        assert_eq!(drawn.iter().map(|f| f.1).collect::<Vec<_>>(), [39_355, 18_296, 42_837, 56_129]);
    }

    #[test]
    fn another_seed_gives_another_schedule() {
        for foreground in ["", "arrivals = \"log\""] {
            let s = scenario(foreground);
            let log = web_log();
            assert_ne!(schedule(&s, Some(&log), 1), schedule(&s, Some(&log), 2));
        }
    }

    #[test]
    fn backgrounds_and_queues_do_not_change_the_schedule() {
        let s = scenario("");
        let mut other = s.clone();
        other.bottleneck.as_mut().unwrap().queue = crate::Queue::Cake;
        other.ideal.flows = 3;
        assert_eq!(schedule(&s, None, 1), schedule(&other, None, 1));
    }

    #[test]
    fn a_longer_experiment_continues_the_schedule_of_a_shorter_one() {
        for foreground in ["", "arrivals = \"log\""] {
            let s = scenario(foreground);
            let mut longer = s.clone();
            longer.measure_s = 60.0;
            let log = web_log();
            let (short, long) = (schedule(&s, Some(&log), 1), schedule(&longer, Some(&log), 1));
            assert!(short.len() < long.len());
            assert_eq!(short, long[..short.len()]);
        }
    }

    #[test]
    fn flows_are_in_order_and_only_those_after_the_warm_up_count() {
        for foreground in ["", "arrivals = \"log\""] {
            let flows = schedule(&scenario(foreground), Some(&web_log()), 1);
            assert!(flows.is_sorted_by_key(|f| f.start_s));
            assert!(flows.iter().all(|f| f.counted == (f.start_s >= 3.0) && f.start_s < 33.0));
            assert!(flows.iter().any(|f| f.counted) && flows.iter().any(|f| !f.counted));
        }
    }

    #[test]
    fn no_foreground_and_no_load_mean_no_flows() {
        let mut s = scenario("load = 0");
        assert_eq!(schedule(&s, None, 1), []);
        s.foreground = None;
        assert_eq!(schedule(&s, None, 1), []);
    }

    #[test]
    fn the_drawn_sizes_have_the_computed_mean() {
        let log = web_log();
        for (foreground, tolerance) in [
            ("shape = 3.0", 0.01),
            ("max_bytes = 60000", 0.01),
            ("", 0.05),
            ("sizes = \"exponential\"", 0.01),
            ("sizes = \"exponential\"\nmax_bytes = 30000", 0.01),
            ("sizes = \"empirical\"", 0.02),
            ("sizes = \"fixed\"", 0.0),
        ] {
            let f = scenario(foreground).foreground.unwrap();
            let log = f.needs_log().then_some(&log);
            let n = 400_000;
            let sum: u64 = sizes(&f, log, 1).take(n).sum();
            let ratio = sum as f64 / n as f64 / mean_size(&f, log);
            assert!((ratio - 1.0).abs() <= tolerance, "{foreground}: {ratio}");
        }
    }

    #[test]
    fn an_uncut_pareto_mean_is_the_mean_asked_for() {
        let mut f = scenario("").foreground.unwrap();
        f.max_bytes = u64::MAX;
        assert!((mean_size(&f, None) / 30_000.0 - 1.0).abs() < 1e-6);
        assert!((pareto_least(&f) - 10_000.0).abs() < 1e-9);
    }

    #[test]
    fn poisson_arrivals_offer_the_load_asked_for() {
        for cut in ["max_bytes = 60000", "sizes = \"exponential\""] {
            let mut s = scenario(&format!("load = 0.7\n{cut}"));
            s.measure_s = 80_000.0;
            let bytes: u64 = schedule(&s, None, 1).iter().map(|f| f.bytes).sum();
            let load = bytes as f64 / s.arrivals_end_s() / s.rate_bytes();
            assert!((load / 0.7 - 1.0).abs() < 0.01, "{cut}: {load}");
        }
    }

    #[test]
    fn a_replay_of_the_whole_log_offers_exactly_the_load_asked_for() {
        let log = web_log();
        let target = 500_000.0;
        let total = log.total_bytes(10_000_000);
        let pass_s = total as f64 / target;
        for seed in 1..4 {
            let flows: Vec<_> = replay(&log, 10_000_000, target, seed)
                .take_while(|&(start_s, _)| start_s < pass_s * 2.0)
                .collect();
            let bytes: u64 = flows.iter().map(|f| f.1).sum();
            assert_eq!(flows.len(), 2 * log.requests().len());
            assert_eq!(bytes, 2 * total);
        }
    }

    #[test]
    fn a_replay_keeps_the_order_and_the_proportions_of_the_log() {
        let requests = [(10, 1), (20, 2), (30, 3)].map(|(time_s, bytes)| Request { time_s, bytes });
        let log = WebLog::new(requests).unwrap();
        // 21 s of log with 6 bytes, offered at 60 bytes/s: ten passes per second.
        let flows: Vec<_> = replay(&log, 100, 60.0, 1).take(300).collect();
        for pair in flows.windows(2) {
            let (gap_s, from, to) = (pair[1].0 - pair[0].0, pair[0].1, pair[1].1);
            assert_eq!(to, from % 3 + 1);
            let log_gap_s = if from == 3 { 1.0 } else { 10.0 };
            assert!((gap_s * 210.0 - log_gap_s).abs() <= 1.0, "{gap_s}");
        }
    }
}

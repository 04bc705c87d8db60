// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The result document, with the keys that `netnice-lab run` has for the kernel.
//!
//! Counts and rates are of the measured window, flow completion times (FCT) of the foreground flows
//! that started in it. What could not be measured is `null`: a mean of nothing, the completion time
//! without a foreground, a ratio without its reference.

use netnice_scenario::{Scenario, Variant, IDEAL, NONE};
use serde::{Serialize, Serializer};

use crate::outcome::{Bulk, Outcome, Packets, QueueOutcome};
use crate::packet::Nanos;
use crate::stats::{mean, percentile, sorted, Interval};

/// Version of the document's keys.
const SCHEMA: u32 = 1;

/// What carried the traffic.
const ENGINE: &str = "sim";

/// All runs of a scenario.
#[derive(Debug, Clone, Serialize)]
pub struct Document {
    /// Version of the keys: 1.
    pub schema: u32,
    /// The scenario as it was run, in the form of its file.
    pub scenario: Scenario,
    /// `sim`.
    pub engine: &'static str,
    /// For the kernel engine: its version.
    pub kernel: Option<String>,
    /// For the kernel engine: the source that was measured.
    pub commit: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// For the kernel engine. Here the same command gives the same bytes, whenever it runs.
    pub date: Option<String>,
    /// One entry for each seed and background, in this order.
    pub runs: Vec<Run>,
    /// One entry for each background, over all seeds.
    pub summary: Vec<Summary>,
}

impl Document {
    /// The document of some runs.
    pub fn new(scenario: Scenario, command: Vec<String>, runs: Vec<Run>) -> Self {
        let summary = summarise(&runs);
        Self {
            schema: SCHEMA,
            scenario,
            engine: ENGINE,
            kernel: None,
            commit: None,
            command,
            date: None,
            runs,
            summary,
        }
    }
}

/// A sweep: the scenario with every combination of some keys' values. The keys are those of
/// `netnice-lab sweep`.
#[derive(Debug, Clone, Serialize)]
pub struct Sweep {
    /// Version of the keys: 1.
    pub schema: u32,
    /// `sweep`.
    pub kind: &'static str,
    /// The scenario without those values.
    pub scenario: Scenario,
    /// `sim`.
    pub engine: &'static str,
    /// As in [`Document::commit`].
    pub commit: Option<String>,
    /// The command line.
    pub command: Vec<String>,
    /// As in [`Document::date`].
    pub date: Option<String>,
    /// The keys that vary, and their values as text.
    pub vary: Ordered<Vec<String>>,
    /// Number of seeds.
    pub seeds: usize,
    /// One entry for each combination; the last key varies fastest.
    pub results: Vec<SweepPoint>,
}

/// One combination of a sweep's values.
#[derive(Debug, Clone, Serialize)]
pub struct SweepPoint {
    /// The keys and their values as text.
    pub settings: Ordered<String>,
    /// One entry for each background, over all seeds.
    pub summary: Vec<Summary>,
}

impl Sweep {
    /// The document of what `results` sums up.
    pub fn new(
        scenario: Scenario,
        command: Vec<String>,
        vary: Vec<(String, Vec<String>)>,
        seeds: usize,
        results: Vec<SweepPoint>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            kind: "sweep",
            scenario,
            engine: ENGINE,
            commit: None,
            command,
            date: None,
            vary: Ordered(vary),
            seeds,
            results,
        }
    }
}

/// Keys in the order that they were given.
#[derive(Debug, Clone, PartialEq)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for Ordered<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// One run: a background with a seed.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Name of the background; `none` without one.
    pub background: String,
    /// Its congestion control.
    pub control: Option<String>,
    /// Number of its flows.
    pub flows: u32,
    /// The seed.
    pub seed: u64,
    /// The foreground.
    pub foreground: Foreground,
    /// The probes, if the scenario has any.
    pub probe: Option<Probe>,
    /// Payload per second of the background in Mbit/s.
    pub background_goodput_mbit: f64,
    /// The same of each flow, in the order of their starts.
    pub background_flow_mbit: Vec<f64>,
    /// Packets that the background sent again, over the whole run.
    pub background_retransmits: u64,
    /// The queue of `[bottleneck]`, or that of the slowest link on the foreground's path.
    pub queue: QueueOutcome,
    /// The other traffic, in the order of the scenario.
    pub cross: Vec<Cross>,
}

/// The foreground of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Foreground {
    /// Number of flows.
    pub flows: usize,
    /// Those of them that did not finish; the times below are of the others.
    pub unfinished: usize,
    /// Mean FCT in seconds.
    pub fct_mean_s: Option<f64>,
    /// Median FCT in seconds.
    pub fct_p50_s: Option<f64>,
    /// 95th percentile of the FCT in seconds.
    pub fct_p95_s: Option<f64>,
    /// 99th percentile of the FCT in seconds.
    pub fct_p99_s: Option<f64>,
    /// Payload of the finished flows in bytes.
    pub bytes: u64,
    /// The same in Mbit/s.
    pub goodput_mbit: f64,
    /// FCT of each finished flow in seconds, in the order of their starts.
    pub fct_s: Vec<f64>,
    /// Their sizes in bytes.
    pub sizes: Vec<u64>,
    /// Their packets' round-trip times.
    #[serde(flatten)]
    pub packet_rtt: PacketRtt,
    /// Packets sent, of all flows.
    pub packets: u64,
    /// Packets sent again, of all flows.
    pub retransmits: u64,
}

/// Round-trip times of packets: from first sending to the first acknowledgement, retransmissions
/// included (TCP Nice, 4.1).
#[derive(Debug, Clone, Copy, Serialize)]
pub struct PacketRtt {
    /// Mean in milliseconds.
    pub packet_rtt_mean_ms: Option<f64>,
    /// 95th percentile in milliseconds.
    pub packet_rtt_p95_ms: Option<f64>,
    /// 99th percentile in milliseconds.
    pub packet_rtt_p99_ms: Option<f64>,
}

/// The echo probes of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Probe {
    /// Mean round-trip time in milliseconds.
    pub rtt_mean_ms: Option<f64>,
    /// 95th percentile in milliseconds.
    pub rtt_p95_ms: Option<f64>,
    /// 99th percentile in milliseconds.
    pub rtt_p99_ms: Option<f64>,
    /// Probes that did not come back.
    pub lost: usize,
}

/// Other traffic of one run.
#[derive(Debug, Clone, Serialize)]
pub struct Cross {
    /// Its name.
    pub name: String,
    /// Payload per second that arrived, in Mbit/s.
    pub goodput_mbit: f64,
    /// Its packets' round-trip times.
    #[serde(flatten)]
    pub packet_rtt: PacketRtt,
    /// Packets sent.
    pub packets: u64,
    /// Packets of UDP that never arrived, or of TCP that were sent again.
    pub lost: u64,
}

/// One background over all seeds. Ratios are to no background, shares to strict priority, each to the
/// run with the same seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Name of the background.
    pub background: String,
    /// Number of seeds.
    pub seeds: usize,
    /// Ratio of the mean FCT.
    pub fct_ratio_mean: Interval,
    /// Ratio of the FCT's 95th percentile.
    pub fct_ratio_p95: Interval,
    /// Ratio of the FCT's 99th percentile.
    pub fct_ratio_p99: Interval,
    /// Background goodput as a share of what strict priority has.
    pub share: Interval,
    /// Where strict priority carried nothing with some seeds: the number of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_seeds: Option<usize>,
    /// Mean FCT in seconds.
    pub fct_mean_s: Option<f64>,
    /// Payload per second of the background in Mbit/s.
    pub background_goodput_mbit: Option<f64>,
    /// Ratio of the probes' mean round-trip time.
    pub probe_rtt_ratio_mean: Option<f64>,
    /// Foreground flows that did not finish, which the means do not hold.
    pub unfinished: usize,
    /// Mean round-trip time of the foreground's packets in milliseconds.
    pub packet_rtt_mean_ms: Option<f64>,
    /// Ratio of that.
    pub packet_rtt_ratio_mean: Interval,
    /// The other traffic, in the order of the scenario.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<CrossSummary>,
}

/// Other traffic beside one background over all seeds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CrossSummary {
    /// Its name.
    pub name: String,
    /// Payload per second that arrived, in Mbit/s.
    pub goodput_mbit: Option<f64>,
    /// Ratio of that.
    pub goodput_ratio: Interval,
    /// Ratio of its packets' mean round-trip time.
    pub packet_rtt_ratio_mean: Interval,
}

impl Run {
    /// The entry of one run.
    pub fn new(scenario: &Scenario, variant: &Variant, seed: u64, outcome: &Outcome) -> Self {
        let window_s = scenario.measure_s;
        let background = variant.background.as_ref();
        let rates: Vec<f64> =
            outcome.background.iter().map(|flow| mbit(flow.window_bytes, window_s)).collect();
        let probed = scenario.foreground.as_ref().is_some_and(|f| f.probe_interval_ms.is_some());
        let cross = scenario.cross.iter().zip(&outcome.cross);
        Self {
            background: variant.name.clone(),
            control: background.map(|b| b.control.clone()),
            flows: background.map_or(0, |b| b.flows),
            seed,
            foreground: Foreground::new(outcome, window_s),
            probe: probed.then(|| Probe::new(&outcome.probes)),
            // An empty sum of floats is -0.
            background_goodput_mbit: 0.0 + rates.iter().sum::<f64>(),
            background_flow_mbit: rates,
            background_retransmits: outcome.background.iter().map(|b: &Bulk| b.retransmits).sum(),
            queue: outcome.queue,
            cross: cross.map(|(c, packets)| Cross::new(&c.name, packets, window_s)).collect(),
        }
    }
}

impl Foreground {
    fn new(outcome: &Outcome, window_s: f64) -> Self {
        let counted: Vec<_> = outcome.fetches.iter().filter(|f| f.counted).collect();
        let (fct_s, sizes): (Vec<f64>, Vec<u64>) =
            counted.iter().filter_map(|f| Some((f.fct_s?, f.bytes))).unzip();
        let ascending = sorted(fct_s.iter().copied());
        let bytes = sizes.iter().sum();
        Self {
            flows: counted.len(),
            unfinished: counted.len() - fct_s.len(),
            fct_mean_s: mean(&fct_s),
            fct_p50_s: percentile(&ascending, 50.0),
            fct_p95_s: percentile(&ascending, 95.0),
            fct_p99_s: percentile(&ascending, 99.0),
            bytes,
            goodput_mbit: mbit(bytes, window_s),
            fct_s,
            sizes,
            packet_rtt: PacketRtt::new(&outcome.foreground),
            packets: outcome.foreground.sent,
            retransmits: outcome.foreground.lost,
        }
    }
}

impl PacketRtt {
    fn new(packets: &Packets) -> Self {
        let ms = sorted(packets.rtt_us.iter().map(|&us| f64::from(us) / 1e3));
        Self {
            packet_rtt_mean_ms: mean(&ms),
            packet_rtt_p95_ms: percentile(&ms, 95.0),
            packet_rtt_p99_ms: percentile(&ms, 99.0),
        }
    }
}

impl Probe {
    fn new(probes: &[Option<Nanos>]) -> Self {
        let ms = sorted(probes.iter().flatten().map(|&ns| ns as f64 / 1e6));
        Self {
            rtt_mean_ms: mean(&ms),
            rtt_p95_ms: percentile(&ms, 95.0),
            rtt_p99_ms: percentile(&ms, 99.0),
            lost: probes.len() - ms.len(),
        }
    }
}

impl Cross {
    fn new(name: &str, packets: &Packets, window_s: f64) -> Self {
        Self {
            name: name.into(),
            goodput_mbit: mbit(packets.window_bytes, window_s),
            packet_rtt: PacketRtt::new(packets),
            packets: packets.sent,
            lost: packets.lost,
        }
    }
}

fn mbit(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8e-6 / seconds
}

/// One entry for each background, in the order of first appearance.
pub fn summarise(runs: &[Run]) -> Vec<Summary> {
    let mut names: Vec<&str> = Vec::new();
    for run in runs {
        if !names.contains(&run.background.as_str()) {
            names.push(&run.background);
        }
    }
    let all = |name: &str| runs.iter().filter(|r| r.background == name).collect::<Vec<_>>();
    let (none, ideal) = (all(NONE), all(IDEAL));
    names.into_iter().map(|name| Summary::new(name, &all(name), &none, &ideal)).collect()
}

impl Summary {
    fn new(name: &str, group: &[&Run], none: &[&Run], ideal: &[&Run]) -> Self {
        let ratio = |of: &dyn Fn(&Run) -> Option<f64>| Interval::of(&paired(group, none, of));
        let average = |of: &dyn Fn(&Run) -> Option<f64>| {
            mean(&group.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
        };
        let rtt_ms = |r: &Run| r.foreground.packet_rtt.packet_rtt_mean_ms;
        let cross = group[0].cross.iter().enumerate().map(|(i, cross)| CrossSummary {
            name: cross.name.clone(),
            goodput_mbit: average(&|r| Some(r.cross[i].goodput_mbit)),
            goodput_ratio: ratio(&|r| Some(r.cross[i].goodput_mbit)),
            packet_rtt_ratio_mean: ratio(&|r| r.cross[i].packet_rtt.packet_rtt_mean_ms),
        });
        let share = Interval::of(&paired(group, ideal, &|r| Some(r.background_goodput_mbit)));
        Self {
            background: name.into(),
            seeds: group.len(),
            fct_ratio_mean: ratio(&|r| r.foreground.fct_mean_s),
            fct_ratio_p95: ratio(&|r| r.foreground.fct_p95_s),
            fct_ratio_p99: ratio(&|r| r.foreground.fct_p99_s),
            share,
            share_seeds: (share.values < group.len()).then_some(share.values),
            fct_mean_s: average(&|r| r.foreground.fct_mean_s),
            background_goodput_mbit: average(&|r| Some(r.background_goodput_mbit)),
            probe_rtt_ratio_mean: ratio(&|r| r.probe.as_ref()?.rtt_mean_ms).mean,
            unfinished: group.iter().map(|r| r.foreground.unfinished).sum(),
            packet_rtt_mean_ms: average(&rtt_ms),
            packet_rtt_ratio_mean: ratio(&rtt_ms),
            cross: cross.collect(),
        }
    }
}

/// Value over the reference's value with the same seed, where both exist.
fn paired(group: &[&Run], reference: &[&Run], of: &dyn Fn(&Run) -> Option<f64>) -> Vec<f64> {
    group
        .iter()
        .filter_map(|run| {
            let same = reference.iter().find(|r| r.seed == run.seed)?;
            Some(of(run)? / of(same).filter(|&value| value != 0.0)?)
        })
        .collect()
}

#[cfg(test)]
mod tests;

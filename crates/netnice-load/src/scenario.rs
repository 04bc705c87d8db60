// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Scenario files (TOML): what flows, where, for how long.
//!
//! Every default is documented at its field. An unknown key or value is an error that names the
//! line and the nearest known one, so that a typing error never silently changes an experiment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Error;

/// One experiment: a bottleneck, foreground flows, and backgrounds to compare.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Short name, also of the files that results go to.
    pub name: String,
    /// One line that a reader understands. Default: empty.
    #[serde(default)]
    pub title: String,
    /// Seconds before flows count. Default 3.
    #[serde(default = "default::warmup_s")]
    pub warmup_s: f64,
    /// Seconds in which starting flows count; none start later. Default 30.
    #[serde(default = "default::measure_s")]
    pub measure_s: f64,
    /// Seconds that counted flows may still take after that to finish. Default 30.
    #[serde(default = "default::drain_s")]
    pub drain_s: f64,
    /// The shared link.
    pub bottleneck: Bottleneck,
    /// The flows whose completion times matter. Default: none.
    pub foreground: Option<Foreground>,
    /// The variants to compare, `[[background]]` each. Default: none.
    #[serde(default)]
    pub background: Vec<Background>,
    /// The strict-priority reference. Default: see [`Ideal`].
    #[serde(default)]
    pub ideal: Ideal,
}

/// The shared link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bottleneck {
    /// Rate in Mbit/s.
    pub rate_mbit: f64,
    /// Two-way propagation time in milliseconds.
    pub rtt_ms: f64,
    /// Queue discipline. Default drop-tail.
    #[serde(default)]
    pub queue: Queue,
    /// Room in the queue, in packets.
    pub limit_packets: u32,
    /// Probability that a packet in the direction of the data is lost at random. Default 0.
    #[serde(default)]
    pub loss: f64,
}

/// Queue discipline of the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Queue {
    /// First in, first out; what does not fit is dropped.
    #[default]
    #[serde(rename = "drop-tail")]
    DropTail,
    /// Random early detection.
    Red,
    /// Fair queueing with controlled delay.
    FqCodel,
    /// Common applications kept enhanced.
    Cake,
    /// Strict priority of the foreground.
    Priority,
}

/// Fetches: a client behind the bottleneck connects, asks for a size and receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreground {
    /// Congestion control of the server. Default cubic.
    #[serde(default = "default::control")]
    pub control: String,
    /// When flows start. Default poisson.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How large flows are. Default pareto; for `arrivals = "log"` the log's own sizes.
    pub sizes: Option<Sizes>,
    /// Shape of the Pareto distribution, above 1. Default 1.5.
    #[serde(default = "default::shape")]
    pub shape: f64,
    /// Mean size in bytes before truncation (pareto, exponential), or the size (fixed).
    /// Default 30000.
    #[serde(default = "default::mean_bytes")]
    pub mean_bytes: u64,
    /// Larger flows are cut to this size, in bytes. The arrival rate accounts for it, so that the
    /// offered load stays `load`. Default 10000000.
    #[serde(default = "default::max_bytes")]
    pub max_bytes: u64,
    /// Offered load as a share of the bottleneck rate. 0: no flows. Default 0.5.
    #[serde(default = "default::load")]
    pub load: f64,
    /// Milliseconds between UDP echo probes. Default: no probes.
    pub probe_interval_ms: Option<f64>,
}

/// When foreground flows start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// A Poisson process.
    #[default]
    Poisson,
    /// The web request log in its order, compressed in time.
    Log,
}

/// How large foreground flows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sizes {
    /// Pareto with `shape` and `mean_bytes`.
    Pareto,
    /// Exponential with `mean_bytes`.
    Exponential,
    /// Drawn from the web request log.
    Empirical,
    /// All `mean_bytes`.
    Fixed,
}

/// One variant of background traffic: bulk flows across the same bottleneck.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Name in tables; unique.
    pub name: String,
    /// Congestion control of the senders.
    pub control: String,
    /// Number of flows. Default 1.
    #[serde(default = "default::flows")]
    pub flows: u32,
    /// Bytes of each flow; 0 is endless. Default 0.
    #[serde(default)]
    pub bytes: u64,
    /// Start of the first flow in seconds. Default 0.
    #[serde(default)]
    pub start_s: f64,
    /// Seconds between the starts of flows. Default 0.
    #[serde(default)]
    pub stagger_s: f64,
    /// Algorithm parameters, checked by whoever sets them. Default: the algorithm's own.
    #[serde(default)]
    pub set: BTreeMap<String, Parameter>,
    /// A queue for this variant instead of the bottleneck's. Default: the bottleneck's.
    pub queue: Option<Queue>,
}

/// Value of an algorithm parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Parameter {
    /// A whole number.
    Integer(i64),
    /// A decimal number.
    Number(f64),
    /// A word.
    Text(String),
}

/// The strict-priority reference: bulk flows in the low band of a priority queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ideal {
    /// Congestion control of the senders. Default cubic.
    pub control: String,
    /// Number of flows. Default 16.
    pub flows: u32,
}

impl Default for Ideal {
    fn default() -> Self {
        Self { control: default::control(), flows: 16 }
    }
}

mod default {
    pub fn warmup_s() -> f64 {
        3.0
    }
    pub fn measure_s() -> f64 {
        30.0
    }
    pub fn drain_s() -> f64 {
        30.0
    }
    pub fn control() -> String {
        "cubic".into()
    }
    pub fn shape() -> f64 {
        1.5
    }
    pub fn mean_bytes() -> u64 {
        30_000
    }
    pub fn max_bytes() -> u64 {
        10_000_000
    }
    pub fn load() -> f64 {
        0.5
    }
    pub fn flows() -> u32 {
        1
    }
}

/// Backgrounds that every run has; a variant cannot take their names.
const RESERVED: [&str; 2] = ["none", "strict priority"];

/// `TCP_CA_NAME_MAX` without its terminator.
const CONTROL_NAME_MAX: usize = 15;

/// A day; longer experiments are typing errors.
const LONGEST_S: f64 = 86_400.0;

impl Scenario {
    /// Reads and checks the scenario in a file.
    ///
    /// # Errors
    /// [`Error::Read`] if the file cannot be read, [`Error::Scenario`] if it is not valid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|reason| Error::Read { path: path.into(), reason })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses and checks a scenario; `name` is how errors call the text.
    ///
    /// # Errors
    /// [`Error::Scenario`] if it is not TOML, has unknown keys, or values out of range.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let scenario: Self = toml::from_str(text).map_err(|e| Error::Scenario {
            place: match e.span() {
                Some(span) => format!("{name}, line {}", line_of(text, span.start)),
                None => name.into(),
            },
            what: sentence(e.message()),
        })?;
        match scenario.fault() {
            None => Ok(scenario),
            Some(what) => Err(Error::Scenario { place: name.into(), what }),
        }
    }

    /// End of the time in which foreground flows start, in seconds.
    pub fn arrivals_end_s(&self) -> f64 {
        self.warmup_s + self.measure_s
    }

    /// End of the experiment, in seconds.
    pub fn end_s(&self) -> f64 {
        self.arrivals_end_s() + self.drain_s
    }

    /// Rate of the bottleneck in bytes per second.
    pub fn rate_bytes(&self) -> f64 {
        self.bottleneck.rate_mbit * 1e6 / 8.0
    }

    /// The first value that is out of range, as a sentence.
    fn fault(&self) -> Option<String> {
        let b = &self.bottleneck;
        let mut ranges = vec![
            ("warmup_s".into(), self.warmup_s, 0.0, LONGEST_S, "seconds"),
            ("measure_s".into(), self.measure_s, 0.001, LONGEST_S, "seconds"),
            ("drain_s".into(), self.drain_s, 0.0, LONGEST_S, "seconds"),
            ("bottleneck.rate_mbit".into(), b.rate_mbit, 0.001, 1e6, "Mbit/s"),
            ("bottleneck.rtt_ms".into(), b.rtt_ms, 0.0, 60_000.0, "milliseconds"),
            ("bottleneck.limit_packets".into(), f64::from(b.limit_packets), 1.0, 1e6, "packets"),
            ("bottleneck.loss".into(), b.loss, 0.0, 0.99, "as a probability"),
            ("ideal.flows".into(), f64::from(self.ideal.flows), 1.0, 1e5, "flows"),
        ];
        let mut controls = vec![("ideal.control".into(), &self.ideal.control)];
        if let Some(f) = &self.foreground {
            controls.push(("foreground.control".into(), &f.control));
            ranges.extend([
                (
                    "foreground.shape".into(),
                    f.shape,
                    1.01,
                    100.0,
                    "(at 1 and below a Pareto distribution has no mean)",
                ),
                ("foreground.mean_bytes".into(), f.mean_bytes as f64, 1.0, 1e12, "bytes"),
                ("foreground.max_bytes".into(), f.max_bytes as f64, 1.0, 1e12, "bytes"),
                ("foreground.load".into(), f.load, 0.0, 10.0, "as a share of the bottleneck rate"),
                (
                    "foreground.probe_interval_ms".into(),
                    f.probe_interval_ms.unwrap_or(100.0),
                    1.0,
                    60_000.0,
                    "milliseconds",
                ),
            ]);
        }
        for (i, v) in self.background.iter().enumerate() {
            let at = |key: &str| format!("background[{}].{key}", i + 1);
            controls.push((at("control"), &v.control));
            ranges.extend([
                (at("flows"), f64::from(v.flows), 1.0, 1e5, "flows"),
                (at("start_s"), v.start_s, 0.0, LONGEST_S, "seconds"),
                (at("stagger_s"), v.stagger_s, 0.0, LONGEST_S, "seconds"),
            ]);
        }
        ranges
            .into_iter()
            .find(|(_, value, low, high, _)| !(low..=high).contains(&value))
            .map(|(key, value, low, high, unit)| {
                format!("`{key}` is {value}; it must be from {low} to {high} {unit}.")
            })
            .or_else(|| {
                controls.into_iter().find_map(|(key, name)| {
                    let fits = (1..=CONTROL_NAME_MAX).contains(&name.len())
                        && name.bytes().all(|c| c.is_ascii_graphic());
                    (!fits).then(|| {
                        format!(
                            "`{key}` is {name:?}; a congestion control's name has 1 to \
                             {CONTROL_NAME_MAX} visible characters, such as \"cubic\"."
                        )
                    })
                })
            })
            .or_else(|| self.background_name_fault())
            .or_else(|| self.foreground.as_ref().and_then(Foreground::fault))
    }

    fn background_name_fault(&self) -> Option<String> {
        let mut seen: BTreeSet<&str> = RESERVED.into();
        let name = &self.background.iter().find(|b| !seen.insert(&b.name))?.name;
        Some(if RESERVED.contains(&name.as_str()) {
            format!("The background name \"{name}\" is taken: every run has it already. Remove this variant or rename it.")
        } else {
            format!(
                "Two backgrounds are called \"{name}\"; rename one, since tables show the name."
            )
        })
    }
}

impl Foreground {
    /// The distribution of sizes, with the default filled in.
    pub fn sizes(&self) -> Sizes {
        self.sizes.unwrap_or(match self.arrivals {
            Arrivals::Poisson => Sizes::Pareto,
            Arrivals::Log => Sizes::Empirical,
        })
    }

    /// Whether the web request log is needed.
    pub fn needs_log(&self) -> bool {
        self.sizes() == Sizes::Empirical
    }

    fn fault(&self) -> Option<String> {
        if self.arrivals == Arrivals::Log && self.sizes() != Sizes::Empirical {
            return Some(
                "`foreground.arrivals = \"log\"` replays the log's own sizes: remove \
                 `foreground.sizes`, or choose `arrivals = \"poisson\"`."
                    .into(),
            );
        }
        if !self.needs_log() && self.max_bytes < self.mean_bytes {
            return Some(format!(
                "`foreground.max_bytes` is {}, below `foreground.mean_bytes` of {}; raise it or leave it out.",
                self.max_bytes, self.mean_bytes
            ));
        }
        None
    }
}

/// Line (from 1) of a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

/// Makes a sentence of the parser's message, naming the nearest known key or value.
///
/// The parser quotes the unknown name first and then all known ones, each in backquotes.
fn sentence(message: &str) -> String {
    let kind = [("unknown field", "key"), ("unknown variant", "value"), ("missing field", "")]
        .into_iter()
        .find(|(start, _)| message.starts_with(start));
    let mut names = message.split('`').skip(1).step_by(2);
    match (kind, names.next()) {
        (Some(("missing field", _)), Some(missing)) => {
            format!("the key `{missing}` is missing; add it.")
        }
        (Some((_, noun)), Some(unknown)) => {
            let known: Vec<&str> = names.collect();
            let nearest = known
                .iter()
                .min_by_key(|name| strsim::damerau_levenshtein(name, unknown))
                .map(|name| format!(" The nearest known {noun} is `{name}`."))
                .unwrap_or_default();
            format!("unknown {noun} `{unknown}`.{nearest} All known: {}.", known.join(", "))
        }
        _ => format!("{}.", message.trim_end().replace('\n', "; ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str =
        "name = \"m\"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\nlimit_packets = 50\n";

    fn fault(addition: &str) -> String {
        Scenario::parse(&format!("{MINIMAL}{addition}"), "m.toml")
            .expect_err("this scenario is not valid")
            .to_string()
    }

    #[test]
    fn a_minimal_scenario_gets_the_documented_defaults() {
        let text = format!("{MINIMAL}[foreground]\n");
        let s = Scenario::parse(&text, "m.toml").unwrap();
        assert_eq!((s.warmup_s, s.measure_s, s.drain_s), (3.0, 30.0, 30.0));
        assert_eq!(s.bottleneck.queue, Queue::DropTail);
        assert_eq!((s.ideal.control.as_str(), s.ideal.flows), ("cubic", 16));
        let f = s.foreground.unwrap();
        assert_eq!((f.control.as_str(), f.sizes()), ("cubic", Sizes::Pareto));
        assert_eq!((f.shape, f.mean_bytes, f.max_bytes), (1.5, 30_000, 10_000_000));
        assert_eq!((f.load, f.probe_interval_ms), (0.5, None));
    }

    #[test]
    fn a_background_takes_numbers_and_words_as_parameters() {
        let text = format!(
            "{MINIMAL}[[background]]\nname = \"n\"\ncontrol = \"nn_nice\"\n\
             set = {{ threshold = 0.1, floor = 48, mode = \"fast\" }}\nqueue = \"priority\"\n"
        );
        let background = &Scenario::parse(&text, "m.toml").unwrap().background[0];
        assert_eq!(background.set["threshold"], Parameter::Number(0.1));
        assert_eq!(background.set["floor"], Parameter::Integer(48));
        assert_eq!(background.set["mode"], Parameter::Text("fast".into()));
        assert_eq!(background.queue, Some(Queue::Priority));
    }

    #[test]
    fn an_unknown_key_names_its_line_and_the_nearest_known_key() {
        let said = fault("[foreground]\nmean_byte = 4\n");
        assert!(said.starts_with("m.toml, line 7: unknown key `mean_byte`."), "{said}");
        assert!(said.contains("nearest known key is `mean_bytes`"), "{said}");
    }

    #[test]
    fn an_unknown_value_names_the_nearest_known_value() {
        let said = fault("queue = \"fq-codel\"\n");
        assert!(
            said.contains(
                "line 6: unknown value `fq-codel`. The nearest known value is `fq_codel`"
            ),
            "{said}"
        );
    }

    #[test]
    fn a_missing_key_is_named() {
        let said =
            Scenario::parse("name = \"m\"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 1\n", "m.toml")
                .unwrap_err()
                .to_string();
        assert!(said.contains("`limit_packets` is missing"), "{said}");
    }

    #[test]
    fn a_value_out_of_range_names_the_range() {
        for (addition, expected) in [
            ("loss = 1.5", "`bottleneck.loss` is 1.5; it must be from 0 to 0.99"),
            ("loss = nan", "`bottleneck.loss` is NaN"),
            ("[foreground]\nshape = 1", "`foreground.shape` is 1; it must be from 1.01"),
            ("[foreground]\nload = -1", "`foreground.load` is -1"),
            ("[foreground]\nmax_bytes = 100", "below `foreground.mean_bytes`"),
            ("[foreground]\ncontrol = \"\"", "`foreground.control` is \"\""),
            ("[foreground]\narrivals = \"log\"\nsizes = \"fixed\"", "replays the log's own sizes"),
            (
                "[[background]]\nname = \"a\"\ncontrol = \"reno\"\nflows = 0",
                "`background[1].flows` is 0",
            ),
            ("[[background]]\nname = \"none\"\ncontrol = \"reno\"", "every run has it already"),
        ] {
            let said = fault(&format!("{addition}\n"));
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn a_wrong_type_says_what_was_expected() {
        let said = fault("[foreground]\nmean_bytes = \"many\"\n");
        assert!(said.contains("line 7") && said.contains("u64"), "{said}");
    }
}

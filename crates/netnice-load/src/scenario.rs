// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Scenario files (TOML): what flows, where, for how long.
//!
//! Every default is documented at its field. An unknown key or value is an error that names the
//! line and the nearest known one, so that a typing error never silently changes an experiment.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::Error;

mod check;
mod network;
mod set;
#[cfg(test)]
mod tests;

pub use network::{Bottleneck, Change, Hosts, Link, LinkChange, Queue, Route, Trace};

/// One experiment: a network, foreground flows, other traffic, and backgrounds to compare.
#[skip_serializing_none]
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
    /// TCP of the end hosts. Default linux.
    #[serde(default)]
    pub profile: Profile,
    /// Whether receivers delay ACKs (RFC 1122, 4.2.3.2). Default: the profile's.
    pub delayed_acks: Option<bool>,
    /// Whether senders pace packets over the round trip, as below Linux' queue fq. Default false.
    #[serde(default)]
    pub pacing: bool,
    /// Before they send something new, senders wait for a random time of up to so many milliseconds,
    /// and then send what the window allows: ns-2's overhead. Default 0.
    #[serde(default)]
    pub overhead_ms: f64,
    /// Payload of a full packet in bytes. Default: see [`Scenario::mss_bytes`].
    pub mss_bytes: Option<u32>,
    /// What links carry beside the payload, in bytes. Default: see [`Scenario::header_bytes`].
    pub header_bytes: Option<u32>,
    /// The shared link; this or `[[link]]`.
    pub bottleneck: Option<Bottleneck>,
    /// Any other network, `[[link]]` each.
    #[serde(default)]
    pub link: Vec<Link>,
    /// Hosts with links of their own, that the foreground's data comes from or goes to, `[[hosts]]`
    /// each. Default: none.
    #[serde(default)]
    pub hosts: Vec<Hosts>,
    /// Paths that are not those with the fewest links, `[[route]]` each. Default: none.
    #[serde(default)]
    pub route: Vec<Route>,
    /// The flows whose completion times matter. Default: none.
    pub foreground: Option<Foreground>,
    /// The variants to compare, `[[background]]` each. Default: none.
    #[serde(default)]
    pub background: Vec<Background>,
    /// Other traffic in the class of the foreground, the same beside every background,
    /// `[[cross]]` each. Default: none.
    #[serde(default)]
    pub cross: Vec<Cross>,
    /// The strict-priority reference. Default: see [`Ideal`].
    #[serde(default)]
    pub ideal: Ideal,
}

/// TCP of the end hosts, but for the congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// As in Linux: an initial window of 10 packets, SACK, RACK-TLP, delayed ACKs, a retransmission
    /// timeout of at least 200 ms, a handshake and a request before the data.
    #[default]
    Linux,
    /// As in the papers of 2002 to 2012: an initial window of 2 packets, NewReno without SACK, one
    /// ACK per packet, a retransmission timeout of at least 1 s, no handshake.
    Ns2,
}

impl Profile {
    /// Payload of a full packet in bytes: what fits into an Ethernet frame beside the time stamps
    /// (linux), or 1024 (ns2).
    pub fn mss_bytes(self) -> u32 {
        match self {
            Self::Linux => 1448,
            Self::Ns2 => 1024,
        }
    }
}

/// Fetches: a client behind the bottleneck connects, asks for a size and receives it.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Foreground {
    /// Congestion control of the server. Default cubic.
    #[serde(default = "default::control")]
    pub control: String,
    /// When flows start. Default poisson.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How large flows are. Default pareto; for `arrivals = "log"` the log's own sizes; for
    /// `arrivals = "periodic"` fixed.
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
    /// Offered load as a share of the rate of the slowest link on the path of the data. 0: no flows.
    /// Default 0.5.
    #[serde(default = "default::load")]
    pub load: f64,
    /// Milliseconds between UDP echo probes. Default: no probes.
    pub probe_interval_ms: Option<f64>,
    /// Greatest window that the receivers offer, in packets. Default: never in the way.
    pub window_packets: Option<u32>,
    /// The node that data comes from, or `[[hosts]]`: each fetch is from one of them, at random.
    /// Default "a"; with `[[link]]` required.
    pub from: Option<String>,
    /// The node that data goes to, or `[[hosts]]`. Default "b"; with `[[link]]` required.
    pub to: Option<String>,
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
    /// Constant gaps.
    Periodic,
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

/// One variant of background traffic: bulk flows across the same network.
#[skip_serializing_none]
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
    /// A queue for this variant instead of that of every link with a rate. Default: the links' own.
    pub queue: Option<Queue>,
    /// Greatest window that the receivers offer, in packets. Default: never in the way.
    pub window_packets: Option<u32>,
    /// When the flows that have not ended do, in seconds since the start. Default: with the run.
    pub stop_s: Option<f64>,
    /// Seconds between the stops of flows, from `stop_s` on: the last to start is the first to stop.
    /// Default 0.
    #[serde(default)]
    pub stop_stagger_s: f64,
    /// The node that data comes from. Default: the foreground's.
    pub from: Option<String>,
    /// The node that data goes to. Default: the foreground's.
    pub to: Option<String>,
    /// The group whose windows the flows share, by any name. Default: each is on its own.
    pub group: Option<String>,
    /// What each flow gets of its group, in the order of their starts: the parameter `share` of
    /// each. Default: that of `set`, or the algorithm's own.
    pub shares: Option<Vec<f64>>,
    /// Changes of the shares, `[[background.change]]` each. Default: none.
    #[serde(default)]
    pub change: Vec<ShareChange>,
}

/// A change of the shares in a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareChange {
    /// When, in seconds since the start.
    pub at_s: f64,
    /// The shares from then on, one for each flow.
    pub shares: Vec<f64>,
}

/// Other traffic in the class of the foreground.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cross {
    /// Unique name.
    pub name: String,
    /// What it sends.
    pub kind: CrossKind,
    /// Number of flows. Default 1.
    #[serde(default = "default::flows")]
    pub flows: u32,
    /// Congestion control of the senders (tcp). Default cubic.
    #[serde(default = "default::control")]
    pub control: String,
    /// Bytes of each flow (tcp); 0 is endless. Default 0.
    #[serde(default)]
    pub bytes: u64,
    /// Greatest window that the receivers offer, in packets (tcp). Default: never in the way.
    pub window_packets: Option<u32>,
    /// Rate of one flow while it sends, in Mbit/s on the wire (of UDP; required there).
    pub rate_mbit: Option<f64>,
    /// Length of its packets in bytes on the wire (of UDP). Default 1024.
    #[serde(default = "default::packet_bytes")]
    pub packet_bytes: u32,
    /// Mean length of a burst in milliseconds (onoff). Default 250.
    #[serde(default = "default::on_off_ms")]
    pub on_ms: f64,
    /// Mean time between bursts in milliseconds (onoff). Default 250.
    #[serde(default = "default::on_off_ms")]
    pub off_ms: f64,
    /// Shape of the Pareto distribution of both, above 1 (onoff). Default 1.5.
    #[serde(default = "default::shape")]
    pub shape: f64,
    /// Start of the first flow in seconds. Default 0.
    #[serde(default)]
    pub start_s: f64,
    /// Seconds between the starts of flows. Default 0.
    #[serde(default)]
    pub stagger_s: f64,
    /// When the flows that have not ended do, in seconds since the start. Default: with the run.
    pub stop_s: Option<f64>,
    /// The node that data comes from. Default: the foreground's.
    pub from: Option<String>,
    /// The node that data goes to. Default: the foreground's.
    pub to: Option<String>,
    /// Algorithm parameters (tcp). Default: the algorithm's own.
    #[serde(default)]
    pub set: BTreeMap<String, Parameter>,
    /// As of a background (tcp).
    pub group: Option<String>,
    /// As of a background (tcp).
    pub shares: Option<Vec<f64>>,
}

/// What other traffic sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CrossKind {
    /// Bulk flows of TCP.
    Tcp,
    /// UDP at a constant rate.
    Cbr,
    /// UDP at times of a Poisson process.
    Poisson,
    /// UDP at a constant rate in bursts; Pareto distributed are the bursts and the times between.
    Onoff,
}

/// What is run once: the scenario with one of its backgrounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Variant {
    /// Name in tables.
    pub name: String,
    /// The background. `None`: no background.
    pub background: Option<Background>,
    /// The queue of every link that has a rate, instead of the link's own. `None`: the links' own.
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
    pub fn packet_bytes() -> u32 {
        1024
    }
    pub fn limit_packets() -> u32 {
        1000
    }
    pub fn on_off_ms() -> f64 {
        250.0
    }
}

/// The variant without a background.
pub const NONE: &str = "none";

/// The variant that others are measured by.
pub const IDEAL: &str = "strict priority";

impl Scenario {
    /// Reads and checks the scenario in a file.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Trace`] if the file or a trace cannot be read,
    /// [`Error::Scenario`] if it is not valid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_with(path, &[])
    }

    /// As [`Scenario::read`], with some keys set anew: each `section.key=value`, the value as in
    /// TOML, words without quotes. Of an array such as `[[background]]`, `background[2].flows=4`
    /// sets a key of the second element, `background.flows=4` that of all.
    ///
    /// # Errors
    /// As [`Scenario::read`], and [`Error::Scenario`] for a setting that has no value or no place.
    pub fn read_with(path: &Path, settings: &[String]) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|reason| Error::Read { path: path.into(), reason })?;
        let name = path.display().to_string();
        if settings.is_empty() {
            return Self::parse(&text, &name);
        }
        let mut table = text.parse().map_err(|e| parser_error(&e, &text, &name))?;
        for setting in settings {
            set::apply(&mut table, setting)
                .map_err(|what| Error::Scenario { place: format!("--set {setting}"), what })?;
        }
        table.try_into::<Self>().map_err(|e| parser_error(&e, "", &name))?.checked(&name)
    }

    /// Parses and checks a scenario; `name` is its file, to which traces are relative and which
    /// errors name.
    ///
    /// # Errors
    /// [`Error::Scenario`] if it is not TOML, has unknown keys, or values out of range;
    /// [`Error::Trace`] if a trace cannot be read.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        toml::from_str::<Self>(text).map_err(|e| parser_error(&e, text, name))?.checked(name)
    }

    fn checked(mut self, name: &str) -> Result<Self, Error> {
        let directory = Path::new(name).parent().unwrap_or(Path::new(""));
        let links = self.link.iter_mut().filter_map(|link| link.trace.as_mut());
        let bottleneck = self.bottleneck.iter_mut().filter_map(|b| b.trace.as_mut());
        for trace in bottleneck.chain(links) {
            trace.load(directory)?;
        }
        match self.fault() {
            None => Ok(self),
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

    /// The rate in bytes per second that loads are shares of: that of [`Scenario::slowest_link`],
    /// infinity without one.
    pub fn rate_bytes(&self) -> f64 {
        let rate_mbit = self.slowest_link().and_then(|index| self.network()[index].rate_mbit);
        rate_mbit.map_or(f64::INFINITY, |rate_mbit| rate_mbit * 1e6 / 8.0)
    }

    /// Payload of a full packet in bytes. By default [`Profile::mss_bytes`].
    pub fn mss_bytes(&self) -> u32 {
        self.mss_bytes.unwrap_or(self.profile.mss_bytes())
    }

    /// What links carry beside the payload, in bytes. By default the headers of Ethernet, IPv4 and
    /// TCP with time stamps, which is what Linux counts (linux), or those of IPv4 and TCP (ns2).
    pub fn header_bytes(&self) -> u32 {
        self.header_bytes.unwrap_or(match self.profile {
            Profile::Linux => 66,
            Profile::Ns2 => 40,
        })
    }

    /// What to run: no background, strict priority, then each background.
    ///
    /// The bulk flows of strict priority go where those of the first background do.
    pub fn variants(&self) -> Vec<Variant> {
        let first = self.background.first();
        let ideal = Background {
            name: IDEAL.into(),
            control: self.ideal.control.clone(),
            flows: self.ideal.flows,
            bytes: 0,
            start_s: 0.0,
            stagger_s: 0.0,
            set: BTreeMap::new(),
            queue: Some(Queue::Priority),
            window_packets: None,
            stop_s: None,
            stop_stagger_s: 0.0,
            from: first.and_then(|b| b.from.clone()),
            to: first.and_then(|b| b.to.clone()),
            group: None,
            shares: None,
            change: Vec::new(),
        };
        let none = Variant { name: NONE.into(), background: None, queue: None };
        let others = std::iter::once(&ideal).chain(&self.background).map(|background| Variant {
            name: background.name.clone(),
            background: Some(background.clone()),
            queue: background.queue,
        });
        std::iter::once(none).chain(others).collect()
    }
}

impl Background {
    /// When the flow of that index stops, in seconds since the start. `None`: with the run.
    pub fn flow_stop_s(&self, flow: u32) -> Option<f64> {
        let later = f64::from(self.flows.saturating_sub(flow + 1));
        self.stop_s.map(|stop_s| stop_s + later * self.stop_stagger_s)
    }
}

impl Foreground {
    /// The distribution of sizes, with the default filled in.
    pub fn sizes(&self) -> Sizes {
        self.sizes.unwrap_or(match self.arrivals {
            Arrivals::Poisson => Sizes::Pareto,
            Arrivals::Log => Sizes::Empirical,
            Arrivals::Periodic => Sizes::Fixed,
        })
    }

    /// Whether the web request log is needed.
    pub fn needs_log(&self) -> bool {
        self.sizes() == Sizes::Empirical
    }
}

/// What the parser complains about, with its place in `text` where it is known.
fn parser_error(e: &toml::de::Error, text: &str, name: &str) -> Error {
    let place = match e.span().filter(|span| span.start <= text.len() && !text.is_empty()) {
        Some(span) => format!("{name}, line {}", line_of(text, span.start)),
        None => name.into(),
    };
    Error::Scenario { place, what: sentence(e.message()) }
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

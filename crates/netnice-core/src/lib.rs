// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! netnice's congestion-control algorithms, for hosts written in Rust.
//!
//! The algorithms are C headers (`core/`), compiled into this crate; the
//! kernel runs the same source. `core/interface.h` defines the units: time in
//! microseconds, windows in packets as Q16 fixed point.
//!
//! ```
//! use netnice_core::{Ack, Algorithm, Config, Flow};
//!
//! let mut config = Config::new(Algorithm::by_name("nice")?);
//! config.set("threshold=0.1")?;
//! let mut flow = Flow::new(&config, &Ack::default(), 10);
//! let ack = Ack { now_us: 50_000, rtt_us: 50_000, srtt_us: 50_000, acked: 2, una: 2, nxt: 4, ..Default::default() };
//! assert!(flow.ack(&ack).cwnd_q16 >= 2 << 16);
//! # Ok::<(), netnice_core::Error>(())
//! ```

use std::ffi::{c_char, CStr};
use std::fmt;

mod group;

pub use group::Group;

/// The C types and constants as the headers declare them.
#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals, missing_docs)]
pub mod sys {
    include!(concat!(env!("OUT_DIR"), "/sys.rs"));
}

pub use sys::{nn_ack as Ack, nn_ctl as Ctl, nn_event as Event, nn_info as Info};

/// One packet, or 1.0, in Q16 fixed point.
pub const ONE: u64 = sys::NN_ONE as u64;

/// Why a name or a setting was refused. Each message ends with what would do.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Error {
    /// No algorithm of that name.
    #[error(
        "there is no algorithm {name:?}; did you mean {nearest:?}? The list: netnice algorithms"
    )]
    Algorithm { name: String, nearest: String },
    /// No parameter of that name.
    #[error(
        "{algorithm} has no parameter {name:?}; {hint} The list: netnice algorithms {algorithm}"
    )]
    Param { algorithm: &'static str, name: String, hint: String },
    /// Not of the form NAME=NUMBER.
    #[error("{text:?} is not a setting; write NAME=NUMBER, for example {example}")]
    Setting { text: String, example: String },
    /// Not one of the names that a parameter takes.
    #[error("{name} cannot be {text:?}; choose one of {choices}")]
    Choice { name: &'static str, text: String, choices: String },
    /// A number outside the parameter's range.
    #[error("{name}={value} is out of range; {name} is from {least} to {most} {unit}")]
    Range { name: &'static str, value: f64, least: f64, most: f64, unit: &'static str },
}

/// The name in `names` that is most like `name`.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)))
}

/// A string of the algorithms' tables.
fn text(p: *const c_char) -> &'static str {
    // SAFETY: the tables hold string literals; build.rs compiles them from UTF-8 sources.
    unsafe { CStr::from_ptr(p) }.to_str().expect("core/ is UTF-8")
}

/// One line of `core/algorithms.def`.
#[derive(Clone, Copy)]
pub struct Algorithm(&'static sys::nn_algorithm);

impl Algorithm {
    /// Every algorithm, in the order of the list.
    pub fn all() -> impl Iterator<Item = Algorithm> {
        // SAFETY: table.c defines an array of nn_n_algorithms pointers to statics.
        let (list, n) = unsafe { ((&raw const sys::nn_algorithms).cast(), sys::nn_n_algorithms) };
        let table: &'static [&'static sys::nn_algorithm] =
            unsafe { std::slice::from_raw_parts(list, n as usize) };
        table.iter().map(|a| Algorithm(a))
    }

    /// The algorithm of that name, with or without the kernel's prefix `nn_`.
    ///
    /// # Errors
    /// [`Error::Algorithm`] names the nearest one.
    pub fn by_name(name: &str) -> Result<Algorithm, Error> {
        let bare = name.strip_prefix("nn_").unwrap_or(name);
        Self::all().find(|a| a.name() == bare).ok_or_else(|| Error::Algorithm {
            name: name.into(),
            nearest: nearest(bare, Self::all().map(|a| a.name())).unwrap_or_default().into(),
        })
    }

    /// The name in the list.
    pub fn name(&self) -> &'static str {
        text(self.0.name)
    }

    /// One line for people.
    pub fn summary(&self) -> &'static str {
        text(self.0.summary)
    }

    /// Whether flows of a group share what it keeps; if so, it has a parameter `share`.
    pub fn grouped(&self) -> bool {
        self.0.grouped != 0
    }

    /// Whether it divides its fair shares among the flows of a group by itself; any other that is
    /// [`Algorithm::grouped`] runs a window for each as it would be alone (`core/aggregate/any.h`).
    pub fn divides(&self) -> bool {
        self.0.grouped > 1
    }

    /// Its parameters, in the order of [`Config::values`].
    pub fn params(&self) -> impl ExactSizeIterator<Item = Param> {
        // SAFETY: user.c sizes n_params by the array.
        unsafe { std::slice::from_raw_parts(self.0.params, self.0.n_params as usize) }
            .iter()
            .map(Param)
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

/// One parameter of an algorithm.
#[derive(Clone, Copy)]
pub struct Param(&'static sys::nn_param);

impl Param {
    /// Its name, as in `--set NAME=NUMBER`.
    pub fn name(&self) -> &'static str {
        text(self.0.name)
    }
    /// The default, in [`Param::unit`].
    pub fn default(&self) -> f64 {
        self.0.def
    }
    /// The least value allowed, in [`Param::unit`].
    pub fn least(&self) -> f64 {
        self.0.least
    }
    /// The greatest value allowed, in [`Param::unit`].
    pub fn most(&self) -> f64 {
        self.0.most
    }
    /// The unit of its values.
    pub fn unit(&self) -> &'static str {
        text(self.0.unit)
    }
    /// The names of the values 0, 1, ... of a choice, from a unit such as `alpha|tau`; else none.
    pub fn choices(&self) -> impl Iterator<Item = &'static str> + use<> {
        let unit = self.unit();
        unit.split('|').filter(|_| unit.contains('|'))
    }
    /// The value that a text means: a number, or the name of a choice.
    fn value(&self, text: &str) -> Option<f64> {
        let named = self.choices().position(|name| name == text);
        named.map(|value| value as f64).or_else(|| text.parse().ok())
    }
    /// The paper and section that it comes from.
    pub fn source(&self) -> &'static str {
        text(self.0.source)
    }
    /// What it does.
    pub fn help(&self) -> &'static str {
        text(self.0.help)
    }
}

/// Values for the parameters of an algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    algorithm: Algorithm,
    values: Vec<u32>,
}

impl Config {
    /// The defaults of the algorithm.
    pub fn new(algorithm: Algorithm) -> Config {
        Config { algorithm, values: algorithm.params().map(|p| q16(p.default())).collect() }
    }

    /// Applies a setting of the form `NAME=NUMBER`, or `NAME=CHOICE` for a parameter that has
    /// choices; values are kept to 1/65536.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::Param`], [`Error::Choice`] or [`Error::Range`].
    pub fn set(&mut self, setting: &str) -> Result<(), Error> {
        let mut params = self.algorithm.params();
        let malformed = || Error::Setting {
            text: setting.into(),
            example: self
                .algorithm
                .params()
                .next()
                .map_or("threshold=0.1".into(), |p| format!("{}={}", p.name(), p.default())),
        };
        let (name, value) = setting.split_once('=').ok_or_else(malformed)?;
        let name = name.trim();
        let (index, param) =
            params.by_ref().enumerate().find(|(_, p)| p.name() == name).ok_or_else(|| {
                Error::Param {
                    algorithm: self.algorithm.name(),
                    name: name.into(),
                    hint: nearest(name, self.algorithm.params().map(|p| p.name()))
                        .map_or("it has none.".into(), |n| format!("did you mean {n:?}?")),
                }
            })?;
        let value = param.value(value.trim()).ok_or_else(|| match param.choices().next() {
            Some(_) => Error::Choice {
                name: param.name(),
                text: value.trim().into(),
                choices: param.choices().collect::<Vec<_>>().join(", "),
            },
            None => malformed(),
        })?;
        if !(param.least()..=param.most()).contains(&value) {
            return Err(Error::Range {
                name: param.name(),
                value,
                least: param.least(),
                most: param.most(),
                unit: param.unit(),
            });
        }
        self.values[index] = q16(value);
        Ok(())
    }

    /// The first of `values` as the algorithm's, unless they are too few.
    pub fn from_values(algorithm: Algorithm, values: &[u32]) -> Option<Config> {
        let values = values.get(..algorithm.params().len())?.to_vec();
        Some(Config { algorithm, values })
    }

    /// The algorithm that these values are for.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The parameters' names and values, these in the parameters' units.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let values = self.values.iter().map(|v| f64::from(*v) / ONE as f64);
        self.algorithm.params().map(|p| p.name()).zip(values)
    }

    /// The values in Q16, in the order of [`Algorithm::params`].
    pub fn values(&self) -> &[u32] {
        &self.values
    }
}

/// As the macro `NN_Q16` of arith.h rounds.
fn q16(value: f64) -> u32 {
    (value * ONE as f64 + 0.5) as u32
}

const WORDS: usize = sys::NN_STATE_MAX as usize / 8;

/// State of one flow, in words: enough for any algorithm.
pub type State = [u64; WORDS];

/// What a person wants to see of a flow, from its raw state.
pub fn info(config: &Config, state: &State) -> Info {
    let mut info = Info::default();
    let call = config.algorithm.0.info.expect("user.c fills every entry");
    // SAFETY: `state` holds NN_STATE_MAX aligned bytes and flow.h asserts that this suffices;
    // info() reads plain integers, any bit pattern of which is valid.
    unsafe { call(state.as_ptr().cast(), config.values.as_ptr(), &mut info) };
    info
}

/// One flow under the control of an algorithm.
///
/// A clone of a flow of a group is the same member: only one of them may go on.
#[derive(Clone, Debug)]
pub struct Flow {
    config: Config,
    group: Option<Group>,
    state: State,
    ctl: Ctl,
}

impl Flow {
    /// Starts a flow at `now` (of which `now_us`, `una`, `nxt` and `inflight` count) with the
    /// host's initial window in packets (10 in Linux), which the algorithm may lower.
    pub fn new(config: &Config, now: &Ack, initial_window: u32) -> Flow {
        Self::start(config, None, now, initial_window)
    }

    /// As [`Flow::new`], as a member of a group until [`Flow::close`]. All members have the same
    /// algorithm.
    pub fn join(config: &Config, group: &Group, now: &Ack, initial_window: u32) -> Flow {
        Self::start(config, Some(group.clone()), now, initial_window)
    }

    fn start(config: &Config, group: Option<Group>, now: &Ack, initial_window: u32) -> Flow {
        let ctl = Ctl { cwnd_q16: u64::from(initial_window) * ONE, ..Default::default() };
        let mut flow = Flow { config: config.clone(), group, state: [0; WORDS], ctl };
        let call = config.algorithm.0.init.expect("user.c fills every entry");
        flow.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, now, ctl) });
        flow
    }

    /// Gives an ACK; returns the window and gap to obey from now on.
    pub fn ack(&mut self, ack: &Ack) -> Ctl {
        let call = self.config.algorithm.0.ack.expect("user.c fills every entry");
        self.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, ack, ctl) })
    }

    /// Gives an event; `now` as in [`Flow::new`]. Before [`Event::NN_IDLE`] the host sets what it
    /// left of the window with [`Flow::cut`].
    pub fn event(&mut self, event: Event, now: &Ack) -> Ctl {
        let call = self.config.algorithm.0.event.expect("user.c fills every entry");
        self.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, event, now, ctl) })
    }

    /// Asks just before a burst leaves.
    pub fn send(&mut self, now: &Ack) -> Ctl {
        let call = self.config.algorithm.0.send.expect("user.c fills every entry");
        self.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, now, ctl) })
    }

    /// The connection has ended: the flow leaves its group, if it is in one.
    pub fn close(&mut self, now: &Ack) {
        if self.group.is_some() {
            self.event(Event::NN_CLOSE, now);
            self.group = None;
        }
    }

    /// Other values for the parameters, such as another share, of the same algorithm.
    pub fn configure(&mut self, config: &Config) {
        assert_eq!(self.config.algorithm, config.algorithm, "a flow keeps its algorithm");
        self.config.clone_from(config);
    }

    /// The group whose host tags packets with windows, for this flow's packets to be tagged.
    pub fn tagging(&self) -> Option<&Group> {
        self.group.as_ref().filter(|group| group.tags())
    }

    /// The host has cut an unused window to `cwnd_q16`.
    pub fn cut(&mut self, cwnd_q16: u64) {
        self.ctl.cwnd_q16 = cwnd_q16;
    }

    /// The last answer.
    pub fn ctl(&self) -> Ctl {
        self.ctl
    }

    /// What a person wants to see.
    pub fn info(&self) -> Info {
        info(&self.config, &self.state)
    }

    /// The raw state, for comparing hosts. Words past the algorithm's own state are zero.
    pub fn state(&self) -> &[u64] {
        &self.state[..self.config.algorithm.0.state_size as usize / 8]
    }

    /// SAFETY of the callers' blocks: `state` holds NN_STATE_MAX bytes aligned to 8, `values` has
    /// n_params entries, the group is NULL or nobody else's meanwhile, and the algorithms keep
    /// none of the pointers.
    fn call(
        &mut self,
        f: impl FnOnce(*mut std::ffi::c_void, *const u32, *mut sys::nn_group, *mut Ctl),
    ) -> Ctl {
        let (s, cfg, ctl) =
            (self.state.as_mut_ptr().cast(), self.config.values.as_ptr(), &raw mut self.ctl);
        match &self.group {
            None => f(s, cfg, std::ptr::null_mut(), ctl),
            Some(group) => group.with(|g| f(s, cfg, g, ctl)),
        }
        self.ctl
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a flow shows of itself, from the lists `nn_<name>_shown` of the algorithms' headers
//! (`core/shown.h`): hosts go through them, and know none of the values by name.

use std::fmt;

use crate::algorithm::text;
use crate::{sys, Algorithm, Config, State, ONE};

/// How the number of a value is kept.
pub use sys::nn_unit as Unit;

/// A line of such a list. Lines of the same name say the same, whatever the algorithm.
#[derive(Clone, Copy)]
pub struct Shown(&'static sys::nn_shown);

// SAFETY: a constant of user.c, with pointers to other constants
unsafe impl Send for Shown {}
unsafe impl Sync for Shown {}

impl Shown {
    /// What the algorithms show, each once, in the order of their list.
    pub fn all() -> Vec<Shown> {
        let mut all = Vec::new();
        for shown in Algorithm::all().flat_map(|a| a.shown()) {
            if !all.contains(&shown) {
                all.push(shown);
            }
        }
        all
    }

    /// Its name in the list.
    pub fn name(&self) -> &'static str {
        text(self.0.name)
    }

    /// The unit of its values.
    pub fn unit(&self) -> Unit {
        self.0.unit
    }

    /// What it is, for people.
    pub fn help(&self) -> &'static str {
        text(self.0.help)
    }

    /// The name for scripts, with the unit where that is a time or a rate: `base_rtt_us`, `queue`.
    pub fn key(&self) -> String {
        let unit = match self.unit() {
            Unit::NN_UNIT_us => "_us",
            Unit::NN_UNIT_mbit => "_mbit",
            Unit::NN_UNIT_packets | Unit::NN_UNIT_share | Unit::NN_UNIT_pps => "",
        };
        format!("{}{unit}", self.name())
    }

    /// The names of [`Value::numbers`]: the key, or three for what is measured, as in
    /// `available_mbit`, `available_low_mbit` and `available_high_mbit`.
    pub fn keys(&self) -> Vec<String> {
        match self.unit() {
            Unit::NN_UNIT_pps => {
                ["", "_low", "_high"].map(|end| format!("{}{end}_mbit", self.name())).into()
            }
            _ => vec![self.key()],
        }
    }
}

impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Algorithm {
    /// What its flows show, in the order of [`show`].
    pub fn shown(&self) -> impl ExactSizeIterator<Item = Shown> {
        // SAFETY: user.c sizes n_shown by the array.
        unsafe { std::slice::from_raw_parts(self.0.shown, self.0.n_shown as usize) }
            .iter()
            .map(Shown)
    }
}

/// What a flow shows at one moment in one line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The line.
    pub shown: Shown,
    /// As the algorithm keeps it, in [`Shown::unit`].
    pub raw: sys::nn_value,
}

impl Value {
    /// Whether the flow knows it.
    pub fn is_known(&self) -> bool {
        match self.shown.unit() {
            Unit::NN_UNIT_packets => true,
            Unit::NN_UNIT_pps => self.raw.results > 0,
            Unit::NN_UNIT_us | Unit::NN_UNIT_share | Unit::NN_UNIT_mbit => self.raw.value > 0,
        }
    }

    /// The number: microseconds, packets, a share, or Mbit/s. What is measured counts full packets:
    /// it is given for as many bytes as one is taken to have, with both ends of its interval.
    pub fn numbers(&self, packet_bytes: u32) -> Vec<f64> {
        let sys::nn_value { value, low, high, .. } = self.raw;
        match self.shown.unit() {
            Unit::NN_UNIT_us => vec![value as f64],
            Unit::NN_UNIT_packets | Unit::NN_UNIT_share | Unit::NN_UNIT_mbit => {
                vec![value as f64 / ONE as f64]
            }
            Unit::NN_UNIT_pps => {
                let packet_mbit = f64::from(packet_bytes) * 8.0 / 1e6;
                vec![value, low.into(), high.into()]
                    .into_iter()
                    .map(|pps| pps as f64 * packet_mbit)
                    .collect()
            }
        }
    }
}

/// What a flow shows, from its raw state.
pub fn show(config: &Config, state: &State) -> Vec<Value> {
    let algorithm = config.algorithm;
    let mut raw = [sys::nn_value::default(); sys::NN_SHOWN_MAX as usize];
    let call = algorithm.0.show.expect("user.c fills every entry");
    // SAFETY: `state` holds NN_STATE_MAX aligned bytes and flow.h asserts that this suffices, as
    // NN_SHOWN_MAX values do; show() reads plain integers, any bit pattern of which is valid.
    unsafe { call(state.as_ptr().cast(), config.values.as_ptr(), raw.as_mut_ptr()) };
    algorithm.shown().zip(raw).map(|(shown, raw)| Value { shown, raw }).collect()
}

/// The member of its group that a flow is, plus 1, from its raw state; none: it is in no group.
pub fn place(algorithm: Algorithm, state: &State) -> Option<u32> {
    let call = algorithm.0.place.expect("user.c fills every entry");
    // SAFETY: as for show().
    let place = unsafe { call(state.as_ptr().cast()) };
    (place > 0).then_some(place)
}

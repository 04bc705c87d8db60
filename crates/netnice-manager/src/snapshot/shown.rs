// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the algorithms show of a connection.

use std::fmt;

use netnice_core::{Shown, Unit, Value};
use serde::{Serialize, Serializer};

/// The line of what others leave of a path (`core/measure/avail.h`).
pub const AVAILABLE: &str = "available";

/// All that any algorithm shows, in the order of [`Shown::all`]; none where this connection's
/// algorithm does not show it.
pub struct Seen {
    values: Vec<(Shown, Option<Value>)>,
    mss: u32,
}

/// A measured rate with its confidence interval, in Mbit/s of payload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Available {
    pub mbit: f64,
    pub low: f64,
    pub high: f64,
    /// Measurements that had a result, since the connection's start.
    pub results: u32,
}

/// A value as JSON has it.
#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    /// Microseconds; 0: not known.
    Time(u64),
    Packets(f64),
    Known(Option<f64>),
    Measured(Option<Available>),
}

impl Seen {
    /// Of a connection, from what its algorithm shows; `mss` is the payload of a full packet, bytes.
    pub fn new(values: &[Value], mss: u32) -> Seen {
        let of = |shown: Shown| (shown, values.iter().find(|v| v.shown == shown).copied());
        Seen { values: Shown::all().into_iter().map(of).collect(), mss }
    }

    /// Each line, and its value.
    pub fn iter(&self) -> impl Iterator<Item = (Shown, Option<Value>)> + '_ {
        self.values.iter().copied()
    }

    /// A value's number in the unit for people, if it is known: microseconds, packets, a share, or
    /// Mbit/s of payload.
    pub fn number(&self, value: Value) -> Option<f64> {
        value.is_known().then(|| value.numbers(self.mss)[0])
    }

    /// A value with its interval, if it is measured, and has a result.
    pub fn measured(&self, value: Value) -> Option<Available> {
        if value.shown.unit() != Unit::NN_UNIT_pps || !value.is_known() {
            return None;
        }
        let n = value.numbers(self.mss);
        Some(Available { mbit: n[0], low: n[1], high: n[2], results: value.raw.results })
    }

    /// The time that a line shows, by its name, microseconds; if it is known.
    pub(super) fn time(&self, name: &str) -> Option<f64> {
        let (_, value) = self.iter().find(|(shown, _)| shown.name() == name)?;
        value.filter(Value::is_known).map(|value| value.raw.value as f64)
    }

    pub(super) fn available(&self) -> Option<Available> {
        let (_, value) = self.iter().find(|(shown, _)| shown.name() == AVAILABLE)?;
        self.measured(value?)
    }

    fn json(&self, shown: Shown, value: Option<Value>) -> Number {
        let number = value.and_then(|v| self.number(v));
        match shown.unit() {
            Unit::NN_UNIT_us => Number::Time(value.map_or(0, |v| v.raw.value)),
            Unit::NN_UNIT_packets => Number::Packets(number.unwrap_or(0.0)),
            Unit::NN_UNIT_share | Unit::NN_UNIT_mbit => Number::Known(number),
            Unit::NN_UNIT_pps => Number::Measured(value.and_then(|v| self.measured(v))),
        }
    }
}

impl Serialize for Seen {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(shown, value)| (shown.key(), self.json(shown, value))))
    }
}

impl fmt::Display for Available {
    /// With its interval: 42.1 [38.0, 46.3].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} [{:.1}, {:.1}]", self.mbit, self.low, self.high))
    }
}

#[cfg(test)]
mod tests {
    use netnice_core::sys::nn_value;

    use super::*;

    /// A connection whose algorithm shows all that there is, each with this number.
    fn seen(raw: nn_value) -> serde_json::Value {
        let values: Vec<_> = Shown::all().into_iter().map(|shown| Value { shown, raw }).collect();
        serde_json::to_value(Seen::new(&values, 1250)).unwrap()
    }

    #[test]
    fn a_script_finds_each_value_in_its_unit() {
        // 1.5 in Q16; as packets of 10^4 bits in a second, 98304 are 983.04 Mbit/s
        let json = seen(nn_value { value: 98_304, low: 100, high: 200_000, results: 7 });
        assert_eq!(json["base_rtt_us"], 98_304);
        assert_eq!(json["queue"], 1.5);
        assert_eq!(json["weight"], 1.5);
        assert_eq!(json["tcp_mbit"], 1.5);
        let measured =
            serde_json::json!({"mbit": 983.04, "low": 1.0, "high": 2000.0, "results": 7});
        assert_eq!(json["available"], measured);
    }

    #[test]
    fn what_is_not_known_is_null_or_a_time_of_zero() {
        let nothing = serde_json::to_value(Seen::new(&[], 1250)).unwrap();
        for json in [seen(nn_value::default()), nothing] {
            assert_eq!((&json["base_rtt_us"], &json["max_rtt_us"]), (&0.into(), &0.into()));
            assert_eq!(json["queue"], 0.0);
            for key in ["weight", "tcp_mbit", "available"] {
                assert!(json[key].is_null(), "{key}: {json}");
            }
            assert_eq!(json.as_object().unwrap().len(), Shown::all().len());
        }
    }
}

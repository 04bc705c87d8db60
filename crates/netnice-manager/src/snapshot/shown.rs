// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the algorithms show of a connection.

use std::collections::HashMap;
use std::fmt;

use netnice_core::{Shown, Unit, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// The line of what others leave of a path (`core/measure/avail.h`).
pub const AVAILABLE: &str = "available";

/// All that any algorithm shows, in the order of [`Shown::all`]; none where this connection's
/// algorithm does not show it.
#[derive(Clone, Debug)]
pub struct Seen(Vec<(Shown, Option<Number>)>);

/// A measured rate with its confidence interval, in Mbit/s of payload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Available {
    pub mbit: f64,
    pub low: f64,
    pub high: f64,
    /// Measurements that had a result, since the connection's start.
    pub results: u32,
}

/// A value in its unit for people.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Number {
    /// Microseconds; 0: not known.
    Time(u64),
    Packets(f64),
    /// A share, or Mbit/s of payload.
    Known(Option<f64>),
    Measured(Option<Available>),
}

impl Number {
    /// `mss` is the payload of a full packet, bytes.
    fn of(value: Value, mss: u32) -> Number {
        let numbers = || value.is_known().then(|| value.numbers(mss));
        match value.shown.unit() {
            Unit::NN_UNIT_us => Number::Time(value.raw.value),
            Unit::NN_UNIT_packets => Number::Packets(numbers().map_or(0.0, |n| n[0])),
            Unit::NN_UNIT_share | Unit::NN_UNIT_mbit => Number::Known(numbers().map(|n| n[0])),
            Unit::NN_UNIT_pps => Number::Measured(numbers().map(|n| Available {
                mbit: n[0],
                low: n[1],
                high: n[2],
                results: value.raw.results,
            })),
        }
    }

    /// As JSON has what is not shown.
    fn none(shown: Shown) -> Number {
        match shown.unit() {
            Unit::NN_UNIT_us => Number::Time(0),
            Unit::NN_UNIT_packets => Number::Packets(0.0),
            Unit::NN_UNIT_share | Unit::NN_UNIT_mbit => Number::Known(None),
            Unit::NN_UNIT_pps => Number::Measured(None),
        }
    }

    /// From what JSON has.
    fn read(shown: Shown, json: &Json) -> Option<Number> {
        let number = match shown.unit() {
            Unit::NN_UNIT_us => Number::Time(json.as_u64()?),
            Unit::NN_UNIT_packets => Number::Packets(json.as_f64()?),
            Unit::NN_UNIT_share | Unit::NN_UNIT_mbit => Number::Known(Some(json.as_f64()?)),
            Unit::NN_UNIT_pps => Number::Measured(Some(Available::deserialize(json).ok()?)),
        };
        (number != Number::none(shown)).then_some(number)
    }
}

impl Seen {
    /// Of a connection, from what its algorithm shows; `mss` is the payload of a full packet, bytes.
    pub fn new(values: &[Value], mss: u32) -> Seen {
        let of = |shown: Shown| values.iter().find(|v| v.shown == shown);
        let all = Shown::all().into_iter();
        Seen(all.map(|shown| (shown, of(shown).map(|v| Number::of(*v, mss)))).collect())
    }

    /// Each line, and its value.
    pub fn iter(&self) -> impl Iterator<Item = (Shown, Option<Number>)> + '_ {
        self.0.iter().copied()
    }

    fn number(&self, name: &str) -> Option<Number> {
        self.iter().find(|(shown, _)| shown.name() == name)?.1
    }

    /// The time that a line shows, by its name, microseconds; if it is known.
    pub(super) fn time(&self, name: &str) -> Option<f64> {
        match self.number(name)? {
            Number::Time(us) if us > 0 => Some(us as f64),
            _ => None,
        }
    }

    pub(super) fn available(&self) -> Option<Available> {
        match self.number(AVAILABLE)? {
            Number::Measured(measured) => measured,
            _ => None,
        }
    }
}

impl Serialize for Seen {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(
            self.iter().map(|(shown, number)| (shown.key(), number.unwrap_or(Number::none(shown)))),
        )
    }
}

impl<'de> Deserialize<'de> for Seen {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Seen, D::Error> {
        let json = HashMap::<String, Json>::deserialize(from)?;
        let read = |shown: Shown| Number::read(shown, json.get(&shown.key())?);
        Ok(Seen(Shown::all().into_iter().map(|shown| (shown, read(shown))).collect()))
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
    fn seen(raw: nn_value) -> Json {
        let values: Vec<_> = Shown::all().into_iter().map(|shown| Value { shown, raw }).collect();
        serde_json::to_value(Seen::new(&values, 1250)).unwrap()
    }

    #[test]
    fn what_was_read_from_json_is_written_as_it_was() {
        for raw in [nn_value { value: 98_304, low: 1, high: 2, results: 7 }, nn_value::default()] {
            let json = seen(raw);
            let read = Seen::deserialize(&json).unwrap();
            assert_eq!(serde_json::to_value(read).unwrap(), json);
        }
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

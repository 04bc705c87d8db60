// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Values and the ranges that they must be in.

/// A day; longer experiments are typing errors.
pub(super) const LONGEST_S: f64 = 86_400.0;

/// A minute.
pub(super) const LONGEST_MS: f64 = 60_000.0;

/// A value and the range that it must be in.
struct Range {
    key: String,
    value: f64,
    low: f64,
    high: f64,
    unit: &'static str,
}

impl Range {
    fn fault(&self) -> Option<String> {
        let Self { key, value, low, high, unit } = self;
        (!(low..=high).contains(&value))
            .then(|| format!("`{key}` is {value}; it must be from {low} to {high} {unit}."))
    }
}

/// The ranges of one section of the file.
pub(super) struct Ranges<'a> {
    /// What stands before each key, such as "foreground.".
    section: &'a str,
    ranges: Vec<Range>,
}

impl<'a> Ranges<'a> {
    pub(super) fn of(section: &'a str) -> Self {
        Self { section, ranges: Vec::new() }
    }

    pub(super) fn add(
        mut self,
        key: &str,
        value: impl Into<Option<f64>>,
        (low, high): (f64, f64),
        unit: &'static str,
    ) -> Self {
        if let Some(value) = value.into() {
            let key = format!("{}{key}", self.section);
            self.ranges.push(Range { key, value, low, high, unit });
        }
        self
    }

    pub(super) fn seconds(self, key: &str, value: impl Into<Option<f64>>) -> Self {
        self.add(key, value, (0.0, LONGEST_S), "seconds")
    }

    pub(super) fn milliseconds(self, key: &str, value: impl Into<Option<f64>>) -> Self {
        self.add(key, value, (0.0, LONGEST_MS), "milliseconds")
    }

    pub(super) fn rate(self, value: impl Into<Option<f64>>) -> Self {
        self.add("rate_mbit", value, (0.001, 1e6), "Mbit/s")
    }

    pub(super) fn flows(self, value: u32) -> Self {
        self.add("flows", f64::from(value), (1.0, 1e5), "flows")
    }

    pub(super) fn packets(self, key: &str, value: Option<u32>) -> Self {
        self.add(key, value.map(f64::from), (1.0, 1e6), "packets")
    }

    pub(super) fn senders(self, value: Option<u32>) -> Self {
        self.add("senders", value.map(f64::from), (1.0, 1e4), "hosts")
    }

    pub(super) fn shape(self, value: f64) -> Self {
        let unit = "(at 1 and below a Pareto distribution has no mean)";
        self.add("shape", value, (1.01, 100.0), unit)
    }

    pub(super) fn fault(self) -> Option<String> {
        self.ranges.iter().find_map(Range::fault)
    }
}

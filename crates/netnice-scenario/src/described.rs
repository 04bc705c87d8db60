// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A scenario as programs of other languages read it: nothing is left for them to fill in.

use std::fmt;

use serde::Serialize;

use crate::{Bottleneck, Link, Scenario, Variant};

/// A valid scenario with every default, and what follows from it. In JSON a key without a value is
/// null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Described {
    /// The scenario itself; traces have absolute paths.
    pub scenario: Scenario,
    /// End of the experiment in seconds: [`Scenario::end_s`].
    pub end_s: f64,
    /// Payload of a full packet in bytes: [`Scenario::mss_bytes`].
    pub mss_bytes: u32,
    /// What links carry beside that, in bytes: [`Scenario::header_bytes`].
    pub header_bytes: u32,
    /// What to run: [`Scenario::variants`].
    pub variants: Vec<Variant>,
    /// The network, if it is so simple.
    pub dumbbell: Option<Dumbbell>,
}

/// A network of two nodes, "a" and "b", and one link of a rate between them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Dumbbell {
    /// The link.
    pub bottleneck: Bottleneck,
    /// Whether it has that rate and that queue from "b" to "a" too; otherwise the way back is
    /// infinitely fast.
    pub duplex: bool,
}

impl Described {
    /// Describes a scenario.
    pub fn new(scenario: Scenario) -> Self {
        Self {
            end_s: scenario.end_s(),
            mss_bytes: scenario.mss_bytes(),
            header_bytes: scenario.header_bytes(),
            variants: scenario.variants(),
            dumbbell: scenario.dumbbell(),
            scenario,
        }
    }
}

impl fmt::Display for Described {
    /// The scenario as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = toml::to_string(&self.scenario).map_err(|_| fmt::Error)?;
        f.write_str(text.trim_end())
    }
}

impl Scenario {
    /// The network as a dumbbell: its `[bottleneck]`, or its only link, if that is duplex, from "a"
    /// to "b", and nothing happens to packets on it but that they wait.
    pub fn dumbbell(&self) -> Option<Dumbbell> {
        if let Some(bottleneck) = &self.bottleneck {
            return Some(Dumbbell { bottleneck: bottleneck.clone(), duplex: false });
        }
        let [link] = self.link.as_slice() else { return None };
        let bare = Link {
            rate_mbit: link.rate_mbit,
            queue: link.queue,
            limit_packets: link.limit_packets,
            limit_bytes: link.limit_bytes,
            ecn: link.ecn,
            duplex: true,
            ..Link::plain(&link.name, "a", "b", link.delay_ms)
        };
        let rate_mbit = link.rate_mbit.filter(|_| *link == bare)?;
        let bottleneck = Bottleneck {
            queue: link.queue,
            limit_packets: link.limit_packets,
            limit_bytes: link.limit_bytes,
            ecn: link.ecn,
            ..Bottleneck::plain(rate_mbit, 2.0 * link.delay_ms)
        };
        Some(Dumbbell { bottleneck, duplex: true })
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much transfers yield: a class, or an algorithm with parameters.

use std::fmt;
use std::str::FromStr;

use netnice_core::{Algorithm, Config};

use crate::Result;

/// What a transfer may take from others: one line of the table in docs/classes.md each.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Class {
    #[default]
    Idle,
    Fair,
    Assured,
}

impl Class {
    /// All of them, the most yielding first.
    pub const ALL: [Class; 3] = [Class::Idle, Class::Fair, Class::Assured];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Idle => "idle",
            Class::Fair => "fair",
            Class::Assured => "assured",
        }
    }

    /// One line for people.
    pub fn summary(self) -> &'static str {
        match self {
            Class::Idle => "Only what nobody else wants, however little that is",
            Class::Fair => {
                "A share of what ordinary TCP gets, smaller on a busy network; it does not starve"
            }
            Class::Assured => {
                "Like ordinary TCP on a busy network; at most 1 Mbit/s (see gamma) on a free one"
            }
        }
    }

    fn algorithm(self) -> &'static str {
        match self {
            Class::Idle => "nice",
            Class::Fair => "fairbat1",
            Class::Assured => "fairbat2",
        }
    }

    fn dscp(self) -> Dscp {
        match self {
            Class::Idle => Dscp::Le,
            Class::Fair | Class::Assured => Dscp::None,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Class {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Class, &'static str> {
        let found = Class::ALL.into_iter().find(|c| c.name() == text);
        found.ok_or("class is \"idle\", \"fair\" or \"assured\"")
    }
}

/// How packets are marked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dscp {
    /// Lower Effort (RFC 8622), DSCP 1.
    Le,
    /// As the program marks them.
    None,
}

impl Dscp {
    /// All of them.
    pub const ALL: [Dscp; 2] = [Dscp::Le, Dscp::None];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Dscp::Le => "le",
            Dscp::None => "none",
        }
    }

    /// One line for people.
    pub fn summary(self) -> &'static str {
        match self {
            Dscp::Le => "Lower Effort, DSCP 1: routers that know it serve others first",
            Dscp::None => "Leave the packets as they are",
        }
    }

    /// The TOS or traffic class octet; 0: leave it alone.
    pub fn tos(self) -> u8 {
        match self {
            Dscp::Le => 1 << 2, // above two bits of ECN
            Dscp::None => 0,
        }
    }
}

impl FromStr for Dscp {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<Dscp, &'static str> {
        let found = Dscp::ALL.into_iter().find(|d| d.name() == text);
        found.ok_or("dscp is \"le\" or \"none\"")
    }
}

/// What a user chose; what is None was left to netnice.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    pub class: Option<Class>,
    /// Instead of a class.
    pub algorithm: Option<String>,
    /// Parameters of the algorithm, as NAME=VALUE.
    pub set: Vec<String>,
    pub dscp: Option<Dscp>,
}

impl Choice {
    /// The algorithm with its parameters set.
    ///
    /// # Errors
    /// When there is no such algorithm or parameter, or a value is out of range.
    pub fn config(&self) -> Result<Config> {
        self.config_or(Class::default().algorithm())
    }

    /// As [`Choice::config`], with this algorithm if neither a class nor one was chosen.
    ///
    /// # Errors
    /// As [`Choice::config`].
    pub fn config_or(&self, otherwise: &str) -> Result<Config> {
        let of_class = self.class.map(Class::algorithm);
        let name = self.algorithm.as_deref().or(of_class).unwrap_or(otherwise);
        let mut config = Config::new(Algorithm::by_name(name)?);
        for setting in &self.set {
            config.set(setting)?;
        }
        Ok(config)
    }

    /// The TOS or traffic class octet; 0: leave it alone.
    pub fn tos(&self) -> u8 {
        self.dscp.unwrap_or(self.class.unwrap_or_default().dscp()).tos()
    }
}

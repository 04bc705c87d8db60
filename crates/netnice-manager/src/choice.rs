// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much transfers yield: a class, or an algorithm with parameters.

use std::str::FromStr;

use netnice_core::{Algorithm, Config};

use crate::{hold, Result};

pub use netnice_core::Class;

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
        self.config_or(Class::default().algorithm().name())
    }

    /// As [`Choice::config`], for connections of this network namespace that are in no group: where a
    /// device holds what is in the background, the default is another.
    ///
    /// # Errors
    /// As [`Choice::config`], or when the kernel cannot be read.
    pub fn config_here(&self) -> Result<Config> {
        let default = self.class.unwrap_or_default() == Class::default();
        if self.algorithm.is_some() || !default || !hold::any()? {
            return self.config();
        }
        Choice { class: None, ..self.clone() }.config_or(Algorithm::that_is_held().name())
    }

    /// As [`Choice::config`], with this algorithm if neither a class nor one was chosen.
    ///
    /// # Errors
    /// As [`Choice::config`].
    pub fn config_or(&self, otherwise: &str) -> Result<Config> {
        let algorithm = match (&self.algorithm, self.class) {
            (Some(name), _) => Algorithm::by_name(name)?,
            (None, Some(class)) => class.algorithm(),
            (None, None) => Algorithm::by_name(otherwise)?,
        };
        let mut config = Config::new(algorithm);
        for setting in &self.set {
            config.set(setting)?;
        }
        Ok(config)
    }

    /// The TOS or traffic class octet; 0: leave it alone.
    pub fn tos(&self) -> u8 {
        let class = self.class.unwrap_or_default();
        self.dscp.map_or(class.dscp() << 2, Dscp::tos) // above two bits of ECN
    }
}

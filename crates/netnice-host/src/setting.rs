// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Under what connections are.

use std::fmt;

use netnice_core::{Config, Group};

use crate::switch::Switch;

/// What connections have in common. A clone is for connections of the same [`Switch`] and group.
#[derive(Clone)]
pub struct Setting {
    /// Their algorithm and its parameters.
    pub config: Config,
    /// Their group, if they are in one.
    pub group: Option<Group>,
    /// What moves them.
    pub switch: Switch,
    /// Whether each keeps what its algorithm was told, for tests.
    pub listens: bool,
}

impl Setting {
    /// In the background, in no group.
    pub fn new(config: Config) -> Setting {
        Setting { config, group: None, switch: Switch::default(), listens: false }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in the {:?}", self.config.algorithm(), self.switch)
    }
}

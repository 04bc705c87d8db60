// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Under what connections are.

use std::fmt;

use netnice_core::{Class, Config, Group};

use crate::switch::Switch;

/// What connections have in common. A clone is for connections of the same [`Switch`] and group.
#[derive(Clone)]
pub struct Setting {
    /// Their algorithm and its parameters.
    pub config: Config,
    /// The class that chose the algorithm, if one did.
    class: Option<Class>,
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
        Setting { config, class: None, group: None, switch: Switch::default(), listens: false }
    }

    /// With the algorithm of a class.
    pub fn of_class(class: Class) -> Setting {
        Setting { class: Some(class), ..Setting::new(Config::new(class.algorithm())) }
    }

    /// They are members of a group, if the algorithm has groups. A class has an algorithm for them.
    pub fn join(&mut self, group: &Group) {
        if let Some(class) = self.class {
            self.config = Config::new(class.algorithm_of_groups());
        }
        self.group = Some(group.clone());
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} in the {:?}", self.config.algorithm(), self.switch)
    }
}

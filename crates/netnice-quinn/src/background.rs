// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Under what connections are, in the background and in the foreground.

use std::fmt;
use std::sync::Arc;

use netnice_core::{Class, Config, Group};
use netnice_host::{Setting, Switch};
use quinn_proto::congestion::{ControllerFactory, CubicConfig};

/// Connections under an algorithm of netnice, for `TransportConfig::congestion_controller_factory`. A
/// clone makes connections of the same [`Switch`].
#[derive(Clone)]
pub struct Background {
    pub(crate) setting: Setting,
    pub(crate) foreground: Arc<dyn ControllerFactory + Send + Sync>,
}

impl Background {
    /// With that algorithm and its parameters.
    pub fn new(config: Config) -> Background {
        Background::under(Setting::new(config))
    }

    /// With the algorithm of a class.
    pub fn of_class(class: Class) -> Background {
        Background::under(Setting::of_class(class))
    }

    fn under(setting: Setting) -> Background {
        Background { setting, foreground: Arc::new(CubicConfig::default()) }
    }

    /// As members of a group, if the algorithm has groups; all members have the same algorithm. A class has
    /// one for groups ([`Class::algorithm_of_groups`]).
    pub fn in_group(mut self, group: &Group) -> Background {
        self.setting.join(group);
        self
    }

    /// With another controller in the foreground than quinn's CUBIC.
    pub fn foreground(mut self, factory: Arc<dyn ControllerFactory + Send + Sync>) -> Background {
        self.foreground = factory;
        self
    }

    /// What moves these connections.
    pub fn switch(&self) -> Switch {
        self.setting.switch.clone()
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.setting.fmt(f)
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Under what connections are, in the background and in the foreground.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use netnice_core::{Class, Config, Group};
use netnice_host::{Setting, Switch};
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo};
use s2n_quic_core::recovery::cubic;

use crate::clock::Clock;
use crate::controller::Controlled;

/// Connections under an algorithm of netnice, for `with_congestion_controller` of s2n-quic's builders. A
/// clone is for another endpoint, with connections of the same [`Switch`].
pub struct Background<F = cubic::Endpoint> {
    pub(crate) setting: Setting,
    pub(crate) clock: Clock,
    foreground: Arc<Mutex<F>>,
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
        let foreground = Arc::new(Mutex::new(cubic::Endpoint::default()));
        Background { setting, clock: Clock::default(), foreground }
    }
}

impl<F> Background<F> {
    /// As members of a group, if the algorithm has groups; all members have the same algorithm. A class has
    /// one for groups ([`Class::algorithm_of_groups`]).
    pub fn in_group(mut self, group: &Group) -> Background<F> {
        self.setting.join(group);
        self
    }

    /// With other controllers in the foreground than s2n-quic's CUBIC.
    pub fn foreground<G: Endpoint>(self, endpoint: G) -> Background<G> {
        let foreground = Arc::new(Mutex::new(endpoint));
        Background { setting: self.setting, clock: self.clock, foreground }
    }

    /// What moves these connections.
    pub fn switch(&self) -> Switch {
        self.setting.switch.clone()
    }
}

impl<F> Clone for Background<F> {
    fn clone(&self) -> Background<F> {
        let clock = self.clock.of_another_endpoint();
        Background { setting: self.setting.clone(), clock, foreground: self.foreground.clone() }
    }
}

impl<F: Endpoint> Endpoint for Background<F> {
    type CongestionController = Controlled<F::CongestionController>;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Self::CongestionController {
        let mtu = path.max_datagram_size;
        let mut foreground = self.foreground.lock().unwrap_or_else(PoisonError::into_inner);
        let foreground = foreground.new_congestion_controller(path);
        Controlled::new(&self.setting, &self.clock, foreground, mtu)
    }
}

impl<F> fmt::Debug for Background<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.setting.fmt(f)
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Under what a connection of QUIC sends.

use std::fmt;
use std::sync::Arc;

use netnice_quinn::{Algorithm, Background, Class, Config, Group};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};

use crate::Error;

/// A congestion control: quinn's own, or one of netnice.
#[derive(Clone)]
pub struct Control {
    name: String,
    factory: Arc<dyn ControllerFactory + Send + Sync>,
}

/// quinn's own, of that name.
fn own(name: &str) -> Option<Arc<dyn ControllerFactory + Send + Sync>> {
    Some(match name {
        netnice_scenario::CONTROL => Arc::new(CubicConfig::default()),
        "bbr" => Arc::new(BbrConfig::default()),
        _ => return None,
    })
}

impl Control {
    /// The control of that name, with these parameters: `nn_` and an algorithm, a class, or one of quinn's
    /// own: CUBIC, which is the default, or BBR. Of a `group` its connections share what they may send.
    ///
    /// # Errors
    /// [`Error::QuicControl`] if there is none, or it does not take that.
    pub fn new(name: Option<&str>, settings: &[String], group: bool) -> Result<Self, Error> {
        let name = name.unwrap_or(netnice_scenario::CONTROL);
        let wrong = |what: String| Error::QuicControl { name: name.into(), what };
        if let Some(factory) = own(name) {
            if !settings.is_empty() || group {
                return Err(wrong("it has no parameters and no groups; choose nn_NAME".into()));
            }
            return Ok(Self { name: name.into(), factory });
        }
        let of_class = Class::all().find(|class| class.name() == name);
        let of_class = of_class.map(|class| match group {
            true => class.algorithm_of_groups(),
            false => class.algorithm(),
        });
        let mut its_own = Algorithm::all().filter(|algorithm| algorithm.control() == name);
        let algorithm = of_class.or_else(|| its_own.next()).ok_or_else(|| {
            let classes: Vec<_> = Class::all().map(|class| class.name()).collect();
            wrong(format!(
                "QUIC does not have it; choose {} or bbr (quinn's own), nn_NAME as `netnice algorithms` \
                 lists them, or a class: {}",
                netnice_scenario::CONTROL,
                classes.join(", ")
            ))
        })?;
        let mut config = Config::new(algorithm);
        for setting in settings {
            config.set(setting).map_err(|e| wrong(e.to_string()))?;
        }
        if group && !algorithm.grouped() {
            return Err(wrong("it has no groups; choose another".into()));
        }
        let mut background = Background::new(config);
        if group {
            background = background.in_group(&Group::new(false));
        }
        Ok(Self { name: algorithm.control(), factory: Arc::new(background) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        self.factory.clone()
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

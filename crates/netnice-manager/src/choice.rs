// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much transfers yield: a class, or an algorithm with parameters.

use std::str::FromStr;

use netnice_core::{Algorithm, Config};

use crate::error::refuse;
use crate::peer::{Only, Selection};
use crate::Result;

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
    /// Packets leave as they come, also where a device could hold them ([`crate::hold`]).
    pub no_hold: bool,
}

impl Choice {
    /// The algorithm with its parameters set.
    ///
    /// # Errors
    /// When there is no such algorithm or parameter, or a value is out of range.
    pub fn config(&self) -> Result<Config> {
        self.of(Class::algorithm, None)
    }

    /// As [`Choice::config`], for connections of a group; with this algorithm if neither a class nor
    /// one was chosen.
    ///
    /// # Errors
    /// As [`Choice::config`].
    pub fn config_in_group(&self, otherwise: Option<Algorithm>) -> Result<Config> {
        self.of(Class::algorithm_of_groups, otherwise)
    }

    fn of(&self, of: fn(&Class) -> Algorithm, otherwise: Option<Algorithm>) -> Result<Config> {
        let algorithm = match (&self.algorithm, self.class, otherwise) {
            (Some(name), _, _) => Algorithm::by_name(name)?,
            (None, None, Some(otherwise)) => otherwise,
            (None, class, _) => of(&class.unwrap_or_default()),
        };
        let mut config = Config::new(algorithm);
        for setting in &self.set {
            config.set(setting)?;
        }
        Ok(config)
    }

    /// Why packets do not wait in this host, with that algorithm, though a device could hold them
    /// ([`crate::hold`]); none: they do.
    pub fn why_not_held(&self, algorithm: Algorithm) -> Option<String> {
        if self.no_hold {
            return Some("--no-hold was given".into());
        }
        if self.tos() == 0 {
            let plain = Class::all().filter(|class| class.dscp() == 0);
            let classes = plain.map(|class| class.name()).collect::<Vec<_>>().join(" and ");
            return Some(format!(
                "they are not marked Lower Effort (--dscp none, which the classes {classes} have too)"
            ));
        }
        (algorithm != Class::default().algorithm()).then(|| {
            format!(
                "{}, as --algorithm or --group chose it, takes such a wait for a queue of the path",
                algorithm.name()
            )
        })
    }

    /// Whether it can be so for these connections alone.
    ///
    /// # Errors
    /// When it says how something yields that is to stay as it is.
    pub fn require_fit(&self, selection: &Selection, in_group: bool) -> Result<()> {
        let Choice { class, algorithm, set, dscp, no_hold: _ } = self;
        let of_sending = class.is_some() || algorithm.is_some() || dscp.is_some() || in_group;
        if selection.only == Some(Only::Down) && (of_sending || !set.is_empty()) {
            refuse!(
                "with --only down what is sent stays as it is; leave out --class, --algorithm, --set, \
                 --dscp and --group"
            );
        }
        if selection.udp_downloads && selection.only == Some(Only::Up) {
            refuse!("with --only up what comes stays as it is; leave out --udp-downloads");
        }
        if selection.udp_downloads && selection.of_peers() {
            refuse!("--to and --except are of TCP; leave them out, or --udp-downloads");
        }
        Ok(())
    }

    /// The TOS or traffic class octet; 0: leave it alone.
    pub fn tos(&self) -> u8 {
        let class = self.class.unwrap_or_default();
        self.dscp.map_or(class.dscp() << 2, Dscp::tos) // above two bits of ECN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_no_packets_wait_is_told_by_which_choice() {
        let why = |choice: Choice, grouped: bool| {
            let config = if grouped { choice.config_in_group(None) } else { choice.config() };
            choice.why_not_held(config.expect("it exists").algorithm())
        };
        assert_eq!(why(Choice::default(), false), None);
        let other = Algorithm::all().find(|a| *a != Class::default().algorithm());
        let other = other.map(|a| a.name().to_string());
        for (choice, grouped, said) in [
            (Choice { no_hold: true, ..Choice::default() }, false, "--no-hold was given"),
            (Choice { dscp: Some(Dscp::None), ..Choice::default() }, false, "--dscp none"),
            (Choice { class: Class::all().nth(1), ..Choice::default() }, false, "the classes"),
            (Choice { algorithm: other, ..Choice::default() }, false, "--algorithm or --group"),
            (Choice::default(), true, "--algorithm or --group"),
        ] {
            let why = why(choice, grouped);
            assert!(why.as_ref().is_some_and(|why| why.contains(said)), "{said}: {why:?}");
        }
    }
}

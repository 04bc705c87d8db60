// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Groups: runs of one user that divide what their connections are entitled to by shares.

use std::collections::BTreeSet;
use std::str::FromStr;

use netnice_bpf::{Running, GROUP_NAME};
use netnice_core::{Algorithm, Config};

use crate::choice::{Choice, Class, Dscp};
use crate::error::refuse;
use crate::system::{Change, System};
use crate::Result;

pub use netnice_bpf::Membership;

/// The parameter that algorithms with groups have.
const SHARE: &str = "share";

/// A name that can be typed and printed anywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Name(pub String);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Name, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        match text.chars().all(plain) && (1..=GROUP_NAME).contains(&text.len()) {
            true => Ok(Name(text.into())),
            false => Err(format!(
                "a group's name has 1 to {GROUP_NAME} letters, digits, and of the characters - _ ."
            )),
        }
    }
}

/// Which connections of a group share a bottleneck, and so an aggregate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scope {
    Host,
    Prefix(u32),
    All,
}

impl Scope {
    fn bits(self) -> u32 {
        match self {
            Scope::Host => 128,
            Scope::Prefix(bits) => bits,
            Scope::All => 0,
        }
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Scope, String> {
        let bits = |t: &str| t.parse().ok().filter(|b| (1..128).contains(b));
        match (text, text.strip_prefix("prefix/").map(bits)) {
            ("host", _) => Ok(Scope::Host),
            ("all", _) => Ok(Scope::All),
            (_, Some(Some(bits))) => Ok(Scope::Prefix(bits)),
            _ => Err("write host, all, or prefix/BITS with 1 to 127 bits: prefix/24".into()),
        }
    }
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scope::Host => f.write_str("host"),
            Scope::Prefix(bits) => write!(f, "prefix/{bits}"),
            Scope::All => f.write_str("all"),
        }
    }
}

/// The scope of so many bits.
pub fn scope(bits: u32) -> Scope {
    match bits {
        0 => Scope::All,
        128 => Scope::Host,
        bits => Scope::Prefix(bits),
    }
}

/// The user whose groups these are: under sudo the one who called it.
pub(crate) fn owner() -> u32 {
    let own = rustix::process::getuid().as_raw();
    let caller = || std::env::var("SUDO_UID").ok()?.parse().ok();
    match own {
        0 => caller().unwrap_or(0),
        own => own,
    }
}

/// The names of the algorithms that have groups.
fn grouped() -> Vec<&'static str> {
    Algorithm::all().filter(Algorithm::grouped).map(|a| a.name()).collect()
}

/// The algorithm that a group has unless another is chosen: the first that is made for groups.
fn default_algorithm() -> Algorithm {
    Algorithm::all().find(Algorithm::divides).expect("algorithms.def has one")
}

/// What a run in a group has: the algorithm with its parameters, the TOS octet of its packets (0:
/// left alone), and the membership. `share` is as it was written, in parts.
///
/// # Errors
/// When the algorithm has no groups, or the share is no number or out of range.
pub fn of_run(
    choice: &Choice,
    name: &Name,
    share: Option<&str>,
    scope: Option<Scope>,
) -> Result<(Config, u8, Membership)> {
    let mut config = choice.config_in_group(Some(default_algorithm()))?;
    require_grouped(config.algorithm(), choice.class)?;
    if let Some(share) = share {
        set_share(&mut config, parts(share)?)?;
    }
    // fair shares are what a group is entitled to, and a router that serves others first takes them
    let tos = match choice.dscp {
        None if config.algorithm().divides() => Dscp::None.tos(),
        _ => choice.tos(),
    };
    Ok((config, tos, in_scope(&name.0, scope.unwrap_or(Scope::Host))))
}

/// What a choice says, for connections with that share, in parts.
///
/// # Errors
/// When the algorithm has no groups, or the share is out of range.
pub fn with_share(choice: &Choice, share: f64) -> Result<Config> {
    let mut config = choice.config_in_group(None)?;
    require_grouped(config.algorithm(), choice.class)?;
    set_share(&mut config, share)?;
    Ok(config)
}

/// The membership of the caller's group of that name.
pub fn in_scope(name: &str, scope: Scope) -> Membership {
    Membership { name: name.into(), owner: owner(), bits: scope.bits() }
}

/// Fails unless the algorithm, which that class may have chosen, has groups.
fn require_grouped(algorithm: Algorithm, class: Option<Class>) -> Result<()> {
    if !algorithm.grouped() {
        let name = algorithm.name();
        let chosen = class.map_or(name.into(), |class| format!("the class {class} ({name})"));
        refuse!(
            "{chosen} measures what a connection's own packets get, which in a group says nothing; \
             these have groups: {}",
            grouped().join(", ")
        );
    }
    Ok(())
}

/// A share as it was written, in parts.
///
/// # Errors
/// When it is no number.
pub fn parts(text: &str) -> Result<f64> {
    match text.trim().parse() {
        Ok(parts) => Ok(parts),
        Err(_) => refuse!(
            "the share {text:?} is not a number; write how many parts, for example 4 or 0.5"
        ),
    }
}

/// Sets the share of a run, in parts.
fn set_share(config: &mut Config, parts: f64) -> Result<()> {
    Ok(config.set(&format!("{SHARE}={parts}"))?)
}

/// Fails if runs of the same group that are there now divide otherwise: they would not share.
pub(crate) fn require_alike(
    system: &System,
    wanted: &Membership,
    algorithm: Algorithm,
) -> Result<()> {
    for run in members(system, &wanted.name, wanted.owner)? {
        let (Some(group), Some(config)) = (run.group(), run.config()) else { continue };
        if group.bits != wanted.bits {
            refuse!(
                "the group {} has the scope {1}; give this run --scope {1} or another group",
                wanted.name,
                scope(group.bits)
            );
        }
        if config.algorithm() != algorithm {
            refuse!(
                "the group {} has the algorithm {:?}; a group has one",
                wanted.name,
                config.algorithm()
            );
        }
    }
    Ok(())
}

/// A user's runs in a group that are there now.
fn members(system: &System, name: &str, owner: u32) -> Result<Vec<Running>> {
    let live: BTreeSet<u64> = system.hierarchy().ids().into_iter().collect();
    let mut found = Running::all()?;
    found.retain(|run| {
        live.contains(&run.id()) && run.group().is_some_and(|g| g.name == name && g.owner == owner)
    });
    found.sort_by_key(Running::id);
    Ok(found)
}

/// As [`members`], which must be some.
pub(crate) fn some_members(system: &System, name: &str, owner: u32) -> Result<Vec<Running>> {
    let found = members(system, name, owner)?;
    if found.is_empty() {
        refuse!(
            "you have no group {name}; start a run in it: netnice run --group {name} -- COMMAND"
        );
    }
    Ok(found)
}

/// Gives a run of a group of yours a share, in parts as they were written; `run` is its id or a
/// process in it.
///
/// # Errors
/// When there is no such run, or the share is no number or out of range.
pub fn share(system: &Change, name: &Name, run: u64, share: &str) -> Result<()> {
    share_among(system, owner(), name, run, share, |_| true)
}

/// The same in a group of a user, among the runs (by their ids) that he may change.
///
/// # Errors
/// As [`share`].
pub fn share_among(
    system: &Change,
    user: u32,
    Name(name): &Name,
    run: u64,
    share: &str,
    may: impl Fn(u64) -> bool,
) -> Result<()> {
    let mut runs = some_members(system, name, user)?;
    runs.retain(|run| may(run.id()));
    let of_process = system.hierarchy().run_of(run);
    let named = |r: &Running| r.id() == run || Some(r.id()) == of_process;
    if runs.iter().filter(|r| named(r)).count() > 1 {
        refuse!(
            "{run} is a run of the group {name}, and a process of another; name another process"
        );
    }
    let Some(found) = runs.iter_mut().find(|r| named(r)) else {
        let ids: Vec<_> = runs.iter().map(|r| r.id().to_string()).collect();
        refuse!(
            "{run} is neither a run of the group {name} nor a process of one; its runs: {}",
            ids.join(", ")
        );
    };
    let Some(mut config) = found.config() else {
        refuse!("another version of netnice started this run: let it end, or use that version");
    };
    set_share(&mut config, parts(share)?)?;
    Ok(found.configure(&config)?)
}

/// The share of a configuration, in parts.
pub(crate) fn share_of(config: &Config) -> f64 {
    config.named().find(|(name, _)| *name == SHARE).map_or(0.0, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for text in ["host", "all", "prefix/1", "prefix/24", "prefix/127"] {
            assert_eq!(text.parse::<Scope>().map(|s| s.to_string()), Ok(text.into()));
            assert_eq!(text.parse::<Scope>().map(|s| scope(s.bits()).to_string()), Ok(text.into()));
        }
        for text in ["", "hosts", "prefix", "prefix/", "prefix/0", "prefix/128", "prefix/-1", "24"]
        {
            let error = text.parse::<Scope>().expect_err(text);
            assert!(error.contains("prefix/24"), "{error}");
        }
    }

    #[test]
    fn names_are_short_and_plain() {
        for text in ["a", "nightly-backup_2.eu", &"x".repeat(GROUP_NAME)] {
            assert_eq!(text.parse(), Ok(Name(text.into())));
        }
        for text in ["", "a b", "a/b", "ä", "a\n", &"x".repeat(GROUP_NAME + 1)] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    /// A choice of a class or an algorithm.
    fn choice(class: Option<&str>, algorithm: Option<&str>) -> Choice {
        let class = class.map(|name| name.parse().expect(name));
        Choice { class, algorithm: algorithm.map(String::from), ..Choice::default() }
    }

    fn in_g(choice: &Choice) -> Result<(Config, u8, Membership)> {
        of_run(choice, &Name("g".into()), None, None)
    }

    #[test]
    fn a_class_or_an_algorithm_is_that_of_the_windows_of_a_group() {
        let le = 1 << 2; // DSCP 1, above two bits of ECN
        let unmarked = Choice { dscp: Some(Dscp::None), ..choice(Some("idle"), None) };
        for (choice, algorithm, octet) in [
            (choice(None, None), "mpat", 0),
            (choice(Some("idle"), None), "nice", le),
            (unmarked, "nice", 0),
            (choice(None, Some("nice")), "nice", le),
            (choice(None, Some("mpat")), "mpat", 0),
        ] {
            let (config, tos, membership) = in_g(&choice).expect(algorithm);
            assert_eq!((config.algorithm().name(), tos), (algorithm, octet), "{choice:?}");
            assert_eq!((membership.name.as_str(), membership.bits), ("g", 128));
        }
    }

    #[test]
    fn a_class_whose_algorithm_has_no_groups_is_refused_by_its_name() {
        for (class, algorithm) in [("fair", "fairbat1"), ("assured", "fairbat2")] {
            let said = in_g(&choice(Some(class), None)).map(|_| ()).expect_err(algorithm);
            let said = said.to_string();
            assert!(
                said.starts_with(&format!("the class {class} ({algorithm}) measures")),
                "{said}"
            );
            assert!(said.contains("mpat") && said.contains("nice"), "{said}");
        }
    }

    #[test]
    fn the_default_algorithm_of_groups_has_a_share() {
        let config = Config::new(default_algorithm());
        assert!((share_of(&config) - 1.0).abs() < f64::EPSILON);
    }
}

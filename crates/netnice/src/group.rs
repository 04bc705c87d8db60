// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Groups: runs of one user that divide what their connections are entitled to by shares.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, bail, Context, Result};
use netnice_bpf::{Aggregate, Membership, Record, Running, GROUP_NAME};
use netnice_core::{Algorithm, Config, ONE};
use serde::Serialize;

use crate::cli::{Class, GroupArgs, GroupStatusArgs, ShareArgs};
use crate::status::{connection, ip, Connection};
use crate::system::System;

/// The parameter that algorithms with groups have.
const SHARE: &str = "share";

/// A name that can be typed and printed anywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Name(pub String);

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
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

    fn from_str(text: &str) -> Result<Scope, String> {
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
fn scope(bits: u32) -> Scope {
    match bits {
        0 => Scope::All,
        128 => Scope::Host,
        bits => Scope::Prefix(bits),
    }
}

/// The user whose groups these are: under sudo the one who called it.
fn owner() -> u32 {
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
pub fn default_algorithm() -> &'static str {
    Algorithm::all().find(Algorithm::divides).expect("algorithms.def has one").name()
}

/// The membership of a run with this configuration, whose share is set.
pub fn membership(
    args: &GroupArgs,
    class: Option<Class>,
    config: &mut Config,
) -> Result<Option<Membership>> {
    let Some(Name(name)) = &args.group else { return Ok(None) };
    require_grouped(config.algorithm(), class)?;
    if let Some(share) = &args.share {
        set_share(config, parts(share)?)?;
    }
    Ok(Some(in_scope(name, args.scope.unwrap_or(Scope::Host))))
}

/// The membership of the caller's group of that name.
pub fn in_scope(name: &str, scope: Scope) -> Membership {
    Membership { name: name.into(), owner: owner(), bits: scope.bits() }
}

/// Fails unless the algorithm, which that class may have chosen, has groups.
pub fn require_grouped(algorithm: Algorithm, class: Option<Class>) -> Result<()> {
    if !algorithm.grouped() {
        let name = algorithm.name();
        let chosen = class.map_or(name.into(), |class| format!("the class {class} ({name})"));
        bail!(
            "{chosen} measures what a connection's own packets get, which in a group says nothing; \
             these have groups: {}",
            grouped().join(", ")
        );
    }
    Ok(())
}

/// A share as it was written, in parts.
pub fn parts(text: &str) -> Result<f64> {
    text.trim().parse().map_err(|_| {
        anyhow!("the share {text:?} is not a number; write how many parts, for example 4 or 0.5")
    })
}

/// Sets the share of a run, in parts.
pub fn set_share(config: &mut Config, parts: f64) -> Result<()> {
    Ok(config.set(&format!("{SHARE}={parts}"))?)
}

/// Fails if runs of the same group that are there now divide otherwise: they would not share.
pub fn require_alike(system: &System, wanted: &Membership, algorithm: Algorithm) -> Result<()> {
    for run in members(system, &wanted.name)? {
        let (Some(group), Some(config)) = (run.group(), run.config()) else { continue };
        if group.bits != wanted.bits {
            bail!(
                "the group {} has the scope {}; give this run --scope {0} or another group",
                wanted.name,
                scope(group.bits)
            );
        }
        if config.algorithm() != algorithm {
            bail!(
                "the group {} has the algorithm {:?}; a group has one",
                wanted.name,
                config.algorithm()
            );
        }
    }
    Ok(())
}

/// The caller's runs in a group that are there now.
fn members(system: &System, name: &str) -> Result<Vec<Running>> {
    let live: BTreeSet<u64> = system.hierarchy().ids().into_iter().collect();
    let owner = owner();
    let mut found = Running::all()?;
    found.retain(|run| {
        live.contains(&run.id()) && run.group().is_some_and(|g| g.name == name && g.owner == owner)
    });
    found.sort_by_key(Running::id);
    Ok(found)
}

/// As [`members`], which must be some.
fn some_members(system: &System, name: &str) -> Result<Vec<Running>> {
    let found = members(system, name)?;
    if found.is_empty() {
        bail!(
            "you have no group {name}; start a run in it: sudo netnice run --group {name} -- COMMAND"
        );
    }
    Ok(found)
}

/// `netnice share`.
pub fn share(args: &ShareArgs) -> Result<()> {
    let system = System::open()?;
    let Name(name) = &args.group;
    let mut runs = some_members(&system, name)?;
    let ids: Vec<_> = runs.iter().map(|r| r.id().to_string()).collect();
    let id = system.hierarchy().run_of(args.run);
    let run = runs.iter_mut().find(|r| Some(r.id()) == id).with_context(|| {
        format!(
            "{} is neither a run of the group {name} nor a process of one; its runs: {}",
            args.run,
            ids.join(", ")
        )
    })?;
    let mut config = run
        .config()
        .context("another version of netnice started this run: let it end, or use that version")?;
    set_share(&mut config, parts(&args.weight)?)?;
    Ok(run.configure(&config)?)
}

/// The share of a configuration, in parts.
fn share_of(config: &Config) -> f64 {
    config.named().find(|(name, _)| *name == SHARE).map_or(0.0, |(_, value)| value)
}

#[derive(Serialize)]
struct Status {
    group: String,
    /// The uid of its user.
    owner: u32,
    scope: String,
    algorithm: String,
    /// How long the throughput was measured.
    seconds: f64,
    runs: Vec<Run>,
    aggregates: Vec<Shared>,
}

#[derive(Serialize)]
struct Run {
    /// The id of its cgroup.
    run: u64,
    share: f64,
}

/// Connections that divide the sum of their windows. Windows are in packets.
#[derive(Serialize)]
struct Shared {
    /// The remote address; with a scope other than host its first part.
    to: String,
    /// C, the sum of the windows of its connections.
    window: f64,
    mbit: f64,
    connections: Vec<Member>,
}

#[derive(Serialize)]
struct Member {
    run: u64,
    local: SocketAddr,
    remote: SocketAddr,
    share: f64,
    /// Its part of all shares of connections that sent something while it was measured.
    target: Option<f64>,
    /// Its part of what they sent.
    achieved: Option<f64>,
    mbit: f64,
    /// `A_i`, what it may have in flight.
    cwnd: f64,
    /// `C_j`, the window that it brought; none where all share one.
    window: Option<f64>,
    bytes_acked: u64,
}

/// `netnice status --group`.
pub fn status(args: &GroupStatusArgs, Name(name): &Name, json: bool) -> Result<()> {
    let (runs, wanted) = {
        let system = System::open()?;
        let runs = some_members(&system, name)?;
        let wanted = runs[0].group().context("a member has a group")?;
        (runs, wanted)
    };
    let before: HashMap<_, _> = connections()?.map(|(_, c)| (key(&c), c.bytes_acked)).collect();
    thread::sleep(args.seconds);
    let mut now: BTreeMap<u32, Vec<(Record, Connection)>> = BTreeMap::new();
    for (record, connection) in connections()? {
        if let Some(slot) = record.slot() {
            now.entry(slot).or_default().push((record, connection));
        }
    }
    let aggregates = Aggregate::all()?
        .into_iter()
        .filter(|a| a.group().name == wanted.name && a.group().owner == wanted.owner)
        .map(|a| shared(&a, now.remove(&a.index).unwrap_or_default(), &before, args.seconds))
        .collect();
    let configs: Vec<_> = runs.iter().filter_map(|r| Some((r.id(), r.config()?))).collect();
    let status = Status {
        group: wanted.name.clone(),
        owner: wanted.owner,
        scope: scope(wanted.bits).to_string(),
        algorithm: configs.first().map_or_else(String::new, |(_, c)| c.algorithm().name().into()),
        seconds: args.seconds.as_secs_f64(),
        runs: configs.iter().map(|(run, c)| Run { run: *run, share: share_of(c) }).collect(),
        aggregates,
    };
    match json {
        true => println!("{}", serde_json::to_string_pretty(&status)?),
        false => print(&status),
    }
    Ok(())
}

fn connections() -> Result<impl Iterator<Item = (Record, Connection)>> {
    Ok(netnice_bpf::flows()?.into_iter().map(|r| {
        let connection = connection(&r);
        (r, connection)
    }))
}

/// What tells connections apart.
fn key(c: &Connection) -> (SocketAddr, SocketAddr) {
    (c.local, c.remote)
}

fn shared(
    aggregate: &Aggregate,
    members: Vec<(Record, Connection)>,
    before: &HashMap<(SocketAddr, SocketAddr), u64>,
    during: Duration,
) -> Shared {
    let mbit = |bytes: u64| bytes as f64 * 8e-6 / during.as_secs_f64();
    let packets = |q16: u64| q16 as f64 / ONE as f64;
    let sent = |c: &Connection| {
        c.bytes_acked.saturating_sub(before.get(&key(c)).copied().unwrap_or_default())
    };
    let share = |r: &Record| r.config().as_ref().map_or(0.0, share_of);
    let active = |c: &Connection| sent(c) > 0;
    let bytes: u64 = members.iter().map(|(_, c)| sent(c)).sum();
    let shares: f64 = members.iter().filter(|(_, c)| active(c)).map(|(r, _)| share(r)).sum();
    let mut connections: Vec<_> = members
        .iter()
        .map(|(r, c)| Member {
            run: r.flow.settings.run,
            local: c.local,
            remote: c.remote,
            share: share(r),
            target: active(c).then(|| share(r) / shares),
            achieved: active(c).then(|| sent(c) as f64 / bytes as f64),
            mbit: mbit(sent(c)),
            cwnd: c.cwnd,
            window: c.place.and_then(|p| aggregate.member_q16(p)).map(packets),
            bytes_acked: c.bytes_acked,
        })
        .collect();
    connections.sort_by_key(|m| (m.run, m.remote, m.local));
    let bits = aggregate.group().bits;
    let address = ip(aggregate.address());
    Shared {
        to: match bits {
            0 => "everywhere".into(),
            128 => address.to_string(),
            bits if address.is_ipv4() => format!("{address}/{}", bits - 96),
            bits => format!("{address}/{bits}"),
        },
        window: packets(aggregate.window_q16()),
        mbit: mbit(bytes),
        connections,
    }
}

fn print(status: &Status) {
    let shares: Vec<_> = status.runs.iter().map(|r| format!("{} ({})", r.run, r.share)).collect();
    println!("group {}, {}, scope {}", status.group, status.algorithm, status.scope);
    println!("runs (share): {}", shares.join(", "));
    if status.aggregates.is_empty() {
        println!("\nNo connections now.");
        return;
    }
    for a in &status.aggregates {
        println!("\nto {}: C = {:.1} packets, {:.2} Mbit/s", a.to, a.window, a.mbit);
        println!(
            "{:>10} {:>24} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8}",
            "run", "to", "share", "target", "achieved", "Mbit/s", "A", "C_j"
        );
        let part = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
        for m in &a.connections {
            println!(
                "{:>10} {:>24} {:>8} {:>8} {:>9} {:>9.2} {:>9.2} {:>8}",
                m.run,
                m.remote.to_string(),
                m.share,
                part(m.target),
                part(m.achieved),
                m.mbit,
                m.cwnd,
                m.window.map_or("-".into(), |w| format!("{w:.1}")),
            );
        }
    }
    println!(
        "\ntarget, achieved: parts of what those who sent had in {} s; A: packets that the connection may have\n\
         in flight; C_j: the window that it brought; C: their sum",
        status.seconds
    );
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

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

    /// What `netnice run OPTIONS -- true` would run with.
    fn run(options: &str) -> Result<(Config, Option<Membership>, u8)> {
        let line = format!("netnice run {options} -- true");
        let Command::Run(args) = Cli::try_parse_from(line.split(' '))?.command else {
            bail!("another command")
        };
        let (config, membership) = args.config()?;
        let tos = args.tos(config.algorithm());
        Ok((config, membership, tos))
    }

    #[test]
    fn a_class_or_an_algorithm_is_that_of_the_windows_of_a_group() {
        let le = 1 << 2; // DSCP 1, above two bits of ECN
        for (options, algorithm, octet) in [
            ("--group g", "mpat", 0),
            ("--group g --class idle", "nice", le),
            ("--group g --class idle --dscp none", "nice", 0),
            ("--group g --algorithm nice", "nice", le),
            ("--group g --algorithm mpat", "mpat", 0),
        ] {
            let (config, membership, tos) = run(options).expect(options);
            assert_eq!((config.algorithm().name(), tos), (algorithm, octet), "{options}");
            assert_eq!(membership.map(|m| m.name), Some("g".into()), "{options}");
        }
        let (config, membership, tos) = run("--set threshold=0.1").expect("no group");
        assert_eq!((config.algorithm().name(), tos), ("nice", le));
        assert!(membership.is_none());
    }

    #[test]
    fn a_class_whose_algorithm_has_no_groups_is_refused_by_its_name() {
        for (class, algorithm) in [("fair", "fairbat1"), ("assured", "fairbat2")] {
            let error = run(&format!("--group g --class {class}")).map(|_| ()).expect_err(class);
            let said = error.to_string();
            assert!(
                said.starts_with(&format!("the class {class} ({algorithm}) measures")),
                "{said}"
            );
            assert!(said.contains("mpat") && said.contains("nice"), "{said}");
        }
        let error = run("--group g --class idle --algorithm reno").map(|_| ()).expect_err("both");
        assert!(error.to_string().contains("cannot be used with"), "{error}");
    }

    #[test]
    fn the_default_algorithm_of_groups_has_a_share() {
        let config = Config::new(Algorithm::by_name(default_algorithm()).expect("in the list"));
        assert!((share_of(&config) - 1.0).abs() < f64::EPSILON);
    }
}

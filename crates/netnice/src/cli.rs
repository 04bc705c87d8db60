// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command line, and `netnice algorithms`, which explains what it accepts.

use std::ffi::OsString;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};
use netnice_bpf::Membership;
use netnice_core::{Algorithm, Config, Param};
use serde_json::json;

use crate::group::{self, Name, Scope};
use crate::replicate::ReplicateArgs;

/// Runs programs so that their network traffic yields to everybody else's.
#[derive(Parser)]
#[command(
    name = "netnice",
    version,
    about,
    long_about = "nice yields the CPU, ionice the disk, netnice the network: what runs under it uses only the \
                  bandwidth that nobody else wants. There is no rate to set, and nothing to install at the \
                  receiver or in the network: the sender's TCP gives way as soon as a queue builds.\n\n\
                  It works on what this machine sends. A download yields if its sender runs netnice.",
    after_help = "Examples:\n  \
                  sudo netnice run -- rsync -a /home backup:/home\n  \
                  sudo netnice run --set threshold=0.1 --verbose -- restic backup /home\n  \
                  sudo netnice run --group backups --share 4 -- rsync -a /srv backup:/srv\n  \
                  sudo netnice attach $(pidof rsync)\n  \
                  sudo netnice enable && iperf3 -c host -C nn_nice\n  \
                  sudo netnice probe backup:5009\n  \
                  netnice algorithms nice"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Run a command with all its TCP connections in the background
    #[command(
        long_about = "Runs a command with all TCP connections that it and its children open or accept, over IPv4 \
                      and IPv6, in the background, and marks them with DSCP LE (RFC 8622) unless --class or \
                      --dscp says otherwise. The command cannot take them out again. Its exit status is \
                      passed on as nice(1) does: 127 if it was not found, 126 if it could not be run, 125 if \
                      netnice itself failed.",
        after_help = "Examples:\n  \
                      sudo netnice run -- rsync -a /home backup:/home\n  \
                      sudo netnice run --class fair -- transmission-cli archive.torrent\n  \
                      sudo netnice run --group nightly --share 4 --class idle -- rsync -a /srv backup:/srv\n  \
                      sudo netnice run --algorithm vegas --dscp none -- curl -T dump.sql https://backup/\n  \
                      sudo netnice run --verbose -- sudo -u me restic backup /home   # not as root"
    )]
    Run(RunArgs),
    /// Copy a directory to many hosts in the background, and keep the copies current
    #[command(
        long_about = "Copies a directory to any number of places with rsync, all in the background: as fast as \
                      nobody notices, with no rate to set. It finds out how many transfers at a time make the \
                      whole faster, tries a destination that fails again, goes on where a killed run ended, and \
                      can keep the copies current. Its exit status is 3 if some destinations are not current in \
                      the end, and they are listed with the reasons.",
        after_help = "Examples:\n  \
                      sudo netnice replicate /srv/www/ a:/srv/www b:/srv/www rsync://c/www\n  \
                      sudo netnice replicate /srv/www/ --to hosts.txt --delete --verify -- --exclude='*.tmp'\n  \
                      sudo netnice replicate /srv/www/ hub:/srv/www leaf:/srv/www --via hub --watch\n  \
                      netnice replicate check www.toml && sudo netnice replicate --config www.toml\n  \
                      netnice replicate status"
    )]
    Replicate(Box<ReplicateArgs>),
    /// Put the connections of running processes into the background
    #[command(
        long_about = "Puts the TCP connections that running processes hold into the background, and the ones that \
                      their listening sockets will accept. Connections that they open later are not affected: \
                      start the process with `netnice run` for that.",
        after_help = "Example:\n  sudo netnice attach $(pidof rsync)"
    )]
    Attach(AttachArgs),
    /// Register algorithms for the whole system, until `netnice disable`
    #[command(
        long_about = "Registers algorithms as TCP congestion controls of the system (nn_nice, ...), until `netnice \
                      disable` or a reboot. Any program can then choose one for a connection:\n\n  \
                      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"nn_nice\", 7)\n  \
                      ip route change default via 192.0.2.1 congctl nn_nice"
    )]
    Enable(EnableArgs),
    /// Take algorithms off the kernel's list again, and clean up after killed runs
    #[command(
        long_about = "Takes algorithms off the kernel's list (all of them by default) and cleans up what a killed \
                      netnice left. Connections that use one keep it until they close. What a running `netnice \
                      run` needs stays until that ends."
    )]
    Disable(DisableArgs),
    /// Show what is registered and every background connection with its state
    #[command(after_help = "Examples:\n  \
                      sudo netnice status\n  \
                      sudo netnice status --group backups --seconds 10")]
    Status(StatusArgs),
    /// Change the share of a run in its group, while it runs
    #[command(
        long_about = "Changes the share of a run in its group, for its connections now and those that it will \
                      open. The run is named by its id (netnice status --group NAME), by the process id of its \
                      `netnice run`, or by that of any process in it.",
        after_help = "Example:\n  sudo netnice share backups $(pidof rsync) 4"
    )]
    Share(ShareArgs),
    /// Measure the bandwidth that others leave of the path to a host
    #[command(
        long_about = "Measures the available bandwidth of the path to a host: what others leave of its bottleneck. \
                      It sends zeros to HOST for a while, over TCP, and reads the answer from the spacing of these \
                      packets; nothing else is sent. HOST must accept data: a service that discards what it gets \
                      (RFC 863, port 9) or any other that goes on reading, or `netnice probe --listen`.\n\n\
                      The answer is in Mbit/s of payload, with the interval that the measurement is confident of. \
                      On a terminal one line follows it; else each measurement is a line. With --json each is an \
                      object, and the last one is {\"summary\": ...}.\n\n\
                      A measurement takes a window of 16 packets: a path that carries fewer packets in a round trip \
                      gives no result. The exit status is 0 if there was one, else 1.",
        after_help = "Examples:\n  \
                      netnice probe --listen 0.0.0.0:5009          # at the other end; a port below 1024 takes root\n  \
                      sudo netnice probe backup.example.org:5009   # here\n  \
                      sudo netnice probe --seconds 60 --algorithm imtcp_bg backup:5009\n  \
                      sudo netnice probe --json [2001:db8::1]:5009 | jq .summary.median_mbit",
        mut_arg("algorithm", |a| a.default_value("imtcp"))
    )]
    Probe(ProbeArgs),
    /// List the algorithms, or one with its parameters
    Algorithms(AlgorithmsArgs),
}

/// The choice of an algorithm and its parameters.
#[derive(Args, Default)]
pub struct Choice {
    /// How much the transfers yield, and to whom [default: idle]
    #[arg(short, long, value_enum)]
    pub class: Option<Class>,
    /// Choose an algorithm instead of a class; the list: netnice algorithms
    #[arg(short, long, value_name = "NAME", conflicts_with = "class")]
    pub algorithm: Option<String>,
    /// Set a parameter of the algorithm; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Mark packets as Lower Effort (RFC 8622), or leave them as they are [default: le; none for
    /// the classes fair and assured, whose share a router that serves others first would take]
    #[arg(long, value_enum)]
    pub dscp: Option<Dscp>,
}

/// What a transfer may take from others: one line of the table in docs/classes.md each.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum Class {
    /// What nobody else wants, however little that is (TCP Nice)
    #[default]
    Idle,
    /// A share of what a TCP flow gets, smaller where the network is crowded (FAIRBAT-I)
    Fair,
    /// As much as a TCP flow where the network is crowded, no more than enough where it is not
    /// (FAIRBAT-II)
    Assured,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |v| v.get_name()))
    }
}

impl Class {
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

impl Choice {
    /// The algorithm with its parameters set.
    pub fn config(&self) -> Result<Config> {
        self.config_or(Class::default().algorithm())
    }

    /// As [`Choice::config`], with this algorithm if neither a class nor one was chosen.
    fn config_or(&self, otherwise: &str) -> Result<Config> {
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

#[derive(Clone, Copy, ValueEnum)]
pub enum Dscp {
    /// Lower Effort, DSCP 1: routers that know it serve others first
    Le,
    /// Leave the packets as they are
    None,
}

impl Dscp {
    fn tos(self) -> u8 {
        match self {
            Dscp::Le => 1 << 2,
            Dscp::None => 0,
        }
    }
}

/// The group of a run.
#[derive(Args)]
pub struct GroupArgs {
    /// Divide what its connections are entitled to with the other runs of this group, by their
    /// shares; with --class idle, what they find in the background (docs/shares.md)
    #[arg(short, long, value_name = "NAME")]
    pub group: Option<Name>,
    /// Parts that this run gets, against those of the others [default: 1]
    #[arg(long, value_name = "PARTS", requires = "group", allow_hyphen_values = true)]
    pub share: Option<String>,
    /// Which connections of the group share a bottleneck: those to one host, to one prefix
    /// (prefix/24), or all [default: host]
    #[arg(long, requires = "group")]
    pub scope: Option<Scope>,
}

#[derive(Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub choice: Choice,
    #[command(flatten)]
    pub group: GroupArgs,
    /// End with a summary: bytes, mean rate, time spent yielding, connections
    #[arg(short, long)]
    pub verbose: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl RunArgs {
    /// The algorithm with its parameters set, and the group.
    pub fn config(&self) -> Result<(Config, Option<Membership>)> {
        let mut config = match self.group.group {
            Some(_) => self.choice.config_or(group::default_algorithm())?,
            None => self.choice.config()?,
        };
        let membership = group::membership(&self.group, self.choice.class, &mut config)?;
        Ok((config, membership))
    }

    /// The TOS or traffic class octet; 0: leave it alone. A group of fair shares is entitled to them,
    /// and a router that serves others first would take them.
    pub fn tos(&self, algorithm: Algorithm) -> u8 {
        match (&self.group.group, self.choice.dscp) {
            (Some(_), None) if algorithm.divides() => Dscp::None.tos(),
            _ => self.choice.tos(),
        }
    }
}

#[derive(Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub choice: Choice,
    /// The processes
    #[arg(required = true, value_name = "PID")]
    pub pids: Vec<i32>,
}

#[derive(Args)]
pub struct EnableArgs {
    /// Algorithms to register; all by default
    #[arg(value_name = "ALGORITHM")]
    pub algorithms: Vec<String>,
    /// Let unprivileged programs choose them too (tcp_allowed_congestion_control)
    #[arg(long)]
    pub allow_all: bool,
}

#[derive(Args)]
pub struct DisableArgs {
    /// Algorithms to take off the list; all by default
    #[arg(value_name = "ALGORITHM")]
    pub algorithms: Vec<String>,
}

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub of_group: GroupStatusArgs,
    /// Print JSON: sizes in bytes, windows in packets, times in microseconds
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct GroupStatusArgs {
    /// Show a group of yours instead: windows, and the shares that it has and should have
    #[arg(short, long, value_name = "NAME")]
    pub group: Option<Name>,
    /// How long to measure what the group's connections get
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, requires = "group")]
    pub seconds: Duration,
}

#[derive(Args)]
pub struct ShareArgs {
    /// The group
    #[arg(value_name = "NAME")]
    pub group: Name,
    /// The run, or a process in it
    #[arg(value_name = "PID|RUN")]
    pub run: u64,
    /// Its new share, in parts
    #[arg(value_name = "WEIGHT", allow_hyphen_values = true)]
    pub weight: String,
}

#[derive(Args)]
pub struct ProbeArgs {
    #[command(flatten)]
    pub choice: Choice,
    /// How long to measure
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub seconds: Duration,
    /// Print JSON: one object for each measurement, at last the summary
    #[arg(long)]
    pub json: bool,
    /// Be the other end: accept transfers and discard them, until Ctrl-C
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "[::]:9",
          value_parser = listening)]
    pub listen: Option<SocketAddr>,
    /// The host, and the port of a service that accepts data [default port: 9, discard]
    #[arg(
        value_name = "HOST[:PORT]",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    pub host: Option<Target>,
}

/// The port of the service that discards what it gets (RFC 863).
const DISCARD: u16 = 9;

/// A host by name or address, and a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub host: String,
    pub port: u16,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if let Ok(address) = listening(text) {
            return Ok(Target { host: address.ip().to_string(), port: address.port() });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()),
            None => (text, Some(DISCARD)),
        };
        match port {
            Some(port) if port > 0 && !host.is_empty() => Ok(Target { host: host.into(), port }),
            _ => Err("write HOST, HOST:PORT, or [ADDRESS]:PORT for an address of IPv6".into()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// An address with or without a port.
fn listening(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    text.parse().or_else(|_| bare.parse().map(|ip: IpAddr| SocketAddr::new(ip, DISCARD))).map_err(
        |_| "write an address of this host and a port: 0.0.0.0:5009, or [::]:5009".to_owned(),
    )
}

/// A duration from a number of seconds, up to a day.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(s) if s > 0.0 && s <= 86400.0 => Ok(Duration::from_secs_f64(s)),
        _ => Err("write a number of seconds above 0, up to 86400".into()),
    }
}

#[derive(Args)]
pub struct AlgorithmsArgs {
    /// The algorithm to explain
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `netnice algorithms`.
pub fn list(args: &AlgorithmsArgs) -> Result<()> {
    crate::end_with_reader()?;
    let chosen = match &args.name {
        Some(name) => vec![Algorithm::by_name(name)?],
        None => Algorithm::all().collect(),
    };
    if args.json {
        let all: Vec<_> = chosen.iter().map(describe).collect();
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    for algorithm in chosen {
        println!("{:8} {}", algorithm.name(), algorithm.summary());
        if args.name.is_none() {
            continue;
        }
        for p in algorithm.params() {
            println!("\n  {}", default(&p));
            println!("      {}", p.help());
            println!("      {}; {}", range(&p), p.source());
        }
    }
    if args.name.is_none() {
        println!("\nOne with its parameters: netnice algorithms NAME");
    }
    Ok(())
}

/// A parameter with its default: `threshold=0.2 share of the buffer`, `mode=alpha`.
fn default(p: &Param) -> String {
    match p.choices().nth(p.default() as usize) {
        Some(choice) => format!("{}={choice}", p.name()),
        None => format!("{}={} {}", p.name(), number(p.default()), p.unit()),
    }
}

/// What a parameter may be.
fn range(p: &Param) -> String {
    match p.choices().next() {
        Some(_) => format!("one of {}", p.choices().collect::<Vec<_>>().join(", ")),
        None => format!("from {} to {}", number(p.least()), number(p.most())),
    }
}

fn describe(algorithm: &Algorithm) -> serde_json::Value {
    let params: Vec<_> = algorithm
        .params()
        .map(|p| {
            json!({"name": p.name(), "default": p.default(), "least": p.least(), "most": p.most(),
                   "unit": p.unit(), "source": p.source(), "help": p.help()})
        })
        .collect();
    json!({"name": algorithm.name(), "summary": algorithm.summary(), "parameters": params})
}

/// At most five decimals, since values are kept to 1/65536.
fn number(x: f64) -> String {
    format!("{x:.5}").trim_end_matches('0').trim_end_matches('.').into()
}

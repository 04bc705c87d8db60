// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What several commands take.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::Args;
use netnice_manager::choice::{Choice, Class, Dscp};
use netnice_manager::named::Named;
use netnice_manager::peer::{Only, Peers, Selection};
use netnice_manager::system::require_privileges;
use netnice_manager::Error;

/// The choice of an algorithm and its parameters.
#[derive(Args)]
pub struct ChoiceArgs {
    /// How much the transfers yield, and to whom [default: idle]
    #[arg(short, long, value_parser = classes())]
    class: Option<Class>,
    /// Choose an algorithm instead of a class; the list: netnice algorithms
    #[arg(short, long, value_name = "NAME", conflicts_with = "class")]
    algorithm: Option<String>,
    /// Set a parameter of the algorithm; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Mark packets as Lower Effort (RFC 8622), or leave them as they are [default: le; none for
    /// the classes fair and assured, whose share a router that serves others first would take]. What is
    /// not marked does not wait in this host (netnice hold), nor do its downloads yield
    #[arg(long, value_parser = marks())]
    dscp: Option<Dscp>,
}

impl From<ChoiceArgs> for Choice {
    fn from(args: ChoiceArgs) -> Choice {
        let ChoiceArgs { class, algorithm, set, dscp } = args;
        Choice { class, algorithm, set, dscp, no_hold: false }
    }
}

/// The choice for what begins now.
#[derive(Args)]
pub struct BeginArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    /// Let packets leave as they come. Without it they wait in this host until the path has room, at
    /// the devices of its default routes, while such a command runs (docs/hold.md)
    #[arg(long)]
    no_hold: bool,
}

impl From<BeginArgs> for Choice {
    fn from(args: BeginArgs) -> Choice {
        Choice { no_hold: args.no_hold, ..args.choice.into() }
    }
}

/// Where the daemon listens.
#[derive(Args)]
pub struct SocketArgs {
    /// Where `netnice daemon` listens, which does for users without root what takes root
    #[arg(long, value_name = "PATH", default_value = netnice_daemon::SOCKET)]
    pub socket: PathBuf,
}

impl SocketArgs {
    /// Whether this process lacks the rights, and the daemon may have them.
    pub fn is_needed(&self) -> bool {
        matches!(require_privileges(), Err(Error::Privileges(_)))
    }
}

/// Which connections are meant.
#[derive(Args)]
pub struct PeerArgs {
    /// Only connections with these peers; all others stay as they are. A port is that of either end,
    /// so a server's own, too; may be repeated
    #[arg(long, value_name = "PREFIX[:PORT]")]
    to: Vec<Peers>,
    /// All connections but those with these peers; of those that --to names, if there are such; may be
    /// repeated
    #[arg(long, value_name = "PREFIX[:PORT]")]
    except: Vec<Peers>,
    /// Only connections of sockets that the program has given this mark before (SO_MARK,
    /// docs/sockets.md)
    #[arg(long, value_name = "NUMBER", value_parser = socket_mark)]
    mark: Option<u32>,
    /// Only one direction; without it both yield. A host's devices do not know of it what is in its
    /// containers: there `up` yields both ways, and `down` not at all (docs/downloads.md)
    #[arg(long, value_parser = directions())]
    only: Option<Only>,
    /// Have downloads over UDP yield too, as those of HTTP/3: a datagram that comes waits in this host,
    /// or is dropped where 50 ms of the rate wait (docs/downloads.md)
    #[arg(long)]
    udp_downloads: bool,
}

impl From<PeerArgs> for Selection {
    fn from(args: PeerArgs) -> Selection {
        let PeerArgs { to, except, mark, only, udp_downloads } = args;
        Selection { to, except, mark, only, udp_downloads }
    }
}

/// What is meant beside processes.
#[derive(Args)]
#[group(multiple = false)]
pub struct NamedArgs {
    /// A unit of systemd: all of its processes, and what they open later too
    #[arg(short, long, value_name = "NAME", conflicts_with = "pids", allow_hyphen_values = true)]
    unit: Option<String>,
    /// A container of docker or podman by its name, of any engine by its id: the same
    #[arg(long, value_name = "NAME", conflicts_with = "pids")]
    container: Option<String>,
    /// A cgroup: the same; its path below /sys/fs/cgroup, with it or without
    #[arg(long, value_name = "PATH", conflicts_with = "pids")]
    cgroup: Option<PathBuf>,
    /// All pods that Kubernetes calls BestEffort: the same
    #[arg(long, conflicts_with = "pids")]
    pods: bool,
}

impl NamedArgs {
    /// None: processes are meant.
    pub fn named(self) -> Option<Named> {
        let NamedArgs { unit, container, cgroup, pods } = self;
        let container = container.map(Named::Container);
        let named = unit.map(Named::Unit).or(container).or(cgroup.map(Named::Cgroup));
        named.or(pods.then_some(Named::Pods))
    }
}

fn classes() -> impl TypedValueParser<Value = Class> {
    let listed = Class::all().map(|c| PossibleValue::new(c.name()).help(c.summary()));
    PossibleValuesParser::new(listed).try_map(|name| name.parse::<Class>())
}

pub fn marks() -> impl TypedValueParser<Value = Dscp> {
    let listed = Dscp::ALL.map(|d| PossibleValue::new(d.name()).help(d.summary()));
    PossibleValuesParser::new(listed).try_map(|name| name.parse::<Dscp>())
}

fn directions() -> impl TypedValueParser<Value = Only> {
    let listed = Only::ALL.map(|only| PossibleValue::new(only.name()).help(only.summary()));
    PossibleValuesParser::new(listed).try_map(|name| name.parse::<Only>())
}

/// A mark as ip(8) and nft(8) write it.
fn socket_mark(text: &str) -> Result<u32, &'static str> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    match number {
        Ok(mark) if mark > 0 => Ok(mark),
        _ => Err("write a number from 1 to 4294967295, such as 7 or 0x7"),
    }
}

/// Where to listen.
pub fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:9464 or [::1]:9464")
}

/// A duration from a number of seconds, up to a day.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(s) if s > 0.0 && s <= 86400.0 => Ok(Duration::from_secs_f64(s)),
        _ => Err("write a number of seconds above 0, up to 86400".into()),
    }
}

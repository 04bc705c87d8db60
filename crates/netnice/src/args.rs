// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What several commands take.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::Args;
use netnice_manager::choice::{Choice, Class, Dscp};
use netnice_manager::peer::Peers;

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
    /// the classes fair and assured, whose share a router that serves others first would take]
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

/// Which peers are meant.
#[derive(Args)]
pub struct PeerArgs {
    /// Only connections with these peers; all others stay as they are. A port is that of either end,
    /// so a server's own, too; may be repeated
    #[arg(long, value_name = "PREFIX[:PORT]")]
    pub to: Vec<Peers>,
}

fn classes() -> impl TypedValueParser<Value = Class> {
    let listed = Class::all().map(|c| PossibleValue::new(c.name()).help(c.summary()));
    PossibleValuesParser::new(listed).try_map(|name| name.parse::<Class>())
}

fn marks() -> impl TypedValueParser<Value = Dscp> {
    let listed = Dscp::ALL.map(|d| PossibleValue::new(d.name()).help(d.summary()));
    PossibleValuesParser::new(listed).try_map(|name| name.parse::<Dscp>())
}

/// A duration from a number of seconds, up to a day.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(s) if s > 0.0 && s <= 86400.0 => Ok(Duration::from_secs_f64(s)),
        _ => Err("write a number of seconds above 0, up to 86400".into()),
    }
}

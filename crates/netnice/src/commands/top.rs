// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice top`: the jobs in the background while they go on, and why they are as slow as they are.

mod screen;
mod table;

use std::env;
use std::io::{self, stdin, stdout, IsTerminal};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use netnice_manager::snapshot::View;
use netnice_manners::{say, show, start};

use crate::args::{seconds, SocketArgs};
use crate::sight::{Sight, ANEW};
use table::Table;

/// Of lines that nobody's window limits.
const WIDTH: usize = 80;

#[derive(Args)]
pub struct TopArgs {
    /// How long each look takes: rates are those of this time
    #[arg(short, long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    interval: Duration,
    /// What the jobs are in the order of
    #[arg(short, long, value_enum, default_value_t = Order::Rate)]
    sort: Order,
    /// Print the table once, after one interval
    #[arg(long)]
    once: bool,
    /// Print JSON: rates in bits/s, sizes in bytes, times in seconds
    #[arg(long, requires = "once")]
    json: bool,
    #[command(flatten)]
    daemon: SocketArgs,
}

/// An order of jobs, the largest first, but for names.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum Order {
    Rate,
    Sent,
    Yielded,
    Name,
}

impl Order {
    /// The one after it.
    fn next(self) -> Order {
        let all = Order::value_variants();
        let at = all.iter().position(|order| *order == self).unwrap_or_default();
        all[(at + 1) % all.len()]
    }

    fn name(self) -> &'static str {
        match self {
            Order::Rate => "rate",
            Order::Sent => "sent",
            Order::Yielded => "yielded",
            Order::Name => "name",
        }
    }
}

pub fn main(args: &TopArgs) -> Result<()> {
    let set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    let terminal = stdin().is_terminal() && stdout().is_terminal();
    let lines = args.once || !terminal || env::var("TERM").is_ok_and(|term| term == "dumb");
    if lines {
        start::end_with_reader()?;
    }
    let mut sight = Sight::new(&args.daemon, lines); // keys are not to wait for a daemon
    let first = sight.look()?; // what it cannot do it says before there is a screen
    match lines {
        true => print_each(args, &mut sight),
        false => screen::main(args, &mut sight, first, !set("NO_COLOR")),
    }
}

/// Whether what reads the output knows more than ASCII.
fn knows_blocks() -> bool {
    let first = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| {
        env::var(name).ok().filter(|value| !value.is_empty()) // the first that is set counts
    });
    first.is_some_and(|locale| {
        let locale = locale.to_ascii_uppercase();
        locale.ends_with("UTF-8") || locale.ends_with("UTF8")
    })
}

/// Without a screen: the table, again and again.
fn print_each(args: &TopArgs, sight: &mut Sight) -> Result<()> {
    loop {
        thread::sleep(args.interval);
        let view = sight.look()?;
        if view.seconds.is_none() {
            say!("netnice: {ANEW}");
            continue;
        }
        match args.json {
            true => show!("{}", serde_json::to_string_pretty(&view)?)?,
            false => print(&view, args.sort)?,
        }
        if args.once {
            return Ok(());
        }
        show!("")?;
    }
}

fn print(view: &View, order: Order) -> io::Result<()> {
    let table = Table::new(view, order, WIDTH, knows_blocks());
    show!("{}", table.head())?;
    if !view.jobs.is_empty() {
        show!("{}", table.columns())?;
    }
    let lines = table.jobs().into_iter().chain(table.downloads()).flatten();
    lines.chain(table.not_shown()).try_for_each(|line| show!("{}", line.trim_end()))
}

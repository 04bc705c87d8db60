// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice status`: what is registered, and the background connections.

mod columns;
mod group;
mod who;

use std::io;
use std::time::Duration;

use anyhow::{bail, Result};
use clap::Args;
use netnice_daemon::client::{ask, Error};
use netnice_daemon::protocol::{Answer, Request};
use netnice_manager::group::Name;
use netnice_manager::peer::Only;
use netnice_manager::snapshot::{Connection, DownloadAt, RunStatus, Status};
use netnice_manager::system::System;
use netnice_manners::show;
use serde::Serialize;

use super::hold::download_words;
use super::report::not_governed;
use crate::args::{seconds, SocketArgs};
use crate::units::{count, visible};
use columns::Column;

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    of_group: GroupArgs,
    /// Print JSON: sizes in bytes, windows in packets, times in microseconds
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    daemon: SocketArgs,
}

#[derive(Args)]
struct GroupArgs {
    /// Show one of your groups instead: its windows, and what each run has and should have
    #[arg(short, long, value_name = "NAME")]
    group: Option<Name>,
    /// How long to measure what the connections of the group get
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds, requires = "group")]
    seconds: Duration,
}

pub fn main(args: &StatusArgs) -> Result<()> {
    netnice_manners::start::end_with_reader()?;
    if let Some(name) = &args.of_group.group {
        return group::main(name, args.of_group.seconds, args.json, &args.daemon);
    }
    let seen = read(&args.daemon)?;
    if args.json {
        show!("{}", serde_json::to_string_pretty(&seen)?)?;
        return Ok(());
    }
    let Seen { status, others, left_out } = seen;
    print(&status, if args.daemon.is_needed() { "" } else { "sudo " })?;
    for DownloadAt { device, download } in &status.downloads {
        show!("\ndownloads at {}: {}", visible(device), download_words(download))?;
    }
    if left_out > 0 {
        show!("\n{left_out} more connections of yours; all: sudo netnice status")?;
    }
    if others > 0 {
        let runs = count(others as u64, "run of another user is", "runs of other users are");
        show!("\n{runs} in the background, too; see: sudo netnice status")?;
    }
    Ok(())
}

/// The status, and what it lacks where the daemon tells it.
#[derive(Serialize)]
struct Seen {
    #[serde(flatten)]
    status: Status,
    /// Runs of other users.
    others: usize,
    /// Connections of one's own.
    left_out: usize,
}

fn read(daemon: &SocketArgs) -> Result<Seen> {
    if !daemon.is_needed() {
        return Ok(Seen { status: Status::read(&System::look()?)?, others: 0, left_out: 0 });
    }
    match ask(&daemon.socket, &Request::Status {})? {
        Answer::Status { status, others, left_out } => {
            Ok(Seen { status: *status, others, left_out })
        }
        _ => bail!(Error::NotAsked),
    }
}

/// `as_root`: what has the reader's next command run as he runs this one.
fn print(status: &Status, as_root: &str) -> io::Result<()> {
    let width = status.controls.iter().map(|c| c.name.chars().count()).max().unwrap_or_default();
    for c in &status.controls {
        let state = match (c.registered, c.enabled) {
            (true, true) => "enabled for the whole system",
            (true, false) => "registered for runs",
            (false, _) => "not registered",
        };
        show!("{:width$} {state}", c.name)?;
    }
    print_runs(&status.runs)?;
    if status.connections.is_empty() {
        return match status.runs.len() {
            0 => show!("\nNo background connections. Start one: {as_root}netnice run -- COMMAND"),
            _ => show!("\nNo background connections now."),
        };
    }
    print_connections(&status.connections)
}

fn print_runs(runs: &[RunStatus]) -> io::Result<()> {
    for (n, run) in runs.iter().enumerate() {
        let space = if n == 0 { "\n" } else { "" };
        let id = run.report.run;
        let attached = run.cgroup.as_ref().map(|path| format!("{}: ", visible(path)));
        let only =
            run.report.only.map_or(String::new(), |only| format!(" (--only {})", only.name()));
        show!("{space}run {id}{only}: {}{}", attached.unwrap_or_default(), who::members(run))?;
        if let Some(text) = not_governed(&run.report) {
            show!("run {id}: so far {text}")?;
        }
    }
    Ok(())
}

fn print_connections(connections: &[Connection]) -> io::Result<()> {
    let columns = Column::all(connections);
    show!(
        "\n{:11} {:>22} {:>8} {:>9} {:>9}{} {:>12} {:>8}  {:11} {:>8}  process",
        "control",
        "to",
        "cwnd",
        "gap ms",
        "RTT ms",
        columns.iter().map(Column::head).collect::<String>(),
        "bytes",
        "retrans",
        "state",
        "run"
    )?;
    for (i, c) in connections.iter().enumerate() {
        let ms = |us: u64| us as f64 / 1000.0;
        let listens = c.remote.port() == 0;
        let state = match (c.yielding, c.slow_start) {
            _ if listens => "listening",
            _ if c.only == Some(Only::Down) => "downloads",
            (true, _) => "yielding",
            (false, true) => "slow start",
            (false, false) => "steady",
        };
        show!(
            "{:11} {:>22} {:8.3} {:9.1} {:9.1}{} {:12} {:8}  {state:11} {:>8}  {}",
            c.control,
            if listens { c.local } else { c.remote }.to_string(),
            c.cwnd,
            ms(c.gap_us),
            ms(c.srtt_us.into()),
            columns.iter().map(|column| column.cell(i)).collect::<String>(),
            c.bytes_acked,
            c.retransmits,
            if c.run == 0 { "-".into() } else { c.run.to_string() },
            who::holders(c),
        )?;
    }
    show!("\ncwnd and queue in packets, rates as payload; a gap is the time between bursts")?;
    for column in &columns {
        show!("{}", column.legend())?;
    }
    Ok(())
}

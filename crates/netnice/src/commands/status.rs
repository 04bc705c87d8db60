// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice status`: what is registered, and the background connections.

mod group;

use std::io;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use netnice_manager::group::Name;
use netnice_manager::snapshot::Status;
use netnice_manager::system::System;
use netnice_manners::show;

use crate::args::seconds;

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    of_group: GroupArgs,
    /// Print JSON: sizes in bytes, windows in packets, times in microseconds
    #[arg(long)]
    json: bool,
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
        return group::main(name, args.of_group.seconds, args.json);
    }
    let status = Status::read(&System::look()?)?;
    match args.json {
        true => show!("{}", serde_json::to_string_pretty(&status)?)?,
        false => print(&status)?,
    }
    Ok(())
}

fn print(status: &Status) -> io::Result<()> {
    for c in &status.controls {
        let state = match (c.registered, c.enabled) {
            (true, true) => "enabled for the whole system",
            (true, false) => "registered while a run needs it",
            (false, _) => "not registered",
        };
        show!("{:11} {state}", c.name)?;
    }
    if status.connections.is_empty() {
        show!("\nNo background connections. Start one: sudo netnice run -- COMMAND")?;
        return Ok(());
    }
    show!(
        "\n{:11} {:>22} {:>8} {:>9} {:>9} {:>9} {:>6} {:>21} {:>6} {:>12} {:>8}  state",
        "control",
        "to",
        "cwnd",
        "gap ms",
        "base ms",
        "RTT ms",
        "queue",
        "available Mbit/s",
        "weight",
        "bytes",
        "retrans"
    )?;
    for c in &status.connections {
        let ms = |us: u64| us as f64 / 1000.0;
        let listens = c.remote.port() == 0;
        let state = match (c.yielding, c.slow_start) {
            _ if listens => "listening",
            (true, _) => "yielding",
            (false, true) => "slow start",
            (false, false) => "steady",
        };
        show!(
            "{:11} {:>22} {:8.3} {:9.1} {:9.1} {:9.1} {:6.1} {:>21} {:>6} {:12} {:8}  {state}",
            c.control,
            if listens { c.local } else { c.remote }.to_string(),
            c.cwnd,
            ms(c.gap_us),
            ms(c.base_rtt_us.into()),
            ms(c.srtt_us.into()),
            c.queue,
            c.available.map_or("-".into(), |a| a.to_string()),
            c.weight.map_or("-".into(), |w| format!("{w:.2}")),
            c.bytes_acked,
            c.retransmits,
        )?;
    }
    show!(
        "\ncwnd and queue in packets; a gap is the time between bursts; available: as payload, measured; \
         weight: the share\nof a TCP flow's throughput"
    )?;
    Ok(())
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice status --group`: who of a group has what.

use std::io;
use std::time::Duration;

use anyhow::{bail, Result};
use netnice_daemon::client::{ask, Error};
use netnice_daemon::protocol::{Answer, Request};
use netnice_manager::group::Name;
use netnice_manager::snapshot::GroupStatus;
use netnice_manners::show;

use crate::args::SocketArgs;

pub fn main(name: &Name, during: Duration, json: bool, daemon: &SocketArgs) -> Result<()> {
    let status = match daemon.is_needed() {
        true => asked(name, during, daemon)?,
        false => GroupStatus::measure(name, during)?,
    };
    match json {
        true => show!("{}", serde_json::to_string_pretty(&status)?)?,
        false => print(&status)?,
    }
    Ok(())
}

fn asked(Name(name): &Name, during: Duration, daemon: &SocketArgs) -> Result<GroupStatus> {
    let request = Request::Group { group: name.clone(), seconds: during.as_secs_f64() };
    match ask(&daemon.socket, &request)? {
        Answer::Group { status } => Ok(*status),
        _ => bail!(Error::NotAsked),
    }
}

fn print(status: &GroupStatus) -> io::Result<()> {
    let shares: Vec<_> = status.runs.iter().map(|r| format!("{} ({})", r.run, r.share)).collect();
    show!("group {}, {}, scope {}", status.group, status.algorithm, status.scope)?;
    show!("runs (share): {}", shares.join(", "))?;
    if status.aggregates.is_empty() {
        show!("\nNo connections now.")?;
        return Ok(());
    }
    for a in &status.aggregates {
        show!("\nto {}: C = {:.1} packets, {:.2} Mbit/s", a.to, a.window, a.mbit)?;
        show!(
            "{:>10} {:>24} {:>8} {:>8} {:>9} {:>9} {:>9} {:>8}",
            "run",
            "to",
            "share",
            "target",
            "achieved",
            "Mbit/s",
            "A",
            "C_j"
        )?;
        let part = |x: Option<f64>| x.map_or("-".into(), |x| format!("{x:.3}"));
        for m in &a.connections {
            show!(
                "{:>10} {:>24} {:>8} {:>8} {:>9} {:>9.2} {:>9.2} {:>8}",
                m.run,
                m.remote.to_string(),
                m.share,
                part(m.target),
                part(m.achieved),
                m.mbit,
                m.cwnd,
                m.window.map_or("-".into(), |w| format!("{w:.1}")),
            )?;
        }
    }
    show!(
        "\ntarget, achieved: parts of what those who sent had in {} s; A: packets that the connection may have\n\
         in flight; C_j: the window that it brought; C: their sum",
        status.seconds
    )?;
    Ok(())
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice check`: what of netnice works on this machine.

use std::io;
use std::path::Path;

use anyhow::Result;
use clap::Args;
use netnice_daemon::client::{ask, Error::NotAsked};
use netnice_daemon::protocol::{Answer, Request};
use netnice_manager::check::{findings, Finding};
use netnice_manager::system::require_privileges;
use netnice_manager::Error;
use netnice_manners::show;
use serde::Serialize;

use crate::args::SocketArgs;

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    daemon: SocketArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    /// Whether `netnice run` works, by the daemon if not otherwise.
    works: bool,
    findings: Vec<Finding>,
}

/// The exit status.
pub fn main(args: &CheckArgs) -> Result<u8> {
    let mut findings = findings();
    let daemon = daemon(&args.daemon.socket);
    let asks = matches!(require_privileges(), Err(Error::Privileges(_)));
    let works = asks && daemon.works || findings.iter().all(|f| f.works || !f.needed);
    findings.push(daemon);
    print(Found { works, findings }, args.json)?;
    Ok(u8::from(!works))
}

/// Whether the daemon runs.
fn daemon(socket: &Path) -> Finding {
    let (works, said) = match ask(socket, &Request::Hello {}) {
        Ok(Answer::Hello { netnice }) => (
            true,
            format!("users without root are served at {} (netnice {netnice})", socket.display()),
        ),
        Ok(_) => (false, NotAsked.to_string()),
        Err(error) => (false, error.to_string()),
    };
    Finding { what: "daemon", works, needed: false, said }
}

fn print(found: Found, json: bool) -> io::Result<()> {
    if json {
        return show!("{}", serde_json::to_string_pretty(&found)?);
    }
    for Finding { what, works, said, .. } in &found.findings {
        show!("{:<10} {:<4} {said}", what, if *works { "yes" } else { "no" })?;
    }
    if !found.works {
        show!("netnice run does not work here.")?;
    }
    Ok(())
}

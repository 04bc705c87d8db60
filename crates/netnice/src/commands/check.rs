// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice check`: what of netnice works on this machine.

use std::io;
use std::process::ExitCode;

use clap::Args;
use netnice_manager::check::{findings, Finding};
use netnice_manners::{say, show};
use serde::Serialize;

#[derive(Args)]
pub struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    /// Whether `netnice run` works.
    works: bool,
    findings: Vec<Finding>,
}

pub fn main(args: &CheckArgs) -> ExitCode {
    let findings = findings();
    let works = findings.iter().all(|f| f.works || !f.needed);
    if let Err(error) = print(Found { works, findings }, args.json) {
        say!("netnice: {error}");
    }
    ExitCode::from(u8::from(!works))
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

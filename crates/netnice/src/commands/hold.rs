// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice hold`: background packets wait in this host until their path has room.

use std::io;

use anyhow::Result;
use clap::Args;
use netnice_manager::hold::{Download, HeldPath, Hold};
use netnice_manager::system::System;
use netnice_manners::show;

use crate::units::{count, rate, size};

#[derive(Args)]
pub struct HoldArgs {
    /// The device that leads out, as in `ip link`; without one, show those that hold
    device: Option<String>,
    /// Leave faster paths alone, for what it costs to have each packet wait [default: 100]
    #[arg(long, value_name = "MBIT", requires = "device")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    fastest: Option<u32>,
    /// Let everything leave as it comes again
    #[arg(long, requires = "device")]
    off: bool,
    /// Print JSON: rates in bits/s, sizes in bytes, times in microseconds
    #[arg(long, conflicts_with = "device")]
    json: bool,
}

pub fn main(args: &HoldArgs) -> Result<()> {
    match (&args.device, args.off) {
        (Some(device), true) => Ok(System::change()?.release(device)?),
        (Some(device), false) => Ok(System::change()?.hold(device, args.fastest)?),
        (None, _) => show_all(args.json),
    }
}

fn show_all(json: bool) -> Result<()> {
    netnice_manners::start::end_with_reader()?;
    let holds = System::look()?.holds()?;
    match json {
        true => show!("{}", serde_json::to_string_pretty(&holds)?)?,
        false => print(&holds)?,
    }
    Ok(())
}

fn print(holds: &[Hold]) -> io::Result<()> {
    if holds.is_empty() {
        show!("Packets wait at no device now. To have them wait: sudo netnice hold DEVICE")?;
    }
    holds.iter().flat_map(lines).try_for_each(|line| show!("{line}"))
}

/// All that a device knows, a line each.
fn lines(hold: &Hold) -> Vec<String> {
    let mut lines = leaving(hold);
    lines.extend(coming(hold).iter().map(|line| format!("downloads at {line}")));
    if lines.is_empty() {
        lines.push(format!("{}: holds; nothing in the background has passed it yet", hold.device));
    }
    lines
}

/// What it knows of the paths that something in the background left by, a line each.
pub fn leaving(hold: &Hold) -> Vec<String> {
    hold.paths.iter().map(|path| format!("{}: {}", hold.device, words(path))).collect()
}

/// What it knows of those that downloads in the background came by, a line each.
pub fn coming(hold: &Hold) -> Vec<String> {
    let came = |download: &&Download| download.background_bytes > 0;
    let downloads = hold.downloads.iter().filter(came);
    downloads.map(|download| format!("{}: {}", hold.device, download_words(download))).collect()
}

/// Packets of UDP for which there was no room.
fn dropped(packets: u64) -> String {
    match packets {
        0 => String::new(),
        n => format!(", {n} of UDP dropped so that their sender slows down"),
    }
}

/// What it knows of such a path.
pub fn download_words(download: &Download) -> String {
    let rtt =
        download.rtt_us.map_or(String::new(), |us| format!(", RTT {:.1} ms", us as f64 / 1e3));
    let away = download.away_s.map_or(String::new(), |s| {
        let why = match download.too_fast {
            true => "the path is faster than --fastest",
            false => "nothing came out of the waiting devices",
        };
        format!("; for {s} s they do not yield: {why}")
    });
    // UDP has none, and those of TCP may have ended
    let over = match download.connections {
        0 => String::new(),
        n => format!(", over {}", count(n.into(), "connection", "connections")),
    };
    format!(
        "the path carries {}{rtt}; {} of {} came in the background{over}{}{away}",
        rate(download.rate_bits as f64),
        size(download.background_bytes as f64),
        size(download.received_bytes as f64),
        dropped(download.dropped),
    )
}

fn words(path: &HeldPath) -> String {
    let ms = |us: u64| us as f64 / 1000.0;
    let known = match (path.rate_bits, path.rtt_us) {
        (Some(bits), Some(rtt)) => {
            format!("the path carries {}, RTT {:.1} ms", rate(bits as f64), ms(rtt))
        }
        _ => "the path's rate is not known yet".into(),
    };
    let others = match path.part < 1.0 {
        true => format!("; other hosts use it: {:.0} % for the background", 100.0 * path.part),
        false => String::new(),
    };
    let away = match path.away_s {
        None => String::new(),
        Some(s) => format!(
            "; nothing is held for {s} s, and connections yield by their window: what else this host sends \
             does not pass this bottleneck, or it is faster than --fastest"
        ),
    };
    let broken = match path.unheld {
        0 => String::new(),
        n => format!(
            "; {n} packets were not held, since nothing came out of the waiting devices: netnice hold \
             --off, and again"
        ),
    };
    let dropped = dropped(path.dropped);
    format!(
        "{known}; {} of {} sent in the background, {} packets wait{dropped}{others}{away}{broken}",
        size(path.background_bytes as f64),
        size(path.sent_bytes as f64),
        path.waiting,
    )
}

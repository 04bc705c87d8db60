// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The subcommands, one file each, and what they have in common.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use netnice_load::net::{Stop, Timeline};
use netnice_load::transport::{Connector, Listener, QuicControl};
use netnice_scenario::cli::{Log, Source};
use netnice_scenario::{schedule, Flow, Scenario};

mod echo;
mod fetch;
mod probe;
mod scenario;
mod schedule;
mod send;
mod serve;
mod sink;

#[derive(Subcommand)]
pub enum Mode {
    Serve(serve::Serve),
    Fetch(fetch::Fetch),
    Sink(sink::Sink),
    Send(send::Send),
    Echo(echo::Echo),
    Probe(probe::Probe),
    Schedule(schedule::Schedule),
    Scenario(scenario::Checked),
}

impl Mode {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        match self {
            Self::Serve(mode) => mode.run(stop).await,
            Self::Fetch(mode) => mode.run(stop).await,
            Self::Sink(mode) => mode.run(stop).await,
            Self::Send(mode) => mode.run(stop).await,
            Self::Echo(mode) => mode.run(stop).await,
            Self::Probe(mode) => mode.run(stop).await,
            Self::Schedule(mode) => mode.run(),
            Self::Scenario(mode) => mode.run(),
        }
    }
}

/// The foreground flows of a scenario.
#[derive(Args)]
struct Planned {
    #[command(flatten)]
    what: Source,
    /// Seed of the schedule: the same seed gives the same flows.
    #[arg(long, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    log: Log,
}

impl Planned {
    /// The files that are read.
    fn inputs(&self, scenario: &Scenario) -> Vec<PathBuf> {
        [self.what.inputs([scenario]), vec![self.log.data.clone()]].concat()
    }

    fn plan(&self) -> anyhow::Result<(Scenario, Vec<Flow>)> {
        let scenario = self.what.read()?;
        let log = self.log.read([&scenario])?;
        let flows = schedule(&scenario, log.as_ref(), self.seed);
        Ok((scenario, flows))
    }
}

/// What a server speaks.
#[derive(Args)]
struct Speak {
    /// Speak HTTP/3 over QUIC, not TCP, and write the certificate that clients need to this file.
    #[arg(long, value_name = "CERTIFICATE")]
    quic: Option<PathBuf>,
}

impl Speak {
    fn listen(&self, on: SocketAddr, control: Option<&str>) -> anyhow::Result<Listener> {
        Ok(match &self.quic {
            None => Listener::tcp(on, control)?,
            Some(file) => Listener::quic(on, file, QuicControl::new(control, &[], false)?)?,
        })
    }
}

#[derive(Args)]
struct Connect {
    /// Speak HTTP/3 over QUIC, not TCP, with the server that wrote this file with its own --quic.
    #[arg(long, value_name = "CERTIFICATE")]
    quic: Option<PathBuf>,
    /// Give up connecting after this long, and over QUIC if the server is silent for so long later
    /// [default: as the system does; over QUIC 30].
    #[arg(long = "connect-timeout", value_name = "SECONDS", value_parser = positive)]
    limit: Option<f64>,
}

impl Connect {
    /// With that control, and over QUIC with these parameters of it, in a group or not.
    fn to(
        &self,
        server: SocketAddr,
        control: Option<String>,
        settings: &[String],
        group: bool,
    ) -> anyhow::Result<Connector> {
        let limit = self.limit.map(Duration::from_secs_f64);
        Ok(match &self.quic {
            None => Connector::tcp(server, control, limit)?,
            Some(file) => {
                let control = QuicControl::new(control.as_deref(), settings, group)?;
                Connector::quic(server, file, control, limit)?
            }
        })
    }
}

#[derive(Args)]
struct Clock {
    /// Unix time of t = 0, so that several programs agree on it; may have decimals [default: when
    /// ready].
    #[arg(long, value_name = "UNIX_SECONDS")]
    epoch: Option<f64>,
}

impl Clock {
    fn timeline(&self) -> anyhow::Result<Timeline> {
        Ok(Timeline::new(self.epoch)?)
    }

    /// For those who start something at t = 0: an error after it.
    fn timeline_of_a_start(&self) -> anyhow::Result<Timeline> {
        let timeline = self.timeline()?;
        let late_s = timeline.now_s();
        anyhow::ensure!(
            self.epoch.is_none() || late_s <= 0.0,
            "t = 0 was {late_s:.3} s ago: what was due since then would start late. \
             Give a later --epoch."
        );
        Ok(timeline)
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "give a number, such as 2.5".to_owned())?;
    if (0.0..=1e9).contains(&value) {
        Ok(value)
    } else {
        Err("give a number from 0 to 1e9".into())
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match seconds(text)? {
        value if value >= 0.001 => Ok(value),
        _ => Err("give a number from 0.001 to 1e9".into()),
    }
}

fn announce(address: io::Result<SocketAddr>) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let address = address.context("The socket has no address")?;
    writeln!(out, "listening {address}")
        .and_then(|()| out.flush())
        .context("Cannot say on standard output that this is ready")
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice probe`: the available bandwidth of the path to a host, from a short transfer to it.

mod listen;
mod report;
mod target;

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use clap::Args;
use netnice_bpf::Flows;
use netnice_core::{sys, Algorithm, Config};
use netnice_manager::choice::{Choice, Dscp};
use netnice_manager::snapshot::{Connection, AVAILABLE};
use netnice_manager::socket::Mover;
use netnice_manager::system::System;
use netnice_manners::start;
use signal_hook::consts::{SIGINT, SIGTERM};
use socket2::{Domain, Socket, Type};

use crate::args::{marks, seconds};
use report::{Ended, Report};
use target::{listening, Target};

/// Between two looks at the connection; a measurement takes a round trip or more.
const LOOK: Duration = Duration::from_millis(20);
const IN_A_RUN: &str =
    "inside of a run there is nothing to measure with: its connections keep the \
     algorithm that the run chose; start netnice probe outside of it";
/// For each address of the host.
const CONNECT: Duration = Duration::from_secs(10);

#[derive(Args)]
pub struct ProbeArgs {
    /// The algorithm to measure with; those that do are in docs/probe.md
    #[arg(short, long, value_name = "NAME", default_value = Algorithm::that_measures().name())]
    algorithm: String,
    /// Set a parameter of the algorithm; may be repeated
    #[arg(short, long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Mark packets as Lower Effort (RFC 8622), or leave them as they are
    #[arg(long, value_parser = marks(), default_value = Dscp::Le.name())]
    dscp: Dscp,
    /// How long to measure
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Print JSON: one object for each measurement, and the summary as the last one
    #[arg(long)]
    json: bool,
    /// Be the other end: accept transfers and discard them, until Ctrl-C
    #[arg(long, value_name = "ADDR:PORT", num_args = 0..=1, default_missing_value = "[::]:9",
          value_parser = listening)]
    listen: Option<SocketAddr>,
    /// The host, and the port of a service that accepts data [default port: 9, discard]
    #[arg(
        value_name = "HOST[:PORT]",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    host: Option<Target>,
}

pub fn main(args: ProbeArgs) -> Result<()> {
    // no class measures
    let ProbeArgs { algorithm, set, dscp, .. } = args;
    let choice = Choice { algorithm: Some(algorithm), set, dscp: Some(dscp), ..Choice::default() };
    match (&args.listen, &args.host) {
        (Some(address), _) => listen::main(*address, args.json),
        (None, Some(host)) => probe(host, &choice, args.seconds, args.json),
        (None, None) => bail!("name a host, or --listen"),
    }
}

fn probe(target: &Target, choice: &Choice, length: Duration, json: bool) -> Result<()> {
    let config = choice.config()?;
    let window = least_window(&config)?;
    let addresses: Vec<_> = (target.host.as_str(), target.port)
        .to_socket_addrs()
        .with_context(|| format!("cannot find the address of {}", target.host))?
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in start::heeded(&[SIGINT, SIGTERM]) {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let report = Report::new(target.to_string(), length, json);
    let report = prepare(&addresses, &config, choice.tos())
        .and_then(|sockets| transfer(sockets, report, length, &stop));
    System::change()?; // takes the control off the kernel's list, if nobody else needs it
    report?.finish(window)
}

/// The least window with which the algorithm measures, in packets.
fn least_window(config: &Config) -> Result<u32> {
    let measures = |a: &Algorithm| a.shown().any(|shown| shown.name() == AVAILABLE);
    if !measures(&config.algorithm()) {
        let measuring: Vec<_> = Algorithm::all().filter(measures).map(|a| a.name()).collect();
        let name = config.algorithm().name();
        bail!("{name} does not measure the available bandwidth; choose {}", measuring.join(" or "));
    }
    Ok(sys::NN_AVAIL_WINDOW)
}

/// A socket for each address, under `config`.
fn prepare(
    addresses: &[SocketAddr],
    config: &Config,
    tos: u8,
) -> Result<Vec<(SocketAddr, Socket)>> {
    let system = System::change()?;
    let mover = Mover::new(&system, config, tos)?;
    let make = |address: &SocketAddr| {
        let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
        if !mover.put(&socket)? {
            bail!(IN_A_RUN);
        }
        // what is unsent at the end is discarded: nobody waits for it
        socket.set_linger(Some(Duration::ZERO))?;
        Ok((*address, socket))
    };
    addresses.iter().map(make).collect()
}

/// Sends for as long as is wanted, and watches.
fn transfer(
    sockets: Vec<(SocketAddr, Socket)>,
    mut report: Report,
    length: Duration,
    stop: &AtomicBool,
) -> Result<Report> {
    let connecting = thread::spawn(move || connect(sockets));
    let Some(stream) = wait(connecting, stop)? else { bail!("interrupted before it connected") };
    let stream = Arc::new(stream.with_context(|| {
        format!(
            "cannot connect to {}; start `netnice probe --listen` there, or name the port of \
             a service that accepts data: HOST:PORT",
            report.target
        )
    })?);
    let plain = |end: SocketAddr| SocketAddr::new(end.ip().to_canonical(), end.port());
    let ends = (plain(stream.local_addr()?), plain(stream.peer_addr()?));
    let flows = Flows::open()?.context("the kernel keeps no state of the connection")?;

    let started = Instant::now();
    let writer = thread::spawn({
        let stream = stream.clone();
        move || fill(&stream)
    });
    let reader = thread::spawn({
        let stream = stream.clone();
        move || io::copy(&mut &*stream, &mut io::sink())
    });
    let ended = loop {
        // looked at after the decision to end: the last sample is of the whole transfer
        let over = if stop.load(Ordering::Relaxed) {
            Some(Ended::Interrupt)
        } else if writer.is_finished() {
            Some(Ended::Peer)
        } else {
            (started.elapsed() >= length).then_some(Ended::Time)
        };
        let found = flows.read()?.iter().map(Connection::of).find(|c| (c.local, c.remote) == ends);
        report.take(started.elapsed(), found)?;
        if let Some(ended) = over {
            break ended;
        }
        thread::sleep(LOOK);
    };
    let _ = stream.shutdown(Shutdown::Both); // fails if the peer has closed: then it is done
    let error = writer.join().map_err(|_| anyhow!("the thread that sends failed"))?;
    let _ = reader.join();
    report.end(ended, error);
    Ok(report)
}

/// Connects to the first address that accepts.
fn connect(sockets: Vec<(SocketAddr, Socket)>) -> io::Result<TcpStream> {
    let mut result = Err(io::ErrorKind::AddrNotAvailable.into());
    for (address, socket) in sockets {
        result = socket.connect_timeout(&address.into(), CONNECT).map(|()| socket.into());
        if result.is_ok() {
            break;
        }
    }
    result
}

/// The thread's result; none if it is time to stop first.
fn wait<T>(thread: JoinHandle<T>, stop: &AtomicBool) -> Result<Option<T>> {
    while !thread.is_finished() {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
    thread.join().map(Some).map_err(|_| anyhow!("the thread that connects failed"))
}

/// Sends zeros until that fails; returns why.
fn fill(mut stream: &TcpStream) -> io::Error {
    let zeros = [0; 64 * 1024];
    loop {
        if let Err(error) = stream.write_all(&zeros) {
            return error;
        }
    }
}

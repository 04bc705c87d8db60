// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice probe`: the available bandwidth of the path to a host, from a short transfer to it.

mod listen;
mod report;

use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail, Context, Result};
use netnice_bpf::Flows;
use netnice_core::{Ack, Algorithm, Config, Flow};
use signal_hook::consts::{SIGINT, SIGTERM};
use socket2::{Domain, Socket, Type};

use crate::attach::put;
use crate::cli::{ProbeArgs, Target};
use crate::status::connection;
use crate::system::System;
use report::{Ended, Report};

/// Between two looks at the connection; a measurement takes a round trip or more.
const LOOK: Duration = Duration::from_millis(20);
/// For each address of the host.
const CONNECT: Duration = Duration::from_secs(10);

pub fn main(args: &ProbeArgs) -> Result<()> {
    match (&args.listen, &args.host) {
        (Some(address), _) => listen::main(*address, args.json),
        (None, Some(host)) => probe(host, args),
        (None, None) => bail!("name a host, or --listen"),
    }
}

fn probe(target: &Target, args: &ProbeArgs) -> Result<()> {
    let config = args.choice.config()?;
    let window = least_window(&config)?;
    let addresses: Vec<_> = (target.host.as_str(), target.port)
        .to_socket_addrs()
        .with_context(|| format!("cannot find the address of {}", target.host))?
        .collect();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let sockets = prepare(&addresses, &config, args.choice.tos())?;
    let report = transfer(sockets, target, args, &stop);
    System::open()?; // takes the control off the kernel's list, if nobody else needs it
    report?.finish(window)
}

/// The least window with which the algorithm measures, in packets.
fn least_window(config: &Config) -> Result<u32> {
    let least = |config: &Config| Flow::new(config, &Ack::default(), 10).info().avail_window;
    if least(config) == 0 {
        let measuring: Vec<_> =
            Algorithm::all().filter(|a| least(&Config::new(*a)) > 0).map(|a| a.name()).collect();
        let name = config.algorithm().name();
        bail!("{name} does not measure the available bandwidth; choose {}", measuring.join(" or "));
    }
    Ok(least(config))
}

/// A socket for each address, under `config`.
fn prepare(
    addresses: &[SocketAddr],
    config: &Config,
    tos: u8,
) -> Result<Vec<(SocketAddr, Socket)>> {
    let _system = System::open()?;
    netnice_bpf::register(config.algorithm(), false)?;
    let make = |address: &SocketAddr| {
        let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None)?;
        put(&socket, config, tos)?;
        // what is unsent at the end is discarded: nobody waits for it
        socket.set_linger(Some(Duration::ZERO))?;
        Ok((*address, socket))
    };
    addresses.iter().map(make).collect()
}

/// Sends for as long as is wanted, and watches.
fn transfer(
    sockets: Vec<(SocketAddr, Socket)>,
    target: &Target,
    args: &ProbeArgs,
    stop: &AtomicBool,
) -> Result<Report> {
    let connecting = thread::spawn(move || connect(sockets));
    let Some(stream) = wait(connecting, stop)? else { bail!("interrupted before it connected") };
    let stream = Arc::new(stream.with_context(|| {
        format!(
            "cannot connect to {target}; start `netnice probe --listen` there, or name the port of \
             a service that accepts data: HOST:PORT"
        )
    })?);
    let ends = (stream.local_addr()?, stream.peer_addr()?);
    let flows = Flows::open()?.context("the kernel keeps no state of the connection")?;
    let mut report = Report::new(target.to_string(), args.seconds, args.json);

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
            (started.elapsed() >= args.seconds).then_some(Ended::Time)
        };
        let found = flows.read()?.iter().map(connection).find(|c| (c.local, c.remote) == ends);
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

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice probe --listen`: the other end, which discards what it gets.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{channel, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use netnice_manners::{say, show, start};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use socket2::{Domain, Socket, Type};

/// Transfers at a time; more are turned away.
const MOST: usize = 8;
/// A transfer that sends nothing for so long is over.
const IDLE: Duration = Duration::from_secs(30);

/// Accepts and discards until SIGINT or SIGTERM.
pub fn main(address: SocketAddr, json: bool) -> Result<()> {
    let listener = listen(address).with_context(|| {
        format!(
            "cannot listen on {address}; choose an address of this host and a free port, one below \
             1024 only as root: --listen 0.0.0.0:5009"
        )
    })?;
    let mut signals = Signals::new(start::heeded(&[SIGINT, SIGTERM]))?;
    let (done, wait) = channel();
    let address = listener.local_addr()?;
    // who starts it by a program waits for this line; without a reader it serves all the same
    let _ = match json {
        true => show!("{}", json!({"listening": address})),
        false => show!("listening {address}"),
    };
    thread::spawn({
        let done = done.clone();
        move || {
            signals.forever().next();
            done.send(Ok(()))
        }
    });
    thread::spawn(move || serve(&listener, json, &done));
    wait.recv()?
}

/// For [::] a socket that takes IPv4 too, whatever the system's default.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    if address.ip() == IpAddr::from([0u16; 8]) {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(128)?;
    Ok(socket.into())
}

/// Accepts for ever; says over `done` why it cannot go on.
fn serve(listener: &TcpListener, json: bool, done: &Sender<Result<()>>) {
    let running = Arc::new(());
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
            Err(e) => {
                let _ = done.send(Err(e).context("cannot accept connections any more"));
                return;
            }
        };
        let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
        if Arc::strong_count(&running) > MOST {
            say!("netnice: turned {peer} away: {MOST} transfers are running");
            continue;
        }
        let place = running.clone();
        thread::spawn(move || {
            let (bytes, seconds) = discard(stream);
            drop(place); // before the line from which others see that there is room
            report(peer, bytes, seconds, json);
        });
    }
}

/// Reads to the end; returns how much it was, in bytes, and the seconds until the last of it.
fn discard(mut stream: TcpStream) -> (u64, f64) {
    let _ = stream.set_read_timeout(Some(IDLE)); // only fails for a duration of zero
    let (started, mut last, mut bytes) = (Instant::now(), Duration::ZERO, 0u64);
    let mut buffer = vec![0; 64 * 1024];
    // a reset is how a probe ends
    while let Some(n) = stream.read(&mut buffer).ok().filter(|n| *n > 0) {
        bytes += n as u64;
        last = started.elapsed();
    }
    (bytes, last.as_secs_f64())
}

/// Says what a transfer was.
fn report(peer: SocketAddr, bytes: u64, seconds: f64, json: bool) {
    let mbit = bytes as f64 * 8e-6 / seconds.max(1e-9);
    let _ = match json {
        true => show!(
            "{}",
            json!({"peer": peer, "bytes": bytes, "seconds": seconds, "goodput_mbit": mbit})
        ),
        false => show!("{peer}: {bytes} bytes in {seconds:.1} s, {mbit:.1} Mbit/s"),
    };
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A bottleneck between clients and a server, in real time: datagrams pass it at a rate, after a delay, as far as
//! its queue has room. What the server sends is delayed alone. It has threads of its own, as the timers of an
//! async runtime count milliseconds. They end with the process.

use std::collections::HashMap;
use std::io::Result;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Each way.
const DELAY: Duration = Duration::from_millis(20);
const BYTES_PER_SECOND: f64 = 1e6;
/// What the queue holds.
const ROOM: Duration = Duration::from_millis(60);

/// Bytes that passed from the client of each port.
type Passed = Arc<Mutex<HashMap<u16, u64>>>;

/// A bottleneck.
pub struct Relay {
    address: SocketAddr,
    passed: Passed,
}

impl Relay {
    /// In front of that server.
    pub fn start(server: SocketAddr) -> Result<Relay> {
        let here = Arc::new(UdpSocket::bind("127.0.0.1:0")?);
        let address = here.local_addr()?;
        let passed = Passed::default();
        let counts = passed.clone();
        thread::spawn(move || forward(&here, server, &counts));
        Ok(Relay { address, passed })
    }

    /// Where clients find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that passed from the client of that port.
    pub fn passed(&self, port: u16) -> u64 {
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        passed.get(&port).copied().unwrap_or(0)
    }
}

/// Sends each datagram at its time.
fn later(send: impl Fn(&[u8]) -> Result<usize> + Send + 'static) -> Sender<(Instant, Vec<u8>)> {
    let (queue, datagrams) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        for (at, data) in datagrams {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            let _ = send(&data); // an end that closed its socket hears no more
        }
    });
    queue
}

fn forward(here: &Arc<UdpSocket>, server: SocketAddr, passed: &Passed) -> Result<()> {
    let mut there = HashMap::new();
    let mut free = Instant::now();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let (bytes, client) = here.recv_from(&mut buffer)?;
        if !there.contains_key(&client) {
            let socket = Arc::new(UdpSocket::bind("127.0.0.1:0")?);
            socket.connect(server)?;
            let (from, to) = (socket.clone(), here.clone());
            let queue = later(move |data| to.send_to(data, client));
            thread::spawn(move || back(&from, &queue));
            there.insert(client, later(move |data| socket.send(data)));
        }
        let now = Instant::now();
        let begins = free.max(now);
        if begins - now > ROOM {
            continue;
        }
        free = begins + Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND);
        *passed.lock().unwrap_or_else(PoisonError::into_inner).entry(client.port()).or_default() +=
            bytes as u64;
        let _ = there[&client].send((free + DELAY, buffer[..bytes].to_vec()));
    }
}

fn back(from: &UdpSocket, queue: &Sender<(Instant, Vec<u8>)>) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let bytes = from.recv(&mut buffer)?;
        let _ = queue.send((Instant::now() + DELAY, buffer[..bytes].to_vec()));
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Echo probes: small UDP datagrams that show the round-trip time a packet meets.
//!
//! A probe has 64 bytes: its number and a mark of its sender, both big-endian, and padding.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use tokio::net::UdpSocket;
use tokio::time::{sleep_until, Instant};

use crate::net::{self, Stop, Timeline};
use crate::Error;
use netnice_scenario::pattern;

/// Payload of a probe in bytes.
pub const PROBE_BYTES: usize = 64;

/// Opens the socket of an echo server.
///
/// # Errors
/// [`Error::Network`] if the address cannot be used.
pub async fn bind(address: SocketAddr) -> Result<UdpSocket, Error> {
    UdpSocket::bind(address).await.map_err(|reason| Error::Network {
        what: format!("Cannot receive datagrams on {address}"),
        reason,
        next: "Choose an address of this host and a free port (`ss -lun` lists those in use).",
    })
}

/// What an echo server did.
#[derive(Debug, Serialize)]
pub struct EchoReport {
    /// Datagrams sent back.
    pub echoed: u64,
}

impl fmt::Display for EchoReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sent back {} datagrams", self.echoed)
    }
}

/// Sends every datagram back to where it came from, until told to stop.
///
/// # Errors
/// [`Error::Network`] if the socket fails.
pub async fn echo(socket: UdpSocket, mut stop: Stop) -> Result<EchoReport, Error> {
    let mut report = EchoReport { echoed: 0 };
    let mut datagram = [0; 2048];
    loop {
        let (length, from) = tokio::select! {
            () = stop.wait() => return Ok(report),
            received = socket.recv_from(&mut datagram) => received.map_err(socket_error)?,
        };
        // A full queue loses an echo like any other packet; the prober counts it as lost.
        if socket.send_to(&datagram[..length], from).await.is_ok() {
            report.echoed += 1;
        }
    }
}

/// One probe.
#[derive(Debug, Clone, Serialize)]
pub struct Probe {
    /// When it was sent, in seconds.
    pub t_s: f64,
    /// Its round-trip time in milliseconds; `None` if it was lost.
    pub rtt_ms: Option<f64>,
}

/// How the probes went.
#[derive(Debug, Serialize)]
pub struct ProbeReport {
    /// Probes sent.
    pub sent: usize,
    /// Probes without an echo.
    pub lost: usize,
    /// Mean round-trip time in milliseconds; `None` without echoes.
    pub rtt_mean_ms: Option<f64>,
    /// Every probe, in the order of sending.
    pub samples: Vec<Probe>,
}

impl ProbeReport {
    fn new(samples: Vec<Probe>) -> Self {
        let echoed: Vec<f64> = samples.iter().filter_map(|p| p.rtt_ms).collect();
        Self {
            sent: samples.len(),
            lost: samples.len() - echoed.len(),
            rtt_mean_ms: (!echoed.is_empty())
                .then(|| echoed.iter().sum::<f64>() / echoed.len() as f64),
            samples,
        }
    }

    /// What is wrong if there was not a single echo.
    pub fn fault(&self) -> Option<String> {
        (self.sent > 0 && self.lost == self.sent).then(|| {
            format!("None of {} probes came back. Is `netnice-load echo` running there?", self.sent)
        })
    }
}

impl fmt::Display for ProbeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} probes, {} lost", self.sent, self.lost)?;
        if let Some(mean_ms) = self.rtt_mean_ms {
            write!(f, "; mean round-trip time {mean_ms:.3} ms")?;
        }
        Ok(())
    }
}

/// When and how often to probe.
#[derive(Debug, Clone, Copy)]
pub struct Probing {
    /// Address of the echo server.
    pub to: SocketAddr,
    /// Time between probes.
    pub interval: Duration,
    /// Probes are sent from t = 0 until this many seconds.
    pub end_s: f64,
    /// Time to wait for echoes after the last probe.
    pub wait: Duration,
}

/// Sends probes and waits for their echoes.
///
/// # Errors
/// [`Error::Network`] if the socket cannot be opened. Lost probes are in the report.
pub async fn probe(
    probing: Probing,
    timeline: Timeline,
    mut stop: Stop,
) -> Result<ProbeReport, Error> {
    let own: SocketAddr = match probing.to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(own).await.map_err(socket_error)?;
    socket.connect(probing.to).await.map_err(socket_error)?;
    let own_port = socket.local_addr().map_err(socket_error)?.port();
    let mark = pattern::derive(u64::from(std::process::id()), u64::from(own_port)).to_be_bytes();

    let mut sent: Vec<(Instant, Probe)> = Vec::new();
    let mut missing = 0;
    let mut datagram = [0; PROBE_BYTES + 1];
    loop {
        let next_s = sent.len() as f64 * probing.interval.as_secs_f64();
        let sending = next_s < probing.end_s;
        let wake = match sent.last() {
            Some(_) if !sending && missing == 0 => break,
            Some((last, _)) if !sending => *last + probing.wait,
            _ => timeline.at(next_s),
        };
        tokio::select! {
            biased;
            () = stop.wait() => break,
            received = socket.recv(&mut datagram) => {
                let now = Instant::now();
                // An error here is an ICMP message about an earlier probe, which counts as lost.
                let ours = matches!(received, Ok(PROBE_BYTES)) && datagram[8..16] == mark;
                if let (true, Some((at, probe))) = (ours, numbered(&datagram, &mut sent)) {
                    if probe.rtt_ms.is_none() {
                        probe.rtt_ms = Some(net::seconds_between(*at, now) * 1e3);
                        missing -= 1;
                    }
                }
            }
            () = sleep_until(wake) => {
                if !sending {
                    break;
                }
                let number = sent.len() as u64;
                let mut out = [0; PROBE_BYTES];
                out[..8].copy_from_slice(&number.to_be_bytes());
                out[8..16].copy_from_slice(&mark);
                let now = Instant::now();
                sent.push((now, Probe { t_s: timeline.seconds(now), rtt_ms: None }));
                missing += 1;
                // A probe that cannot be sent counts as lost, like any other.
                let _ = socket.send(&out).await;
            }
        }
    }
    Ok(ProbeReport::new(sent.into_iter().map(|(_, probe)| probe).collect()))
}

/// The probe whose number a datagram carries.
fn numbered<'a>(
    datagram: &[u8],
    sent: &'a mut [(Instant, Probe)],
) -> Option<&'a mut (Instant, Probe)> {
    let (number, _) = datagram.split_first_chunk()?;
    sent.get_mut(usize::try_from(u64::from_be_bytes(*number)).ok()?)
}

fn socket_error(reason: io::Error) -> Error {
    Error::Network {
        what: "The UDP socket failed".into(),
        reason,
        next: "Check the address and that the network is up.",
    }
}

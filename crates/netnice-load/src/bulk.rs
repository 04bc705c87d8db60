// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The background: bulk senders, and a sink that checks what they send.
//!
//! A flow begins with 16 bytes: the seed and the length of its content, both big-endian; length 0
//! is endless. After a finite content the sender half-closes, and the sink answers with the number
//! of bytes that arrived intact (8 bytes, big-endian), so the sender knows. A flow that is cut off,
//! as every endless one is in the end, ends with an abortive close. Over HTTP/3 the flow is the body of
//! a request, and what the sink answers that of its answer.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::net::{self, Stop, Timeline};
use crate::transport::{Connector, Listener, Stream};
use crate::Error;
use netnice_scenario::pattern::{self, Checker};

/// A span of the time line whose bytes are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Window {
    /// Its beginning in seconds.
    pub from_s: f64,
    /// Its end in seconds; not part of it.
    pub to_s: f64,
}

/// What a sink received of one flow.
#[derive(Debug, Clone, Serialize)]
pub struct Received {
    /// Address of the sender.
    pub peer: SocketAddr,
    /// Bytes announced; 0 is endless. `None` if the flow ended before it said.
    pub announced: Option<u64>,
    /// Bytes of content received.
    pub bytes: u64,
    /// Bytes of content received in the window; `None` without a window.
    pub window_bytes: Option<u64>,
    /// Mean goodput in the window in Mbit/s; `None` without a window.
    pub window_mbit: Option<f64>,
    /// When it was accepted, in seconds.
    pub start_s: f64,
    /// When its last byte was received, in seconds; `None` without content.
    pub last_s: Option<f64>,
    /// Whether all announced bytes arrived, and no others. Never so for an endless flow.
    pub complete: bool,
    /// What went wrong, if something did. Being cut off by the sender is not an error.
    pub error: Option<String>,
}

/// What a sink received.
#[derive(Debug, Serialize)]
pub struct SinkReport {
    /// Bytes of content of all flows.
    pub bytes: u64,
    /// The window, if there is one.
    pub window: Option<Window>,
    /// Bytes of content of all flows in the window.
    pub window_bytes: Option<u64>,
    /// Goodput of all flows in the window in Mbit/s.
    pub window_mbit: Option<f64>,
    /// Flows with an error.
    pub errors: usize,
    /// Every flow, in the order of acceptance.
    pub flows: Vec<Received>,
}

impl SinkReport {
    fn new(window: Option<Window>, flows: Vec<Received>) -> Self {
        let window_bytes = window.map(|_| flows.iter().filter_map(|f| f.window_bytes).sum());
        Self {
            bytes: flows.iter().map(|f| f.bytes).sum(),
            window,
            window_bytes,
            window_mbit: rate_mbit(window, window_bytes),
            errors: flows.iter().filter(|f| f.error.is_some()).count(),
            flows,
        }
    }

    /// The first error, as a sentence.
    pub fn fault(&self) -> Option<String> {
        let first = self.flows.iter().find(|f| f.error.is_some())?;
        let error = first.error.as_deref().unwrap_or_default();
        let (errors, all, peer) = (self.errors, self.flows.len(), first.peer);
        Some(format!("{errors} of {all} flows failed; the first, from {peer}: {error}."))
    }
}

fn rate_mbit(window: Option<Window>, bytes: Option<u64>) -> Option<f64> {
    let window = window?;
    Some(bytes? as f64 * 8.0 / 1e6 / (window.to_s - window.from_s))
}

impl fmt::Display for SinkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "received {} bytes in {} flows", self.bytes, self.flows.len())?;
        if let Some(mbit) = self.window_mbit {
            write!(f, "; in the window {mbit:.3} Mbit/s")?;
        }
        Ok(())
    }
}

/// Receives and checks flows until told to stop.
///
/// # Errors
/// [`Error::Network`] if connections can no longer be accepted. Failures of flows are in the report.
pub async fn sink(
    mut listener: Listener,
    window: Option<Window>,
    timeline: Timeline,
    mut stop: Stop,
) -> Result<SinkReport, Error> {
    let mut running = JoinSet::new();
    let mut flows: Vec<Option<Received>> = Vec::new();
    let keep = |flows: &mut Vec<Option<Received>>, done| {
        let (index, received): (usize, Received) = done;
        flows[index] = Some(received);
    };
    loop {
        tokio::select! {
            () = stop.wait() => break,
            accepted = listener.accept() => {
                let (stream, peer) = accepted?;
                let (index, stop) = (flows.len(), stop.clone());
                flows.push(None);
                running.spawn(async move {
                    (index, receive(stream, peer, window, timeline, stop).await)
                });
            }
            Some(done) = running.join_next() => {
                keep(&mut flows, done.expect("receiving does not panic"));
            }
        }
    }
    while let Some(done) = running.join_next().await {
        keep(&mut flows, done.expect("receiving does not panic"));
    }
    listener.close().await;
    Ok(SinkReport::new(window, flows.into_iter().flatten().collect()))
}

async fn receive(
    mut stream: Stream,
    peer: SocketAddr,
    window: Option<Window>,
    timeline: Timeline,
    mut stop: Stop,
) -> Received {
    let mut flow = Received {
        peer,
        announced: None,
        bytes: 0,
        window_bytes: window.map(|_| 0),
        window_mbit: None,
        start_s: timeline.now_s(),
        last_s: None,
        complete: false,
        error: None,
    };
    let outcome = tokio::select! {
        biased;
        () = stop.wait() => Ok(()),
        result = take_all(&mut stream, window, timeline, &mut flow) => result,
    };
    if let Err(e) = outcome {
        // A reset is how a sender cuts a flow off: incomplete, but not wrong.
        if e.kind() != io::ErrorKind::ConnectionReset {
            flow.error.get_or_insert_with(|| e.to_string());
        }
    }
    flow.window_mbit = rate_mbit(window, flow.window_bytes);
    flow
}

async fn take_all(
    stream: &mut Stream,
    window: Option<Window>,
    timeline: Timeline,
    flow: &mut Received,
) -> io::Result<()> {
    let seed = stream.read_u64().await?;
    let announced = stream.read_u64().await?;
    flow.announced = Some(announced);
    let mut checker = Checker::new(seed);
    loop {
        let result = stream.read_pattern(&mut checker).await;
        // Set at once: a flow may be cut off at any time, and a wrong byte is an error even then.
        if let Some(at) = checker.wrong_at() {
            flow.error = Some(format!("byte {at} is not what was sent"));
        }
        let (now, count) = result?;
        if count == 0 {
            break;
        }
        let now_s = timeline.seconds(now);
        flow.bytes += count as u64;
        flow.last_s = Some(now_s);
        if let (Some(window), Some(bytes)) = (window, &mut flow.window_bytes) {
            if (window.from_s..window.to_s).contains(&now_s) {
                *bytes += count as u64;
            }
        }
    }
    if announced == 0 {
        return Ok(());
    }
    stream.write(&checker.intact().to_be_bytes()).await?;
    stream.finish().await?;
    flow.complete = flow.error.is_none() && flow.bytes == announced;
    if !flow.complete && flow.error.is_none() {
        flow.error = Some(format!("{} of {announced} bytes arrived", flow.bytes));
    }
    Ok(())
}

/// What bulk senders are to do.
#[derive(Debug, Clone)]
pub struct Sending {
    /// How each flow connects with the sink.
    pub sink: Connector,
    /// Number of flows.
    pub flows: u32,
    /// Bytes of each flow; `None` is endless.
    pub bytes: Option<u64>,
    /// Start of the first flow in seconds.
    pub start_s: f64,
    /// Seconds between the starts of flows.
    pub stagger_s: f64,
    /// When all flows end, finished or not, in seconds; `None` is never.
    pub end_s: Option<f64>,
    /// Seed of the content.
    pub seed: u64,
}

/// What was sent of one flow.
#[derive(Debug, Clone, Serialize)]
pub struct Sent {
    /// Scheduled start in seconds.
    pub start_s: f64,
    /// The sender's own address, which the sink knows as `peer`; `None` if it did not connect.
    pub local: Option<SocketAddr>,
    /// Congestion control as its transport reports it; `None` if it did not connect.
    pub control: Option<String>,
    /// Bytes of content handed to the transport.
    pub bytes: u64,
    /// Bytes that the sink confirmed to be intact; `None` if it did not, or the flow is endless.
    pub confirmed: Option<u64>,
    /// When the confirmation arrived, in seconds.
    pub done_s: Option<f64>,
    /// Seconds from connect() to the confirmation; `None` without one.
    pub fct_s: Option<f64>,
    /// What went wrong, if something did. Being cut off at the end is not an error.
    pub error: Option<String>,
}

/// What was sent.
#[derive(Debug, Serialize)]
pub struct SendReport {
    /// Bytes of content handed to the transport.
    pub bytes: u64,
    /// Flows that the sink confirmed to be complete and intact.
    pub confirmed: usize,
    /// Flows with an error.
    pub errors: usize,
    /// Every flow, in the order of starts.
    pub flows: Vec<Sent>,
}

impl SendReport {
    fn new(flows: Vec<Sent>) -> Self {
        Self {
            bytes: flows.iter().map(|f| f.bytes).sum(),
            confirmed: flows.iter().filter(|f| f.done_s.is_some()).count(),
            errors: flows.iter().filter(|f| f.error.is_some()).count(),
            flows,
        }
    }

    /// The first error, as a sentence.
    pub fn fault(&self) -> Option<String> {
        let (index, first) = self.flows.iter().enumerate().find(|(_, f)| f.error.is_some())?;
        let error = first.error.as_deref().unwrap_or_default();
        let (errors, all) = (self.errors, self.flows.len());
        Some(format!(
            "{errors} of {all} flows failed; the first is flow {index}: {error}. Is a `netnice-load sink` listening there?"
        ))
    }
}

impl fmt::Display for SendReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "sent {} bytes in {} flows, {} of them confirmed complete and intact",
            self.bytes,
            self.flows.len(),
            self.confirmed
        )
    }
}

/// Sends bulk flows. Failures of flows are in the report.
pub async fn send(sending: Sending, timeline: Timeline, mut stop: Stop) -> SendReport {
    let mut running = JoinSet::new();
    let end = sending.end_s.map(|end_s| timeline.at(end_s));
    let mut flows: Vec<Sent> = (0..sending.flows)
        .map(|index| Sent {
            start_s: sending.start_s + f64::from(index) * sending.stagger_s,
            local: None,
            control: None,
            bytes: 0,
            confirmed: None,
            done_s: None,
            fct_s: None,
            error: None,
        })
        .collect();
    for (index, flow) in flows.iter().cloned().enumerate() {
        tokio::select! {
            biased;
            () = stop.wait_until(end) => break,
            () = tokio::time::sleep_until(timeline.at(flow.start_s)) => {}
        }
        let (sending, stop) = (sending.clone(), stop.clone());
        running.spawn(
            async move { (index, send_one(sending, index, flow, timeline, end, stop).await) },
        );
    }
    while let Some(done) = running.join_next().await {
        let (index, sent) = done.expect("sending does not panic");
        flows[index] = sent;
    }
    SendReport::new(flows)
}

async fn send_one(
    sending: Sending,
    index: usize,
    mut flow: Sent,
    timeline: Timeline,
    end: Option<Instant>,
    mut stop: Stop,
) -> Sent {
    let mut stream = None;
    let outcome = tokio::select! {
        biased;
        // First, since a transfer that is always ready would leave it no budget.
        () = stop.wait_until(end) => Ok(()),
        result = give_all(&sending, index, timeline, &mut stream, &mut flow) => result,
    };
    flow.error = outcome.err().map(|e| e.to_string());
    if let Some(stream) = stream {
        stream.close(flow.done_s.is_some()).await;
    }
    flow
}

async fn give_all(
    sending: &Sending,
    index: usize,
    timeline: Timeline,
    stream: &mut Option<Stream>,
    flow: &mut Sent,
) -> io::Result<()> {
    let began = Instant::now();
    let stream = stream.insert(sending.sink.connect().await?);
    flow.local = Some(stream.local_addr()?);
    flow.control = stream.control();
    let seed = pattern::derive(sending.seed, index as u64);
    let mut header = [0; 16];
    header[..8].copy_from_slice(&seed.to_be_bytes());
    header[8..].copy_from_slice(&sending.bytes.unwrap_or(0).to_be_bytes());
    stream.write(&header).await?;
    stream.write_pattern(seed, sending.bytes, &mut flow.bytes).await?;
    stream.finish().await?;
    let confirmed = stream.read_u64().await?;
    let now = Instant::now();
    flow.confirmed = Some(confirmed);
    if confirmed != flow.bytes {
        let what = format!("the sink confirmed only {confirmed} of {} bytes as intact", flow.bytes);
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    flow.done_s = Some(timeline.seconds(now));
    flow.fct_s = Some(net::seconds_between(began, now));
    Ok(())
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The foreground: a server that answers with content, a client that fetches by a schedule.
//!
//! A request is 16 bytes: the length and the seed of the content, both big-endian. The answer is
//! the content, then the server closes. Over HTTP/3 these are the bodies of a request and its answer.

use std::fmt;
use std::io;

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::net::{self, Stop, Timeline};
use crate::transport::{Connector, Listener, Stream};
use crate::Error;
use netnice_scenario::pattern::Checker;
use netnice_scenario::Flow;

/// What a server did.
#[derive(Debug, Default, Serialize)]
pub struct ServeReport {
    /// Requests answered in full.
    pub answered: u64,
    /// Connections that ended early.
    pub aborted: u64,
    /// Bytes of content written.
    pub bytes: u64,
}

impl fmt::Display for ServeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "answered {} requests with {} bytes; {} connections ended early",
            self.answered, self.bytes, self.aborted
        )
    }
}

/// Serves until told to stop.
///
/// # Errors
/// [`Error::Network`] if connections can no longer be accepted.
pub async fn serve(mut listener: Listener, mut stop: Stop) -> Result<ServeReport, Error> {
    let mut report = ServeReport::default();
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.wait() => break,
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                answers.spawn(answer(stream));
            }
            Some(answered) = answers.join_next() => {
                let (bytes, result) = answered.expect("answering does not panic");
                report.bytes += bytes;
                match result {
                    Ok(()) => report.answered += 1,
                    Err(_) => report.aborted += 1,
                }
            }
        }
    }
    listener.close().await;
    Ok(report)
}

async fn answer(mut stream: Stream) -> (u64, io::Result<()>) {
    let mut written = 0;
    let result = async {
        let length = stream.read_u64().await?;
        let seed = stream.read_u64().await?;
        stream.write_pattern(seed, Some(length), &mut written).await?;
        stream.finish().await
    };
    let result = result.await;
    (written, result)
}

/// How one fetch went.
#[derive(Debug, Clone, Serialize)]
pub struct Fetched {
    /// Scheduled start in seconds.
    pub start_s: f64,
    /// Whether it starts in the measured window.
    pub counted: bool,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes received.
    pub received: u64,
    /// Flow completion time in seconds, from connect() to the last byte; `None` if it did not
    /// finish in time, or failed.
    pub fct_s: Option<f64>,
    /// Seconds from connect() to the end of the flow, whatever the end.
    pub elapsed_s: f64,
    /// Seconds from the scheduled start to connect(); `None` if it was never started.
    pub lag_s: Option<f64>,
    /// What went wrong, if something did. Not finishing in time is not an error.
    pub error: Option<String>,
}

/// How the fetches of a schedule went.
#[derive(Debug, Serialize)]
pub struct FetchReport {
    /// Counted flows.
    pub counted: usize,
    /// Counted flows without a completion time.
    pub unfinished: usize,
    /// Flows with an error, counted or not.
    pub errors: usize,
    /// Greatest lag of a start, in seconds.
    pub lag_max_s: f64,
    /// Every flow, in the order of the schedule.
    pub flows: Vec<Fetched>,
}

impl FetchReport {
    fn new(flows: Vec<Fetched>) -> Self {
        let counted = || flows.iter().filter(|f| f.counted);
        Self {
            counted: counted().count(),
            unfinished: counted().filter(|f| f.fct_s.is_none()).count(),
            errors: flows.iter().filter(|f| f.error.is_some()).count(),
            lag_max_s: flows.iter().filter_map(|f| f.lag_s).fold(0.0, f64::max),
            flows,
        }
    }

    /// The first error, as a sentence.
    pub fn fault(&self) -> Option<String> {
        let first = self.flows.iter().find(|f| f.error.is_some())?;
        let error = first.error.as_deref().unwrap_or_default();
        Some(format!(
            "{} of {} fetches failed; the first, due at {} s: {error}.",
            self.errors,
            self.flows.len(),
            first.start_s
        ))
    }
}

impl fmt::Display for FetchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = || self.flows.iter().filter(|f| f.counted).filter_map(|f| f.fct_s);
        let mean = match times().count() {
            0 => "-".to_owned(),
            count => format!("{:.4} s", times().sum::<f64>() / count as f64),
        };
        write!(
            f,
            "{} flows counted, {} of them unfinished; mean completion time {mean}; greatest lag of a start {:.4} s",
            self.counted, self.unfinished, self.lag_max_s
        )
    }
}

/// Starts every flow of a schedule at its time, whatever became of the earlier ones, and waits until
/// all have finished, at most until `end_s`.
///
/// Failures of flows are in the report. The congestion control of the client does not matter and is
/// left alone: the server sends the data.
pub async fn fetch(
    flows: &[Flow],
    from: &Connector,
    end_s: f64,
    timeline: Timeline,
    mut stop: Stop,
) -> FetchReport {
    let mut results: Vec<Fetched> = flows.iter().map(not_started).collect();
    let mut running = JoinSet::new();
    let end = timeline.at(end_s);
    for (index, &flow) in flows.iter().enumerate() {
        let due = timeline.at(flow.start_s);
        tokio::select! {
            biased;
            () = stop.wait() => break,
            () = tokio::time::sleep_until(due) => {}
        }
        let (from, stop) = (from.clone(), stop.clone());
        running.spawn(async move {
            let fetched = fetch_one(flow, from, timeline, end, stop).await;
            (index, fetched)
        });
    }
    while let Some(done) = running.join_next().await {
        let (index, fetched) = done.expect("fetching does not panic");
        results[index] = fetched;
    }
    FetchReport::new(results)
}

fn not_started(flow: &Flow) -> Fetched {
    Fetched {
        start_s: flow.start_s,
        counted: flow.counted,
        bytes: flow.bytes,
        received: 0,
        fct_s: None,
        elapsed_s: 0.0,
        lag_s: None,
        error: None,
    }
}

async fn fetch_one(
    flow: Flow,
    from: Connector,
    timeline: Timeline,
    end: Instant,
    mut stop: Stop,
) -> Fetched {
    let mut checker = Checker::new(flow.seed);
    let mut stream = None;
    let began = Instant::now();
    let outcome = tokio::select! {
        biased;
        // First, since a transfer that is always ready would leave it no budget.
        () = stop.wait_until(Some(end)) => None,
        result = transfer(flow, &from, &mut stream, &mut checker) => Some(result),
    };
    let (ended, mut error) = match outcome {
        Some(Ok(last_byte)) => (last_byte, None),
        Some(Err(e)) => (Instant::now(), Some(e.to_string())),
        None => (Instant::now(), None),
    };
    if let Some(at) = checker.wrong_at() {
        error = Some(format!("byte {at} of {} is not what was sent", flow.bytes));
    }
    let finished = error.is_none() && checker.received() == flow.bytes;
    if let Some(stream) = stream {
        stream.close(finished).await;
    }
    let elapsed_s = net::seconds_between(began, ended);
    Fetched {
        received: checker.received(),
        fct_s: finished.then_some(elapsed_s),
        elapsed_s,
        lag_s: Some(timeline.seconds(began) - flow.start_s),
        error,
        ..not_started(&flow)
    }
}

/// Fetches one flow; returns the moment of the last byte. The connection stays open in `stream`.
async fn transfer(
    flow: Flow,
    from: &Connector,
    stream: &mut Option<Stream>,
    checker: &mut Checker,
) -> io::Result<Instant> {
    let stream = stream.insert(from.connect().await?);
    let mut request = [0; 16];
    request[..8].copy_from_slice(&flow.bytes.to_be_bytes());
    request[8..].copy_from_slice(&flow.seed.to_be_bytes());
    stream.write(&request).await?;
    loop {
        let (now, count) = stream.read_pattern(checker).await?;
        if checker.received() > flow.bytes {
            let what = format!("more than the {} bytes asked for arrived", flow.bytes);
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if checker.received() == flow.bytes {
            return Ok(now);
        }
        if count == 0 {
            let what = format!("ended after {} of {} bytes", checker.received(), flow.bytes);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_no_finished_flow_has_no_mean() {
        let flow = Flow { start_s: 0.0, counted: true, bytes: 1, seed: 0 };
        for flows in [Vec::new(), vec![not_started(&flow)]] {
            let text = FetchReport::new(flows).to_string();
            assert!(text.contains("mean completion time -;"), "{text}");
        }
    }
}

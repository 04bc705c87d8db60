// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a probe saw, as it changes and at the end.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anyhow::{bail, Result};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use netnice_manager::snapshot::{Available, Connection};
use netnice_manners::{say, show};
use serde::Serialize;
use serde_json::json;

/// Why a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    Time,
    Interrupt,
    Peer,
}

/// Where to the measurements go as they come.
enum Sink {
    Live(ProgressBar),
    Lines,
    Json,
}

/// A probe's measurements so far.
pub struct Report {
    pub target: String,
    sink: Sink,
    /// The results that were seen.
    results: Vec<Available>,
    /// At the last look.
    last: Option<Connection>,
    seconds: f64,
    /// Greatest window, packets.
    cwnd: f64,
    /// Least smoothed RTT, microseconds; 0: none yet.
    rtt_us: u32,
    ended: Ended,
    error: Option<io::Error>,
}

#[derive(Serialize)]
struct Line {
    seconds: f64,
    #[serde(flatten)]
    available: Available,
    cwnd: f64,
    srtt_us: u32,
}

impl Report {
    /// A probe of `target` that lasts for `length`.
    pub fn new(target: String, length: Duration, json: bool) -> Report {
        let sink = match json {
            true => Sink::Json,
            false if io::stdout().is_terminal() && io::stderr().is_terminal() => {
                Sink::Live(bar(length))
            }
            false => Sink::Lines,
        };
        Report {
            target,
            sink,
            results: Vec::new(),
            last: None,
            seconds: 0.0,
            cwnd: 0.0,
            rtt_us: 0,
            ended: Ended::Time,
            error: None,
        }
    }

    /// Takes what the connection looks like `at` a time since the transfer's start.
    pub fn take(&mut self, at: Duration, now: Option<Connection>) -> Result<()> {
        let Some(now) = now else { return Ok(()) };
        let before = self.results.last().map_or(0, |a| a.results);
        self.seconds = at.as_secs_f64();
        self.cwnd = self.cwnd.max(now.cwnd);
        if now.srtt_us > 0 && (self.rtt_us == 0 || now.srtt_us < self.rtt_us) {
            self.rtt_us = now.srtt_us;
        }
        let fresh = now.available().filter(|a| a.results > before);
        if let Some(available) = fresh {
            self.results.push(available);
            self.line(Line {
                seconds: self.seconds,
                available,
                cwnd: now.cwnd,
                srtt_us: now.srtt_us,
            })?;
        }
        if let Sink::Live(bar) = &self.sink {
            bar.set_position(at.as_millis() as u64);
            bar.set_message(match now.available() {
                Some(a) => format!("{a} Mbit/s, RTT {}", ms(now.srtt_us)),
                None => format!("nothing yet; window {:.0}, RTT {}", now.cwnd, ms(now.srtt_us)),
            });
        }
        self.last = Some(now);
        Ok(())
    }

    fn line(&self, line: Line) -> Result<()> {
        match self.sink {
            Sink::Live(_) => {}
            Sink::Json => show!("{}", serde_json::to_string(&line)?)?,
            Sink::Lines => show!(
                "{:6.2} s  {:>24} Mbit/s  RTT {}",
                line.seconds,
                line.available,
                ms(line.srtt_us)
            )?,
        }
        Ok(())
    }

    /// The transfer is over; `error` is the one that ended the sending.
    pub fn end(&mut self, ended: Ended, error: io::Error) {
        self.ended = ended;
        self.error = Some(error);
        if let Sink::Live(bar) = &self.sink {
            bar.finish_and_clear();
        }
    }

    /// Prints the summary. `window` is the least that measures, in packets.
    ///
    /// # Errors
    /// If there was no result: why, and what to do.
    pub fn finish(self, window: u32) -> Result<()> {
        let mut results: Vec<_> = self.results.iter().map(|a| a.mbit).collect();
        results.sort_by(f64::total_cmp);
        let [low, median, high] = [0.1, 0.5, 0.9].map(|p| quantile(&results, p));
        let sent = self.last.as_ref().map_or(0, |c| c.bytes_acked);
        let goodput = sent as f64 * 8e-6 / self.seconds.max(1e-9);
        let retransmits = self.last.as_ref().map_or(0, |c| c.retransmits);
        if let Sink::Json = self.sink {
            let summary = json!({"summary": {
                "host": self.target,
                "control": self.last.as_ref().map(|c| &c.control),
                "seconds": self.seconds,
                "ended": self.ended,
                "median_mbit": median,
                "p10_mbit": low,
                "p90_mbit": high,
                "last": self.results.last(),
                "bytes_acked": sent,
                "goodput_mbit": goodput,
                "least_srtt_us": self.rtt_us,
                "greatest_cwnd": self.cwnd,
                "retransmits": retransmits,
            }});
            show!("{summary}")?;
        }
        let (Some(low), Some(median), Some(high)) = (low, median, high) else {
            bail!(self.why_none(window, retransmits));
        };
        if !matches!(self.sink, Sink::Json) {
            show!(
                "available to {}: {median:.1} Mbit/s, in 8 of 10 measurements {low:.1} to {high:.1}",
                self.target
            )?;
            show!(
                "measurements: {}   sent: {:.1} MB in {:.1} s, {goodput:.1} Mbit/s   \
                 RTT: {} or more   retransmitted: {retransmits} packets",
                self.results.len(),
                sent as f64 / 1e6,
                self.seconds,
                ms(self.rtt_us),
            )?;
        }
        if let (Ended::Peer, Some(error)) = (self.ended, &self.error) {
            say!("netnice: {} closed the connection early: {error}", self.target);
        }
        Ok(())
    }

    /// Packets that arrived within the least RTT.
    fn carried(&self) -> f64 {
        self.last.as_ref().map_or(0.0, |c| {
            let packets = c.bytes_acked as f64 / f64::from(c.mss.max(1));
            packets / self.seconds.max(1e-9) * f64::from(self.rtt_us) * 1e-6
        })
    }

    /// Why there was no result, and what to do.
    fn why_none(&self, window: u32, retransmits: u32) -> String {
        let Report { target, seconds, cwnd, .. } = self;
        match (self.ended, &self.error) {
            (Ended::Peer, Some(error)) => format!(
                "{target} closed the connection after {seconds:.1} s, before there was a result \
                 ({error}); start `netnice probe --listen` there, or name the port of a service \
                 that goes on reading"
            ),
            (Ended::Interrupt, _) => {
                format!("interrupted after {seconds:.1} s, before there was a result")
            }
            _ => format!(
                "no result in {seconds:.1} s. A measurement takes a path that carries {window} packets \
                 in a round trip, and a window of as many; this one carried {:.1} (RTT {}), the \
                 greatest window was {cwnd:.0}, and {retransmits} packets were retransmitted. Let it \
                 try for longer (--seconds 60), or measure from further away; on links of 1 Gbit/s and \
                 more, packets cannot be spaced as it takes",
                self.carried(),
                ms(self.rtt_us)
            ),
        }
    }
}

fn bar(length: Duration) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        Some(length.as_millis() as u64),
        ProgressDrawTarget::stderr(),
    );
    let style = ProgressStyle::with_template("{bar:20} {elapsed}  {wide_msg}");
    bar.set_style(style.expect("a valid template"));
    bar
}

fn ms(us: u32) -> String {
    format!("{:.1} ms", f64::from(us) / 1000.0)
}

/// The quantile `p` of sorted values, interpolated; none without values.
fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let at = p * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated_between_neighbours() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.9), Some(7.0));
        // four values are three steps: the median is halfway, the tenth 0.3 of the first step
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.5), Some(2.5));
        assert!((quantile(&[1.0, 2.0, 3.0, 4.0], 0.1).unwrap() - 1.3).abs() < 1e-12);
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is said while a run goes on: a line of its progress on a terminal, and once that it starves.

use std::io::{stderr, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use netnice_manager::hold::Held;
use netnice_manager::report::Report;
use netnice_manager::snapshot::{Facts, Others, Stall};
use netnice_manager::system::System;
use netnice_manners::say;

use crate::units::{rate, size, yields};

/// Between two looks, where somebody watches.
const WATCHED: Duration = Duration::from_secs(1);
/// Where nobody does: three of them are the least time of starving.
const ALONE: Duration = Duration::from_secs(20);

pub struct Live {
    begun: Instant,
    line: Option<ProgressBar>,
    held: Vec<String>,
    last: Option<(Instant, Report)>,
    /// What of this host but for the background had left the devices where packets wait, bytes.
    others: Option<u64>,
    stall: Stall,
    told: bool,
}

impl Live {
    /// `shown`: with a line of progress, if standard error is a terminal.
    pub fn new(shown: bool, held: &Held) -> Live {
        let line = (shown && stderr().is_terminal()).then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{wide_msg}");
            line.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Live {
            begun: Instant::now(),
            line,
            held: held.devices.clone(),
            last: None,
            others: None,
            stall: Stall::default(),
            told: false,
        }
    }

    /// How long to wait for the next look.
    pub fn pause(&self) -> Duration {
        if self.line.is_some() {
            WATCHED
        } else {
            ALONE
        }
    }

    /// Looks at what the run did by now, and says what there is to say.
    pub fn look(&mut self, report: Report) {
        let now = Instant::now();
        if let Some((at, before)) = &self.last {
            let mut facts =
                Facts::of_reports(before, &report, now.duration_since(*at).as_secs_f64());
            if let Some(line) = &self.line {
                line.set_message(progress(&facts, &report, self.begun.elapsed()));
            }
            facts.others = self.others_since(&facts);
            if let Some(seconds) = self.stall.after(&facts).filter(|_| !self.told) {
                self.told = true;
                match &self.line {
                    Some(line) => line.println(starving(seconds)),
                    None => say!("{}", starving(seconds)),
                }
            }
        }
        self.last = Some((now, report));
    }

    /// What others sent where packets wait, since the last look. Looked at only while a run is stuck.
    fn others_since(&mut self, facts: &Facts) -> Option<Others> {
        let device = self.held.first()?.clone();
        if !facts.is_stuck() {
            self.others = None;
            return None;
        }
        let holds = System::look().and_then(|system| system.holds()).ok()?;
        let held = holds.iter().filter(|hold| self.held.contains(&hold.device));
        let sent =
            held.flat_map(|hold| &hold.paths).map(|p| p.sent_bytes - p.background_bytes).sum();
        let since = self.others.replace(sent).map(|before| sent.saturating_sub(before))?;
        Some(Others { bits: since as f64 * 8.0 / facts.seconds, device, on_path: true })
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

fn starving(seconds: f64) -> String {
    format!(
        "netnice: no progress for {seconds:.0} s, since others use the path; to have a share of it all the \
         same, start the command with: netnice run --class fair"
    )
}

/// The line of progress.
fn progress(facts: &Facts, report: &Report, elapsed: Duration) -> String {
    let sent = size(report.bytes_sent as f64);
    let yielded = Duration::from_micros(report.yielding_us / report.connections.max(1));
    format!("netnice: {}, {sent} sent{}", rate(facts.rate()), yields(yielded, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_the_rate_the_bytes_and_the_time_that_each_connection_yielded() {
        let before = Report { bytes_sent: 1_000_000, ..Report::default() };
        let now = Report {
            bytes_sent: 1_250_000,
            connections: 2,
            open: 2,
            yielding_us: 24_000_000,
            ..Report::default()
        };
        let facts = Facts::of_reports(&before, &now, 1.0);
        let line = progress(&facts, &now, Duration::from_secs(75));
        // 250 kB in a second; 24 s of two connections
        assert_eq!(line, "netnice: 2.00 Mbit/s, 1.2 MB sent, yielded 12 s of 1:15 min");
        let held = Report { yielding_us: 0, ..now };
        assert!(progress(&facts, &held, Duration::from_secs(75)).ends_with("1.2 MB sent"));
    }

    #[test]
    fn who_starves_is_told_the_next_step_in_one_line() {
        let said = starving(60.4);
        assert!(said.starts_with("netnice: no progress for 60 s, "));
        assert!(said.ends_with("netnice run --class fair") && said.lines().count() == 1);
    }
}

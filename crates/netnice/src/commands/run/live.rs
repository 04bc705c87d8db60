// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is said while a run goes on: a line of its progress on a terminal, and once that it starves.

use std::io::{stderr, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use netnice_manager::report::Report;
use netnice_manager::snapshot::{Facts, Watch, Why};
use netnice_manners::say;

use crate::units::{rate, size, yields};

/// Between two looks, where somebody watches.
const WATCHED: Duration = Duration::from_secs(1);
/// Where nobody does: three of them are the least time of starving.
const ALONE: Duration = Duration::from_secs(20);

pub struct Live {
    begun: Instant,
    line: Option<ProgressBar>,
    last: Option<(Instant, Report)>,
    /// Of the whole machine: looks while the run is slow, where this process may.
    watch: Watch,
    /// When it was last asked why the run is slow.
    asked: Instant,
    /// It has been said.
    told: bool,
}

impl Live {
    /// `shown`: with a line of progress, if standard error is a terminal.
    pub fn new(shown: bool) -> Live {
        let line = (shown && stderr().is_terminal()).then(|| {
            let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{wide_msg}");
            line.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        let begun = Instant::now();
        Live { begun, line, last: None, watch: Watch::default(), asked: begun, told: false }
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
        let run = report.run;
        if self.asks_why(report) {
            let jobs = self.watch.look().map_or_else(|_| Vec::new(), |view| view.jobs);
            self.tell(jobs.into_iter().find(|job| job.run == Some(run)).map(|job| job.why));
        }
    }

    /// The same where the daemon looks, which has told why the run starves, if it does.
    pub fn look_told(&mut self, report: Report, why: Option<Why>) {
        if self.asks_why(report) {
            self.tell(why);
        }
    }

    /// Shows what the run did; whether it is time to know why it is slow.
    fn asks_why(&mut self, report: Report) -> bool {
        let (now, mut asks) = (Instant::now(), false);
        if let Some((at, before)) = &self.last {
            let facts = Facts::of_reports(before, &report, now.duration_since(*at).as_secs_f64());
            if let Some(line) = &self.line {
                line.set_message(progress(&facts, &report, self.begun.elapsed()));
            }
            asks = facts.is_slow() && !self.told && now.duration_since(self.asked) >= ALONE;
            if asks {
                self.asked = now;
            }
        }
        self.last = Some((now, report));
        asks
    }

    /// Says once that the run starves.
    fn tell(&mut self, why: Option<Why>) {
        if let Some(said) = why.as_ref().and_then(starving) {
            self.told = true;
            match &self.line {
                Some(line) => line.println(said),
                None => say!("{said}"),
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

fn starving(why: &Why) -> Option<String> {
    let Why::Starving { seconds, others_bits } = why else { return None };
    let beside = others_bits.map_or(String::new(), |bits| format!(" ({})", rate(bits)));
    Some(format!(
        "netnice: this has had next to nothing of the path for {seconds:.0} s, while others{beside} use it; \
         to have a share all the same, start the command with: netnice run --class fair"
    ))
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
        let why = Why::Starving { seconds: 80.4, others_bits: Some(7.9e6) };
        let said = starving(&why).expect("it starves");
        assert!(said.starts_with("netnice: this has had next to nothing of the path for 80 s, "));
        assert!(said.contains("while others (7.90 Mbit/s) use it; "));
        assert!(said.ends_with("netnice run --class fair") && said.lines().count() == 1);
        assert_eq!(starving(&Why::Idle), None);
    }
}

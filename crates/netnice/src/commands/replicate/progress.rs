// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a run shows while it goes on: bars on a terminal, lines elsewhere.

use std::collections::BTreeMap;
use std::io::{stderr, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use netnice_manners::say;
use netnice_replicate::store::{now, Row, State, Summary};
use netnice_replicate::Observer;

use crate::units::{size, span, yields};

/// How often a line about the whole job is written where there is no terminal.
const LINE: Duration = Duration::from_secs(60);
/// Bars at most, lest they scroll.
const BARS: usize = 20;

/// Bars of the active destinations above one of all.
pub struct Display {
    bars: Option<Bars>,
    begun: Instant,
    said: Instant,
    yielded: Duration,
}

struct Bars {
    multi: MultiProgress,
    all: ProgressBar,
    active: BTreeMap<String, ProgressBar>,
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

impl Display {
    /// For a job with so many destinations.
    pub fn new(destinations: usize) -> Display {
        let bars = stderr().is_terminal().then(|| {
            let multi = MultiProgress::new();
            let all = multi.add(ProgressBar::new(destinations as u64));
            all.set_style(style("{prefix:32!} {bar:24} {pos}/{len} current  {wide_msg}"));
            all.set_prefix("all");
            Bars { multi, all, active: BTreeMap::new() }
        });
        let begun = Instant::now();
        Display { bars, begun, said: begun, yielded: Duration::ZERO }
    }

    fn say(&self, line: &str) {
        match &self.bars {
            Some(bars) => drop(bars.multi.println(line)),
            None => say!("{line}"),
        }
    }
}

impl Observer for Display {
    fn complete(&mut self, row: &Row) {
        if self.bars.is_none() {
            self.say(&format!("{}: current, {} sent in all", row.place, size(row.bytes as f64)));
        }
    }

    fn retrying(&mut self, row: &Row, pause: Duration) {
        let error = row.error.as_deref().unwrap_or_default();
        let wait = span(pause.as_secs_f64());
        self.say(&format!("{}: {error}; attempt {} in {wait}", row.place, row.attempts + 1));
    }

    fn failed(&mut self, row: &Row) {
        let error = row.error.as_deref().unwrap_or_default();
        self.say(&format!("{}: failed: {error}", row.place));
    }

    fn notice(&mut self, text: &str) {
        self.say(&format!("netnice: {text}"));
    }

    fn tick(&mut self, rows: &[&Row], summary: &Summary) {
        let current = rows.iter().filter(|r| r.state == State::Current).count();
        let failing =
            rows.iter().filter(|r| matches!(r.state, State::Retrying | State::Failed)).count();
        let rate: f64 = rows.iter().map(|r| r.rate).sum();
        let note = format!(
            "{}/s, {} sent{}, up to {} transfers{}",
            size(rate),
            size(rows.iter().map(|r| r.bytes as f64).sum()),
            yields(self.yielded, self.begun.elapsed()),
            summary.transfers,
            if failing > 0 { format!(", {failing} failing") } else { String::new() }
        );
        match &mut self.bars {
            Some(bars) => bars.show(rows, current, note),
            None if self.said.elapsed() >= LINE && current < rows.len() => {
                self.said = Instant::now();
                say!("{current} of {} destinations current; {note}", rows.len());
            }
            None => {}
        }
    }

    fn yielded(&mut self, time: Duration) {
        self.yielded = time;
    }

    fn finish(&mut self) {
        if let Some(bars) = &mut self.bars {
            drop(bars.multi.clear());
        }
    }
}

impl Bars {
    fn show(&mut self, rows: &[&Row], current: usize, note: String) {
        let active =
            |r: &Row| matches!(r.state, State::Connecting | State::Copying | State::Verifying);
        let shown: BTreeMap<_, _> =
            rows.iter().filter(|r| active(r)).take(BARS).map(|r| (r.place.as_str(), *r)).collect();
        self.active.retain(|place, bar| {
            let stays = shown.contains_key(place.as_str());
            if !stays {
                bar.finish_and_clear();
            }
            stays
        });
        for (place, row) in shown {
            let bar = self.active.entry(place.into()).or_insert_with(|| {
                let bar = self.multi.insert_before(&self.all, ProgressBar::new(1000));
                bar.set_style(style("{prefix:32!} {bar:24} {wide_msg}"));
                bar.set_prefix(place.to_string());
                bar
            });
            bar.set_position((row.done * 1000.0) as u64);
            bar.set_message(match row.state {
                State::Copying => format!(
                    "{:3.0} %  {}/s{}",
                    row.done * 100.0,
                    size(row.rate),
                    row.ends_at.map_or(String::new(), |e| format!(
                        ", {} left",
                        span((e - now()).max(0.0))
                    ))
                ),
                other => other.name().into(),
            });
        }
        self.all.set_position(current as u64);
        self.all.set_message(note);
    }
}

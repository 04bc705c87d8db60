// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice replicate status`, and the summary at the end of a run.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{bail, Result};
use serde::Serialize;

use super::args::StatusArgs;
use super::store::{now, Lock, Row, State, Store, Summary};

/// A job as `--json` shows it: bytes, bytes/s, seconds; points in time are seconds since 1970.
#[derive(Serialize)]
pub struct Report<'a> {
    pub job: &'a str,
    /// The process that runs it now.
    pub pid: Option<u32>,
    #[serde(flatten)]
    pub summary: &'a Summary,
    pub destinations: Vec<Entry<'a>>,
}

#[derive(Serialize)]
pub struct Entry<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// For how long the source has had something that the copy lacks; 0: it lacks nothing.
    lag: f64,
    /// Seconds until the transfer under way ends at its present speed.
    remaining: Option<f64>,
}

impl<'a> Report<'a> {
    pub fn new(
        job: &'a str,
        pid: Option<u32>,
        summary: &'a Summary,
        rows: &'a [Row],
    ) -> Report<'a> {
        let now = now();
        let destinations = rows
            .iter()
            .map(|row| Entry {
                lag: row.behind_since.map_or(0.0, |s| (now - s).max(0.0)),
                remaining: row.ends_at.map(|e| (e - now).max(0.0)),
                row,
            })
            .collect();
        Report { job, pid, summary, destinations }
    }
}

pub fn main(args: &StatusArgs) -> Result<()> {
    crate::end_with_reader()?;
    let dir = &args.job.state;
    let names = match &args.job.name {
        Some(name) => vec![name.clone()],
        None => Store::jobs(dir),
    };
    let mut all = Vec::new();
    for name in &names {
        let Some((summary, mut rows)) = Store::read(dir, name)? else { continue };
        let pid = Lock::holder(dir, name);
        if pid.is_none() {
            rows.iter_mut().for_each(at_rest);
        }
        all.push((name, pid, summary, rows));
    }
    match &args.job.name {
        Some(name) if all.is_empty() => bail!(
            "no job {name} was ever run with its state in {}; see all: netnice replicate status",
            dir.display()
        ),
        None if all.is_empty() && !args.json => bail!(
            "no job has its state in {}; start one: netnice replicate SOURCE DEST...",
            dir.display()
        ),
        _ => {}
    }
    let reports: Vec<_> = all
        .iter()
        .map(|(name, pid, summary, rows)| Report::new(name, *pid, summary, rows))
        .collect();
    match args.json {
        true => println!("{}", serde_json::to_string_pretty(&reports)?),
        false => reports.iter().for_each(|r| print!("{}", table(r))),
    }
    Ok(())
}

/// What a killed run left: nothing is under way any more.
fn at_rest(row: &mut Row) {
    if !matches!(row.state, State::Current | State::Failed) {
        row.state = State::Waiting;
    }
    row.rate = 0.0;
    (row.ends_at, row.retry_at) = (None, None);
}

/// The job with its tree of destinations.
fn table(report: &Report<'_>) -> String {
    let mut text = String::new();
    let by = match report.pid {
        Some(pid) => format!("process {pid}"),
        None => "not running".into(),
    };
    let current = report.destinations.iter().filter(|e| e.row.state == State::Current).count();
    let _ = writeln!(
        text,
        "{}: {}{}, {by}; {current} of {} current, {}/s, up to {} transfers",
        report.job,
        report.summary.source,
        if report.summary.watch { " (watched)" } else { "" },
        report.destinations.len(),
        size(report.summary.goodput),
        report.summary.transfers,
    );
    let mut fed: BTreeMap<Option<&str>, Vec<&Entry<'_>>> = BTreeMap::new();
    for entry in &report.destinations {
        fed.entry(entry.row.feeder.as_deref()).or_default().push(entry);
    }
    let mut lines = Vec::new();
    below(None, 0, &fed, &mut lines);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(11);
    let shares = report.destinations.iter().any(|e| e.row.share.is_some());
    let head = ["lag", "sent", "rate", "done", "left"];
    let _ = write!(text, "  {:width$}  {:10}", "destination", "state");
    for title in shares.then_some("share").iter().chain(&head) {
        let _ = write!(text, " {title:>9}");
    }
    let _ = writeln!(text);
    for (name, entry) in lines {
        let row = entry.row;
        let moving = matches!(row.state, State::Copying | State::Connecting | State::Verifying);
        let or_dash = |shown: bool, text: String| if shown { text } else { "-".into() };
        let _ = write!(text, "  {name:width$}  {:10}", row.state.name());
        let share = row.share.map_or("-".into(), |s| s.to_string());
        for cell in shares.then_some(share).into_iter().chain([
            or_dash(row.behind_since.is_some(), span(entry.lag)),
            size(row.bytes as f64),
            or_dash(moving, format!("{}/s", size(row.rate))),
            or_dash(moving, format!("{:.0} %", row.done * 100.0)),
            entry.remaining.map_or("-".into(), span),
        ]) {
            let _ = write!(text, " {cell:>9}");
        }
        let _ = writeln!(text);
        if let Some(error) = &row.error {
            let _ = writeln!(text, "  {:width$}  {error}", "");
        }
    }
    text
}

/// The destinations that `feeder` feeds, each followed by those that it feeds itself.
fn below<'a>(
    feeder: Option<&str>,
    depth: usize,
    fed: &BTreeMap<Option<&str>, Vec<&'a Entry<'a>>>,
    lines: &mut Vec<(String, &'a Entry<'a>)>,
) {
    for entry in fed.get(&feeder).into_iter().flatten() {
        lines.push((format!("{}{}", "  ".repeat(depth), entry.row.place), entry));
        below(Some(&entry.row.place), depth + 1, fed, lines);
    }
}

/// Bytes for people.
pub fn size(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

/// Seconds for people.
pub fn span(seconds: f64) -> String {
    let s = seconds.round().max(0.0) as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{}:{:02} min", s / 60, s % 60),
        3600..172_800 => format!("{}:{:02} h", s / 3600, s / 60 % 60),
        _ => format!("{} days", s / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::fresh;
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        assert_eq!(size(0.0), "0 B");
        assert_eq!(size(999.6), "1.0 kB");
        assert_eq!(size(12_345_678.0), "12.3 MB");
        assert_eq!(size(250e9), "250 GB");
        assert_eq!(span(59.4), "59 s");
        assert_eq!(span(61.0), "1:01 min");
        assert_eq!(span(7260.0), "2:01 h");
        assert_eq!(span(200_000.0), "2 days");
    }

    #[test]
    fn the_tree_has_each_destination_below_its_feeder() {
        let mut rows = vec![fresh("leaf:/1"), fresh("hub:/1"), fresh("alone:/1")];
        rows[0].feeder = Some("hub:/1".into());
        rows[2].state = State::Failed;
        rows[2].error = Some("out of paper".into());
        let summary = Summary { source: "/s/".into(), ..Summary::default() };
        let text = table(&Report::new("www", None, &summary, &rows));
        let starts: Vec<_> = text.lines().map(|l| l.split("  ").nth(1).unwrap_or(l)).collect();
        assert!(text.starts_with("www: /s/, not running; 0 of 3 current"), "{text}");
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("  hub:/1") < at("    leaf:/1") && at("    leaf:/1") < at("alone:/1"), "{text}");
        assert!(at("out of paper") > at("alone:/1"), "{starts:?}");
    }

    #[test]
    fn shares_are_shown_when_there_are_any() {
        let mut rows = [fresh("a:/1"), fresh("b:/1")];
        let table = |rows: &[Row]| table(&Report::new("www", None, &Summary::default(), rows));
        assert!(!table(&rows).contains("share"));
        rows[0].share = Some(2.5);
        let text = table(&rows);
        let column = text.find("share").unwrap() - text.find("  destination").unwrap();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(&lines[1][column..column + 5], "  2.5", "{text}");
        assert_eq!(&lines[2][column..column + 5], "    -", "{text}");
    }

    #[test]
    fn a_killed_run_leaves_nothing_under_way() {
        let mut row = fresh("a:/1");
        row.state = State::Copying;
        row.rate = 5.0;
        row.ends_at = Some(1.0);
        at_rest(&mut row);
        assert_eq!((row.state, row.rate, row.ends_at), (State::Waiting, 0.0, None));
    }
}

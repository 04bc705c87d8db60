// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice replicate status`: the tree of a job's destinations.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{bail, ensure, Result};
use clap::Args;
use netnice_manners::show;
use netnice_replicate::report::{Entry, Report};
use netnice_replicate::store::{State, Store};

use super::job_args::JobArgs;
use crate::units::{size, span};

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    job: JobArgs,
    /// Print JSON: sizes in bytes, rates in bytes/s, times in seconds
    #[arg(long)]
    json: bool,
}

pub fn main(args: &StatusArgs) -> Result<()> {
    netnice_manners::start::end_with_reader()?;
    let dir = &args.job.shown();
    let names = match &args.job.name {
        Some(name) => vec![name.clone()],
        None => Store::jobs(dir)?,
    };
    let (mut reports, mut unread) = (Vec::new(), Vec::new());
    for name in &names {
        match Report::read(dir, name) {
            Ok(report) => reports.extend(report),
            Err(error) => unread.push(error.to_string()), // the others are shown all the same
        }
    }
    match &args.job.name {
        _ if !unread.is_empty() => {}
        Some(name) if reports.is_empty() => bail!(
            "no job {name} was ever run with its state in {}; see all: netnice replicate status",
            dir.display()
        ),
        None if reports.is_empty() && !args.json => bail!(
            "no job has its state in {}; start one: netnice replicate SOURCE DEST...",
            dir.display()
        ),
        _ => {}
    }
    match args.json {
        true => show!("{}", serde_json::to_string_pretty(&reports)?)?,
        false => reports.iter().try_for_each(|r| show!("{}", table(r).trim_end()))?,
    }
    ensure!(unread.is_empty(), "{}", unread.join("\n"));
    Ok(())
}

/// The job with its tree of destinations.
fn table(report: &Report) -> String {
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
        match report.summary.watch {
            true => {
                let every = f64::from(report.summary.compare_every);
                format!(" (watched; all compared every {})", span(every))
            }
            false => String::new(),
        },
        report.destinations.len(),
        size(report.summary.goodput),
        report.summary.transfers,
    );
    if let Some(trouble) = report.summary.trouble.as_ref().filter(|_| report.pid.is_some()) {
        let _ = writeln!(text, "  {trouble}");
    }
    let mut fed: BTreeMap<Option<&str>, Vec<&Entry>> = BTreeMap::new();
    for entry in &report.destinations {
        fed.entry(entry.row.feeder.as_deref()).or_default().push(entry);
    }
    let mut lines = Vec::new();
    below(None, 0, &fed, &mut lines);
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(11);
    let shares = report.destinations.iter().any(|e| e.row.share.is_some());
    let head = ["lag", "compared", "sent", "rate", "done", "left"];
    let _ = write!(text, "  {:width$}  {:10}", "destination", "state");
    for title in shares.then_some("share").iter().chain(&head) {
        let _ = write!(text, " {title:>9}");
    }
    let _ = writeln!(text);
    for (name, entry) in lines {
        let row = &entry.row;
        let moving = matches!(row.state, State::Copying | State::Connecting | State::Verifying);
        let or_dash = |shown: bool, text: String| if shown { text } else { "-".into() };
        let _ = write!(text, "  {name:width$}  {:10}", row.state.name());
        let share = row.share.map_or("-".into(), |s| s.to_string());
        for cell in shares.then_some(share).into_iter().chain([
            or_dash(row.behind_since.is_some(), span(entry.lag)),
            entry.compared.map_or("never".into(), span),
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
    fed: &BTreeMap<Option<&str>, Vec<&'a Entry>>,
    lines: &mut Vec<(String, &'a Entry)>,
) {
    for entry in fed.get(&feeder).into_iter().flatten() {
        lines.push((format!("{}{}", "  ".repeat(depth), entry.row.place), entry));
        below(Some(&entry.row.place), depth + 1, fed, lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netnice_replicate::store::{Row, Summary};

    fn fresh(place: &str) -> Row {
        Row::new(place.into())
    }

    #[test]
    fn the_tree_has_each_destination_below_its_feeder() {
        let mut rows = vec![fresh("leaf:/1"), fresh("hub:/1"), fresh("alone:/1")];
        rows[0].feeder = Some("hub:/1".into());
        rows[2].state = State::Failed;
        rows[2].error = Some("out of paper".into());
        let summary = Summary { source: "/s/".into(), ..Summary::default() };
        let text = table(&Report::new("www".into(), None, summary, rows));
        let starts: Vec<_> = text.lines().map(|l| l.split("  ").nth(1).unwrap_or(l)).collect();
        assert!(text.starts_with("www: /s/, not running; 0 of 3 current"), "{text}");
        let at = |what: &str| text.find(what).unwrap();
        assert!(at("  hub:/1") < at("    leaf:/1") && at("    leaf:/1") < at("alone:/1"), "{text}");
        assert!(at("out of paper") > at("alone:/1"), "{starts:?}");
    }

    #[test]
    fn it_says_when_the_whole_was_last_compared_and_why_not_all_is_watched() {
        let mut rows = vec![fresh("a:/1"), fresh("b:/1")];
        rows[0].compared_at = Some(netnice_replicate::store::now() - 7260.0);
        let summary = Summary {
            source: "/s/".into(),
            watch: true,
            compare_every: 3600,
            trouble: Some("too many directories".into()),
            ..Summary::default()
        };
        let table = |pid| table(&Report::new("www".into(), pid, summary.clone(), rows.clone()));
        let text = table(Some(1));
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].contains("/s/ (watched; all compared every 1:00 h), process 1;"),
            "{text}"
        );
        assert_eq!(lines[1], "  too many directories");
        let ends = lines[2].find("compared").unwrap() + "compared".len();
        assert!(lines[3][..ends].ends_with("   2:01 h"), "{text}");
        assert!(lines[4][..ends].ends_with("    never"), "{text}");
        assert!(!table(None).contains("too many")); // of a run that is over
    }

    #[test]
    fn shares_are_shown_when_there_are_any() {
        let mut rows = [fresh("a:/1"), fresh("b:/1")];
        let table = |rows: &[Row]| {
            table(&Report::new("www".into(), None, Summary::default(), rows.to_vec()))
        };
        assert!(!table(&rows).contains("share"));
        rows[0].share = Some(2.5);
        let text = table(&rows);
        let column = text.find("share").unwrap() - text.find("  destination").unwrap();
        let lines: Vec<_> = text.lines().skip(1).collect();
        assert_eq!(&lines[1][column..column + 5], "  2.5", "{text}");
        assert_eq!(&lines[2][column..column + 5], "    -", "{text}");
    }
}

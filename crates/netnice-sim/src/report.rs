// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Results for people: one table, with harm and share together.

use comfy_table::{presets, CellAlignment, Table};

use netnice_scenario::IDEAL;

use crate::result::{Document, Summary, Sweep};
use crate::stats::Interval;

/// Mbit/s. Of less under strict priority a share says nothing; the lab has the same limit.
const LITTLE: f64 = 0.1;

/// A number for a table; a dash for none.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".into(), |v| format!("{v:.digits$}"))
}

/// `mean [lo, hi]`, scaled; the mean alone where there is no interval.
fn with_interval(value: Interval, scale: f64, digits: usize) -> String {
    let mean = number(value.mean.map(|v| v * scale), digits);
    match (value.lo, value.hi) {
        (Some(lo), Some(hi)) => {
            format!("{mean} [{:.digits$}, {:.digits$}]", lo * scale, hi * scale)
        }
        _ => mean,
    }
}

/// A table whose first columns, so many, are names.
fn table(names: usize, header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header).add_rows(rows);
    // A line below the header, and nothing else.
    table.set_style(comfy_table::TableComponent::HeaderLines, '─');
    for column in table.column_iter_mut().skip(names) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let text = table.to_string();
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

const COLUMNS: [&str; 9] = [
    "background",
    "FCT\nmean s",
    "FCT ratio\nmean",
    "ratio\np95",
    "ratio\np99",
    "packet\nRTT ms",
    "packet\nRTT ratio",
    "background\nMbit/s",
    "share\n%",
];

/// Why a summary has no shares that say anything, if it has none.
fn unshared(summary: &[Summary]) -> Option<String> {
    summary.iter().find_map(|entry| {
        if let Some(shared) = entry.share_seeds {
            let (left_out, seeds) = (entry.seeds - shared, entry.seeds);
            return Some(format!(
                "strict priority leaves nothing to compare with in {left_out} of {seeds} seeds"
            ));
        }
        let ideal_mbit = entry.background_goodput_mbit.filter(|_| entry.background == IDEAL)?;
        (ideal_mbit < LITTLE)
            .then(|| format!("strict priority carries less than {LITTLE} Mbit/s to compare with"))
    })
}

/// The cells of each background of a summary.
fn rows(summary: &[Summary]) -> impl Iterator<Item = Vec<String>> + '_ {
    let shared = unshared(summary).is_none();
    summary.iter().map(move |entry| cells(entry, shared))
}

fn cells(entry: &Summary, shared: bool) -> Vec<String> {
    let share = if shared { entry.share } else { Interval::default() };
    vec![
        entry.background.clone(),
        number(entry.fct_mean_s, 3),
        with_interval(entry.fct_ratio_mean, 1.0, 2),
        number(entry.fct_ratio_p95.mean, 2),
        number(entry.fct_ratio_p99.mean, 2),
        number(entry.packet_rtt_mean_ms, 1),
        with_interval(entry.packet_rtt_ratio_mean, 1.0, 2),
        number(entry.background_goodput_mbit, 2),
        with_interval(share, 100.0, 0),
    ]
}

fn cross_cells(entry: &Summary) -> impl Iterator<Item = Vec<String>> + '_ {
    entry.cross.iter().map(|cross| {
        vec![
            entry.background.clone(),
            cross.name.clone(),
            number(cross.goodput_mbit, 2),
            with_interval(cross.goodput_ratio, 1.0, 2),
            with_interval(cross.packet_rtt_ratio_mean, 1.0, 2),
        ]
    })
}

/// The table of a result, with its title before and what to know of it behind.
pub fn text(document: &Document) -> String {
    let Document { scenario, summary, .. } = document;
    let title = format!("{}: {}", scenario.name, scenario.title);
    let mut out = format!("{}\n\n", title.trim_end_matches(": "));
    out += &table(1, &COLUMNS, rows(summary));
    if summary.iter().any(|entry| !entry.cross.is_empty()) {
        let columns = ["beside", "cross traffic", "Mbit/s", "ratio", "packet\nRTT ratio"];
        out += "\n";
        out += &table(2, &columns, summary.iter().flat_map(cross_cells));
    }
    out += &caption(summary, unshared(summary).map(|why| format!("no shares: {why}")));
    out
}

/// The table of a sweep: the values of each point, then the columns of [`text`].
pub fn sweep_text(sweep: &Sweep) -> String {
    let keys = sweep.vary.0.iter().map(|(key, _)| key.as_str());
    let columns: Vec<&str> = keys.chain(COLUMNS).collect();
    let lines = sweep.results.iter().flat_map(|point| {
        let values = point.settings.0.iter().map(|(_, value)| value.clone());
        rows(&point.summary).map(move |cells| values.clone().chain(cells).collect())
    });
    let summary = sweep.results.iter().flat_map(|point| &point.summary);
    let some_unshared = sweep.results.iter().any(|point| unshared(&point.summary).is_some());
    let no_share = some_unshared.then(|| {
        format!(
            "no share where strict priority carries less than {LITTLE} Mbit/s, or nothing with some \
             seed"
        )
    });
    table(sweep.vary.0.len() + 1, &columns, lines) + &caption(summary, no_share)
}

fn caption<'a>(summary: impl IntoIterator<Item = &'a Summary>, no_share: Option<String>) -> String {
    let summary: Vec<_> = summary.into_iter().collect();
    let seeds = summary.iter().map(|entry| entry.seeds).max().unwrap_or_default();
    let brackets = if seeds > 1 { "; [95 % confidence interval]" } else { "" };
    let mut out =
        format!("\nratios to no background, shares to strict priority; seeds: {seeds}{brackets}");
    out += &no_share.map(|why| format!("; {why}")).unwrap_or_default();
    out += "\n";
    let fewer = once_each(&summary, |entry| {
        let (of, seeds) = (entry.fct_ratio_mean.values, entry.seeds);
        (0 < of && of < seeds).then(|| format!("{} (of {of} of {seeds} seeds)", entry.background))
    });
    if !fewer.is_empty() {
        let fewer = fewer.join(", ");
        out +=
            &format!("FCT ratios of fewer seeds, as with the others no fetch finished: {fewer}\n");
    }
    let late: usize = summary.iter().map(|entry| entry.unfinished).sum();
    if late > 0 {
        let names = once_each(&summary, |e| (e.unfinished > 0).then(|| e.background.clone()));
        out += &format!(
            "{late} {} ({}) had not finished when the run ended; the means do not hold them, so the \
             true harm is larger.\n",
            if late == 1 { "fetch" } else { "fetches" },
            names.join(", ")
        );
    }
    out
}

/// What `of` says of the entries, in their order, the same only once.
fn once_each(summary: &[&Summary], of: impl Fn(&Summary) -> Option<String>) -> Vec<String> {
    let mut said = Vec::new();
    for text in summary.iter().filter_map(|entry| of(entry)) {
        if !said.contains(&text) {
            said.push(text);
        }
    }
    said
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Results for people: one table, with harm and share together.

use comfy_table::{presets, CellAlignment, Table};

use crate::result::{Document, Summary, Sweep};
use crate::stats::Interval;

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

fn cells(entry: &Summary) -> Vec<String> {
    vec![
        entry.background.clone(),
        number(entry.fct_mean_s, 3),
        with_interval(entry.fct_ratio_mean, 1.0, 2),
        number(entry.fct_ratio_p95.mean, 2),
        number(entry.fct_ratio_p99.mean, 2),
        number(entry.packet_rtt_mean_ms, 1),
        with_interval(entry.packet_rtt_ratio_mean, 1.0, 2),
        number(entry.background_goodput_mbit, 2),
        with_interval(entry.share, 100.0, 0),
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
    out += &table(1, &COLUMNS, summary.iter().map(cells));
    if summary.iter().any(|entry| !entry.cross.is_empty()) {
        let columns = ["beside", "cross traffic", "Mbit/s", "ratio", "packet\nRTT ratio"];
        out += "\n";
        out += &table(2, &columns, summary.iter().flat_map(cross_cells));
    }
    out += &caption(summary);
    out
}

/// The table of a sweep: the values of each point, then the columns of [`text`].
pub fn sweep_text(sweep: &Sweep) -> String {
    let keys = sweep.vary.0.iter().map(|(key, _)| key.as_str());
    let columns: Vec<&str> = keys.chain(COLUMNS).collect();
    let rows = sweep.results.iter().flat_map(|point| {
        let values = point.settings.0.iter().map(|(_, value)| value.clone());
        point.summary.iter().map(move |entry| values.clone().chain(cells(entry)).collect())
    });
    let summary = sweep.results.iter().flat_map(|point| &point.summary);
    table(sweep.vary.0.len() + 1, &columns, rows) + &caption(summary)
}

fn caption<'a>(summary: impl IntoIterator<Item = &'a Summary>) -> String {
    let summary: Vec<_> = summary.into_iter().collect();
    let seeds = summary.iter().map(|entry| entry.seeds).max().unwrap_or_default();
    let brackets = if seeds > 1 { "; [95 % confidence interval]" } else { "" };
    let mut out =
        format!("\nratios to no background, shares to strict priority; seeds: {seeds}{brackets}\n");
    let late: usize = summary.iter().map(|entry| entry.unfinished).sum();
    if late > 0 {
        let mut names: Vec<&str> =
            summary.iter().filter(|e| e.unfinished > 0).map(|e| &*e.background).collect();
        names.dedup();
        out += &format!(
            "{late} {} ({}) had not finished when the run ended; the means do not hold them, so the \
             true harm is larger.\n",
            if late == 1 { "fetch" } else { "fetches" },
            names.join(", ")
        );
    }
    out
}

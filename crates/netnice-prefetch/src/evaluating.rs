// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-prefetch evaluate`.

use std::io;
use std::path::PathBuf;

use anyhow::{bail, Result};
use clap::Args;
use netnice_manners::show;
use netnice_prefetch::config;
use netnice_prefetch::evaluate::{score, Budget, Cut, Kind, Score, Trained, Views};
use netnice_prefetch::predict::Settings;
use netnice_prefetch::suggest::Limits;
use serde_json::json;

/// Shows from access logs what prefetching would have brought, before you install anything.
///
/// The predictor learns the first part of the logs. Its predictions are compared with what clients did
/// in the rest: how much of what it would have sent ahead was asked for (precision), how much of what
/// was asked for it would have sent (recall), and how many bytes nobody wanted.
///
/// Two others are shown beside it, with as many objects after each page: a first-order Markov chain, and
/// the most popular objects. Robots are left out, by their User-Agent or the lab's column.
#[derive(Args)]
#[command(
    before_help = "Example: netnice-prefetch evaluate access.log.2.gz access.log.1 access.log"
)]
pub struct Arguments {
    #[command(flatten)]
    learning: crate::options::Learning,
    /// Least probability, 0 to 1, of what the first row sends; the others send the likeliest objects,
    /// whatever their probability.
    #[arg(long, value_name = "P", default_value_t = Limits::default().threshold)]
    threshold: f64,
    /// Size of the largest object that is sent ahead.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_object_bytes)]
    max_object_bytes: u64,
    /// What is learned: a share of the logs' time as in 0.667, or days until a midnight (UTC) as in 2d.
    #[arg(long, value_name = "PART|DAYSd", default_value = "0.667")]
    learn: Cut,
    /// Learn only the last hours of that [default: all].
    #[arg(long, value_name = "N")]
    hours: Option<u32>,
    /// Order a client's pages of an hour by their Referer: for logs whose seconds do not tell the order,
    /// as the lab's.
    #[arg(long)]
    by_referer: bool,
    /// Learn and compare only pages: many other objects belong to the page just asked for.
    #[arg(long)]
    pages_only: bool,
    /// Most objects that are sent after each page; a row for each number.
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [1, 5, 10, 50])]
    most: Vec<usize>,
    /// Print JSON instead of a table: shares from 0 to 1, sizes in bytes.
    #[arg(long)]
    json: bool,
    /// The logs, in the combined or the common format, or the lab's CSV; plain or gzipped.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1} %", 100.0 * share))
}

/// Learns, replays, and prints a row for each predictor and budget.
pub fn main(arguments: &Arguments) -> Result<()> {
    let settings = arguments.learning.settings()?;
    let limits = Limits {
        threshold: arguments.threshold,
        max_object_bytes: arguments.max_object_bytes,
        ..Limits::default()
    };
    limits.check().map_err(config::Error::option)?;
    let mut views = Views::read(&arguments.logs)?;
    if arguments.by_referer {
        views.order_by_referer();
    }
    if arguments.pages_only {
        views.keep_pages();
    }
    let (first, second) = views.split(arguments.learn, arguments.hours);
    if first.is_empty() || second.is_empty() {
        bail!(
            "{} requests to learn and {} to compare with are too few; give more logs, or another --learn",
            first.len(),
            second.len()
        );
    }
    let budget =
        |most, threshold| Budget { most, threshold, max_object_bytes: arguments.max_object_bytes };
    let mut rows: Vec<Row> = Vec::new();
    for kind in Kind::ALL {
        let trained = Trained::new(kind, settings, &first);
        let mut budgets: Vec<_> = arguments.most.iter().map(|most| budget(*most, 0.0)).collect();
        if kind == Kind::Ppm {
            budgets.insert(0, budget(Limits::default().max_objects, arguments.threshold));
        }
        rows.extend(budgets.into_iter().map(|b| (kind, b, score(&trained, &second, settings, b))));
    }
    if arguments.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(kind, budget, score)| {
                json!({"predictor": kind, "budget": budget, "score": score,
                       "precision": score.precision(), "recall": score.recall()})
            })
            .collect();
        let counts = json!({"learned": first.len(), "compared": second.len(),
                            "robots": views.robots(), "rows": rows});
        return Ok(show!("{counts:#}")?);
    }
    show!(
        "{} requests learned, {} compared; {} of robots left out",
        first.len(),
        second.len(),
        views.robots()
    )?;
    Ok(print(&rows, settings)?)
}

/// A predictor, what it may send, and what came of it.
type Row = (Kind, Budget, Score);

fn print(rows: &[Row], settings: Settings) -> io::Result<()> {
    show!("predictor   objects   precision   recall   MB ahead   wasted   of demand")?;
    for (kind, budget, score) in rows {
        let name = match kind {
            Kind::Ppm => format!("PPM-{}/{}", settings.n, settings.w),
            Kind::Markov => "Markov".into(),
            Kind::Popular => "popular".into(),
        };
        let objects = match budget.threshold {
            0.0 => budget.most.to_string(),
            least => format!(">= {least}"),
        };
        let of_demand = score.wasted_bytes as f64 / score.demand_bytes.max(1) as f64;
        show!(
            "{name:10}  {objects:>7}   {:>9}  {:>7}   {:8.1}   {:6.1}   {:>9}",
            percent(score.precision()),
            percent(score.recall()),
            score.prefetched_bytes as f64 / 1e6,
            score.wasted_bytes as f64 / 1e6,
            percent(Some(of_demand)),
        )?;
    }
    Ok(())
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-prefetch explain`.

use std::fmt::Write;

use anyhow::{bail, Result};
use clap::Args;
use netnice_manners::show;
use netnice_prefetch::config;
use netnice_prefetch::predict::Prediction;
use netnice_prefetch::store;
use netnice_prefetch::suggest::{self, Limits, Verdict};
use serde_json::json;

/// Shows what the proxy would suggest to a client after a page, and why.
///
/// Of several pages the last ones count, as many as the model's -n. The column "followed" has how often
/// the object came after them, as in 3/10: first after the last page, then after the last two, and so on.
#[derive(Args)]
#[command(
    before_help = "Example: netnice-prefetch explain --model site.model /blog/ /blog/2015/ --json"
)]
pub struct Arguments {
    #[command(flatten)]
    kept: crate::options::Kept,
    #[command(flatten)]
    limits: Limits,
    /// A beginning of paths that are not suggested, as in the configuration; may be repeated.
    #[arg(long, value_name = "PATH")]
    never: Vec<String>,
    /// Show all predictions instead of the 30 likeliest.
    #[arg(long)]
    all: bool,
    /// Print JSON instead of a table: probabilities from 0 to 1, sizes in bytes.
    #[arg(long)]
    json: bool,
    /// The last pages, the oldest first: paths, or URLs, whose host is ignored.
    #[arg(required = true, value_name = "URL")]
    pages: Vec<String>,
}

/// The path of a URL, or what is a path already.
fn path_of(url: &str) -> &str {
    match url.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => url,
    }
}

fn counts(seen: &[(u32, u32)]) -> String {
    let counts: Vec<_> = seen.iter().map(|(e, c)| format!("{e}/{c}")).collect();
    counts.join(" ")
}

/// Prints the predictions and what becomes of each.
pub fn main(arguments: &Arguments) -> Result<()> {
    arguments.limits.check().map_err(config::Error::option)?;
    config::check_never(&arguments.never)?;
    let predictor = store::load(&arguments.kept.model)?;
    let mut pages = Vec::new();
    for url in &arguments.pages {
        match predictor.find(path_of(url)) {
            Some(id) => pages.push(id),
            None => bail!(
                "the model {} knows no {}; it may be too rare, or not of this site",
                arguments.kept.model.display(),
                path_of(url)
            ),
        }
    }
    let predictions = predictor.predict(&pages);
    let verdicts = suggest::judge(&predictions, &arguments.limits, &arguments.never);
    let most = if arguments.all { usize::MAX } else { 30 };
    let rows = || predictions.iter().zip(&verdicts).take(most);
    if arguments.json {
        let rows: Vec<_> = rows()
            .map(|(p, verdict)| {
                json!({"path": p.path, "probability": p.probability, "seen": predictor.counts(&pages, p.id), "bytes": p.bytes,
                       "suggested": *verdict == Verdict::Suggested, "why": verdict.to_string()})
            })
            .collect();
        show!("{:#}", json!({"after": arguments.pages, "predictions": rows}))?;
        return Ok(());
    }
    let mut table = format!(
        "{:>11}  {:>10}  {:18}  {:40}  path\n",
        "probability", "bytes", "followed", "verdict"
    );
    for (p, verdict) in rows() {
        let Prediction { probability, bytes, path, .. } = p;
        let counts = counts(&predictor.counts(&pages, p.id));
        writeln!(table, "{probability:11.5}  {bytes:10}  {counts:18}  {verdict:40}  {path}")?;
    }
    if predictions.len() > most {
        writeln!(table, "and {} less likely ones; all: --all", predictions.len() - most)?;
    }
    if predictions.is_empty() {
        writeln!(table, "nothing: no client that was followed requested anything after it")?;
    }
    show!("{}", table.trim_end())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_url_the_path_counts() {
        assert_eq!(path_of("https://example.com/a/b?c"), "/a/b?c");
        assert_eq!(path_of("https://example.com"), "/");
        assert_eq!(path_of("/a"), "/a");
    }
}

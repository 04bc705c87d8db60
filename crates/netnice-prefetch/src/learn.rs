// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-prefetch learn`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{bail, Result};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use netnice_manners::{say, show};
use netnice_prefetch::log::{self, Count};
use netnice_prefetch::predict::Predictor;
use netnice_prefetch::store;
use serde_json::json;

/// Learns from access logs which pages follow which, and saves that in a model.
///
/// Logs are in the combined or the common format, or the lab's CSV; plain or gzipped. An
/// existing model learns on, with the same -n and -w. Lines that are no requests are counted and reported. An
/// object that is in logs only is not suggested until the proxy has seen the origin's answer for it.
#[derive(Args)]
#[command(
    before_help = "Example:\n  \
                   netnice-prefetch learn --model site.model access.log.1 access.log",
    after_help = "Exit status: 0 the model is saved, 1 nothing was learned or something failed, 2 wrong \
                  usage."
)]
pub struct Arguments {
    #[command(flatten)]
    kept: crate::options::Kept,
    #[command(flatten)]
    learning: crate::options::Learning,
    /// Replace a model that exists.
    #[arg(long)]
    anew: bool,
    /// Print JSON instead of a line of text.
    #[arg(long)]
    json: bool,
    /// The logs, the oldest first.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
}

fn start(arguments: &Arguments) -> Result<Predictor> {
    let settings = arguments.learning.settings()?;
    if arguments.anew || !arguments.kept.model.exists() {
        return Ok(Predictor::new(settings));
    }
    let mut predictor = store::load(&arguments.kept.model)?;
    let had = predictor.settings();
    if (had.n, had.w) != (settings.n, settings.w) {
        bail!(
            "the model {} was learned with -n {} -w {}; use the same, or --anew to replace it",
            arguments.kept.model.display(),
            had.n,
            had.w
        );
    }
    predictor.set_bounds(settings);
    Ok(predictor)
}

/// Learns one log; returns what it held and how many requests were learned.
fn learn(predictor: &mut Predictor, path: &Path) -> Result<(Count, u64)> {
    let style = "{spinner} {msg} {bytes}/{total_bytes} {bar:30} {eta}";
    let bar = ProgressBar::no_length().with_style(ProgressStyle::with_template(style)?);
    bar.set_message(path.display().to_string());
    let wrap = |file: std::fs::File| -> Box<dyn Read> {
        if let Ok(meta) = file.metadata() {
            bar.set_length(meta.len());
        }
        Box::new(bar.wrap_read(file))
    };
    let mut learned = 0;
    let count = log::read(path, wrap, |entry| learned += u64::from(predictor.learn(&entry)))?;
    bar.finish_and_clear();
    Ok((count, learned))
}

/// Learns all logs and saves the model.
pub fn main(arguments: &Arguments) -> Result<()> {
    let _held = store::hold(&arguments.kept.model)?;
    let mut predictor = start(arguments)?;
    let begun = Instant::now();
    let (mut lines, mut bad, mut learned) = (0, 0, 0);
    for path in &arguments.logs {
        let (count, new) = learn(&mut predictor, path)?;
        if let Some((line, what)) = &count.first_bad {
            say!(
                "netnice-prefetch: {}: {} of {} lines are no requests; the first is line {line}: {what}",
                path.display(), count.bad, count.bad + count.good,
            );
        }
        lines += count.good + count.bad;
        bad += count.bad;
        learned += new;
    }
    if learned == 0 {
        bail!(
            "nothing to learn in {lines} lines: no GET was answered with 200 or 304; \
             check that the logs are in the combined or the common format"
        );
    }
    store::save(&predictor, &arguments.kept.model)?;
    let (size, seconds) = (predictor.size(), begun.elapsed().as_secs_f64());
    if arguments.json {
        let report = json!({"lines": lines, "bad": bad, "learned": learned, "seconds": seconds, "model": size});
        show!("{report:#}")?;
        return Ok(());
    }
    show!(
        "{learned} of {lines} requests learned in {seconds:.1} s: {} objects, {} contexts, {:.1} MB; saved in {}",
        size.objects,
        size.contexts,
        size.bytes as f64 / 1e6,
        arguments.kept.model.display()
    )?;
    Ok(())
}

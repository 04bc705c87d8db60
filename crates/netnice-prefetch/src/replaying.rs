// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-prefetch replay` and `netnice-prefetch site`.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{value_parser, Args, ValueEnum};
use netnice_manners::show;
use netnice_prefetch::predict::{Predictor, Settings};
use netnice_prefetch::range;
use netnice_prefetch::replay::{self, Hints, Setup, Summary};
use netnice_prefetch::trace::{Plan, Trace};
use netnice_prefetch::{config, log};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

const WEEK_S: u64 = 7 * 24 * 3600;

fn probability(text: &str) -> Result<f64, String> {
    let number = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    range::check([("a probability", number, 0.0..=1.0)]).map(|()| number)
}

/// How the virtual clients prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Strategy {
    /// Not at all.
    None,
    /// n = 2, w = 5, probability of .25 or more, after a pause of 1 s.
    Conservative,
    /// n = 2, w = 10, probability of .00001 or more, at once.
    Aggressive,
    /// What the client will ask for in this view and its next 10, at once: no predictor foresees more.
    Perfect,
    /// What the server suggests, at once.
    Server,
}

impl Strategy {
    /// w, threshold, pause.
    fn parameters(self) -> (usize, f64, Duration) {
        match self {
            Self::Conservative => (5, 0.25, Duration::from_secs(1)),
            _ => (10, 0.00001, Duration::ZERO),
        }
    }
}

/// What is read and how it is used.
#[derive(Args)]
struct Read {
    /// The lab's web log, a CSV file, plain or gzipped.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Leave out objects larger than this.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    max_bytes: u64,
}

impl Read {
    fn trace(&self) -> Result<Trace> {
        let trace = Trace::read(&self.trace, self.max_bytes).with_context(|| {
            format!(
                "cannot read the trace {}; give lab/data/web-requests.csv.gz",
                self.trace.display()
            )
        })?;
        if trace.sizes().is_empty() {
            let what = format!(
                "it has no person's request for a static object of at most {} bytes; give \
                 lab/data/web-requests.csv.gz",
                self.max_bytes
            );
            return Err(config::Error { place: self.trace.display().to_string(), what }.into());
        }
        Ok(trace)
    }
}

/// Replays a web log as virtual clients that prefetch: the paper's client.
///
/// Each client has a cache, one connection for demand requests and one for prefetches. The log is
/// cut into sections of one client and one hour. Those of the busiest hours go to random virtual
/// clients and start at random times. A response time is from asking to the last byte; it is 0 s if the
/// cache has the answer.
///
/// As in the paper, the clients predict, with a predictor that has learned the whole log. With --prefetch
/// server the server does.
#[derive(Args)]
#[command(
    before_help = "Example:\n  \
                   netnice-prefetch replay lab/data/web-requests.csv.gz --to 127.0.0.1:8081 \\\n      \
                   --prefetch aggressive",
    after_help = "Exit status: 0 all went well, 1 a demand request failed (the summary has it), 2 wrong \
                  usage."
)]
pub struct Arguments {
    #[command(flatten)]
    read: Read,
    /// Address and port of the server.
    #[arg(long, value_name = "IP:PORT")]
    to: SocketAddr,
    /// Address and port that prefetches go to [default: that of --to].
    #[arg(long, value_name = "IP:PORT")]
    prefetch_to: Option<SocketAddr>,
    /// How to prefetch.
    #[arg(long, value_enum, default_value = "none")]
    prefetch: Strategy,
    /// Least probability [default: the strategy's].
    #[arg(long, value_name = "0..1", value_parser = probability)]
    threshold: Option<f64>,
    /// Number of virtual clients.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u32).range(1..=100_000))]
    clients: u32,
    /// How many of the log's busiest hours are replayed at once.
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = value_parser!(u32).range(1..=1_000_000))]
    hours: u32,
    /// How long clients ask for pages.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = value_parser!(u64).range(1..=WEEK_S))]
    duration: u64,
    /// How long to wait then for what is under way.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = value_parser!(u64).range(0..=WEEK_S))]
    drain: u64,
    /// Seed of which client does what, and when.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON: the summary and every answer, in seconds and bytes.
    #[arg(long)]
    json: bool,
}

fn predictor(arguments: &Arguments, w: usize) -> Result<Predictor> {
    // the paper's knows no bounds and trusts its trace
    let bounds =
        Settings { lesson: u32::MAX, addresses: 1, memory_bytes: 1 << 30, ..Settings::default() };
    let mut predictor = Predictor::new(Settings { n: 2, w, ..bounds });
    log::read(
        &arguments.read.trace,
        |file| Box::new(file),
        |entry| {
            predictor.learn(&entry);
        },
    )?;
    Ok(predictor)
}

fn show(summary: &Summary) -> std::io::Result<()> {
    let [median, p95, p99] = summary.quantiles_s;
    show!(
        "{} demand requests, {:.1} % from the cache; response mean {:.3} s, median {median:.3} s, p95 {p95:.3} s, p99 {p99:.3} s",
        summary.requests,
        100.0 * summary.hit_share,
        summary.mean_s
    )?;
    show!(
        "{} views, mean {:.3} s; {} not complete at the end; {} requests failed",
        summary.views,
        summary.view_mean_s,
        summary.views_left,
        summary.failed
    )?;
    show!(
        "{} bytes on demand; {} prefetched in {} answers ({} failed), {} of them used",
        summary.demand_bytes,
        summary.prefetched_bytes,
        summary.prefetches[0],
        summary.prefetches[1],
        summary.used_bytes
    )?;
    Ok(())
}

async fn run(arguments: &Arguments) -> Result<()> {
    let trace = arguments.read.trace()?;
    let Arguments { clients, hours, seed, .. } = *arguments;
    let (clients, hours) = (clients as usize, hours as usize);
    let plan = Plan { clients, hours, duration_s: arguments.duration, seed };
    let (w, threshold, pause) = arguments.prefetch.parameters();
    let hints = match arguments.prefetch {
        Strategy::None => Hints::None,
        Strategy::Perfect => Hints::Perfect(w),
        Strategy::Server => Hints::Server,
        _ => Hints::Predictor(Arc::new(predictor(arguments, w)?)),
    };
    let setup = Setup {
        demand: arguments.to,
        prefetch: arguments.prefetch_to.unwrap_or(arguments.to),
        host: arguments.to.to_string(),
        hints,
        threshold: arguments.threshold.unwrap_or(threshold),
        pause,
        sizes: Arc::new(trace.sizes().clone()),
        end: Duration::from_secs(arguments.duration + arguments.drain),
    };
    let begun = Instant::now();
    let mut running = JoinSet::new();
    for (number, visits) in trace.visits(&plan).into_iter().enumerate() {
        running.spawn(replay::client(setup.clone(), number, visits, begun));
    }
    let reports = running.join_all().await;
    let summary = replay::summary(&reports);
    if arguments.json {
        show!("{}", json!({"summary": summary, "clients": reports}))?;
    } else {
        show(&summary)?;
    }
    let failed: Vec<_> = reports.iter().flat_map(|r| &r.failed).collect();
    if let Some(first) = failed.first() {
        anyhow::bail!("{} demand requests failed; the first: {first}", failed.len());
    }
    Ok(())
}

/// Replays a trace.
pub fn main(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(arguments))
}

/// Writes a web site with every object of a web log, in its size: an origin for `replay`.
///
/// A path that is also a directory of others becomes index.html in it. So the web server should try
/// both, as they were asked for. In nginx: `try_files $request_uri $request_uri/index.html =404`.
#[derive(Args)]
#[command(
    before_help = "Example: netnice-prefetch site lab/data/web-requests.csv.gz --root /tmp/site"
)]
pub struct SiteArguments {
    #[command(flatten)]
    read: Read,
    /// Directory to write to; it is made if missing.
    #[arg(long, value_name = "DIR")]
    root: PathBuf,
}

/// Writes a site.
pub fn site(arguments: &SiteArguments) -> Result<()> {
    let trace = arguments.read.trace()?;
    let text = vec![b'.'; 64 << 10];
    for (path, size) in trace.sizes() {
        let relative: PathBuf =
            path.split('/').filter(|part| !matches!(*part, "" | "." | "..")).collect();
        let is_folder = path.ends_with('/')
            || trace.sizes().keys().any(|p| {
                p.len() > path.len() && p.starts_with(&**path) && p.as_bytes()[path.len()] == b'/'
            });
        let mut file = arguments.root.join(relative);
        if is_folder {
            file.push("index.html");
        }
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(file.parent().unwrap_or(&arguments.root))?;
            let mut out = File::create(&file)?;
            let mut left = usize::try_from(*size).map_err(std::io::Error::other)?;
            while left > 0 {
                let part = left.min(text.len());
                out.write_all(&text[..part])?;
                left -= part;
            }
            Ok(())
        };
        write().with_context(|| format!("cannot write {}", file.display()))?;
    }
    show!("{} objects written to {}", trace.sizes().len(), arguments.root.display())?;
    Ok(())
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command `netnice-sim`; see the library for what it does.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Context};
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use netnice_scenario::weblog::WebLog;
use netnice_scenario::{Scenario, Variant};
use netnice_sim::report;
use netnice_sim::result::{summarise, Document, Ordered, Run, Sweep, SweepPoint};
use netnice_sim::sweep::{self, Plan, Vary};
use netnice_sim::trace;
use rustix::time::{clock_gettime, ClockId};

/// Simulates background TCP, packet by packet, on the scenarios that the lab runs on the kernel.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 all went well, 1 something failed (a sentence says what), 2 wrong usage."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(RunArgs),
    Sweep(SweepArgs),
    #[command(hide = true)]
    Bench(BenchArgs),
}

/// Runs a scenario with every background, and prints one table.
///
/// The same file, settings and seeds give the same bytes on every machine.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  netnice-sim run lab/scenarios/k1.toml --seeds 5\n  netnice-sim run lab/scenarios/k1.toml --only 'nn_nice x16' --seed 1 --trace nice.csv"
)]
struct RunArgs {
    #[command(flatten)]
    what: What,
    /// Write windows, queue lengths and RTTs over time as CSV; of one background with one seed.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write only this kind of line to the trace, as in weight (repeatable); default: all.
    #[arg(long, value_name = "KIND", requires = "trace")]
    trace_kind: Vec<String>,
}

/// Runs a scenario for every combination of some keys' values, on all cores.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-sim sweep lab/scenarios/k1.toml --vary background.flows=1,4,16 --vary bottleneck.limit_packets=25,50,100 --only 'nn_nice x16' --seeds 3"
)]
struct SweepArgs {
    #[command(flatten)]
    what: What,
    /// Give a key of the scenario each of these values (repeatable).
    #[arg(long, value_name = "KEY=V1,V2,…", required = true)]
    vary: Vec<Vary>,
}

/// Prints how many packets of data cross the bottleneck in a second of one core.
#[derive(Args)]
struct BenchArgs {
    /// A scenario with one background.
    file: PathBuf,
    /// The fastest of so many runs counts: the others were disturbed.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
}

#[derive(Args)]
struct What {
    /// The scenario (TOML).
    file: PathBuf,
    /// Set a key of the scenario, as in foreground.load=0.3 or background[2].flows=4 (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Run with seeds 1 to N.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// Run with this one seed instead.
    #[arg(long, value_name = "SEED", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Only this background (repeatable); none and strict priority stay.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// The web request log, for scenarios that need it.
    #[arg(long, value_name = "FILE", default_value = "lab/data/web-requests.csv.gz")]
    data: PathBuf,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

impl What {
    /// The scenario with its settings and those of one point of a sweep.
    fn plan(&self, point: &[(String, String)]) -> anyhow::Result<Plan> {
        let point = point.iter().map(|(key, value)| format!("{key}={value}"));
        let settings: Vec<String> = self.settings.iter().cloned().chain(point).collect();
        let scenario = Scenario::read_with(&self.file, &settings)?;
        let seeds = self.seed.map_or_else(|| (1..=self.seeds).collect(), |seed| vec![seed]);
        Ok(Plan::new(scenario, &self.only, seeds)?)
    }

    fn log(&self, plans: &[Plan]) -> anyhow::Result<Option<WebLog>> {
        let needed =
            plans.iter().any(|p| p.scenario.foreground.as_ref().is_some_and(|f| f.needs_log()));
        Ok(needed.then(|| WebLog::read(&self.data)).transpose()?)
    }

    /// Carries out the plans with a bar on a terminal's standard error.
    fn run_all(&self, plans: &[Plan]) -> anyhow::Result<Vec<Vec<Run>>> {
        let log = self.log(plans)?;
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed}")?;
        let bar = ProgressBar::new(plans.iter().map(Plan::runs).sum::<usize>() as u64);
        bar.set_style(style);
        let done = |run: &Run| {
            bar.set_message(format!("{}, seed {}", run.background, run.seed));
            bar.inc(1);
        };
        let runs = sweep::run_all(plans, log.as_ref(), &done);
        bar.finish_and_clear();
        runs.with_context(|| self.file.display().to_string())
    }
}

/// The command line, with the program's name instead of where it is.
fn command_line() -> Vec<String> {
    std::iter::once("netnice-sim".into()).chain(std::env::args().skip(1)).collect()
}

fn run(args: &RunArgs) -> anyhow::Result<String> {
    let plan = args.what.plan(&[])?;
    let runs = match &args.trace {
        None => args.what.run_all(std::slice::from_ref(&plan))?.concat(),
        Some(file) => run_traced(args, &plan, file)?,
    };
    let document = Document::new(plan.scenario, command_line(), runs);
    Ok(match args.what.json {
        true => serde_json::to_string(&document)? + "\n",
        false => report::text(&document),
    })
}

/// The backgrounds one after the other, the only one with a trace.
fn run_traced(args: &RunArgs, plan: &Plan, file: &Path) -> anyhow::Result<Vec<Run>> {
    let traced = traced(&args.what.only, plan)?;
    let log = args.what.log(std::slice::from_ref(plan))?;
    let cannot_write = || format!("Cannot write the trace {}", file.display());
    let to = BufWriter::new(File::create(file).with_context(cannot_write)?);
    let mut csv = Some(trace::Csv::new(to, &args.trace_kind));
    plan.pairs()
        .map(|(seed, variant)| {
            let mut csv = if variant == traced { csv.take() } else { None };
            let sink = csv.as_mut().map(|csv| csv as &mut dyn trace::Sink);
            let run = sweep::run_once(&plan.scenario, variant, seed, log.as_ref(), sink)
                .with_context(|| args.what.file.display().to_string())?;
            csv.map_or(Ok(()), trace::Csv::finish).with_context(cannot_write)?;
            Ok(run)
        })
        .collect()
}

/// The background to trace: the one that `--only` names, or the scenario's only one.
fn traced<'a>(only: &[String], plan: &'a Plan) -> anyhow::Result<&'a Variant> {
    if plan.seeds.len() != 1 {
        bail!(
            "--trace writes one run, but there are {} seeds. Choose one with --seed 1.",
            plan.seeds.len()
        );
    }
    let names: Vec<&String> = match only {
        [] => plan.scenario.background.iter().map(|b| &b.name).collect(),
        only => only.iter().collect(),
    };
    let [name] = names[..] else {
        bail!(
            "--trace writes one run, but there are {} backgrounds. Choose one with --only NAME; none and \"strict priority\" are names too.",
            names.len()
        );
    };
    plan.variants
        .iter()
        .find(|v| v.name == *name)
        .context("The background to trace is not planned.")
}

fn sweep(args: &SweepArgs) -> anyhow::Result<String> {
    let vary: Vec<_> = args.vary.iter().map(|v| (v.key.clone(), v.values.clone())).collect();
    let mut keys = BTreeSet::new();
    if let Some((key, _)) = vary.iter().find(|(key, _)| !keys.insert(key)) {
        bail!("--vary names {key} twice. Give all of its values at once.");
    }
    let base = args.what.plan(&[])?;
    let points = sweep::grid(&args.vary);
    let plans: Vec<Plan> =
        points.iter().map(|point| args.what.plan(point)).collect::<Result<_, _>>()?;
    let runs = args.what.run_all(&plans)?;
    let results = points
        .into_iter()
        .zip(runs)
        .map(|(point, runs)| SweepPoint { settings: Ordered(point), summary: summarise(&runs) })
        .collect();
    let sweep = Sweep::new(base.scenario, command_line(), vary, base.seeds.len(), results);
    Ok(match args.what.json {
        true => serde_json::to_string(&sweep)? + "\n",
        false => report::sweep_text(&sweep),
    })
}

/// Time that this thread has spent on a core: what else the machine does is not in it.
fn cpu_time() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::ThreadCPUTime).try_into()?)
}

fn bench(args: &BenchArgs) -> anyhow::Result<String> {
    let scenario = Scenario::read(&args.file)?;
    let [background] = &scenario.background[..] else {
        bail!(
            "{} has {} backgrounds; to measure the speed give a scenario with one.",
            args.file.display(),
            scenario.background.len()
        );
    };
    let variants = scenario.variants();
    let variant =
        variants.iter().find(|v| v.name == background.name).context("No such background.")?;
    let mut fastest = 0.0_f64;
    for _ in 0..args.runs {
        let begin = cpu_time()?;
        let outcome = netnice_sim::run(&scenario, variant, 1, None, None)?;
        fastest = fastest.max(outcome.events as f64 / (cpu_time()? - begin).as_secs_f64());
    }
    Ok(format!("sim_packets_per_s {fastest:.0} packets/s\n"))
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::Sweep(args) => sweep(&args),
        Command::Bench(args) => bench(&args),
    };
    let printed = done.and_then(|text| {
        std::io::stdout().write_all(text.as_bytes()).context("Cannot write to standard output")
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("netnice-sim: {error:#}");
            ExitCode::FAILURE
        }
    }
}

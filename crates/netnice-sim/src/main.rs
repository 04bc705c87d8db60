// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command `netnice-sim`; see the library for what it does.
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Context};
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use netnice_scenario::cli::{self, Log, Misuse, Source, EXIT_STATUS};
use netnice_scenario::weblog::WebLog;
use netnice_scenario::{Scenario, Text, Variant};
use netnice_sim::report;
use netnice_sim::result::{summarise, Document, Ordered, Run, Sweep, SweepPoint};
use netnice_sim::sweep::{self, Plan, Vary};
use netnice_sim::{trace, Error};
use rustix::time::{clock_gettime, ClockId};

/// More are a typing error.
const MOST_SEEDS: u64 = 100_000;

/// Simulates background TCP packet by packet, with the scenarios that netnice-lab runs on the kernel.
#[derive(Parser)]
#[command(
    version,
    before_help = "Example: netnice-sim run lab/scenarios/k1.toml --seeds 5",
    after_help = EXIT_STATUS
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

/// Runs a scenario with each of its backgrounds, and prints one table.
///
/// The same file, settings and seeds give the same output on every machine, to the byte.
#[derive(Args)]
#[command(before_help = "Examples:\n  \
                   netnice-sim run lab/scenarios/k1.toml --seeds 5\n  \
                   netnice-sim run lab/scenarios/k1.toml --only 'nn_nice x16' --trace nice.csv")]
struct RunArgs {
    #[command(flatten)]
    what: What,
    /// Write windows, queue lengths and RTTs over time to a CSV file; for one background and one seed.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write only this kind of line to the trace; may be repeated [default: all].
    #[arg(long, value_name = "KIND", requires = "trace", value_parser = PossibleValuesParser::new(trace::kinds()))]
    trace_kind: Vec<String>,
}

/// Runs a scenario with every combination of some keys' values, on all cores.
#[derive(Args)]
#[command(before_help = "Example:\n  \
                   netnice-sim sweep lab/scenarios/k1.toml --vary background.flows=1,4,16 \\\n      \
                   --vary bottleneck.limit_packets=25,50,100 --only 'nn_nice x16' --seeds 3")]
struct SweepArgs {
    #[command(flatten)]
    what: What,
    /// Values of a key of the scenario; may be repeated: every combination is run.
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
    #[command(flatten)]
    source: Source,
    /// Run each background with the seeds 1 to N.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=MOST_SEEDS))]
    seeds: u64,
    /// Begin with this seed instead of 1, as for figures of seeds that nothing was tuned on.
    #[arg(long, value_name = "SEED", default_value = "1", value_parser = clap::value_parser!(u64).range(1..=MOST_SEEDS))]
    first_seed: u64,
    /// Run with this one seed only.
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "first_seed"])]
    seed: Option<u64>,
    /// Run only this background, beside "none" and "strict priority"; may be repeated.
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    #[command(flatten)]
    log: Log,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
}

impl What {
    /// The scenario with its settings and those of one point of a sweep.
    fn plan(&self, text: &Text, point: &[(String, String)]) -> anyhow::Result<Plan> {
        let point = point.iter().map(|(key, value)| format!("{key}={value}"));
        let settings: Vec<_> = self.source.settings.iter().cloned().chain(point).collect();
        let scenario = text.with(&settings)?;
        let seeds = (self.first_seed..).take(self.seeds as usize).collect();
        let seeds = self.seed.map_or(seeds, |seed| vec![seed]);
        Ok(Plan::new(scenario, &self.only, seeds)?)
    }

    fn log(&self, plans: &[Plan]) -> anyhow::Result<Option<WebLog>> {
        self.log.read(plans.iter().map(|plan| &plan.scenario))
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
        runs.map_err(fault).with_context(|| self.source.file.display().to_string())
    }
}

/// What only a run finds to be wrong with a scenario is as wrong as what reading it finds.
fn fault(error: Error) -> anyhow::Error {
    match error {
        Error::Scenario(error) => error.into(),
        error => error.into(),
    }
}

/// The command line, with the program's name instead of where it is.
fn command_line() -> Vec<String> {
    let given = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("netnice-sim".into()).chain(given).collect()
}

fn run(args: &RunArgs) -> anyhow::Result<()> {
    let plan = args.what.plan(&Text::read(&args.what.source.file)?, &[])?;
    let runs = match &args.trace {
        None => args.what.run_all(std::slice::from_ref(&plan))?.concat(),
        Some(file) => run_traced(args, &plan, file)?,
    };
    let document = Document::new(plan.scenario, command_line(), runs);
    match args.what.json {
        true => cli::print_json(&document),
        false => cli::print(&report::text(&document)),
    }
}

/// The backgrounds one after the other, the only one with a trace.
fn run_traced(args: &RunArgs, plan: &Plan, file: &Path) -> anyhow::Result<Vec<Run>> {
    let traced = traced(&args.what.only, plan)?;
    let log = args.what.log(std::slice::from_ref(plan))?;
    let mut inputs = args.what.source.inputs([&plan.scenario]);
    inputs.push(args.what.log.data.clone());
    let to = cli::create(file, &inputs)?;
    let mut csv = Some(trace::Csv::new(to, &args.trace_kind));
    plan.pairs()
        .map(|(seed, variant)| {
            let mut csv = if variant == traced { csv.take() } else { None };
            let sink = csv.as_mut().map(|csv| csv as &mut dyn trace::Sink);
            let run = sweep::run_once(&plan.scenario, variant, seed, log.as_ref(), sink)
                .map_err(fault)
                .with_context(|| args.what.source.file.display().to_string())?;
            if let Some(csv) = csv {
                csv.finish()
                    .and_then(|file| Ok(file.finish()?))
                    .with_context(|| format!("Cannot write the trace {}", file.display()))?;
            }
            Ok(run)
        })
        .collect()
}

/// The background to trace: the one that `--only` names, or the scenario's only one.
fn traced<'a>(only: &[String], plan: &'a Plan) -> anyhow::Result<&'a Variant> {
    if plan.seeds.len() != 1 {
        bail!(Misuse(format!(
            "--trace writes one run, but there are {} seeds. Choose one with --seed 1.",
            plan.seeds.len()
        )));
    }
    let names: Vec<&String> = match only {
        [] => plan.scenario.background.iter().map(|b| &b.name).collect(),
        only => only.iter().collect(),
    };
    let [name] = names[..] else {
        bail!(Misuse(format!(
            "--trace writes one run, but there are {} backgrounds. Choose one with --only NAME; none and \"strict priority\" are names too.",
            names.len()
        )));
    };
    plan.variants
        .iter()
        .find(|v| v.name == *name)
        .context("The background to trace is not planned.")
}

fn sweep(args: &SweepArgs) -> anyhow::Result<()> {
    let vary: Vec<_> = args.vary.iter().map(|v| (v.key.clone(), v.values.clone())).collect();
    let mut keys = BTreeSet::new();
    if let Some((key, _)) = vary.iter().find(|(key, _)| !keys.insert(key)) {
        bail!(Misuse(format!("--vary names {key} twice. Give all of its values at once.")));
    }
    let text = Text::read(&args.what.source.file)?;
    let base = args.what.plan(&text, &[])?;
    let points = sweep::grid(&args.vary);
    let plans: Vec<Plan> =
        points.iter().map(|point| args.what.plan(&text, point)).collect::<Result<_, _>>()?;
    let runs = args.what.run_all(&plans)?;
    let results = points
        .into_iter()
        .zip(runs)
        .map(|(point, runs)| SweepPoint { settings: Ordered(point), summary: summarise(&runs) })
        .collect();
    let sweep = Sweep::new(base.scenario, command_line(), vary, base.seeds.len(), results);
    match args.what.json {
        true => cli::print_json(&sweep),
        false => cli::print(&report::sweep_text(&sweep)),
    }
}

/// Time that this thread has spent on a core: what else the machine does is not in it.
fn cpu_time() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::ThreadCPUTime).try_into()?)
}

fn bench(args: &BenchArgs) -> anyhow::Result<()> {
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
    cli::print(&format!("sim_packets_per_s {fastest:.0} packets/s\n"))
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Run(args) => run(&args),
        Command::Sweep(args) => sweep(&args),
        Command::Bench(args) => bench(&args),
    };
    cli::end("netnice-sim", done)
}

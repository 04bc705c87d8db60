// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command `netnice-load`; see the library for what it does.
#![forbid(unsafe_code)]

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Context};
use clap::{Args, Parser, Subcommand};
use netnice_load::net::{self, Stop, Timeline};
use netnice_load::{bulk, ping, web};
use netnice_scenario::weblog::WebLog;
use netnice_scenario::Scenario;
use netnice_scenario::{schedule, Flow};
use serde::Serialize;

/// Traffic for experiments on real sockets: web-like fetches, bulk flows, probes.
///
/// A receiving side (serve, sink, echo) listens until it gets SIGTERM or SIGINT; a starting side
/// (fetch, send, probe) ends by itself. Every byte is checked. All sockets have the kernel's default
/// buffers and options; only the congestion control is set, and only on request.
#[derive(Parser)]
#[command(
    version,
    after_help = "Exit status: 0 all went well, 1 something failed (a sentence says what), 2 wrong usage."
)]
struct Cli {
    #[command(subcommand)]
    mode: Mode,
}

#[derive(Subcommand)]
enum Mode {
    Serve(Serve),
    Fetch(Fetch),
    Sink(Sink),
    Send(Send),
    Echo(Echo),
    Probe(Probe),
    Schedule(Schedule),
    Scenario(Checked),
}

/// Answers fetches: a web-like server.
///
/// A request is 16 bytes, the length and the seed of the content; the answer is that content, then
/// the server closes. Prints "listening IP:PORT" when ready; port 0 takes a free one.
#[derive(Args)]
#[command(after_help = "Example: netnice-load serve --listen 127.0.0.1:8000 --control cubic")]
struct Serve {
    /// Address and port to listen on.
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// Congestion control of the answers [default: the system's].
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Fetches by the schedule of a scenario, open loop: the foreground.
///
/// Every flow starts at its time, whatever became of the earlier ones. The completion time is
/// measured from connect() to the last byte. Flows that are not finished at the end of the scenario
/// (warmup_s + measure_s + drain_s) are reported with "fct_s": null and "elapsed_s". Fails after
/// writing its report if a fetch failed or a byte was wrong.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-load fetch lab/scenarios/k1.toml --from 127.0.0.1:8000 --seed 1 --json -"
)]
struct Fetch {
    #[command(flatten)]
    what: Planned,
    /// Address and port of `netnice-load serve`.
    #[arg(long, value_name = "IP:PORT")]
    from: SocketAddr,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

/// Receives and checks bulk flows.
///
/// Prints "listening IP:PORT" when ready. Confirms to each finite flow how many of its bytes arrived
/// intact. Fails after writing its report if a flow was not; a flow that the sender cut off is
/// reported as incomplete, and no failure.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-load sink --listen 127.0.0.1:9000 --warmup 3 --measure 30 --json sink.json"
)]
struct Sink {
    /// Address and port to listen on.
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// Start of the window whose bytes are counted apart.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0", requires = "measure")]
    warmup: f64,
    /// Length of that window [default: no window].
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    measure: Option<f64>,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

/// Sends bulk flows: the background.
///
/// With --bytes each flow ends when the sink has confirmed every byte as intact; without, flows are
/// endless until --duration or SIGTERM. Fails after writing its report if a flow failed; being cut
/// off by --duration or SIGTERM is no failure, the report shows it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  netnice-load send 127.0.0.1:9000 --flows 16 --control nn_nice --duration 33\n  netnice-load send 127.0.0.1:9000 --flows 1000 --bytes 1000000 --json -"
)]
struct Send {
    /// Address and port of `netnice-load sink`.
    #[arg(value_name = "IP:PORT")]
    to: SocketAddr,
    /// Number of flows.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    flows: u32,
    /// Congestion control [default: the system's].
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    /// Bytes of each flow; 0 is endless.
    #[arg(long, value_name = "BYTES", default_value = "0")]
    bytes: u64,
    /// Start of the first flow, on the time line.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    start: f64,
    /// Time between the starts of flows.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    stagger: f64,
    /// When all flows end, on the time line (so counted from t = 0, not from --start) [default: never].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// Seed of the content.
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    #[command(flatten)]
    connect: Connect,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

/// Sends UDP datagrams back: the far end of probes.
///
/// Prints "listening IP:PORT" when ready.
#[derive(Args)]
#[command(after_help = "Example: netnice-load echo --listen 127.0.0.1:7000")]
struct Echo {
    /// Address and port to receive on.
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    #[command(flatten)]
    output: Output,
}

/// Measures round-trip times with small UDP datagrams (64 bytes of payload).
///
/// Fails after writing its report if not a single probe came back.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-load probe 127.0.0.1:7000 --interval-ms 100 --duration 33 --json -"
)]
struct Probe {
    /// Address and port of `netnice-load echo`.
    #[arg(value_name = "IP:PORT")]
    to: SocketAddr,
    /// Milliseconds between probes.
    #[arg(long, value_name = "MS", value_parser = positive, default_value = "100")]
    interval_ms: f64,
    /// Probes are sent from t = 0 until then.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: f64,
    /// How long to wait for echoes after the last probe.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    wait: f64,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    output: Output,
}

/// Prints the foreground flows of a scenario: start in seconds, size in bytes.
///
/// The schedule is a pure function of the scenario's foreground, rate and durations, and of the
/// seed: every background of a run meets the same flows. Lines before the measured window are
/// marked as warm-up.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-load schedule lab/scenarios/k1.toml --seed 1 | less\n\nfetch replays what schedule prints."
)]
struct Schedule {
    #[command(flatten)]
    what: Planned,
    #[command(flatten)]
    output: Output,
}

/// Checks a scenario and prints it with every default filled in, as TOML.
#[derive(Args)]
#[command(
    after_help = "Example: netnice-load scenario lab/scenarios/k1.toml --set foreground.load=0.3"
)]
struct Checked {
    /// The scenario.
    #[arg(value_name = "SCENARIO.toml")]
    file: PathBuf,
    /// Sets a key, as in foreground.load=0.3 or background[2].flows=4 (repeatable).
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
struct Planned {
    /// The scenario.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Seed of the schedule.
    #[arg(long, value_name = "N")]
    seed: u64,
    /// Web request log, for scenarios that replay it or draw sizes from it.
    #[arg(long, value_name = "FILE", default_value = "lab/data/web-requests.csv.gz")]
    data: PathBuf,
}

#[derive(Args)]
struct Connect {
    /// Give a connection up if it takes longer [default: as long as the system tries].
    #[arg(long = "connect-timeout", value_name = "SECONDS", value_parser = positive)]
    limit: Option<f64>,
}

impl Connect {
    fn limit(&self) -> Option<Duration> {
        self.limit.map(Duration::from_secs_f64)
    }
}

#[derive(Args)]
struct Clock {
    /// Time t = 0 in Unix seconds (may have decimals), so that processes agree [default: when ready].
    #[arg(long, value_name = "UNIX_SECONDS")]
    epoch: Option<f64>,
}

impl Clock {
    fn timeline(&self) -> anyhow::Result<Timeline> {
        Ok(Timeline::new(self.epoch)?)
    }

    /// For those who start something at t = 0: an error after it.
    fn timeline_of_a_start(&self) -> anyhow::Result<Timeline> {
        let timeline = self.timeline()?;
        let late_s = timeline.now_s();
        anyhow::ensure!(
            self.epoch.is_none() || late_s <= 0.0,
            "t = 0 was {late_s:.3} s ago: what was due since then would start late. \
             Give a later --epoch."
        );
        Ok(timeline)
    }
}

#[derive(Args)]
struct Output {
    /// Write the report as JSON; "-" is standard output [default: a line of text].
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// Where the report goes; opened before the run, so that no run is in vain.
enum Sheet {
    Text,
    Json(Box<dyn Write>),
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    mode: &'a str,
    #[serde(flatten)]
    report: &'a T,
}

impl Output {
    fn open(&self) -> anyhow::Result<Sheet> {
        Ok(match &self.json {
            None => Sheet::Text,
            Some(path) if path == Path::new("-") => Sheet::Json(Box::new(io::stdout())),
            Some(path) => Sheet::Json(Box::new(File::create(path).with_context(|| {
                format!(
                    "Cannot write {}. Choose a file in a directory that exists and is writable",
                    path.display()
                )
            })?)),
        })
    }
}

impl Sheet {
    /// Writes the report, then fails if there is a fault.
    fn finish<T: Serialize + Display>(
        self,
        mode: &str,
        report: &T,
        fault: Option<String>,
    ) -> anyhow::Result<()> {
        let written = match self {
            Self::Text => writeln!(io::stdout(), "{report}"),
            Self::Json(mut out) => {
                let document = Document { schema: 1, mode, report };
                serde_json::to_writer(&mut out, &document)
                    .map_err(io::Error::from)
                    .and_then(|()| writeln!(out))
            }
        };
        match written {
            // The reader has seen enough, such as `| head`.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.context("Cannot write the report. Is the disk full?")?,
        }
        match fault {
            None => Ok(()),
            Some(fault) => bail!(fault),
        }
    }
}

impl Planned {
    fn plan(&self) -> anyhow::Result<(Scenario, Vec<Flow>)> {
        let scenario = Scenario::read(&self.scenario)?;
        let needs_log =
            scenario.foreground.as_ref().is_some_and(|foreground| foreground.needs_log());
        let log = match needs_log {
            true => Some(WebLog::read(&self.data).context(
                "The scenario's foreground needs the web request log; give it with --data",
            )?),
            false => None,
        };
        let flows = schedule(&scenario, log.as_ref(), self.seed);
        Ok((scenario, flows))
    }
}

/// The report of `scenario`.
#[derive(Serialize)]
struct Filled {
    scenario: Scenario,
}

impl Display for Filled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = toml::to_string(&self.scenario).map_err(|_| std::fmt::Error)?;
        write!(f, "{}", text.trim_end())
    }
}

/// The report of `schedule`.
#[derive(Serialize)]
struct Plan {
    seed: u64,
    counted: usize,
    bytes: u64,
    /// Offered load in [0, warmup + measure) as a share of the rate of the bottleneck, or of the
    /// slowest link on the path.
    offered_load: f64,
    flows: Vec<Flow>,
}

impl Display for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for flow in &self.flows {
            let warmup = if flow.counted { "" } else { "  warm-up" };
            writeln!(f, "{:>12.6} {:>9}{warmup}", flow.start_s, flow.bytes)?;
        }
        write!(
            f,
            "{} flows, {} of them counted; {} bytes, {:.4} of the bottleneck rate",
            self.flows.len(),
            self.counted,
            self.bytes,
            self.offered_load
        )
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "give a number, such as 2.5".to_owned())?;
    if (0.0..=1e9).contains(&value) {
        Ok(value)
    } else {
        Err("give a number from 0 to 1e9".into())
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match seconds(text)? {
        value if value >= 0.001 => Ok(value),
        _ => Err("give a number from 0.001 to 1e9".into()),
    }
}

fn announce(address: io::Result<SocketAddr>) -> anyhow::Result<()> {
    let mut out = io::stdout();
    let address = address.context("The socket has no address")?;
    writeln!(out, "listening {address}")
        .and_then(|()| out.flush())
        .context("Cannot say on standard output that this is ready")
}

async fn run(mode: Mode) -> anyhow::Result<()> {
    net::raise_file_limit().context("Cannot raise the limit of open files")?;
    let stop = Stop::at_signal().context("Cannot catch SIGTERM")?;
    match mode {
        Mode::Serve(o) => {
            let sheet = o.output.open()?;
            let listener = net::listen(o.listen, o.control.as_deref())?;
            announce(listener.local_addr())?;
            let report = web::serve(listener, stop).await?;
            sheet.finish("serve", &report, None)
        }
        Mode::Fetch(o) => {
            let (scenario, flows) = o.what.plan()?;
            let sheet = o.output.open()?;
            let timeline = o.clock.timeline_of_a_start()?;
            let end_s = scenario.end_s();
            let report = web::fetch(&flows, o.from, end_s, timeline, o.connect.limit(), stop).await;
            let fault = report.fault();
            sheet.finish("fetch", &report, fault)
        }
        Mode::Sink(o) => {
            let sheet = o.output.open()?;
            let listener = net::listen(o.listen, None)?;
            let window = o
                .measure
                .map(|measure| bulk::Window { from_s: o.warmup, to_s: o.warmup + measure });
            let timeline = o.clock.timeline()?;
            announce(listener.local_addr())?;
            let report = bulk::sink(listener, window, timeline, stop).await?;
            let fault = report.fault();
            sheet.finish("sink", &report, fault)
        }
        Mode::Send(o) => {
            let sheet = o.output.open()?;
            let timeline = o.clock.timeline_of_a_start()?;
            let sending = bulk::Sending {
                to: o.to,
                flows: o.flows,
                control: o.control,
                bytes: Some(o.bytes).filter(|&bytes| bytes > 0),
                start_s: o.start,
                stagger_s: o.stagger,
                end_s: o.duration,
                seed: o.seed,
                connect_limit: o.connect.limit(),
            };
            let report = bulk::send(sending, timeline, stop).await?;
            let fault = report.fault();
            sheet.finish("send", &report, fault)
        }
        Mode::Echo(o) => {
            let sheet = o.output.open()?;
            let socket = ping::bind(o.listen).await?;
            announce(socket.local_addr())?;
            let report = ping::echo(socket, stop).await?;
            sheet.finish("echo", &report, None)
        }
        Mode::Probe(o) => {
            let sheet = o.output.open()?;
            let timeline = o.clock.timeline_of_a_start()?;
            let probing = ping::Probing {
                to: o.to,
                interval: Duration::from_secs_f64(o.interval_ms / 1e3),
                end_s: o.duration,
                wait: Duration::from_secs_f64(o.wait),
            };
            let report = ping::probe(probing, timeline, stop).await?;
            let fault = report.fault();
            sheet.finish("probe", &report, fault)
        }
        Mode::Schedule(o) => {
            let (scenario, flows) = o.what.plan()?;
            let bytes = flows.iter().map(|f| f.bytes).sum();
            let plan = Plan {
                seed: o.what.seed,
                counted: flows.iter().filter(|f| f.counted).count(),
                bytes,
                offered_load: bytes as f64 / scenario.arrivals_end_s() / scenario.rate_bytes(),
                flows,
            };
            o.output.open()?.finish("schedule", &plan, None)
        }
        Mode::Scenario(o) => {
            let scenario = Scenario::read_with(&o.file, &o.settings)?;
            o.output.open()?.finish("scenario", &Filled { scenario }, None)
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("Cannot start the runtime")
        .and_then(|runtime| runtime.block_on(run(cli.mode)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("netnice-load: {e:#}");
            ExitCode::FAILURE
        }
    }
}

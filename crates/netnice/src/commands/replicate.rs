// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice replicate`: one tree to many hosts, as fast as nobody notices.

mod job_args;
mod progress;
mod status;
mod through;

use std::path::PathBuf;
use std::thread;

use anyhow::{anyhow, Context, Result};
use clap::{Args, Subcommand};
use netnice_manager::group;
use netnice_manners::{output, say, show, start};
use netnice_replicate::job::{self, Job};
use netnice_replicate::place::Listed;
use netnice_replicate::report::Report;
use netnice_replicate::store::State;
use netnice_replicate::{config, schedule, Outcome, Replication};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::{BeginArgs, SocketArgs};
use job_args::JobArgs;
use progress::Display;

/// The exit status when the job makes no sense, as for a wrong command line,
const WRONG: u8 = 2;
/// and when some destinations are not current.
const INCOMPLETE: u8 = 3;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ReplicateArgs {
    #[command(subcommand)]
    command: Option<Action>,
    /// What to copy: a directory or file of this machine; `dir/` means its contents, as for rsync
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    source: Option<String>,
    /// Where to: path, [user@]host:path, rsync://host/module/path
    #[arg(value_name = "DEST", conflicts_with = "config")]
    destinations: Vec<String>,
    #[command(flatten)]
    job: JobArgs,
    /// Read destinations from a file, one on each line; an indented one is fed by the one above it
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    to: Option<PathBuf>,
    /// Let the copy on this host feed all other destinations
    #[arg(long, value_name = "HOST", conflicts_with = "config")]
    via: Option<String>,
    /// Give a destination more of the spare bandwidth than the others, whose share is 1; NAME is its
    /// host or the whole place; may be repeated
    #[arg(long, value_name = "NAME=PARTS", conflicts_with = "config")]
    share: Vec<String>,
    /// Read everything from a TOML file; test one: netnice replicate check FILE
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Keep the copies current until interrupted
    #[arg(long)]
    watch: bool,
    /// Under --watch compare every copy with the whole source again after this long, whatever the
    /// watch noticed
    #[arg(long, value_name = "SECONDS", default_value_t = job::COMPARE_EVERY, value_parser = compare_every, conflicts_with = "config")]
    compare_every: u32,
    /// Remove from the copies what the source lacks
    #[arg(long)]
    delete: bool,
    /// Compare the content of every file at the end
    #[arg(long)]
    verify: bool,
    /// Attempts for a destination after the first one failed; without end under --watch
    #[arg(long, value_name = "N", default_value_t = job::RETRIES)]
    retries: u32,
    /// Run at most this many transfers at a time; how many is found by measuring
    #[arg(long, value_name = "N", default_value_t = schedule::MOST, value_parser = clap::value_parser!(u32).range(1..=64))]
    most: u32,
    /// End with the destinations' states as JSON on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    choice: BeginArgs,
    #[command(flatten)]
    daemon: SocketArgs,
    /// If netnice cannot work here, say why and copy all the same, as everybody does: for copies
    /// that matter more than who they disturb
    #[arg(long, conflicts_with = "config")]
    or_plain: bool,
    /// Further options for rsync
    #[arg(last = true, value_name = "RSYNC-OPTION")]
    rsync: Vec<String>,
}

#[derive(Subcommand)]
enum Action {
    /// Show every destination of a job: state, lag, bytes, rate, last error, estimated end
    #[command(after_help = "Examples:\n  \
                      netnice replicate status             # of all jobs\n  \
                      netnice replicate status --job www")]
    Status(status::StatusArgs),
    /// Test a configuration file, without doing anything
    #[command(
        long_about = "Tests a configuration file, without doing anything. The exit status is 0 if it is right and the \
                      source is there, 2 if the file is wrong, else 1.",
        after_help = "Example:\n  netnice replicate check www.toml"
    )]
    Check(CheckArgs),
}

#[derive(Args)]
struct CheckArgs {
    /// The file
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
}

/// The exit status.
pub fn main(args: ReplicateArgs) -> Result<u8> {
    match &args.command {
        Some(Action::Status(args)) => status::main(args).map(|()| 0),
        Some(Action::Check(args)) => check(args),
        None => run(args),
    }
}

/// The job, or the exit status after saying what is wrong with it.
fn or_wrong(job: Result<Job>) -> Result<Job, u8> {
    job.map_err(|error| {
        say!("netnice: {error:#}");
        WRONG
    })
}

fn compare_every(text: &str) -> Result<u32> {
    Ok(job::compare_every(text.parse()?)?)
}

fn check(args: &CheckArgs) -> Result<u8> {
    let job = match or_wrong(config::read(&args.config).map_err(Into::into)) {
        Ok(job) => job,
        Err(status) => return Ok(status),
    };
    job.require_source()?;
    show!("{}: {} to {} destinations", job.name, job.source, job.destinations.len())?;
    Ok(0)
}

/// The job that a command line describes.
fn described(args: ReplicateArgs) -> Result<Job> {
    let source = args.source.context("which source? netnice replicate SOURCE DEST...")?;
    let mut listed: Vec<Listed> = Vec::new();
    for text in &args.destinations {
        listed.push((0, 0, text.parse()?));
    }
    if let Some(file) = &args.to {
        listed.extend(job::read_list(file)?);
    }
    let mut destinations = job::tree(listed)?;
    if let Some(host) = &args.via {
        job::feed_all(&mut destinations, host)?;
    }
    for text in &args.share {
        let (name, share) = text
            .rsplit_once('=') // a place may have one in its path
            .with_context(|| format!("--share {text}: write NAME=PARTS, for example {text}=4"))?;
        job::give(&mut destinations, name, group::parts(share)?)?;
    }
    let name = match args.job.name {
        Some(name) => name,
        None => job::default_name(&source)?,
    };
    let job = Job {
        name,
        source,
        destinations,
        watch: args.watch,
        delete: args.delete,
        verify: args.verify,
        retries: args.retries,
        most: args.most,
        rsync: args.rsync,
        choice: args.choice.into(),
        or_plain: args.or_plain,
        compare_every: args.compare_every,
        left_out: None,
    };
    job.check()?;
    Ok(job)
}

fn run(args: ReplicateArgs) -> Result<u8> {
    let (json, state) = (args.json, args.job.state());
    let daemon = args.daemon.is_needed().then(|| args.daemon.socket.clone());
    let described = match &args.config {
        Some(file) => config::read(file).map_err(Into::into),
        None => described(args),
    };
    let apart = |mut job: Job| job.leave_out(&state).map(|()| job).map_err(Into::into);
    let job = match or_wrong(described.and_then(apart)) {
        Ok(job) => job,
        Err(status) => return Ok(status),
    };
    let (name, destinations) = (job.name.clone(), job.destinations.len());
    let given = match daemon.map(|socket| through::begin(socket, &job)).transpose() {
        Err(error) if job.or_plain => {
            say!("netnice: the copies are made, but not in the background: {error:#}");
            None
        }
        begun => begun?,
    };
    let replication = Replication::prepare(job, &state, given)?;
    let mut signals = Signals::new(start::heeded(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM]))?;
    let (handle, stopper) = (signals.handle(), replication.stopper());
    let listener = thread::spawn(move || signals.forever().for_each(|_| stopper.stop()));
    let working = output::working(); // who looks at a pager's first page still wants the copies
    let outcome = replication.run(&mut Display::new(destinations))?;
    let _working = outcome.stopped.then_some(working); // to be told to end is to end
    handle.close();
    listener.join().map_err(|_| anyhow!("the thread that waits for signals failed"))?;
    let code = conclude(&outcome);
    if json {
        let report = Report::new(name, None, outcome.summary, outcome.rows);
        show!("{}", serde_json::to_string_pretty(&report)?)?;
    }
    Ok(code)
}

/// Says which destinations are not current, and why.
fn conclude(outcome: &Outcome) -> u8 {
    let behind: Vec<_> = outcome.rows.iter().filter(|r| r.state != State::Current).collect();
    say!(
        "netnice: {} of {} destinations current",
        outcome.rows.len() - behind.len(),
        outcome.rows.len()
    );
    for row in &behind {
        let why = match &row.error {
            Some(error) => error.as_str(),
            None if outcome.stopped => "interrupted; the next run goes on from here",
            None => "not reached",
        };
        say!("  {}: {why}", row.place);
    }
    if behind.is_empty() {
        0
    } else {
        INCOMPLETE
    }
}

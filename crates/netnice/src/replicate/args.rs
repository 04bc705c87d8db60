// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command line of `netnice replicate`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::Choice;

/// Where the state of jobs is kept unless `--state` says otherwise.
pub const STATE: &str = "/var/lib/netnice/replicate";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ReplicateArgs {
    #[command(subcommand)]
    pub command: Option<ReplicateCommand>,
    /// What to copy: a directory or file of this machine; `dir/` means its contents, as for rsync
    #[arg(required_unless_present = "config", conflicts_with = "config")]
    pub source: Option<String>,
    /// Where to: path, [user@]host:path, rsync://host/module/path
    #[arg(value_name = "DEST", conflicts_with = "config")]
    pub destinations: Vec<String>,
    #[command(flatten)]
    pub job: JobArgs,
    /// Read destinations from a file, one on each line; an indented one is fed by the one above it
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    pub to: Option<PathBuf>,
    /// Let the copy on this host feed all other destinations
    #[arg(long, value_name = "HOST", conflicts_with = "config")]
    pub via: Option<String>,
    /// Give a destination more of the spare bandwidth than the others, whose share is 1; NAME is its
    /// host or the whole place; may be repeated
    #[arg(long, value_name = "NAME=PARTS", conflicts_with = "config")]
    pub share: Vec<String>,
    /// Read everything from a TOML file; test one: netnice replicate check FILE
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep the copies current until interrupted
    #[arg(long)]
    pub watch: bool,
    /// Remove from the copies what the source lacks
    #[arg(long)]
    pub delete: bool,
    /// Compare the content of every file at the end
    #[arg(long)]
    pub verify: bool,
    /// Attempts for a destination after the first one failed; without end under --watch
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub retries: u32,
    /// Never have more transfers under way than this; how many are is found by measuring
    #[arg(long, value_name = "N", default_value_t = super::schedule::MOST, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub most: u32,
    /// End with the destinations' states as JSON on standard output
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub choice: Choice,
    /// Further options for rsync
    #[arg(last = true, value_name = "RSYNC-OPTION")]
    pub rsync: Vec<String>,
}

/// Which job, and where its state is.
#[derive(Args)]
pub struct JobArgs {
    /// The job's name; by default made from the source
    #[arg(long = "job", value_name = "NAME")]
    pub name: Option<String>,
    /// Where the state of jobs is kept
    #[arg(long, value_name = "DIR", default_value = STATE)]
    pub state: PathBuf,
}

#[derive(Subcommand)]
pub enum ReplicateCommand {
    /// Show every destination of a job: state, lag, bytes, rate, last error, estimated end
    Status(StatusArgs),
    /// Test a configuration file, without doing anything
    Check(CheckArgs),
}

#[derive(Args)]
pub struct StatusArgs {
    #[command(flatten)]
    pub job: JobArgs,
    /// Print JSON: sizes in bytes, rates in bytes/s, times in seconds
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct CheckArgs {
    /// The file
    #[arg(value_name = "CONFIG")]
    pub config: PathBuf,
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What commands about scenarios have in common: naming their input, writing what they found,
//! ending.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context};
use clap::Args;
use serde::Serialize;

use crate::weblog::WebLog;
use crate::whole::{unless_seen_enough, WholeFile};
use crate::{Error, Scenario};

/// The end of a command's help.
pub const EXIT_STATUS: &str = "Exit status: 0 all went well, 1 something failed (a sentence says \
     what), 2 wrong usage or a scenario that is not valid.";

/// As clap has it.
const WRONG_USAGE: u8 = 2;

/// The scenario that a command is about.
#[derive(Args)]
pub struct Source {
    /// The scenario; "-" is standard input.
    #[arg(value_name = "SCENARIO.toml")]
    pub file: PathBuf,
    /// Set a key of the scenario, as in foreground.load=0.3 or background[2].flows=4; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

impl Source {
    /// Reads and checks the scenario with its settings.
    ///
    /// # Errors
    /// As [`Scenario::read_with`].
    pub fn read(&self) -> Result<Scenario, Error> {
        Scenario::read_with(&self.file, &self.settings)
    }

    /// All files that these scenarios of the source are made of.
    pub fn inputs<'s>(&self, scenarios: impl IntoIterator<Item = &'s Scenario>) -> Vec<PathBuf> {
        let traces = scenarios.into_iter().flat_map(|s| s.trace_files(&self.file));
        std::iter::once(self.file.clone()).chain(traces).collect()
    }
}

/// Where the web request log is.
#[derive(Args)]
pub struct Log {
    /// The web request log, for scenarios that replay it or take sizes from it.
    #[arg(long, value_name = "FILE", default_value = "lab/data/web-requests.csv.gz")]
    pub data: PathBuf,
}

impl Log {
    /// Reads the log, if one of the scenarios needs it.
    ///
    /// # Errors
    /// As [`WebLog::read`].
    pub fn read<'s>(
        &self,
        scenarios: impl IntoIterator<Item = &'s Scenario>,
    ) -> anyhow::Result<Option<WebLog>> {
        let needed = scenarios
            .into_iter()
            .any(|scenario| scenario.foreground.as_ref().is_some_and(|f| f.needs_log()));
        needed
            .then(|| WebLog::read(&self.data))
            .transpose()
            .context("The scenario's foreground needs the web request log; give it with --data")
    }
}

/// A command that is used in a wrong way, as a sentence with the next step.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);

/// Opens a file for writing that is none of the `inputs` of the same command.
///
/// # Errors
/// If it is one of them, or cannot be written.
pub fn create(path: &Path, inputs: &[PathBuf]) -> anyhow::Result<WholeFile> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if let Some(known) = real(path) {
        ensure!(
            !inputs.iter().any(|input| real(input).as_ref() == Some(&known)),
            "{} is read by this command and would be overwritten. Choose another file.",
            path.display()
        );
    }
    WholeFile::create(path).with_context(|| {
        format!(
            "Cannot write {}. Choose a file in a directory that exists and is writable",
            path.display()
        )
    })
}

/// Where a command's report goes.
#[derive(Args)]
pub struct Output {
    /// Write the report to a file as JSON; "-" is standard output [default: text on standard output].
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// An [`Output`], opened before the work begins, so that no work is in vain.
pub enum Sheet {
    /// Text on standard output.
    Text,
    /// JSON on standard output.
    Json,
    /// JSON in a file.
    File(WholeFile),
}

#[derive(Serialize)]
struct Document<'a, T> {
    schema: u32,
    mode: &'a str,
    #[serde(flatten)]
    report: &'a T,
}

impl Output {
    /// Opens it for a command that reads the `inputs`, which it must not overwrite.
    ///
    /// # Errors
    /// As [`create`].
    pub fn open(&self, inputs: &[PathBuf]) -> anyhow::Result<Sheet> {
        Ok(match &self.json {
            None => Sheet::Text,
            Some(path) if path == Path::new("-") => Sheet::Json,
            Some(path) => Sheet::File(create(path, inputs)?),
        })
    }
}

impl Sheet {
    /// Writes the report of a command's `mode`, then fails if there is a fault.
    ///
    /// # Errors
    /// The fault, or that the report cannot be written.
    pub fn finish<T: Serialize + Display>(
        self,
        mode: &str,
        report: &T,
        fault: Option<String>,
    ) -> anyhow::Result<()> {
        let document = Document { schema: 1, mode, report };
        match self {
            Self::Text => print(&format!("{report}\n"))?,
            Self::Json => print_json(&document)?,
            Self::File(mut file) => serde_json::to_writer(&mut file, &document)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(file))
                .and_then(|()| file.finish())
                .context("Cannot write the report. Is the disk full?")?,
        }
        match fault {
            None => Ok(()),
            Some(fault) => bail!(fault),
        }
    }
}

/// Prints a document as a line of JSON.
///
/// # Errors
/// As [`print`].
pub fn print_json(document: &impl Serialize) -> anyhow::Result<()> {
    print(&(serde_json::to_string(document)? + "\n"))
}

/// Prints text on standard output; a reader that has seen enough, such as `| head`, is no fault.
///
/// # Errors
/// If standard output cannot be written.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    unless_seen_enough(written, ()).context("Cannot write to standard output. Is the disk full?")
}

/// Says what failed, if anything did, and gives the program's exit status.
pub fn end(program: &str, result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A closed standard error changes nothing about the failure.
            let _ = writeln!(io::stderr(), "{program}: {error:#}");
            let not_valid = matches!(error.downcast_ref(), Some(Error::Scenario { .. }));
            match not_valid || error.is::<Misuse>() {
                true => ExitCode::from(WRONG_USAGE),
                false => ExitCode::FAILURE,
            }
        }
    }
}

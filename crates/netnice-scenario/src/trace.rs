// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Rate traces: when packets may leave a link.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::whole::text_from;
use crate::Error;

/// A day; longer traces are typing errors, as longer experiments are.
const LONGEST_MS: u64 = 86_400_000;

/// A rate trace in Mahimahi's format: each line is a millisecond at which 1500 bytes may leave.
///
/// After its last line it repeats; that line is also its length.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Trace {
    file: String,
    opportunities_ms: Arc<[u64]>,
}

impl From<String> for Trace {
    fn from(file: String) -> Self {
        Self { file, opportunities_ms: Arc::default() }
    }
}

impl From<Trace> for String {
    fn from(trace: Trace) -> Self {
        trace.file
    }
}

impl Trace {
    /// The file as the scenario names it, relative to the scenario's own.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// When 1500 bytes may leave, in milliseconds: at least one time, not decreasing, the last one
    /// above 0.
    pub fn opportunities_ms(&self) -> &[u64] {
        &self.opportunities_ms
    }

    /// From now on the file is named by its absolute path; `directory` is the scenario's.
    pub(crate) fn locate(&mut self, directory: &Path) {
        let path = directory.join(&self.file);
        let path = std::path::absolute(&path).unwrap_or(path);
        // A name that is not UTF-8 stays as the scenario has it.
        if let Ok(file) = path.into_os_string().into_string() {
            self.file = file;
        }
    }

    /// Reads the file; `directory` is the scenario's.
    pub(crate) fn load(&mut self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(&self.file);
        let text = File::open(&path)
            .and_then(text_from)
            .map_err(|reason| Error::Trace { path: path.clone(), reason })?;
        self.opportunities_ms = opportunities(&text).map_err(|(line, what)| Error::Scenario {
            place: format!("{}, line {line}", path.display()),
            what,
        })?;
        Ok(())
    }
}

/// The times in a trace; or the line that is wrong, and what is wrong with it.
fn opportunities(text: &str) -> Result<Arc<[u64]>, (usize, String)> {
    let mut times: Vec<u64> = Vec::new();
    for (line, word) in (1..).zip(text.lines()) {
        let time: u64 = word.trim().parse().map_err(|_| {
            let what = format!("{word:?} is not a whole number of milliseconds; correct the line.");
            (line, what)
        })?;
        if let Some(&last) = times.last().filter(|&&last| last > time) {
            let what = format!("{time} follows {last}; times in a trace must not decrease.");
            return Err((line, what));
        }
        if time > LONGEST_MS {
            let what = format!(
                "{time} is more than a day, which is {LONGEST_MS} milliseconds; correct the line."
            );
            return Err((line, what));
        }
        times.push(time);
    }
    match times.last() {
        None => Err((1, "the trace is empty; it needs at least one line.".into())),
        Some(0) => Err((
            times.len(),
            "the last time is the length of the trace, so it must be above 0.".into(),
        )),
        Some(_) => Ok(times.into()),
    }
}

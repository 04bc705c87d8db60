// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Reading scenario files. An unknown key or value is an error that names the line and the nearest
//! known one, so that a typing error never silently changes an experiment.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_path_to_error::Segment;

use crate::json::Json;
use crate::whole::text_from;
use crate::{set, Error, Scenario, Trace};

/// The name of standard input among files.
const STDIN: &str = "-";

impl Scenario {
    /// Reads and checks the scenario in a file; "-" is standard input.
    ///
    /// # Errors
    /// [`Error::Read`] and [`Error::Trace`] if the file or a trace cannot be read,
    /// [`Error::Scenario`] if it is not valid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        Self::read_with(path, &[])
    }

    /// As [`Scenario::read`], with some keys set anew: each `section.key=value`, the value as in
    /// TOML, words without quotes. Of an array such as `[[background]]`, `background[2].flows=4`
    /// sets a key of the second element, `background.flows=4` that of all.
    ///
    /// # Errors
    /// As [`Scenario::read`], and [`Error::Scenario`] for a setting that has no value or no place.
    pub fn read_with(path: &Path, settings: &[String]) -> Result<Self, Error> {
        Text::read(path)?.with(settings)
    }

    /// Reads and checks the scenarios of a JSON array in a file; "-" is standard input. Errors call
    /// each by its name.
    ///
    /// # Errors
    /// As [`Scenario::read`].
    pub fn read_all(path: &Path) -> Result<Vec<Self>, Error> {
        let Text { name, directory, text } = Text::read(path)?;
        let items: Vec<Json> = serde_json::from_str(&text).map_err(|e| not_json(&e, &name))?;
        items
            .into_iter()
            .map(|Json(item)| {
                let item = item.unwrap_or(toml::Table::new().into());
                let named = item.get("name").and_then(toml::Value::as_str);
                let name = named.unwrap_or(&name).to_owned();
                Self::build(item, &name)?.checked(&directory, &name)
            })
            .collect()
    }

    /// Parses and checks a scenario; `name` is its file, to which traces are relative and which
    /// errors name. What begins with "{", or space and that, is JSON, with the same keys; there null
    /// is no value.
    ///
    /// # Errors
    /// [`Error::Scenario`] if it is neither TOML nor JSON, has unknown keys, or values out of range;
    /// [`Error::Trace`] if a trace cannot be read.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        let (name, directory, text) = (name.into(), directory(name.as_ref()), text.into());
        Text { name, directory, text }.with(&[])
    }

    /// The scenario that a table holds, of which errors can say the key but no line.
    fn build(table: toml::Value, name: &str) -> Result<Self, Error> {
        let mut path = serde_path_to_error::Track::new();
        let built = Self::deserialize(serde_path_to_error::Deserializer::new(table, &mut path));
        built.map_err(|e| {
            let key = key(&path.path());
            let place = if key.is_empty() { name.into() } else { format!("{name}, `{key}`") };
            // the line after the first one repeats the key
            let message = e.to_string();
            Error::Scenario { place, what: sentence(message.lines().next().unwrap_or_default()) }
        })
    }

    /// The same scenario, valid in any directory: traces have absolute paths. `path` is its file.
    #[must_use]
    pub fn located(mut self, path: &Path) -> Self {
        let directory = directory(path);
        self.traces().for_each(|trace| trace.locate(&directory));
        self
    }

    /// The files of its traces; `path` is its own.
    pub fn trace_files(&self, path: &Path) -> Vec<PathBuf> {
        let directory = directory(path);
        let network = self.network();
        let traces = network.iter().filter_map(|link| link.trace.as_ref());
        traces.map(|trace| directory.join(trace.file())).collect()
    }

    fn traces(&mut self) -> impl Iterator<Item = &mut Trace> {
        let links = self.link.iter_mut().filter_map(|link| link.trace.as_mut());
        self.bottleneck.iter_mut().filter_map(|b| b.trace.as_mut()).chain(links)
    }

    fn checked(mut self, directory: &Path, name: &str) -> Result<Self, Error> {
        for trace in self.traces() {
            trace.load(directory)?;
        }
        match self.fault() {
            None => Ok(self),
            Some(what) => Err(Error::Scenario { place: name.into(), what }),
        }
    }
}

/// What a scenario file says, read once: with other settings it is another scenario.
#[derive(Debug, Clone)]
pub struct Text {
    /// What to call the file in errors.
    name: String,
    /// Where its traces are.
    directory: PathBuf,
    text: String,
}

impl Text {
    /// Reads a file; "-" is standard input.
    ///
    /// # Errors
    /// [`Error::Read`] if it cannot be read.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let (name, text) = match path == Path::new(STDIN) {
            true => ("standard input".into(), text_from(io::stdin().lock())),
            false => (path.display().to_string(), File::open(path).and_then(text_from)),
        };
        let text = text.map_err(|reason| Error::Read { path: path.into(), reason })?;
        Ok(Self { name, directory: directory(path), text })
    }

    /// The scenario with these settings, as [`Scenario::read_with`] has them, checked.
    ///
    /// # Errors
    /// As [`Scenario::read_with`].
    pub fn with(&self, settings: &[String]) -> Result<Scenario, Error> {
        let Self { name, directory, text } = self;
        let toml = |e| not_toml(&e, text, name);
        if settings.is_empty() && !is_json(text) {
            return toml::from_str::<Scenario>(text).map_err(toml)?.checked(directory, name);
        }
        let mut table = match is_json(text) {
            true => json_table(text).map_err(|e| not_json(&e, name))?,
            false => text.parse().map_err(toml)?,
        };
        for setting in settings {
            set::apply(&mut table, setting)
                .map_err(|what| Error::Scenario { place: format!("--set {setting}"), what })?;
        }
        Scenario::build(toml::Value::Table(table), name)?.checked(directory, name)
    }
}

/// Where the traces of the scenario in a file are.
fn directory(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).into()
}

/// Nothing in TOML begins like that.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn json_table(text: &str) -> serde_json::Result<toml::Table> {
    match serde_json::from_str(text)? {
        Json(Some(toml::Value::Table(table))) => Ok(table),
        _ => Ok(toml::Table::new()), // what begins with "{" is a table
    }
}

/// What the parser complains about, with the line where it is known.
fn not_toml(e: &toml::de::Error, text: &str, name: &str) -> Error {
    let place = match e.span().filter(|span| span.start <= text.len()) {
        Some(span) => format!("{name}, line {}", line_of(text, span.start)),
        None => name.into(),
    };
    Error::Scenario { place, what: sentence(e.message()) }
}

fn not_json(e: &serde_json::Error, name: &str) -> Error {
    Error::Scenario { place: name.into(), what: format!("this is not valid JSON: {e}.") }
}

/// A key as users write it, as in `background[2].flows`.
fn key(path: &serde_path_to_error::Path) -> String {
    let mut key = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => key += &format!("[{}]", index + 1),
            Segment::Map { key: name } | Segment::Enum { variant: name } => {
                key += if key.is_empty() { "" } else { "." };
                key += name;
            }
            Segment::Unknown => {}
        }
    }
    key
}

/// Line (from 1) of a byte offset.
fn line_of(text: &str, offset: usize) -> usize {
    1 + text[..offset].matches('\n').count()
}

/// Makes a sentence of the parser's message, naming the nearest known key or value.
///
/// The parser quotes the unknown name first and then all known ones, each in backquotes.
fn sentence(message: &str) -> String {
    let kind = [("unknown field", "key"), ("unknown variant", "value"), ("missing field", "")]
        .into_iter()
        .find(|(start, _)| message.starts_with(start));
    let mut names = message.split('`').skip(1).step_by(2);
    match (kind, names.next()) {
        (Some(("missing field", _)), Some(missing)) => {
            format!("the key `{missing}` is missing; add it.")
        }
        (Some((_, noun)), Some(unknown)) => {
            let known: Vec<&str> = names.collect();
            let nearest = known
                .iter()
                .min_by_key(|name| strsim::damerau_levenshtein(name, unknown))
                .map(|name| format!(" The nearest known {noun} is `{name}`."))
                .unwrap_or_default();
            format!("unknown {noun} `{unknown}`.{nearest} All known: {}.", known.join(", "))
        }
        _ => wrong_type(message)
            .unwrap_or_else(|| format!("{}.", message.trim_end().replace('\n', "; "))),
    }
}

/// Says in words of scenario files which type the parser found and which it expected.
fn wrong_type(message: &str) -> Option<String> {
    let said = message.strip_prefix("invalid type: ").or(message.strip_prefix("invalid value: "))?;
    let (found, expected) = said.trim_end().split_once(", expected ")?;
    let wanted = match expected {
        "f64" => "a number",
        "u32" | "u64" => "a whole number, 0 or more",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "a table",
        _ if expected.starts_with("struct ") => "a section with keys",
        other => other,
    };
    Some(format!("this is {found}; it must be {wanted}."))
}

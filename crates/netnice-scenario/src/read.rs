// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Reading scenario files. An unknown key or value is an error that names the line and the nearest
//! known one, so that a typing error never silently changes an experiment.

use std::io;
use std::path::Path;

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
        let (name, text) = match path == Path::new(STDIN) {
            true => ("standard input".into(), io::read_to_string(io::stdin())),
            false => (path.display().to_string(), std::fs::read_to_string(path)),
        };
        let text = text.map_err(|reason| Error::Read { path: path.into(), reason })?;
        if settings.is_empty() {
            return Self::parse(&text, &name);
        }
        let mut table = text.parse().map_err(|e| parser_error(&e, &text, &name))?;
        for setting in settings {
            set::apply(&mut table, setting)
                .map_err(|what| Error::Scenario { place: format!("--set {setting}"), what })?;
        }
        table.try_into::<Self>().map_err(|e| parser_error(&e, "", &name))?.checked(&name)
    }

    /// Parses and checks a scenario; `name` is its file, to which traces are relative and which
    /// errors name.
    ///
    /// # Errors
    /// [`Error::Scenario`] if it is not TOML, has unknown keys, or values out of range;
    /// [`Error::Trace`] if a trace cannot be read.
    pub fn parse(text: &str, name: &str) -> Result<Self, Error> {
        toml::from_str::<Self>(text).map_err(|e| parser_error(&e, text, name))?.checked(name)
    }

    /// The same scenario, valid in any directory: traces have absolute paths. `path` is its file.
    #[must_use]
    pub fn located(mut self, path: &Path) -> Self {
        let directory = directory(path);
        self.traces().for_each(|trace| trace.locate(directory));
        self
    }

    fn traces(&mut self) -> impl Iterator<Item = &mut Trace> {
        let links = self.link.iter_mut().filter_map(|link| link.trace.as_mut());
        self.bottleneck.iter_mut().filter_map(|b| b.trace.as_mut()).chain(links)
    }

    fn checked(mut self, name: &str) -> Result<Self, Error> {
        for trace in self.traces() {
            trace.load(directory(name))?;
        }
        match self.fault() {
            None => Ok(self),
            Some(what) => Err(Error::Scenario { place: name.into(), what }),
        }
    }
}

/// Where a scenario's traces are.
fn directory<P: AsRef<Path> + ?Sized>(path: &P) -> &Path {
    path.as_ref().parent().unwrap_or(Path::new(""))
}

/// What the parser complains about, with its place in `text` where it is known.
fn parser_error(e: &toml::de::Error, text: &str, name: &str) -> Error {
    let place = match e.span().filter(|span| span.start <= text.len() && !text.is_empty()) {
        Some(span) => format!("{name}, line {}", line_of(text, span.start)),
        None => name.into(),
    };
    Error::Scenario { place, what: sentence(e.message()) }
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
        _ => format!("{}.", message.trim_end().replace('\n', "; ")),
    }
}

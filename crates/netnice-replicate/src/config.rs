// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A job as a TOML file, for a service.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::str::FromStr;

use netnice_manager::choice::Choice;
use netnice_manager::group;
use serde::Deserialize;
use toml::Spanned;

use crate::error::{at, io, wrong};
use crate::job::{self, Destination, Job};
use crate::place::Place;
use crate::schedule::MOST;
use crate::{Error, Result};

/// The file's keys; docs/replicate.md explains them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<Spanned<String>>,
    source: Spanned<String>,
    to: Option<Spanned<String>>,
    via: Option<Spanned<String>>,
    #[serde(default)]
    watch: bool,
    #[serde(default)]
    delete: bool,
    #[serde(default)]
    verify: bool,
    #[serde(default)]
    or_plain: bool,
    retries: Option<u32>,
    most: Option<Spanned<u32>>,
    /// Seconds.
    compare_every: Option<Spanned<i64>>,
    #[serde(default)]
    rsync: Vec<String>,
    class: Option<Spanned<String>>,
    algorithm: Option<Spanned<String>>,
    #[serde(default)]
    set: Vec<Spanned<String>>,
    dscp: Option<Spanned<String>>,
    #[serde(default)]
    no_hold: bool,
    /// Of destinations by name, also those that `to` lists.
    #[serde(default)]
    share: BTreeMap<String, Spanned<f64>>,
    #[serde(default, rename = "destination")]
    destinations: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    place: Spanned<String>,
    via: Option<Spanned<String>>,
    share: Option<Spanned<f64>>,
}

/// Reads the job in `file`.
///
/// # Errors
/// With the file's name and the number of the line that is wrong.
pub fn read(file: &Path) -> Result<Job> {
    let text = fs::read_to_string(file).map_err(io(format!("cannot read {}", file.display())))?;
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    parse(&text, &stem, file.parent().unwrap_or(Path::new("")))
        .map_err(at(file.display().to_string()))
}

/// A file's text, which knows on which line a value of it stands.
struct Text<'a>(&'a str);

impl Text<'_> {
    /// The line with the byte at `offset`.
    fn line(&self, offset: usize) -> String {
        let before = &self.0.as_bytes()[..offset.min(self.0.len())];
        format!("line {}", 1 + before.iter().filter(|b| **b == b'\n').count())
    }

    /// What was made of a value; an error gets the value's line.
    fn of<T, M, E>(&self, value: &Spanned<T>, made: std::result::Result<M, E>) -> Result<M>
    where
        E: Into<Error>,
    {
        made.map_err(at(self.line(value.span().start)))
    }

    /// A value that is one of several words.
    fn word<W: FromStr<Err: Display>>(&self, value: &Spanned<String>) -> Result<W> {
        self.of(value, value.as_ref().parse().map_err(|e| wrong!("{e}")))
    }
}

/// Parses a job whose name is `stem` unless it has one; paths of other files are from `dir`.
fn parse(text: &str, stem: &str, dir: &Path) -> Result<Job> {
    let text = Text(text);
    let file: File = toml::from_str(text.0)
        .map_err(|e| at(text.line(e.span().map_or(0, |s| s.start)))(wrong!("{}", e.message())))?;
    let mut destinations = destinations(&file, &text, dir)?;
    let choice = choice(&file, &text)?;
    give_shares(&mut destinations, &file, &text, &choice)?;
    let most = match &file.most {
        Some(most) if !(1..=64).contains(most.as_ref()) => {
            return text.of(most, Err(wrong!("most is from 1 to 64")));
        }
        most => most.as_ref().map_or(MOST, |m| *m.as_ref()),
    };
    let compare_every = match &file.compare_every {
        Some(seconds) => text.of(seconds, job::compare_every(*seconds.as_ref()))?,
        None => job::COMPARE_EVERY,
    };
    let job = Job {
        name: file.name.as_ref().map_or(stem, |n| n.as_ref()).into(),
        source: file.source.as_ref().clone(),
        destinations,
        watch: file.watch,
        delete: file.delete,
        verify: file.verify,
        retries: file.retries.unwrap_or(job::RETRIES),
        most,
        rsync: file.rsync,
        choice,
        or_plain: file.or_plain,
        compare_every,
        left_out: None,
    };
    // what is left to be wrong concerns the job as a whole: the source's line, or that of a place
    job.check().map_err(|e| {
        let message = e.to_string();
        let named = file.destinations.iter().rev().find(|d| message.contains(d.place.as_ref()));
        let span = match (named, &file.name) {
            (Some(entry), _) => entry.place.span(),
            (None, Some(name)) if message.contains("name of a job") => name.span(),
            (None, _) => file.source.span(),
        };
        at(text.line(span.start))(e)
    })?;
    Ok(job)
}

/// The destinations of the file and of the list that it names, each with its feeder.
fn destinations(file: &File, text: &Text, dir: &Path) -> Result<Vec<Destination>> {
    let mut listed = Vec::new();
    for entry in &file.destinations {
        let place: Place = text.of(&entry.place, entry.place.as_ref().parse())?;
        listed.push(Destination { place, feeder: None, share: None });
    }
    for (i, entry) in file.destinations.iter().enumerate() {
        if let Some(via) = &entry.via {
            listed[i].feeder = Some(text.of(via, job::called(&listed, via.as_ref()))?);
        }
    }
    if let Some(to) = &file.to {
        let more = job::read_list(&dir.join(to.as_ref())).and_then(job::tree);
        let first = listed.len();
        listed.extend(
            text.of(to, more)?
                .into_iter()
                .map(|d| Destination { feeder: d.feeder.map(|f| f + first), ..d }),
        );
    }
    if let Some(via) = &file.via {
        text.of(via, job::feed_all(&mut listed, via.as_ref()))?;
    }
    Ok(listed)
}

/// The algorithm with its parameters; the first value that makes no sense has the error.
fn choice(file: &File, text: &Text) -> Result<Choice> {
    let mut choice = Choice { no_hold: file.no_hold, ..Choice::default() };
    choice.class = file.class.as_ref().map(|class| text.word(class)).transpose()?;
    if let Some(algorithm) = &file.algorithm {
        if file.class.is_some() {
            let error = wrong!("a class has its algorithm: name one of the two");
            return text.of(algorithm, Err(error));
        }
        choice.algorithm = Some(algorithm.as_ref().clone());
        text.of(algorithm, choice.config())?;
    }
    for set in &file.set {
        choice.set.push(set.as_ref().clone());
        text.of(set, choice.config())?;
    }
    choice.dscp = file.dscp.as_ref().map(|dscp| text.word(dscp)).transpose()?;
    Ok(choice)
}

/// Gives destinations the shares that stand beside them, and by their names.
fn give_shares(
    listed: &mut [Destination],
    file: &File,
    text: &Text,
    choice: &Choice,
) -> Result<()> {
    for (entry, destination) in file.destinations.iter().zip(listed.iter_mut()) {
        let Some(share) = &entry.share else { continue };
        text.of(share, group::with_share(choice, *share.as_ref()))?;
        destination.share = Some(*share.as_ref());
    }
    for (name, share) in &file.share {
        text.of(share, group::with_share(choice, *share.as_ref()))?;
        text.of(share, job::give(listed, name, *share.as_ref()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Job> {
        super::parse(text, "www", Path::new("/nonexistent"))
    }

    const WHOLE: &str = r#"
        source = "/home/www/"
        watch = true
        delete = true
        rsync = ["--exclude=*.tmp"]
        set = ["threshold=0.1"]

        [[destination]]
        place = "hub:/srv/www"

        [[destination]]
        place = "rsync://leaf/www"
        via = "hub"
        share = 4

        [share]
        hub = 0.5
    "#;

    #[test]
    fn a_file_says_what_a_command_line_says() {
        let job = parse(WHOLE).unwrap();
        assert_eq!((job.name.as_str(), job.source.as_str()), ("www", "/home/www/"));
        assert_eq!((job.watch, job.delete, job.verify, job.retries), (true, true, false, 5));
        assert_eq!(job.rsync, ["--exclude=*.tmp"]);
        assert_eq!(job.destinations[1].feeder, Some(0));
        assert_eq!((job.share(0), job.share(1)), (Some(0.5), Some(4.0)));
    }

    #[test]
    fn errors_name_the_line() {
        for (wrong, instead, line) in [
            ("watch = true", "watch = 1", 3),
            ("watch = true", "wacth = true", 3),
            ("watch = true", "most = 65", 3),
            ("watch = true", "compare_every = 0", 3),
            ("watch = true", "compare_every = 9223372036854775807", 3),
            ("watch = true", "retries = 4294967296", 3),
            ("watch = true", "to = \"missing\"", 3),
            ("watch = true", "dscp = \"ef\"", 3),
            ("watch = true", "class = \"best\"", 3),
            ("watch = true", "class = \"fair\"\nalgorithm = \"nice\"", 4),
            ("watch = true", "name = \"a/b\"", 3),
            ("/home/www/", "there:/home/www/", 2),
            ("threshold=0.1", "treshold=0.1", 6),
            ("hub:/srv/www", "-e", 9),
            ("via = \"hub\"", "via = \"hug\"", 13),
            // named twice: the second; where it has a share, that
            ("share = 4", "[[destination]]\nplace = \"rsync://leaf/www\"", 15),
            ("via = \"hub\"", "[[destination]]\nplace = \"hub:/srv/www\"", 18),
            ("share = 4", "share = 0", 14),
            ("share = 4", "share = nan", 14),
            ("share = 4", "share = \"4\"", 14),
            ("hub = 0.5", "hub = -0.5", 17),
            ("hub = 0.5", "hug = 0.5", 17),
            ("hub = 0.5", "leaf = 4", 17), // it has two then
            ("set = [\"threshold=0.1\"]", "algorithm = \"imtcp\"", 14),
            ("[[destination]]", "[[destination", 8),
        ] {
            let text = WHOLE.replacen(wrong, instead, 1);
            let error = format!("{:#}", parse(&text).err().expect(instead));
            assert!(error.starts_with(&format!("line {line}: ")), "{instead}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_with_a_line_or_is_a_job_that_makes_sense(
            cut in 0usize..WHOLE.len(), put in "[\\PC\n]{0,20}"
        ) {
            let text = format!("{}{put}{}", &WHOLE[..cut], &WHOLE[cut..]);
            match parse(&text) {
                Ok(job) => prop_assert!(job.check().is_ok()),
                Err(error) => {
                    let message = format!("{error:#}");
                    prop_assert!(message.starts_with("line "), "{}", message);
                }
            }
        }
    }
}

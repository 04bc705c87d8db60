// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is to be copied where, and which copy feeds which.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use netnice_bpf::GROUP_NAME;
use netnice_core::Config;
use netnice_manager::choice::Choice;
use netnice_manager::group::{self, Membership, Scope};

use crate::error::{at, ensure, io, wrong};
use crate::place::{self, named, Listed, Place};
use crate::{paths, Result};

/// One source and its copies.
pub struct Job {
    pub name: String,
    /// A path of this machine, in rsync's sense: `dir/` means its contents.
    pub source: String,
    pub destinations: Vec<Destination>,
    pub watch: bool,
    pub delete: bool,
    pub verify: bool,
    /// Attempts after the first; under `watch` there is no end to them.
    pub retries: u32,
    /// Bound of the transfers under way at a time.
    pub most: u32,
    /// Further options for rsync.
    pub rsync: Vec<String>,
    pub choice: Choice,
    /// Where connections cannot be put into the background, copy all the same.
    pub or_plain: bool,
    /// Below `watch` everything is compared at least this often, in seconds.
    pub compare_every: u32,
    /// A path from the source that is neither watched nor copied.
    pub left_out: Option<String>,
}

/// Attempts after the first, unless told otherwise.
pub const RETRIES: u32 = 5;
/// How often everything is compared unless told otherwise, in seconds.
pub const COMPARE_EVERY: u32 = 3600;
/// A year: who means more means never, and never is too long for what a watch may miss.
const COMPARE_MOST: u32 = 365 * 24 * 3600;

/// So many seconds between two comparisons of everything.
///
/// # Errors
/// When that is less than one, or more than a year.
pub fn compare_every(seconds: i64) -> Result<u32> {
    let fits = u32::try_from(seconds).ok().filter(|s| (1..=COMPARE_MOST).contains(s));
    fits.ok_or_else(|| {
        wrong!("everything can be compared every 1 to {COMPARE_MOST} seconds, not every {seconds}")
    })
}

/// A copy, and the number of the copy that feeds it; None: this machine does.
#[derive(Debug, PartialEq)]
pub struct Destination {
    pub place: Place,
    pub feeder: Option<usize>,
    /// Parts of what its sender's transfers find, in a group of them; None: none were given.
    pub share: Option<f64>,
}

/// What the transfers of one sender have in common is its own uplink, wherever they go.
pub const SCOPE: Scope = Scope::All;

impl Job {
    /// Whether it makes sense as a whole.
    ///
    /// # Errors
    /// With what contradicts what.
    pub fn check(&self) -> Result<()> {
        check_name(&self.name)?;
        let source: Place = self.source.parse()?;
        ensure!(
            source.is_local(),
            "{source}: the source must be on this machine, for it is the sender that yields; \
             run netnice replicate there"
        );
        ensure!(
            !self.destinations.is_empty(),
            "no destination; name some, or a file with one on each line: --to FILE"
        );
        for (i, d) in self.destinations.iter().enumerate() {
            self.check_apart(&d.place)?;
            let twin = self.destinations[..i].iter().find(|o| o.place.leads_to(&d.place));
            if let Some(twin) = twin.map(|t| &t.place) {
                ensure!(*twin != d.place, "{twin} is named twice");
                return Err(wrong!("{twin} and {} are the same destination: name one", d.place));
            }
            let Some(feeder) = d.feeder.map(|f| &self.destinations[f].place) else { continue };
            ensure!(
                feeder.login().is_some(),
                "{feeder} cannot feed {}: netnice starts the transfer there by ssh, so it must be \
                 written host:path",
                d.place
            );
            ensure!(!d.place.is_local(), "{} is on this machine and needs no feeder", d.place);
        }
        for i in 0..self.destinations.len() {
            self.feeders(i)?;
        }
        self.choice.config()?;
        for d in &self.destinations {
            let Some(share) = d.share else { continue };
            ensure!(
                !d.place.is_local(),
                "{} is on this machine: its copy takes no bandwidth, and has no share",
                d.place
            );
            self.config_of(share).map_err(at(format!("the share of {}", d.place)))?;
        }
        Ok(())
    }

    /// Whether all that this machine sends goes to one host.
    pub fn has_one_path(&self) -> bool {
        let own = self.destinations.iter().filter(|d| d.feeder.is_none());
        own.filter_map(|d| d.place.host()).collect::<BTreeSet<_>>().len() == 1
    }

    /// Whether a destination is outside the source: its copy would be copied again, for ever. With
    /// `--delete` the source is outside the copy, too: it would be removed as what it lacks itself.
    fn check_apart(&self, place: &Place) -> Result<()> {
        let Some(path) = place.path().filter(|_| place.is_local()) else { return Ok(()) };
        let (source, path) = (Path::new(&self.source), PathBuf::from(path));
        let copy = named(&self.source).map_or(path.clone(), |name| path.join(name));
        for copy in [&path, &copy] {
            ensure!(
                paths::within(source, copy).is_none(),
                "{} is inside the source {}, and would be copied into itself; choose a \
                 destination outside",
                copy.display(),
                self.source
            );
        }
        let removes = |option: &String| {
            option == "--del" || option.starts_with("--delete") && option != "--delete-missing-args"
        };
        let deletes = self.delete || self.rsync.iter().any(removes);
        ensure!(
            !deletes || paths::within(&copy, source).is_none(),
            "the source {} is inside {}, and --delete would remove it from there; choose a \
             destination outside, or leave --delete out",
            self.source,
            copy.display()
        );
        Ok(())
    }

    /// Leaves out of what is watched and copied that which is in the source of the directory
    /// `state`, where the state of jobs is kept: it changes with every copy.
    ///
    /// # Errors
    /// When the whole source is that directory, or rsync cannot be told its name.
    pub fn leave_out(&mut self, state: &Path) -> Result<()> {
        let Some(inside) = paths::within(Path::new(&self.source), state) else { return Ok(()) };
        let shown = state.display();
        let inside = inside.to_str().ok_or_else(|| {
            wrong!("the name of {shown}, where the state is kept, is not UTF-8; use: --state DIR")
        })?;
        ensure!(
            !inside.is_empty(),
            "the source {} is where the state of jobs is kept; keep it elsewhere: --state DIR",
            self.source
        );
        self.left_out = Some(inside.into());
        Ok(())
    }

    /// How long a complete comparison stays good.
    pub fn compare_every(&self) -> Duration {
        Duration::from_secs(self.compare_every.into())
    }

    /// Whether there is something to copy.
    ///
    /// # Errors
    /// When the source cannot be found.
    pub fn require_source(&self) -> Result<()> {
        let found = fs::metadata(&self.source);
        found.map(drop).map_err(io(format!("cannot find the source {}", self.source)))
    }

    /// The algorithm with its parameters, for connections with that share.
    ///
    /// # Errors
    /// When the algorithm has no groups, or the share is out of range.
    pub fn config_of(&self, share: f64) -> Result<Config> {
        Ok(group::with_share(&self.choice, share)?)
    }

    /// The share with which the transfer to destination `i` counts among those of its sender, this
    /// machine or a feeder; None: none of them was given one, and each is on its own.
    pub fn share(&self, i: usize) -> Option<f64> {
        let feeder = self.destinations[i].feeder;
        let given = self.destinations.iter().any(|d| d.feeder == feeder && d.share.is_some());
        given.then(|| self.destinations[i].share.unwrap_or(1.0))
    }

    /// The group of its transfers, at each sender: named as the job, as far as that fits.
    pub fn group(&self) -> Membership {
        let name = match self.name.parse::<group::Name>() {
            Ok(group::Name(name)) => name,
            Err(_) => {
                let plain: String =
                    self.name.replace('@', "_").chars().take(GROUP_NAME - 9).collect();
                format!("{plain}-{:08x}", fnv(&self.name) as u32)
            }
        };
        group::in_scope(&name, SCOPE)
    }

    /// The copies between this machine and destination `i`, the one that this machine feeds first.
    ///
    /// # Errors
    /// When copies feed each other in a circle.
    pub fn feeders(&self, i: usize) -> Result<Vec<usize>> {
        let mut chain = Vec::new();
        let mut at = self.destinations[i].feeder;
        while let Some(feeder) = at {
            ensure!(
                feeder != i && !chain.contains(&feeder),
                "{} feeds itself through others",
                self.destinations[i].place
            );
            chain.push(feeder);
            at = self.destinations[feeder].feeder;
        }
        chain.reverse();
        Ok(chain)
    }

    /// The path that the transfer to destination `i` reads, on the host of its feeder.
    pub fn source_of(&self, i: usize) -> Result<String> {
        let mut source = self.source.clone();
        for feeder in self.feeders(i)? {
            let place = &self.destinations[feeder].place;
            source = place.copy_of(&source).ok_or_else(|| wrong!("{place} cannot feed others"))?;
        }
        Ok(source)
    }
}

/// A job's name is that of its files.
fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    ensure!(
        !name.is_empty() && name.len() <= 100 && !name.starts_with('.') && name.chars().all(fits),
        "{name:?} cannot be the name of a job; use up to 100 of a-z A-Z 0-9 - _ . @"
    );
    Ok(())
}

/// A name that is the same whenever the same source is given, from any directory and whatever its
/// links lead to; sources that differ have names that do.
///
/// # Errors
/// When there is no current directory any more.
pub fn default_name(source: &str) -> Result<String> {
    let path = paths::written(Path::new(source)).map_err(io(format!("cannot find {source}")))?;
    let whole = path.as_os_str().as_bytes();
    let tail: String = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .take(40)
        .collect();
    Ok(format!("{}-{:016x}", if tail.is_empty() { "root" } else { &tail }, fnv(whole)))
}

/// FNV-1a: a hash that stays the same between builds.
pub fn fnv(bytes: impl AsRef<[u8]>) -> u64 {
    bytes
        .as_ref()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3))
}

/// Reads a list of destinations from a file.
///
/// # Errors
/// With the file's name and the line.
pub fn read_list(file: &Path) -> Result<Vec<Listed>> {
    let text = fs::read_to_string(file).map_err(io(format!("cannot read {}", file.display())))?;
    place::list(&text).map_err(at(file.display().to_string()))
}

/// The tree that indentation describes: a place is fed by the last one above with less.
///
/// # Errors
/// When the first is indented: there is nothing to feed it.
pub fn tree(listed: Vec<Listed>) -> Result<Vec<Destination>> {
    let mut above: Vec<(usize, usize)> = Vec::new(); // indentation and number of possible feeders
    let mut destinations = Vec::new();
    for (line, indent, place) in listed {
        above.retain(|(i, _)| *i < indent);
        let feeder = above.last().map(|(_, number)| *number);
        ensure!(
            indent == 0 || feeder.is_some(),
            "line {line}: {place} is indented, but no line above can feed it"
        );
        above.push((indent, destinations.len()));
        destinations.push(Destination { place, feeder, share: None });
    }
    Ok(destinations)
}

/// Lets the one destination called `host` feed all those that have no feeder.
///
/// # Errors
/// When none or several are called so.
pub fn feed_all(destinations: &mut [Destination], host: &str) -> Result<()> {
    let feeder = called(destinations, host)?;
    for (i, d) in destinations.iter_mut().enumerate() {
        if i != feeder && d.feeder.is_none() {
            d.feeder = Some(feeder);
        }
    }
    Ok(())
}

/// Gives the one destination called `name` a share, in parts; its host is a name for it too.
///
/// # Errors
/// When none or several are called so, or it has one.
pub fn give(destinations: &mut [Destination], name: &str, parts: f64) -> Result<()> {
    let is = |p: &Place| p.is_called(name) || p.host() == Some(name);
    let found = only(destinations, name, is)?.ok_or_else(|| {
        let some: Vec<_> = destinations.iter().take(5).map(|d| d.place.as_str()).collect();
        let more = destinations.len() - some.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        wrong!(
            "{name} is to have a share, but is no destination; there are {}{more}",
            some.join(", ")
        )
    })?;
    let destination = &mut destinations[found];
    ensure!(destination.share.is_none(), "{} has two shares", destination.place);
    destination.share = Some(parts);
    Ok(())
}

/// The one destination that `name` means as a feeder.
///
/// # Errors
/// When it means none or several.
pub fn called(destinations: &[Destination], name: &str) -> Result<usize> {
    only(destinations, name, |p| p.is_called(name))?
        .ok_or_else(|| wrong!("{name} is to feed others, but is no destination; add {name}:PATH"))
}

/// The only destination that `is` what `name` means, if there is one.
///
/// # Errors
/// When there are several.
fn only(
    destinations: &[Destination],
    name: &str,
    is: impl Fn(&Place) -> bool,
) -> Result<Option<usize>> {
    let mut found = (0..destinations.len()).filter(|i| is(&destinations[*i].place));
    let Some(first) = found.next() else { return Ok(None) };
    if let Some(second) = found.next() {
        ensure!(
            destinations[first].place != destinations[second].place,
            "{} is named twice",
            destinations[first].place
        );
        return Err(wrong!(
            "{name} may mean {} or {}; write the whole place",
            destinations[first].place,
            destinations[second].place
        ));
    }
    Ok(Some(first))
}

#[cfg(test)]
pub mod tests;

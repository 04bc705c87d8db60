// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is to be copied where, and which copy feeds which.

use std::fs;
use std::path::Path;

use netnice_bpf::GROUP_NAME;
use netnice_core::Config;
use netnice_manager::choice::Choice;
use netnice_manager::group::{self, Membership, Scope};

use crate::error::{at, ensure, io, wrong};
use crate::place::{self, Listed, Place};
use crate::Result;

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
            if let Some(twin) = self.destinations[..i].iter().find(|o| o.place == d.place) {
                return Err(wrong!("{} is named twice", twin.place));
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

/// A name that is the same whenever the same source is given, from any directory.
pub fn default_name(source: &str) -> Result<String> {
    let path = fs::canonicalize(source).map_err(io(format!("cannot find {source}")))?;
    let text = path.to_string_lossy();
    let tail: String = text
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .take(40)
        .collect();
    Ok(format!("{}-{:08x}", if tail.is_empty() { "root" } else { &tail }, fnv(&text) as u32))
}

/// FNV-1a: a hash that stays the same between builds.
pub fn fnv(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
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
pub mod tests {
    use super::*;
    use proptest::prelude::*;

    pub fn job(list: &str) -> Job {
        Job {
            name: "test".into(),
            source: "/home/www/".into(),
            destinations: tree(place::list(list).unwrap()).unwrap(),
            watch: false,
            delete: false,
            verify: false,
            retries: 5,
            most: 16,
            rsync: vec![],
            choice: Choice::default(),
        }
    }

    fn feeders(destinations: &[Destination]) -> Vec<Option<usize>> {
        destinations.iter().map(|d| d.feeder).collect()
    }

    #[test]
    fn indentation_says_who_feeds_whom() {
        let job = job("a:/1\n  b:/2\n    c:/3\n  d:/4\ne:/5\n");
        job.check().unwrap();
        assert_eq!(feeders(&job.destinations), [None, Some(0), Some(1), Some(0), None]);
        assert_eq!(job.feeders(2).unwrap(), [0, 1]);
        assert_eq!(job.source_of(0).unwrap(), "/home/www/");
        assert_eq!(job.source_of(2).unwrap(), "/2/");
    }

    #[test]
    fn a_first_line_that_is_indented_is_refused() {
        let error = tree(place::list("  a:/1\n").unwrap()).unwrap_err().to_string();
        assert!(error.starts_with("line 1: "), "{error}");
    }

    #[test]
    fn via_lets_one_host_feed_the_others() {
        let mut found = job("a:/1\nme@b:/2\nc:/3\n").destinations;
        feed_all(&mut found, "b").unwrap();
        assert_eq!(feeders(&found), [Some(1), None, Some(1)]);
        assert!(feed_all(&mut found, "x").unwrap_err().to_string().contains("no destination"));
        let mut twice = job("a:/1\na:/2\n").destinations;
        assert!(feed_all(&mut twice, "a").unwrap_err().to_string().contains("may mean"));
    }

    #[test]
    fn a_share_is_given_to_the_one_destination_of_that_name() {
        let list = "me@a:/1\nb:/x=y\nrsync://c:8730/m\nd:/1\nd:/2\n/local\n";
        let mut job = job(list);
        assert_eq!(job.share(0), None);
        for (name, parts) in [("a", 4.0), ("b:/x=y", 0.5), ("c", 2.0)] {
            give(&mut job.destinations, name, parts).unwrap();
        }
        job.check().unwrap();
        let shares: Vec<_> = (0..4).map(|i| job.share(i)).collect();
        assert_eq!(shares, [Some(4.0), Some(0.5), Some(2.0), Some(1.0)]);
        for (name, words) in [
            ("x", "there are me@a:/1, b:/x=y, rsync://c:8730/m, d:/1, d:/2 and 1 more"),
            ("d", "may mean d:/1 or d:/2"),
            ("me@a", "two shares"),
        ] {
            let error = give(&mut job.destinations, name, 1.0).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        give(&mut job.destinations, "/local", 3.0).unwrap();
        assert!(job.check().unwrap_err().to_string().contains("takes no bandwidth"));
    }

    #[test]
    fn shares_count_among_the_transfers_of_a_sender() {
        let mut job = job("hub:/1\n  a:/2\n  b:/3\nc:/4\n");
        give(&mut job.destinations, "b", 4.0).unwrap();
        let shares: Vec<_> = (0..4).map(|i| job.share(i)).collect();
        assert_eq!(shares, [None, Some(1.0), Some(4.0), None]);
    }

    #[test]
    fn a_share_is_a_positive_number_and_takes_an_algorithm_with_groups() {
        for (share, words) in [
            (0.0, "share=0 is out of range"),
            (-1.0, "share=-1 is out of range"),
            (f64::NAN, "share=NaN is out of range"),
            (f64::INFINITY, "out of range"),
            (1001.0, "out of range"),
        ] {
            let mut job = job("a:/1\nb:/2\n");
            give(&mut job.destinations, "b", share).unwrap();
            let error = format!("{:#}", job.check().unwrap_err());
            assert!(error.starts_with("the share of b:/2: ") && error.contains(words), "{error}");
        }
        let mut job = job("a:/1\n");
        give(&mut job.destinations, "a", 4.0).unwrap();
        job.choice.class = Some("fair".parse().unwrap());
        let error = format!("{:#}", job.check().unwrap_err());
        assert!(error.contains("the class fair (fairbat1)"), "{error}");
        assert!(error.contains("these have groups: ") && error.contains("nice"), "{error}");
    }

    #[test]
    fn a_group_is_named_as_its_job_as_far_as_that_fits() {
        let mut job = job("a:/1\n");
        assert_eq!((job.group().name.as_str(), job.group().bits), ("test", 0));
        let mut seen = std::collections::BTreeSet::new();
        for name in ["www@eu", "www_eu", &"x".repeat(40), &"x".repeat(41)] {
            job.name = name.into();
            let group = job.group().name;
            assert!(group.parse::<group::Name>().is_ok(), "{group}");
            assert!(seen.insert(group), "{name}");
        }
    }

    #[test]
    fn contradictions_are_named() {
        for (list, word) in [
            ("a:/1\na:/1\n", "twice"),
            ("a::m\n b:/1\n", "cannot feed"),
            ("a:/1\n /2\n", "needs no feeder"),
            ("", "no destination"),
        ] {
            let error = job(list).check().unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let mut remote = job("a:/1\n");
        remote.source = "b:/2".into();
        assert!(remote.check().unwrap_err().to_string().contains("on this machine"));
        let mut circle = job("a:/1\nb:/2\n");
        circle.destinations[0].feeder = Some(1);
        circle.destinations[1].feeder = Some(0);
        assert!(circle.check().unwrap_err().to_string().contains("feeds itself"));
    }

    #[test]
    fn a_name_is_safe_in_a_path() {
        assert!(check_name("www@eu-1").is_ok());
        for name in ["", "../x", ".hidden", "a b", "a/b"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        check_name(&default_name("/").unwrap()).unwrap();
        assert_eq!(default_name("/usr/").unwrap(), default_name("/usr").unwrap());
    }

    proptest! {
        #[test]
        fn a_tree_from_any_indentation_has_feeders_above_and_no_circle(
            indents in prop::collection::vec(0usize..6, 1..30)
        ) {
            let list: String = indents
                .iter()
                .enumerate()
                .map(|(i, n)| format!("{}h{i}:/\n", " ".repeat(if i == 0 { 0 } else { *n })))
                .collect();
            let Ok(found) = tree(place::list(&list).unwrap()) else { return Ok(()) };
            for (i, d) in found.iter().enumerate() {
                prop_assert!(d.feeder.is_none_or(|f| f < i && indents[f] < indents[i] || f == 0));
            }
        }
    }
}

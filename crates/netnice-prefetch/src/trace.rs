// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What virtual clients do: a web log broken into sections of one client and one hour, which are
//! overlaid on the same time (TCP Nice, section 6.1).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

use crate::rules;

/// A page that a virtual client asks for, with what the page needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// When it is asked for, in milliseconds since the start.
    pub at_ms: u64,
    /// Path of the page.
    pub page: Arc<str>,
    /// Paths of the objects that the client then asked for because of it.
    pub objects: Vec<Arc<str>>,
}

/// The views of one virtual client, in time order.
pub type Visits = Vec<View>;

/// A web log as the replay uses it.
#[derive(Debug, Clone)]
pub struct Trace {
    rows: Vec<Row>,
    sizes: HashMap<Arc<str>, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Row {
    time_s: i64,
    client: String,
    method: String,
    path: Arc<str>,
    status: u16,
    bytes: u64,
    #[serde(default)]
    referer_path: String,
    #[serde(default)]
    bot: u8,
}

/// How a trace becomes visits.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Virtual clients.
    pub clients: usize,
    /// The busiest hours of the log that are overlaid.
    pub hours: usize,
    /// Seconds that the visits are spread over.
    pub duration_s: u64,
    /// Seed of where each section goes, and when it starts.
    pub seed: u64,
}

const HOUR_S: i64 = 3600;

impl Trace {
    /// Reads the lab's CSV, plain or gzipped. Kept are static answers (200) of at most `max_bytes` to
    /// people's GETs: the rest cannot be prefetched, or is no person's.
    ///
    /// # Errors
    /// If it cannot be read, or a row is not as the header says.
    pub fn read(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let mut bytes = Vec::new();
        File::open(path)?.read_to_end(&mut bytes)?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut text = Vec::new();
            MultiGzDecoder::new(&bytes[..]).read_to_end(&mut text)?;
            bytes = text;
        }
        let rows: Vec<Row> = csv::Reader::from_reader(&bytes[..])
            .into_deserialize()
            .collect::<Result<_, _>>()
            .map_err(io::Error::other)?;
        Ok(Self::new(rows, max_bytes))
    }

    fn new(mut rows: Vec<Row>, max_bytes: u64) -> Self {
        rows.retain(|r| {
            r.method == "GET"
                && r.status == 200
                && r.bot == 0
                && (1..=max_bytes).contains(&r.bytes)
                && rules::is_local_path(&r.path)
                && !rules::is_dynamic(&r.path)
        });
        let mut sizes = HashMap::new();
        for row in &rows {
            let size = sizes.entry(row.path.clone()).or_insert(0);
            *size = row.bytes.max(*size);
        }
        Self { rows, sizes }
    }

    /// Every object with its size in bytes, the largest that was logged.
    pub fn sizes(&self) -> &HashMap<Arc<str>, u64> {
        &self.sizes
    }

    /// The visits of each virtual client.
    pub fn visits(&self, plan: &Plan) -> Vec<Visits> {
        let mut random = Pcg64Mcg::seed_from_u64(plan.seed);
        let mut hours: BTreeMap<i64, BTreeMap<&str, Vec<&Row>>> = BTreeMap::new();
        for row in &self.rows {
            let hour = hours.entry(row.time_s.div_euclid(HOUR_S)).or_default();
            hour.entry(&row.client).or_default().push(row);
        }
        let mut hours: Vec<_> = hours.into_values().collect();
        hours.sort_by_key(|hour| std::cmp::Reverse(hour.values().map(Vec::len).sum::<usize>()));
        let mut all = vec![Visits::new(); plan.clients];
        for section in hours.iter().take(plan.hours).flat_map(BTreeMap::values) {
            let views = views(section);
            let length_ms = views.last().map_or(0, |v| v.at_ms);
            let latest_ms = (plan.duration_s * 1000).saturating_sub(length_ms);
            let start_ms = random.random_range(0..=latest_ms);
            let who = random.random_range(0..plan.clients);
            all[who].extend(views.into_iter().map(|v| View { at_ms: v.at_ms + start_ms, ..v }));
        }
        for visits in &mut all {
            visits.sort_by_key(|v| v.at_ms);
        }
        all.shuffle(&mut random); // so that no client is always first
        all
    }
}

/// Groups a section into views. Times count from the first request; a view takes the next of the
/// section's.
fn views(section: &[&Row]) -> Vec<View> {
    let mut rows = section.to_vec();
    rows.sort_by_key(|r| r.time_s);
    let steps: Vec<_> = rows.iter().map(|r| (&*r.path, &*r.referer_path)).collect();
    by_referer(&steps)
        .into_iter()
        .zip(&rows)
        .map(|((page, parts), at)| {
            let mut objects: Vec<Arc<str>> = Vec::new();
            for part in parts {
                if !objects.contains(&rows[part].path) {
                    objects.push(rows[part].path.clone());
                }
            }
            View {
                at_ms: u64::try_from(at.time_s.saturating_sub(rows[0].time_s))
                    .unwrap_or(0)
                    .saturating_mul(1000),
                page: rows[page].path.clone(),
                objects,
            }
        })
        .collect()
}

/// Orders a section, of which it gets the paths and the paths named as `Referer`: returns the number
/// of each view, and those of the objects that belong to it.
///
/// An object belongs to the page that its `Referer` names, if that is in the section; an object of
/// unknown origin is a view of its own. The log's seconds are in random order within an hour, so
/// `Referer` decides where it can: a page comes after the page that led to it.
pub(crate) fn by_referer(section: &[(&str, &str)]) -> Vec<(usize, Vec<usize>)> {
    let pages: HashSet<&str> =
        section.iter().map(|(path, _)| *path).filter(|p| rules::looks_like_page(p)).collect();
    let is_view = |at: &usize| {
        let (path, referer) = section[*at];
        rules::looks_like_page(path) || !pages.contains(referer)
    };
    let (mut left, parts): (Vec<usize>, Vec<usize>) = (0..section.len()).partition(is_view);
    let mut remaining: HashMap<&str, usize> = HashMap::new();
    for at in &left {
        *remaining.entry(section[*at].0).or_default() += 1;
    }
    let mut views = Vec::with_capacity(left.len());
    let mut first: HashMap<&str, usize> = HashMap::new();
    while !left.is_empty() {
        // the first that no remaining page led to; of a ring of referers, the first
        let free = |at: &usize| {
            let (path, referer) = section[*at];
            path == referer || remaining.get(referer).is_none_or(|count| *count == 0)
        };
        let at = left.remove(left.iter().position(free).unwrap_or(0));
        let path = section[at].0;
        remaining.entry(path).and_modify(|count| *count -= 1);
        first.entry(path).or_insert(views.len());
        views.push((at, Vec::new()));
    }
    for at in parts {
        // what is no view has a page that is one
        if let Some(view) = first.get(section[at].1) {
            views[*view].1.push(at);
        }
    }
    views
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(time_s: i64, client: &str, path: &str, referer: &str) -> Row {
        Row {
            time_s,
            client: client.into(),
            method: "GET".into(),
            path: path.into(),
            status: 200,
            bytes: 10,
            referer_path: referer.into(),
            bot: 0,
        }
    }

    #[test]
    fn what_cannot_be_prefetched_or_is_no_persons_is_left_out() {
        let good = row(0, "a", "/p", "");
        let rows = vec![
            good.clone(),
            Row { method: "POST".into(), ..good.clone() },
            Row { status: 304, ..good.clone() },
            Row { bot: 1, ..good.clone() },
            Row { bytes: 0, ..good.clone() },
            Row { bytes: 101, ..good.clone() },
            Row { path: "/p?x".into(), ..good.clone() },
        ];
        assert_eq!(Trace::new(rows, 100).rows, [good]);
    }

    #[test]
    fn pages_follow_their_referers_and_carry_their_objects() {
        // logged as image, next page, style, page: page led to next, and needs image and style
        let rows = [
            row(5, "a", "/i.png", "/p"),
            row(6, "a", "/next", "/p"),
            row(8, "a", "/s.css", "/p"),
            row(9, "a", "/p", "/elsewhere"),
            row(9, "a", "/lone.png", ""),
        ];
        let section: Vec<&Row> = rows.iter().collect();
        let seen: Vec<_> = views(&section)
            .into_iter()
            .map(|v| (v.at_ms, v.page.to_string(), v.objects.len()))
            .collect();
        // the section's own seconds in order: 5, 6, 8, of which each view takes the next
        assert_eq!(
            seen,
            [(0, "/p".into(), 2), (1000, "/next".into(), 0), (3000, "/lone.png".into(), 0)]
        );
    }

    #[test]
    fn sections_of_the_busiest_hours_are_overlaid_and_the_seed_decides_where() {
        let rows = vec![
            row(10, "a", "/p", ""),
            row(20, "b", "/q", ""),
            row(3610, "a", "/r", ""), // a lone request in its hour
        ];
        let trace = Trace::new(rows, 100);
        let plan = Plan { clients: 4, hours: 1, duration_s: 60, seed: 1 };
        let paths = |plan: &Plan| {
            let mut all: Vec<_> =
                trace.visits(plan).into_iter().flatten().map(|v| v.page.to_string()).collect();
            all.sort();
            all
        };
        assert_eq!(paths(&plan), ["/p", "/q"]);
        assert_eq!(paths(&Plan { hours: 2, ..plan }), ["/p", "/q", "/r"]);
        assert_eq!(trace.visits(&plan), trace.visits(&plan));
        assert!(trace.visits(&plan).iter().flatten().all(|v| v.at_ms <= 60_000));
    }
}

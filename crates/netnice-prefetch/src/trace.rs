// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What virtual clients do: a web log broken into sections of one client and one hour, which are
//! overlaid on the same time (TCP Nice, section 6.1).

use std::collections::{BTreeMap, HashMap};
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

/// Groups a section into views: an object belongs to the page that its `Referer` names, if that is in
/// the section; an object of unknown origin is a view of its own. Times count from the first request.
///
/// The log's seconds are in random order within an hour, so `Referer` decides where it can: a page
/// comes after the page that led to it.
fn views(section: &[&Row]) -> Vec<View> {
    let mut rows = section.to_vec();
    rows.sort_by_key(|r| r.time_s);
    let times: Vec<i64> = rows.iter().map(|r| r.time_s).collect();
    let mut pages: Vec<&Row> = Vec::new();
    let mut left: Vec<&Row> = rows.iter().copied().filter(|r| is_view(r, &rows)).collect();
    while !left.is_empty() {
        // the first that no remaining page led to; of a ring of referers, the first
        let free = |r: &&Row| !left.iter().any(|p| *p.path == *r.referer_path && p.path != r.path);
        let at = left.iter().position(free).unwrap_or(0);
        pages.push(left.remove(at));
    }
    let mut views: Vec<View> = pages
        .iter()
        .zip(&times)
        .map(|(row, time_s)| View {
            at_ms: u64::try_from(time_s - times[0]).unwrap_or(0) * 1000,
            page: row.path.clone(),
            objects: Vec::new(),
        })
        .collect();
    for row in rows.iter().filter(|r| !is_view(r, &rows)) {
        if let Some(view) = views.iter_mut().find(|v| *v.page == *row.referer_path) {
            if !view.objects.contains(&row.path) {
                view.objects.push(row.path.clone());
            }
        }
    }
    views
}

fn is_view(row: &Row, section: &[&Row]) -> bool {
    let of_a_page =
        || section.iter().any(|p| *p.path == *row.referer_path && rules::looks_like_page(&p.path));
    rules::looks_like_page(&row.path) || !of_a_page()
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

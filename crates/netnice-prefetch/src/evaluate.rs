// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What prefetching would have brought, by a log: predictors learn its first part, and their
//! predictions are compared with what clients then did in the second.
//!
//! A client of the second part has a cache without bounds, from its first request until it was idle
//! for [`Settings::expiry_s`]. After each of its pages the likeliest objects that it lacks are put
//! there. A later request is *foreseen* if its object was put there, and *missed* if it is in no
//! way there. Then
//!
//! ```text
//! precision = foreseen / prefetched      recall = foreseen / (foreseen + missed)
//! ```
//!
//! and what was prefetched and not requested is wasted. Nothing is learned in the second part. Robots
//! are left out of both.

use std::collections::hash_map::Entry as Place;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serde::Serialize;

use crate::log::{self, Entry};
use crate::predict::{Predictor, Settings};
use crate::rules;
use crate::trace;

/// What predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// PPM-n/w with these settings' n and w.
    Ppm,
    /// A first-order Markov chain: what followed the last page, before the next one's end.
    Markov,
    /// What was requested most, whoever asks.
    Popular,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Ppm, Kind::Markov, Kind::Popular];
}

/// How much is prefetched.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Budget {
    /// Most objects after each page.
    pub most: usize,
    /// Least probability.
    pub threshold: f64,
    /// Largest object, in bytes.
    pub max_object_bytes: u64,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Score {
    /// Objects put into caches.
    pub prefetched: u64,
    /// Of these, objects that were requested.
    pub foreseen: u64,
    /// Objects requested that were not in the cache.
    pub missed: u64,
    /// Bytes prefetched.
    pub prefetched_bytes: u64,
    /// Bytes prefetched and not requested.
    pub wasted_bytes: u64,
    /// Bytes that would have been sent without prefetching.
    pub demand_bytes: u64,
}

impl Score {
    /// Foreseen of prefetched, 0 to 1; None if nothing was prefetched.
    pub fn precision(&self) -> Option<f64> {
        (self.prefetched > 0).then(|| self.foreseen as f64 / self.prefetched as f64)
    }

    /// Foreseen of all that was requested for the first time, 0 to 1.
    pub fn recall(&self) -> Option<f64> {
        let all = self.foreseen + self.missed;
        (all > 0).then(|| self.foreseen as f64 / all as f64)
    }
}

/// A request of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    time_s: i64,
    client: Arc<str>,
    path: Arc<str>,
    referer: Arc<str>,
    bytes: u64,
    page: bool,
}

const HOUR_S: i64 = 3600;
const DAY_S: i64 = 24 * HOUR_S;
/// Words of the `User-Agent` of robots.
const ROBOTS: [&str; 4] = ["bot", "crawl", "slurp", "spider"];

fn is_robot(agent: &str) -> bool {
    let agent = agent.to_ascii_lowercase();
    ROBOTS.iter().any(|word| agent.contains(word))
}

/// Where a log is divided into what is learned and what is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cut {
    /// After this part of the time between its first request and its last.
    Part(f64),
    /// After so many days: at midnight of its clock (UTC), of which the first may be short.
    Days(i64),
}

impl FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(days) = text.strip_suffix('d') {
            return match days.parse() {
                Ok(days) if days > 0 => Ok(Self::Days(days)),
                _ => Err("days are a whole number above 0, as in 2d".into()),
            };
        }
        match text.parse() {
            Ok(part) if part > 0.0 && part < 1.0 => Ok(Self::Part(part)),
            _ => Err("give a part between 0 and 1, or days as in 2d".into()),
        }
    }
}

/// What people were shown, in time order.
#[derive(Debug, Clone, Default)]
pub struct Views {
    requests: Vec<Request>,
    robots: usize,
}

impl Views {
    /// Reads logs, plain or gzipped.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn read(logs: &[PathBuf]) -> Result<Self, log::Error> {
        let mut views = Self::default();
        for path in logs {
            log::read(path, |file| Box::new(file), |entry| views.add(&entry))?;
        }
        views.sort();
        Ok(views)
    }

    fn sort(&mut self) {
        self.requests.sort_by_key(|r| r.time_s); // stable: as logged within a second
    }

    /// Orders each client's requests of an hour as the replay does: a page behind the one that its
    /// `Referer` names, with what it loaded; they share out the hour's times anew.
    pub fn order_by_referer(&mut self) {
        let mut sections: BTreeMap<(&str, i64), Vec<usize>> = BTreeMap::new();
        for (at, request) in self.requests.iter().enumerate() {
            let hour = request.time_s.div_euclid(HOUR_S);
            sections.entry((&request.client, hour)).or_default().push(at);
        }
        let mut ordered = Vec::with_capacity(self.requests.len());
        for places in sections.values() {
            let steps: Vec<_> = places
                .iter()
                .map(|at| (&*self.requests[*at].path, &*self.requests[*at].referer))
                .collect();
            let order = trace::by_referer(&steps)
                .into_iter()
                .flat_map(|(page, parts)| std::iter::once(page).chain(parts));
            ordered.extend(order.zip(places).map(|(from, at)| Request {
                time_s: self.requests[*at].time_s,
                ..self.requests[places[from]].clone()
            }));
        }
        self.requests = ordered;
        self.sort();
    }

    fn add(&mut self, entry: &Entry<'_>) {
        if entry.is_view() && rules::is_local_path(entry.path) && !rules::is_dynamic(entry.path) {
            if is_robot(entry.agent) {
                self.robots += 1;
                return;
            }
            self.requests.push(Request {
                time_s: entry.time_s,
                client: format!("{} {}", entry.client, entry.agent).into(),
                path: entry.path.into(),
                referer: entry.referer.into(),
                bytes: entry.bytes,
                page: rules::looks_like_page(entry.path),
            });
        }
    }

    /// Leaves out what is no page: images, style sheets and other objects.
    pub fn keep_pages(&mut self) {
        self.requests.retain(|r| r.page);
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Number of robots' requests that were left out.
    pub fn robots(&self) -> usize {
        self.robots
    }

    /// Divides them in time. Of the first part only the last `hours` are kept, if given.
    pub fn split(&self, cut: Cut, hours: Option<u32>) -> (Views, Views) {
        let time = |r: Option<&Request>| r.map_or(0, |r| r.time_s);
        let (first, last) = (time(self.requests.first()), time(self.requests.last()));
        let until = match cut {
            Cut::Part(part) => first + ((last - first) as f64 * part) as i64,
            Cut::Days(days) => first.div_euclid(DAY_S).saturating_add(days).saturating_mul(DAY_S),
        };
        let from = hours.map_or(i64::MIN, |hours| until.saturating_sub(HOUR_S * i64::from(hours)));
        let place = |time_s| self.requests.partition_point(|r| r.time_s < time_s);
        let part = |of: &[Request]| Views { requests: of.to_vec(), robots: 0 };
        (part(&self.requests[place(from)..place(until)]), part(&self.requests[place(until)..]))
    }
}

/// A predictor that has learned.
pub struct Trained {
    predictor: Predictor,
    /// Paths with the bytes of their largest answer, most popular first; only for [`Kind::Popular`].
    popular: Option<Vec<(Arc<str>, u64, f64)>>,
}

impl Trained {
    /// Learns the views.
    pub fn new(kind: Kind, settings: Settings, views: &Views) -> Self {
        let settings = match kind {
            Kind::Markov => Settings { n: 1, w: 1, ..settings },
            _ => settings,
        };
        let mut predictor = Predictor::new(settings);
        for view in &views.requests {
            predictor.learn(&Entry {
                time_s: view.time_s,
                client: &view.client,
                agent: "",
                referer: "",
                method: "GET",
                path: &view.path,
                status: 200,
                bytes: view.bytes,
                prefetch: false,
                personal: false,
            });
        }
        let popular = (kind == Kind::Popular).then(|| popular(views));
        Self { predictor, popular }
    }

    /// Paths, bytes and probabilities of what comes after these pages, likeliest first.
    fn predict(&self, pages: &[Arc<str>]) -> Vec<(Arc<str>, u64, f64)> {
        if let Some(popular) = &self.popular {
            return popular.clone();
        }
        // a page that was not learned ends the context before it
        let known: Option<Vec<_>> = pages.iter().map(|p| self.predictor.find(p)).collect();
        let ids = known.or_else(|| Some(vec![self.predictor.find(pages.last()?)?]));
        let found = ids.map_or_else(Vec::new, |ids| self.predictor.predict(&ids));
        found.into_iter().map(|p| (p.path, p.bytes, p.probability)).collect()
    }
}

/// What was requested, with how many of all requests that were, most first.
fn popular(views: &Views) -> Vec<(Arc<str>, u64, f64)> {
    let mut seen: HashMap<&Arc<str>, (u64, u64)> = HashMap::new();
    for view in &views.requests {
        let (count, bytes) = seen.entry(&view.path).or_default();
        *count += 1;
        *bytes = view.bytes.max(*bytes);
    }
    let mut found: Vec<_> = seen.into_iter().collect();
    found.sort_by(|(a, x), (b, y)| y.0.cmp(&x.0).then_with(|| a.cmp(b)));
    let all = views.len() as f64;
    found
        .into_iter()
        .map(|(path, (count, bytes))| (path.clone(), bytes, count as f64 / all))
        .collect()
}

/// A client of the second part.
#[derive(Default)]
struct Cache {
    last_s: i64,
    pages: Vec<Arc<str>>,
    /// What is there; the bytes of what was prefetched and not requested yet.
    holds: HashMap<Arc<str>, Option<u64>>,
}

/// Replays the second part against a predictor.
pub fn score(trained: &Trained, views: &Views, settings: Settings, budget: Budget) -> Score {
    let mut score = Score::default();
    let mut caches: HashMap<&Arc<str>, Cache> = HashMap::new();
    for view in &views.requests {
        let cache = caches.entry(&view.client).or_default();
        if view.time_s.saturating_sub(cache.last_s) > settings.expiry_s {
            score.wasted_bytes += cache.unused();
            *cache = Cache::default();
        }
        cache.last_s = view.time_s;
        let had = cache.holds.insert(view.path.clone(), None);
        match had {
            Some(Some(_)) => score.foreseen += 1,
            Some(None) => {}
            None => score.missed += 1,
        }
        if had != Some(None) {
            score.demand_bytes += view.bytes;
        }
        if !view.page {
            continue;
        }
        cache.pages.push(view.path.clone());
        let from = cache.pages.len().saturating_sub(settings.n);
        let ahead = trained.predict(&cache.pages[from..]);
        let worth = |(path, bytes, probability): &(Arc<str>, u64, f64)| {
            *probability >= budget.threshold
                && *bytes <= budget.max_object_bytes
                && !rules::is_dynamic(path)
        };
        let mut left = budget.most;
        for (path, bytes, _) in ahead.into_iter().filter(worth) {
            if left == 0 {
                break;
            }
            if let Place::Vacant(place) = cache.holds.entry(path) {
                place.insert(Some(bytes));
                score.prefetched += 1;
                score.prefetched_bytes += bytes;
                left -= 1;
            }
        }
    }
    score.wasted_bytes += caches.values().map(Cache::unused).sum::<u64>();
    score
}

impl Cache {
    fn unused(&self) -> u64 {
        self.holds.values().flatten().sum()
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The paper's client (TCP Nice, section 6.1): virtual clients, each with a cache and one persistent
//! connection for demand requests and one for prefetches, replay a trace.
//!
//! A view asks for its page, then one by one for the page's objects; what the cache has costs no
//! time. A client asks for its next view when its time has come and the view before is complete. A
//! page's list of suggestions replaces the one before; after a pause its objects are fetched one by
//! one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{header, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{handshake, SendRequest};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{sleep, sleep_until, Instant};

use crate::predict::Predictor;
use crate::rules;
use crate::suggest;
use crate::trace::{View, Visits};

/// Where the lists of suggestions come from.
#[derive(Clone)]
pub enum Hints {
    /// Nowhere: no prefetching.
    None,
    /// From the server's `Link` headers, chained.
    Server,
    /// From a predictor at the client that stands for the server's knowledge, as in the paper.
    Predictor(Arc<Predictor>),
    /// From the client's own future: what it still lacks of the view just begun, and the next
    /// views within the window. No predictor with that window foresees more; but demand does not
    /// wait for what is already being fetched ahead, so it may still cost time.
    Perfect(usize),
}

/// What the virtual clients share.
#[derive(Clone)]
pub struct Setup {
    /// The server.
    pub demand: SocketAddr,
    /// Where prefetches go: the same, or its second port.
    pub prefetch: SocketAddr,
    /// Value of `Host`.
    pub host: String,
    /// Where suggestions come from.
    pub hints: Hints,
    /// Least probability of what is prefetched, for [`Hints::Predictor`].
    pub threshold: f64,
    /// Pause between the end of a page and its first prefetch.
    pub pause: Duration,
    /// Sizes in bytes of the objects that may be prefetched.
    pub sizes: Arc<HashMap<Arc<str>, u64>>,
    /// After it a client asks for nothing more.
    pub end: Duration,
}

/// What became of one demand request.
#[derive(Debug, Clone, Serialize)]
pub struct Answer {
    /// When it was asked for, in seconds since the start.
    pub at_s: f64,
    /// From asking to the last byte, in seconds; 0 from the cache; until the end, if it was cut off.
    pub response_s: f64,
    /// Bytes of content.
    pub bytes: u64,
    /// Whether the cache had it, because it was prefetched or asked for before.
    pub hit: bool,
    /// Whether it had been prefetched and was used for the first time.
    pub prefetched: bool,
    /// Whether it is the last object of its view.
    pub last: bool,
    /// Whether it came to its end.
    pub done: bool,
}

/// What one virtual client saw.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// Its demand requests in order.
    pub answers: Vec<Answer>,
    /// Time of each complete view, in seconds, from asking for the page to its last object.
    pub views_s: Vec<f64>,
    /// Views that were not complete at the end, or not begun.
    pub views_left: usize,
    /// Bytes that were prefetched.
    pub prefetched_bytes: u64,
    /// Prefetches that were answered in full.
    pub prefetches: u64,
    /// Prefetches that the server refused or broke off.
    pub prefetches_failed: u64,
    /// Demand requests that failed.
    pub failed: Vec<String>,
}

#[derive(Default)]
struct Shared {
    /// Objects that the client has, and whether prefetched and not used yet.
    cache: HashMap<Arc<str>, bool>,
    list: VecDeque<Arc<str>>,
    not_before: Option<Instant>,
    report: Report,
}

struct Connection {
    to: SocketAddr,
    agent: String,
    host: String,
    sender: Option<SendRequest<Empty<Bytes>>>,
}

struct Got {
    bytes: u64,
    link: Option<String>,
}

impl Connection {
    fn new(setup: &Setup, to: SocketAddr, number: usize) -> Self {
        let agent = format!("netnice-prefetch replay, client {number}");
        Self { to, agent, host: setup.host.clone(), sender: None }
    }

    async fn sender(&mut self) -> io::Result<&mut SendRequest<Empty<Bytes>>> {
        let usable = self.sender.as_ref().is_some_and(|s| !s.is_closed());
        if !usable {
            let socket = TcpStream::connect(self.to).await?;
            socket.set_nodelay(true)?;
            let (sender, connection) =
                handshake(TokioIo::new(socket)).await.map_err(io::Error::other)?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        self.sender.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Asks once more if the server closed an idle connection while the request was on its way,
    /// as browsers do (RFC 9110, section 9.2.2).
    async fn get(&mut self, path: &str, referer: &str, prefetch: bool) -> io::Result<Got> {
        let was_idle = self.sender.is_some();
        match self.ask(path, referer, prefetch).await {
            Err(error) if was_idle && closed_unanswered(&error) => {
                self.sender = None;
                self.ask(path, referer, prefetch).await
            }
            outcome => outcome,
        }
    }

    async fn ask(&mut self, path: &str, referer: &str, prefetch: bool) -> io::Result<Got> {
        let mut request = Request::get(path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, &self.agent);
        if !referer.is_empty() {
            request = request.header(header::REFERER, format!("http://{}{referer}", self.host));
        }
        if prefetch {
            request = request.header("sec-purpose", "prefetch");
        }
        let request = request.body(Empty::new()).map_err(io::Error::other)?;
        let sender = self.sender().await?;
        sender.ready().await.map_err(io::Error::other)?;
        let response = sender.send_request(request).await.map_err(io::Error::other)?;
        let status = response.status();
        let link = response.headers().get(header::LINK).and_then(|v| v.to_str().ok());
        let link = link.map(str::to_owned);
        let mut body = response.into_body();
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(io::Error::other)?;
            bytes += frame.data_ref().map_or(0, |d| d.len() as u64);
        }
        match status.as_u16() {
            200 => Ok(Got { bytes, link }),
            _ => Err(io::Error::other(format!("{path}: {status}"))),
        }
    }
}

fn closed_unanswered(error: &io::Error) -> bool {
    let error = error.get_ref().and_then(|e| e.downcast_ref::<hyper::Error>());
    error.is_some_and(|e| e.is_incomplete_message() || e.is_canceled() || e.is_closed())
}

struct Client {
    setup: Setup,
    number: usize,
    begun: Instant,
    shared: Arc<Mutex<Shared>>,
    more: Arc<Notify>,
}

impl Client {
    fn shared(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().expect("no panic while held")
    }

    /// Asks for an object; true if it is there in the end.
    async fn demand(
        &self,
        connection: &mut Connection,
        path: &Arc<str>,
        referer: &str,
        last: bool,
    ) -> Option<Got> {
        let asked = Instant::now();
        let at_s = (asked - self.begun).as_secs_f64();
        let cached = {
            let mut shared = self.shared();
            shared.list.retain(|p| p != path);
            shared.cache.get_mut(path).map(std::mem::take)
        };
        let bytes = self.setup.sizes.get(path).copied().unwrap_or(0);
        if let Some(prefetched) = cached {
            self.shared().report.answers.push(Answer {
                at_s,
                response_s: 0.0,
                bytes,
                hit: true,
                prefetched,
                last,
                done: true,
            });
            return Some(Got { bytes, link: None });
        }
        // counted from the start, so that what is cut off at the end is not lost
        let index = {
            let mut shared = self.shared();
            shared.report.answers.push(Answer {
                at_s,
                response_s: f64::NAN,
                bytes,
                hit: false,
                prefetched: false,
                last,
                done: false,
            });
            shared.report.answers.len() - 1
        };
        let got = connection.get(path, referer, false).await;
        let mut shared = self.shared();
        let answer = &mut shared.report.answers[index];
        answer.response_s = asked.elapsed().as_secs_f64();
        match got {
            Ok(got) => {
                answer.done = true;
                answer.bytes = got.bytes;
                shared.cache.insert(path.clone(), false);
                Some(got)
            }
            Err(error) => {
                connection.sender = None;
                shared.report.failed.push(error.to_string());
                None
            }
        }
    }

    async fn browse(&self, visits: &[View]) {
        let mut connection = Connection::new(&self.setup, self.setup.demand, self.number);
        let mut last_pages: Vec<Arc<str>> = Vec::new();
        for (at, view) in visits.iter().enumerate() {
            sleep_until(self.begun + Duration::from_millis(view.at_ms)).await;
            let asked = Instant::now();
            let referer = last_pages.last().cloned().unwrap_or_else(|| "".into());
            let got =
                self.demand(&mut connection, &view.page, &referer, view.objects.is_empty()).await;
            if rules::looks_like_page(&view.page) {
                last_pages.push(view.page.clone());
                let link = got.and_then(|got| got.link);
                self.suggested(&last_pages, &visits[at..], link.as_deref());
            }
            for (index, object) in view.objects.iter().enumerate() {
                let last = index + 1 == view.objects.len();
                self.demand(&mut connection, object, &view.page, last).await;
            }
            {
                let mut shared = self.shared();
                shared.report.views_s.push(asked.elapsed().as_secs_f64());
                shared.report.views_left -= 1;
            }
        }
    }

    /// Replaces the list of suggestions after a page, whose view `visits` begin with.
    fn suggested(&self, pages: &[Arc<str>], visits: &[View], link: Option<&str>) {
        let list: VecDeque<Arc<str>> = match &self.setup.hints {
            Hints::None => return,
            Hints::Server => {
                suggest::paths(link.unwrap_or("")).into_iter().map(Arc::from).collect()
            }
            Hints::Predictor(predictor) => {
                let n = predictor.settings().n;
                let last = pages[pages.len().saturating_sub(n)..].iter();
                let ids: Vec<_> = last.filter_map(|p| predictor.find(p)).collect();
                let likely = predictor.predict(&ids).into_iter();
                likely.filter(|p| p.probability >= self.setup.threshold).map(|p| p.path).collect()
            }
            Hints::Perfect(w) => perfect(visits, *w),
        };
        let mut seen = HashSet::new();
        let mut shared = self.shared();
        shared.list = list
            .into_iter()
            .filter(|p| !shared.cache.contains_key(p) && self.setup.sizes.contains_key(p))
            .filter(|p| seen.insert(p.clone()))
            .collect();
        shared.not_before = Some(Instant::now() + self.setup.pause);
        self.more.notify_one();
    }

    async fn prefetch(&self) {
        let mut connection = Connection::new(&self.setup, self.setup.prefetch, self.number);
        loop {
            let not_before = self.shared().not_before;
            if let Some(moment) = not_before.filter(|m| *m > Instant::now()) {
                sleep_until(moment).await;
                continue; // another page may have begun
            }
            let next = self.shared().list.pop_front();
            let Some(path) = next else {
                self.more.notified().await;
                continue;
            };
            match connection.get(&path, "", true).await {
                Ok(got) => {
                    let mut shared = self.shared();
                    shared.report.prefetched_bytes += got.bytes;
                    shared.report.prefetches += 1;
                    shared.cache.entry(path).or_insert(true);
                    if let (Hints::Server, Some(link)) = (&self.setup.hints, &got.link) {
                        for path in suggest::paths(link).into_iter().map(Arc::from) {
                            if !shared.cache.contains_key(&path) && !shared.list.contains(&path) {
                                shared.list.push_back(path);
                            }
                        }
                    }
                }
                Err(_) => {
                    connection.sender = None;
                    self.shared().report.prefetches_failed += 1;
                    sleep(Duration::from_secs(1)).await; // a server that refuses is not pressed
                }
            }
        }
    }
}

/// What the first of these views, whose page has come, still needs, and the `w` views after it.
///
/// Demand asks for the objects of the view from the first on. They are listed from the last on, so
/// that the two do not fetch the same object at the same time.
fn perfect(visits: &[View], w: usize) -> VecDeque<Arc<str>> {
    let Some((now, future)) = visits.split_first() else { return VecDeque::new() };
    let next = future.iter().take(w).flat_map(|v| std::iter::once(&v.page).chain(&v.objects));
    now.objects.iter().rev().chain(next).cloned().collect()
}

/// Replays the visits of one virtual client; prefetching ends with it.
pub async fn client(setup: Setup, number: usize, visits: Visits, begun: Instant) -> Report {
    let end = begun + setup.end;
    let shared: Arc<Mutex<Shared>> = Arc::default();
    let client =
        Client { setup, number, begun, shared: shared.clone(), more: Arc::new(Notify::new()) };
    client.shared().report.views_left = visits.len();
    tokio::select! {
        () = client.browse(&visits) => {}
        () = client.prefetch() => {}
        () = sleep_until(end) => {}
    }
    let mut report = std::mem::take(&mut client.shared().report);
    let elapsed_s = begun.elapsed().as_secs_f64();
    for answer in report.answers.iter_mut().filter(|a| a.response_s.is_nan()) {
        answer.response_s = elapsed_s - answer.at_s;
    }
    report
}

/// Figures over all virtual clients.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Demand requests.
    pub requests: usize,
    /// Share of them that the cache answered.
    pub hit_share: f64,
    /// Mean response time of a demand request in seconds, from the cache or not.
    pub mean_s: f64,
    /// Its median, 95th and 99th percentile.
    pub quantiles_s: [f64; 3],
    /// Complete views.
    pub views: usize,
    /// Mean time of a view in seconds.
    pub view_mean_s: f64,
    /// Views that were not complete at the end.
    pub views_left: usize,
    /// Bytes of demand answers that came over the network.
    pub demand_bytes: u64,
    /// Bytes that were prefetched.
    pub prefetched_bytes: u64,
    /// Those of them that were used.
    pub used_bytes: u64,
    /// Prefetches answered, and failed.
    pub prefetches: [u64; 2],
    /// Demand requests that failed.
    pub failed: usize,
}

fn mean(values: &[f64]) -> f64 {
    0.0 + values.iter().sum::<f64>() / values.len().max(1) as f64 // the sum of none is -0.0
}

/// Sums up the reports.
pub fn summary(reports: &[Report]) -> Summary {
    let answers: Vec<&Answer> = reports.iter().flat_map(|r| &r.answers).collect();
    let mut times: Vec<f64> = answers.iter().map(|a| a.response_s).collect();
    times.sort_by(f64::total_cmp);
    // nearest rank
    let quantile = |q: f64| {
        let rank = (q * times.len() as f64).ceil() as usize;
        times.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
    };
    let views: Vec<f64> = reports.iter().flat_map(|r| &r.views_s).copied().collect();
    let bytes =
        |pick: fn(&Answer) -> bool| answers.iter().filter(|a| pick(a)).map(|a| a.bytes).sum();
    Summary {
        requests: answers.len(),
        hit_share: answers.iter().filter(|a| a.hit).count() as f64 / answers.len().max(1) as f64,
        mean_s: mean(&times),
        quantiles_s: [0.5, 0.95, 0.99].map(quantile),
        views: views.len(),
        view_mean_s: mean(&views),
        views_left: reports.iter().map(|r| r.views_left).sum(),
        demand_bytes: bytes(|a| !a.hit && a.done),
        prefetched_bytes: reports.iter().map(|r| r.prefetched_bytes).sum(),
        used_bytes: bytes(|a| a.prefetched),
        prefetches: [
            reports.iter().map(|r| r.prefetches).sum(),
            reports.iter().map(|r| r.prefetches_failed).sum(),
        ],
        failed: reports.iter().map(|r| r.failed.len()).sum(),
    }
}

#[cfg(test)]
mod tests;

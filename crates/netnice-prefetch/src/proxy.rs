// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What happens to each request: passed to the origin, learned from, answered with suggestions.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::accesslog::AccessLog;
use crate::body::Timed;
use crate::config::{seconds, Config};
use crate::line::{Line, Mode, Turn};
use crate::metrics::Metrics;
use crate::origin::Origin;
use crate::page::{self, PageView};
use crate::predict::{Client, Predictor, Served};
use crate::reply::{own, Reply};
use crate::suggest::{self, Verdict};
use crate::{log, rules};

/// Headers that belong to one hop (RFC 9110, section 7.6.1), with `Expect`, which hyper answers.
static HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    header::EXPECT,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// What a reload replaces.
#[derive(Debug)]
pub struct Setup {
    /// The configuration.
    pub config: Config,
    /// Its origin.
    pub origin: Arc<Origin>,
}

/// The proxy, shared by all connections.
pub struct Proxy {
    setup: RwLock<Arc<Setup>>,
    mode: RwLock<Mode>,
    predictor: Mutex<Predictor>,
    /// What it counts.
    pub metrics: Metrics,
    access_log: Option<AccessLog>,
}

/// Where a request came from.
#[derive(Debug)]
pub struct Peer {
    /// The client's address.
    pub address: IpAddr,
    /// The same as text.
    pub name: String,
    /// Whether it came over TLS.
    pub secure: bool,
    /// Whether it came to the second port, whose connections are in the background.
    pub second_port: bool,
    /// The connection.
    pub line: Arc<Line>,
}

/// What is remembered of a request until its answer ends. What it shares with the request is not
/// copied.
struct Note {
    begun: Instant,
    peer: Arc<Peer>,
    method: Method,
    target: PathAndQuery,
    version: Version,
    host: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    agent: Option<HeaderValue>,
    background: bool,
    /// Whether the answer may be learned from: it is to a GET that proves no identity.
    teaches: bool,
    /// Whether suggestions are unwanted.
    declines: bool,
    client: Option<Client>,
    /// Whether a page was asked for, not ahead, and is answered.
    page: bool,
    status: StatusCode,
    /// What a whole answer makes of the object; `None`: it says nothing of it.
    object: Option<bool>,
}

impl Note {
    fn path(&self) -> &str {
        self.target.as_str()
    }
}

fn now_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn text(value: &Option<HeaderValue>) -> &[u8] {
    value.as_ref().map_or(b"", HeaderValue::as_bytes)
}

/// Removes what belongs to one hop, and what `Connection` names.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .chain(headers.keys().filter(|name| HOP_BY_HOP.contains(name)).cloned())
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// Whether a body has no transfer coding but `chunked`, once: `Transfer-Encoding` goes no further than
/// this hop, so any other coding would be lost from what it says, or is a trick.
fn is_framed_plainly(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let first = codings.next().map_or(&b"chunked"[..], HeaderValue::as_bytes);
    first.eq_ignore_ascii_case(b"chunked") && codings.next().is_none()
}

/// Makes one line of cookies, which HTTP/2 may split and HTTP/1.1 may not (RFC 9113, section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let parts: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if parts.len() < 2 {
        return;
    }
    if let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

impl Proxy {
    /// A proxy by this configuration, which must have passed [`Config::check`].
    pub fn new(setup: Setup, predictor: Predictor, access_log: Option<AccessLog>) -> Self {
        Self {
            setup: RwLock::new(Arc::new(setup)),
            mode: RwLock::new(Mode::Off),
            predictor: Mutex::new(predictor),
            metrics: Metrics::new(),
            access_log,
        }
    }

    /// The configuration in force.
    pub fn setup(&self) -> Arc<Setup> {
        self.setup.read().expect("no panic while held").clone()
    }

    /// Replaces the configuration, and reopens the access log.
    pub fn reload(&self, setup: Setup) {
        self.predictor().set_bounds(setup.config.learning);
        *self.setup.write().expect("no panic while held") = Arc::new(setup);
        self.access_log.iter().for_each(AccessLog::reopen);
    }

    /// Where prefetches go now.
    pub fn mode(&self) -> Mode {
        *self.mode.read().expect("no panic while held")
    }

    /// Changes where prefetches go.
    pub fn set_mode(&self, mode: Mode) {
        *self.mode.write().expect("no panic while held") = mode;
        self.metrics.set_mode(mode);
    }

    /// What was learned.
    pub fn predictor(&self) -> MutexGuard<'_, Predictor> {
        self.predictor.lock().expect("no panic while held")
    }

    /// Waits until the access log is written.
    pub fn flush(&self) {
        self.access_log.iter().for_each(AccessLog::flush);
    }

    /// Answers a request.
    pub async fn answer(
        self: Arc<Self>,
        peer: Arc<Peer>,
        request: Request<Incoming>,
    ) -> Response<Reply> {
        let mut note = self.note(&peer, &request);
        let (turn, mut response) = match self.turn(&peer, note.background) {
            Ok(turn) => {
                let response = match request.uri().path().strip_prefix(page::PATH) {
                    Some("") if request.method() == Method::GET => self.page(&peer, &request),
                    _ => self.forward(request, &mut note).await,
                };
                (Some(turn), response)
            }
            Err(refused) => (None, *refused),
        };
        note.status = response.status();
        let begun = note.begun;
        let this = self.clone();
        let ended = Box::new(move |sent, whole, took| this.ended(note, sent, whole, took));
        *response.version_mut() = Version::HTTP_11; // the origin's may be 1.0
        response.map(|body| body.attach(turn, begun, ended))
    }

    /// The page about the proxy: for clients of this machine, not for those behind another proxy on
    /// it, unless the configuration opens it.
    fn page<B>(&self, peer: &Peer, request: &Request<B>) -> Response<Reply> {
        let forwarded =
            ["forwarded", "x-forwarded-for"].iter().any(|n| request.headers().contains_key(*n));
        if !(peer.address.is_loopback() && !forwarded || self.setup().config.page_for_all) {
            return own(StatusCode::NOT_FOUND, "Not found.");
        }
        let (busiest, size) = {
            let predictor = self.predictor();
            (predictor.busiest(20), predictor.size())
        };
        let mode = self.mode();
        page::answer(&PageView { mode: mode.name(), metrics: &self.metrics, busiest, size })
    }

    fn note(&self, peer: &Arc<Peer>, request: &Request<Incoming>) -> Note {
        let headers = request.headers();
        let target = request.uri().path_and_query().cloned();
        let host = request.uri().authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok());
        Note {
            begun: Instant::now(),
            peer: peer.clone(),
            method: request.method().clone(),
            target: target.unwrap_or(PathAndQuery::from_static("/")),
            version: request.version(),
            // of HTTP/2, or an absolute target, which overrules Host
            host: host.or_else(|| headers.get(header::HOST).cloned()),
            referer: headers.get(header::REFERER).cloned(),
            agent: headers.get(header::USER_AGENT).cloned(),
            background: peer.second_port
                || rules::is_prefetch(headers)
                || rules::is_background_priority(headers),
            teaches: request.method() == Method::GET
                && !headers.contains_key(header::AUTHORIZATION),
            declines: rules::declines(headers),
            client: None,
            page: false,
            status: StatusCode::OK,
            object: None,
        }
    }

    /// Takes the connection for an answer, or says why the request is refused.
    fn turn(&self, peer: &Peer, background: bool) -> Result<Turn, Box<Response<Reply>>> {
        let unavailable = |why: &str| {
            self.metrics.refused.inc();
            Box::new(own(StatusCode::SERVICE_UNAVAILABLE, &format!("No prefetching now: {why}.")))
        };
        match self.mode() {
            _ if !background => peer.line.foreground(),
            Mode::Port(_) if peer.second_port => peer.line.foreground(), // the port is background
            Mode::Port(port) => return Err(unavailable(&format!("prefetch from port {port}"))),
            Mode::Off => return Err(unavailable("nothing can be sent in the background")),
            Mode::Connection => peer.line.background(),
        }
        .map_err(|error| {
            if error.kind() != std::io::ErrorKind::Unsupported {
                self.set_mode(Mode::Off); // until the next probe
            }
            unavailable(&format!("the connection cannot be switched ({error})"))
        })
    }

    async fn forward(&self, mut request: Request<Incoming>, note: &mut Note) -> Response<Reply> {
        let setup = self.setup();
        if let Err(sentence) = redirect(&mut request, note) {
            let mut refused = own(StatusCode::BAD_REQUEST, sentence);
            // where such a request ends, others may see elsewhere
            refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return refused;
        }
        let patience = seconds(setup.config.timeouts.body_s);
        let request = request.map(|body| Timed::new(body, patience));
        let response = match setup.origin.send(request, note.background).await {
            Ok(response) => response,
            Err(error) => return own(error.status(), &error.to_string()),
        };
        let (mut head, body) = response.into_parts();
        if !is_framed_plainly(&head.headers) {
            let sentence = "The web server behind this proxy encoded its answer in an unknown way.";
            return own(StatusCode::BAD_GATEWAY, sentence);
        }
        if head.headers.contains_key(header::TRANSFER_ENCODING) {
            head.headers.remove(header::CONTENT_LENGTH); // overruled: RFC 9112, section 6.3
        }
        strip_hop_by_hop(&mut head.headers);
        if note.method == Method::GET {
            self.learn(&mut head, note, &setup.config);
        }
        Response::from_parts(head, Reply::origin(body, patience))
    }

    /// Learns from an answered GET and adds suggestions to it.
    fn learn(&self, head: &mut http::response::Parts, note: &mut Note, config: &Config) {
        let reusable = rules::is_reusable(head.status, &head.headers);
        note.object = match head.status {
            StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT => None,
            _ => Some(reusable),
        };
        let seen = matches!(head.status, StatusCode::OK | StatusCode::NOT_MODIFIED);
        let page = match head.status {
            StatusCode::OK => rules::is_page(&head.headers),
            _ => rules::looks_like_page(note.path()),
        };
        note.page = seen && page && !note.background;
        if !seen
            || !note.teaches
            || rules::is_private(&head.headers)
            || !rules::is_local_path(note.path())
        {
            return;
        }
        let mode = self.mode();
        let limits = &config.suggestions;
        let mut predictor = self.predictor();
        let client = predictor.client(&note.peer.name, text(&note.agent));
        note.client = Some(client);
        if !note.background {
            let referer = own_referer(note);
            if let Some(referer) = &referer {
                self.credit(&mut predictor, client, referer);
            }
            let id = predictor.visit(client, now_s(), note.path(), page);
            if let Some(referer) = referer.filter(|_| !page) {
                predictor.part_of(referer.path(), id);
            }
            if page {
                let predictions = predictor.predict_for(client, limits.threshold);
                let verdicts = suggest::judge(&predictions, limits, predictor.settings().addresses);
                let chosen =
                    predictions.iter().zip(verdicts).filter(|(_, v)| *v == Verdict::Suggested);
                predictor.set_waiting(client, chosen.map(|(p, _)| p.id));
            }
        }
        // a page's answer carries the first of its list, the answers to prefetches the others
        if mode != Mode::Off
            && !note.declines
            && head.status == StatusCode::OK
            && (page || note.background)
        {
            let paths = predictor.take_waiting(client, limits.per_reply);
            drop(predictor);
            let base = second_port_base(mode, note);
            if let Some(link) = suggest::link(paths.iter().map(|p| &**p), &base) {
                self.metrics.suggested.inc_by(paths.len() as u64);
                head.headers.append(header::LINK, link);
            }
        }
    }

    /// Counts an object as used, and as visited, that was sent ahead and is now named as `Referer`:
    /// the browser took it from its cache, so no request told of it.
    fn credit(&self, predictor: &mut Predictor, client: Client, referer: &Uri) {
        if let Some(bytes) = predictor.used_ahead(client, referer.path()) {
            self.metrics.used.inc();
            self.metrics.used_bytes.inc_by(bytes);
            predictor.visit(client, now_s(), referer.path(), true);
        }
    }

    fn ended(&self, note: Note, sent: u64, whole: bool, took: Duration) {
        if let Some(reusable) = note.object.filter(|_| whole) {
            let served = if reusable { Served::Reusable(sent) } else { Served::Refused };
            let mut predictor = self.predictor();
            predictor.served(note.path(), served);
            if let Some(client) = note.client.filter(|_| note.background) {
                predictor.sent_ahead(client, note.path(), sent);
            }
        }
        // after it was learned from, so that whoever sees it counted sees that too
        self.metrics.answered(note.background, note.status, sent, took);
        if note.page && whole {
            self.metrics.page_s.observe(took.as_secs_f64());
        }
        if let Some(access_log) = &self.access_log {
            let Note { peer, method, target, version, .. } = &note;
            let time = log::format_time(jiff::Timestamp::now());
            let request = log::escape(format!("{method} {target} {version:?}").as_bytes());
            let (referer, agent) =
                (log::escape(text(&note.referer)), log::escape(text(&note.agent)));
            let status = note.status.as_u16();
            let mark = if note.background { " \"prefetch\"" } else { "" };
            let line = format!(
                r#"{} - - [{time}] "{request}" {status} {sent} "{referer}" "{agent}"{mark}"#,
                peer.name
            );
            if !access_log.write(line) {
                self.metrics.lost_lines.inc();
            }
        }
    }
}

/// What stands before suggested paths: nothing, or the second port of this host.
fn second_port_base(mode: Mode, note: &Note) -> String {
    let Mode::Port(port) = mode else { return String::new() };
    let scheme = if note.peer.secure { "https" } else { "http" };
    match Authority::try_from(text(&note.host)) {
        Ok(host) => format!("{scheme}://{}:{port}", host.host()),
        Err(_) => String::new(),
    }
}

/// What a request names as `Referer`, if that is of this site.
fn own_referer(note: &Note) -> Option<Uri> {
    let referer = Uri::try_from(note.referer.as_ref()?.as_bytes()).ok()?;
    let named = referer.authority()?.as_str().as_bytes();
    (note.host.as_ref().map(HeaderValue::as_bytes) == Some(named)).then_some(referer)
}

/// Turns a client's request into the one for the origin.
fn redirect(request: &mut Request<Incoming>, note: &Note) -> Result<(), &'static str> {
    if note.method == Method::CONNECT {
        return Err("This is no forward proxy.");
    }
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if hosts > 1 || (note.host.is_none() && note.version == Version::HTTP_11) {
        return Err("A request names one host."); // RFC 9112, section 3.2
    }
    if !is_framed_plainly(request.headers()) {
        return Err("Of the transfer codings, only chunked is taken, and that once.");
    }
    if !note.path().starts_with('/') && note.method != Method::OPTIONS {
        return Err("The target of a request is a path.");
    }
    if request.uri().authority().is_some() || request.uri().path_and_query().is_none() {
        *request.uri_mut() = note.target.clone().into();
    }
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    strip_hop_by_hop(headers);
    join_cookies(headers);
    if let Some(host) = note.host.clone() {
        headers.insert(header::HOST, host);
    }
    let name = note.peer.name.as_bytes();
    let forwarded = match headers.get(&X_FORWARDED_FOR).map(HeaderValue::as_bytes) {
        Some(before) => HeaderValue::from_bytes(&[before, b", ", name].concat()),
        None => HeaderValue::from_bytes(name),
    };
    if let Ok(forwarded) = forwarded {
        headers.insert(&X_FORWARDED_FOR, forwarded);
    }
    let scheme = if note.peer.secure { "https" } else { "http" };
    headers.insert(&X_FORWARDED_PROTO, HeaderValue::from_static(scheme));
    Ok(())
}

#[cfg(test)]
mod tests;

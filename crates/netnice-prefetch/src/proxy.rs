// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What happens to each request: passed to the origin, learned from, answered with suggestions.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery};
use http::{Method, Request, Response, StatusCode, Uri, Version};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::accesslog::AccessLog;
use crate::body::{Reply, Timed};
use crate::config::{seconds, Config};
use crate::line::{Line, Mode, Turn};
use crate::metrics::Metrics;
use crate::origin::Origin;
use crate::predict::{Client, Predictor, Served};
use crate::suggest::{self, Verdict};
use crate::{log, page, rules};

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
#[derive(Debug, Clone)]
pub struct Peer {
    /// The client's address.
    pub address: IpAddr,
    /// Whether it came over TLS.
    pub secure: bool,
    /// Whether it came to the second port, whose connections are in the background.
    pub second_port: bool,
    /// The connection.
    pub line: Arc<Line>,
}

/// What is remembered of a request until its answer ends.
struct Note {
    begun: Instant,
    address: IpAddr,
    request: String,
    path: String,
    referer: String,
    agent: String,
    background: bool,
    client: Option<Client>,
    status: StatusCode,
    /// What a whole answer makes of the object; `None`: it says nothing of it.
    object: Option<bool>,
}

fn now_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

fn text(headers: &HeaderMap, name: HeaderName) -> &[u8] {
    headers.get(name).map_or(b"", HeaderValue::as_bytes)
}

/// Removes what belongs to one hop, and what `Connection` names.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// An answer of the proxy's own; errors tell why, in one sentence.
pub fn own(status: StatusCode, sentence: &str) -> Response<Reply> {
    let mut response = Response::new(Reply::own(Bytes::from(format!("{sentence}\n"))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn class(background: bool) -> &'static str {
    if background {
        "prefetch"
    } else {
        "demand"
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
        peer: Peer,
        request: Request<Incoming>,
    ) -> Response<Reply> {
        let mut note = self.note(&peer, &request);
        let (turn, mut response) = match self.turn(&peer, note.background) {
            Ok(turn) => {
                let response = match request.uri().path().strip_prefix(page::PATH) {
                    Some("") if request.method() == Method::GET => {
                        page::answer(&self, &peer, &request)
                    }
                    _ => self.forward(&peer, request, &mut note).await,
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

    fn note(&self, peer: &Peer, request: &Request<Incoming>) -> Note {
        let headers = request.headers();
        let target = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        Note {
            begun: Instant::now(),
            address: peer.address,
            request: format!("{} {target} {:?}", request.method(), request.version()),
            path: target.to_owned(),
            referer: log::escape(text(headers, header::REFERER)),
            agent: log::escape(text(headers, header::USER_AGENT)),
            background: peer.second_port
                || rules::is_prefetch(headers)
                || rules::is_background_priority(headers),
            client: None,
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

    async fn forward(
        &self,
        peer: &Peer,
        mut request: Request<Incoming>,
        note: &mut Note,
    ) -> Response<Reply> {
        let setup = self.setup();
        let is_get = request.method() == Method::GET;
        let asked = request.headers().clone();
        let host = request.uri().authority().cloned();
        if let Err(sentence) = redirect(&mut request, peer, host.as_ref()) {
            return own(StatusCode::BAD_REQUEST, sentence);
        }
        let patience = seconds(setup.config.timeouts.body_s);
        let request = request.map(|body| Timed::new(body, patience));
        let response = match setup.origin.send(request, note.background).await {
            Ok(response) => response,
            Err(error) => return own(error.status(), &error.to_string()),
        };
        let (mut head, body) = response.into_parts();
        strip_hop_by_hop(&mut head.headers);
        if is_get {
            self.learn(peer, &asked, host.as_ref(), &mut head, note, &setup.config);
        }
        Response::from_parts(head, Reply::origin(body, patience))
    }

    /// Learns from an answered GET and adds suggestions to it.
    fn learn(
        &self,
        peer: &Peer,
        asked: &HeaderMap,
        host: Option<&Authority>,
        head: &mut http::response::Parts,
        note: &mut Note,
        config: &Config,
    ) {
        let reusable = rules::is_reusable(head.status, &head.headers);
        note.object = match head.status {
            StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT => None,
            _ => Some(reusable),
        };
        let seen = matches!(head.status, StatusCode::OK | StatusCode::NOT_MODIFIED);
        if !seen
            || asked.contains_key(header::AUTHORIZATION)
            || rules::is_private(&head.headers)
            || !rules::is_local_path(&note.path)
        {
            return;
        }
        let page = match head.status {
            StatusCode::OK => rules::is_page(&head.headers),
            _ => rules::looks_like_page(&note.path),
        };
        let suggests = self.mode() != Mode::Off && !rules::declines(asked);
        let mut predictor = self.predictor();
        let address = peer.address.to_string();
        let client = predictor.client(&address, text(asked, header::USER_AGENT));
        note.client = Some(client);
        if !note.background {
            self.credit(&mut predictor, client, asked, host);
            predictor.visit(client, now_s(), &note.path, page);
            if page {
                let predictions = predictor.predict_for(client);
                let addresses = predictor.settings().addresses;
                let verdicts = suggest::judge(&predictions, &config.suggestions, addresses);
                let chosen =
                    predictions.iter().zip(verdicts).filter(|(_, v)| *v == Verdict::Suggested);
                predictor.set_waiting(client, chosen.map(|(p, _)| p.id).collect::<Vec<_>>());
            }
        }
        // a page's answer carries the first of its list, the answers to prefetches the others
        if suggests && head.status == StatusCode::OK && (page || note.background) {
            let paths = predictor.take_waiting(client, config.suggestions.per_reply);
            drop(predictor);
            let base = self.second_port_base(peer, asked, host);
            if let Some(link) = suggest::link(paths.iter().map(|p| &**p), &base) {
                self.metrics.suggested.inc_by(paths.len() as u64);
                head.headers.append(header::LINK, link);
            }
        }
    }

    /// What stands before suggested paths: nothing, or the second port of this host.
    fn second_port_base(&self, peer: &Peer, asked: &HeaderMap, host: Option<&Authority>) -> String {
        let Mode::Port(port) = self.mode() else { return String::new() };
        let scheme = if peer.secure { "https" } else { "http" };
        let named =
            std::str::from_utf8(text(asked, header::HOST)).ok().and_then(|h| h.parse().ok());
        match host.cloned().or(named) {
            Some(host) => format!("{scheme}://{}:{port}", host.host()),
            None => String::new(),
        }
    }

    /// Counts an object as used, and as visited, that was sent ahead and is now named as `Referer`:
    /// the browser took it from its cache, so no request told of it.
    fn credit(
        &self,
        predictor: &mut Predictor,
        client: Client,
        asked: &HeaderMap,
        host: Option<&Authority>,
    ) {
        let referer: Option<Uri> =
            asked.get(header::REFERER).and_then(|v| v.as_bytes().try_into().ok());
        let Some(referer) = referer else { return };
        let ours = match (host, asked.get(header::HOST)) {
            (Some(host), _) => referer.authority() == Some(host),
            (None, Some(host)) => {
                referer.authority().is_some_and(|a| a.as_str().as_bytes() == host.as_bytes())
            }
            _ => false,
        };
        if let Some(bytes) = ours.then(|| predictor.used_ahead(client, referer.path())).flatten() {
            self.metrics.used.inc();
            self.metrics.used_bytes.inc_by(bytes);
            predictor.visit(client, now_s(), referer.path(), true);
        }
    }

    fn ended(&self, note: Note, sent: u64, whole: bool, took: Duration) {
        let class = class(note.background);
        let status = format!("{}xx", note.status.as_u16() / 100);
        self.metrics.answers.with_label_values(&[class, &status]).inc();
        self.metrics.bytes.with_label_values(&[class]).inc_by(sent);
        if !note.background {
            self.metrics.demand_s.observe(took.as_secs_f64());
        }
        if let Some(reusable) = note.object.filter(|_| whole) {
            let served = if reusable { Served::Reusable(sent) } else { Served::Refused };
            let mut predictor = self.predictor();
            predictor.served(&note.path, served);
            if let Some(client) = note.client.filter(|_| note.background) {
                predictor.sent_ahead(client, &note.path, sent);
            }
        }
        if let Some(access_log) = &self.access_log {
            let Note { address, request, referer, agent, .. } = &note;
            let time = log::format_time(jiff::Timestamp::now());
            let request = log::escape(request.as_bytes());
            let status = note.status.as_u16();
            let mark = if note.background { " \"prefetch\"" } else { "" };
            let line = format!(
                r#"{address} - - [{time}] "{request}" {status} {sent} "{referer}" "{agent}"{mark}"#
            );
            if !access_log.write(line) {
                self.metrics.lost_lines.inc();
            }
        }
    }
}

/// Turns a client's request into the one for the origin.
fn redirect(
    request: &mut Request<Incoming>,
    peer: &Peer,
    host: Option<&Authority>,
) -> Result<(), &'static str> {
    if request.method() == Method::CONNECT {
        return Err("This is no forward proxy.");
    }
    let hosts = request.headers().get_all(header::HOST).iter().count();
    if hosts > 1 || (hosts == 0 && host.is_none() && request.version() == Version::HTTP_11) {
        return Err("A request names one host."); // RFC 9112, section 3.2
    }
    let target = match request.uri().path_and_query() {
        Some(target) => target.clone(),
        None => PathAndQuery::from_static("/"),
    };
    if !target.as_str().starts_with('/') && request.method() != Method::OPTIONS {
        return Err("The target of a request is a path.");
    }
    *request.uri_mut() = target.into();
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    strip_hop_by_hop(headers);
    // of HTTP/2, or an absolute target, which overrules Host
    if let Some(host) = host.and_then(|h| HeaderValue::from_str(h.as_str()).ok()) {
        headers.insert(header::HOST, host);
    }
    let address = peer.address.to_string();
    let forwarded = match headers.get("x-forwarded-for").map(HeaderValue::as_bytes) {
        Some(before) => [before, b", ", address.as_bytes()].concat(),
        None => address.into_bytes(),
    };
    if let Ok(forwarded) = HeaderValue::from_bytes(&forwarded) {
        headers.insert("x-forwarded-for", forwarded);
    }
    let scheme = if peer.secure { "https" } else { "http" };
    headers.insert("x-forwarded-proto", HeaderValue::from_static(scheme));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_belongs_to_one_hop_is_removed_with_what_connection_names() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("x-kept", "1"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        strip_hop_by_hop(&mut headers);
        assert_eq!(headers.len(), 1);
        assert!(headers.contains_key("x-kept"));
    }
}

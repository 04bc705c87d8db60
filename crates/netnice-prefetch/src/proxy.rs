// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What happens to each request: passed to the origin, learned from, answered with suggestions.

mod request;

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Uri, Version};
use tokio::time::Instant;

use crate::accesslog::AccessLog;
use crate::body::{Inbound, Timed};
use crate::config::{seconds, Config};
use crate::head::{Refusal, NOT_ONE_LENGTH};
use crate::headers::{is_framed_plainly, join_length, strip_hop_by_hop};
use crate::line::{Line, Mode, Turn};
use crate::metrics::Metrics;
use crate::origin::Origin;
use crate::page::{self, PageView};
use crate::predict::{Client, Predictor, Served};
use crate::reply::{own, Reply};
use crate::suggest::{self, Verdict};
use crate::{log, rules};
use request::{check, note, own_referer, redirect, text, Note};

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
    /// Its name in `Via`, which no other has, so that a request which comes back is noticed.
    pseudonym: String,
    /// What it adds to `Via`, for requests of HTTP/1.0, 1.1, 2 and 3.
    via: [HeaderValue; 4],
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

fn now_s() -> i64 {
    jiff::Timestamp::now().as_second()
}

impl Proxy {
    /// A proxy by this configuration, which must have passed [`Config::check`].
    ///
    /// # Errors
    /// If its access log cannot be opened.
    pub fn new(setup: Setup, predictor: Predictor) -> io::Result<Self> {
        let metrics = Metrics::new();
        let access_log = setup.config.access_log.clone();
        let access_log =
            access_log.map(|path| AccessLog::open(path, metrics.lost_lines.clone())).transpose()?;
        let pseudonym = format!("netnice-{:08x}", RandomState::new().hash_one(0) as u32);
        let via = ["1.0", "1.1", "2", "3"].map(|version| {
            HeaderValue::try_from(format!("{version} {pseudonym}")).expect("visible ASCII")
        });
        Ok(Self {
            pseudonym,
            via,
            setup: RwLock::new(Arc::new(setup)),
            mode: RwLock::new(Mode::Off),
            predictor: Mutex::new(predictor),
            metrics,
            access_log,
        })
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

    /// Where prefetches of a client go now. On QUIC the connection needs nobody's leave to yield.
    fn mode_of(&self, peer: &Peer, config: &Config) -> Mode {
        match peer.line.is_quic() && config.background.may_switch() {
            true => Mode::Connection,
            false => self.mode(),
        }
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
        request: Request<Inbound>,
    ) -> Response<Reply> {
        let setup = self.setup();
        let mut note = note(&peer, &request, &setup.config);
        let (turn, mut response) = match self.turn(&peer, note.background, &setup.config) {
            Ok(turn) => {
                let response = match request.uri().path().strip_prefix(page::PATH) {
                    Some("") if request.method() == Method::GET => self.page(&peer, &request),
                    _ => self.forward(request, &mut note, &setup).await,
                };
                (Some(turn), response)
            }
            Err(refused) => (None, *refused),
        };
        note.status = response.status();
        if setup.config.http3() && peer.secure && !peer.second_port && !peer.line.is_quic() {
            response.headers_mut().insert(header::ALT_SVC, alternative(&note));
        }
        let begun = note.begun;
        let this = self.clone();
        let ended = Box::new(move |sent, whole, took| this.ended(note, sent, whole, took));
        *response.version_mut() = Version::HTTP_11; // the origin's may be 1.0
        response.map(|body| body.attach(turn, begun, ended))
    }

    /// Answers a request that nobody reads but this answer.
    pub fn refuse(self: Arc<Self>, peer: Arc<Peer>, refusal: Refusal) -> Response<Reply> {
        let begun = Instant::now();
        let ended = Box::new(move |sent, _, took| {
            self.metrics.answered(false, refusal.status, sent, took);
            self.log(&peer.name, &refusal.line, refusal.status, sent, [b"", b""], false);
        });
        own(refusal.status, refusal.sentence).map(|body| body.attach(None, begun, ended))
    }

    /// The page about the proxy: for clients of this machine, not for those behind another proxy on
    /// it, unless the configuration opens it.
    fn page<B>(&self, peer: &Peer, request: &Request<B>) -> Response<Reply> {
        let forwarded =
            ["forwarded", "x-forwarded-for"].iter().any(|n| request.headers().contains_key(*n));
        let config = &self.setup().config;
        if !(peer.address.is_loopback() && !forwarded || config.page_for_all) {
            return own(StatusCode::NOT_FOUND, "Not found.");
        }
        let (busiest, size) = {
            let predictor = self.predictor();
            let wanted = |path: &str| !rules::is_never(&config.never, path);
            (predictor.busiest(20, wanted), predictor.size())
        };
        let mode = self.mode();
        page::answer(&PageView { mode: mode.name(), metrics: &self.metrics, busiest, size })
    }

    /// Takes the connection for an answer, or says why the request is refused.
    fn turn(
        &self,
        peer: &Peer,
        background: bool,
        config: &Config,
    ) -> Result<Turn, Box<Response<Reply>>> {
        let unavailable = |why: &str| {
            self.metrics.refused.inc();
            Box::new(own(StatusCode::SERVICE_UNAVAILABLE, &format!("No prefetching now: {why}.")))
        };
        match self.mode_of(peer, config) {
            _ if !background => peer.line.foreground(),
            Mode::Port(_) if peer.second_port => peer.line.foreground(), // the port is background
            Mode::Port(port) => return Err(unavailable(&format!("prefetch from port {port}"))),
            Mode::Off => return Err(unavailable("nothing can be sent in the background")),
            Mode::Connection => peer.line.background(),
        }
        .map_err(|error| {
            if error.kind() != io::ErrorKind::Unsupported {
                self.set_mode(Mode::Off); // until the next probe
            }
            unavailable(&format!("the connection cannot be switched ({error})"))
        })
    }

    async fn forward(
        &self,
        mut request: Request<Inbound>,
        note: &mut Note,
        setup: &Setup,
    ) -> Response<Reply> {
        let most = setup.config.bounds.headers;
        let checked = match join_length(request.headers_mut()) {
            true => check(&request, note, most, &self.pseudonym),
            false => Err((StatusCode::BAD_REQUEST, NOT_ONE_LENGTH)),
        };
        if let Err((status, sentence)) = checked {
            let mut refused = own(status, sentence);
            // where such a request ends, others may see elsewhere
            refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return refused;
        }
        let via = match note.version {
            Version::HTTP_10 => &self.via[0],
            Version::HTTP_2 => &self.via[2],
            Version::HTTP_3 => &self.via[3],
            _ => &self.via[1],
        };
        redirect(&mut request, note, via);
        let patience = seconds(setup.config.timeouts.body_s);
        let request = request.map(|body| Timed::new(body, patience));
        let response = match setup.origin.send(request, note.background).await {
            Ok(response) => response,
            Err(error) => return own(error.status(), &error.to_string()),
        };
        let (mut head, body) = response.into_parts();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            let sentence =
                "The web server behind this proxy changed to a protocol that nobody asked for.";
            return own(StatusCode::BAD_GATEWAY, sentence);
        }
        if !is_framed_plainly(&head.headers) {
            let sentence = "The web server behind this proxy encoded its answer in an unknown way.";
            return own(StatusCode::BAD_GATEWAY, sentence);
        }
        let chunked = head.headers.contains_key(header::TRANSFER_ENCODING);
        if chunked || head.status == StatusCode::NO_CONTENT {
            head.headers.remove(header::CONTENT_LENGTH); // RFC 9112, section 6.3; RFC 9110, section 8.6
        }
        if !join_length(&mut head.headers) {
            let sentence =
                "The web server behind this proxy told a length of its answer that is not one number.";
            return own(StatusCode::BAD_GATEWAY, sentence);
        }
        strip_hop_by_hop(&mut head.headers);
        if note.method == Method::GET {
            self.learn(&mut head, note, &setup.config);
        }
        Response::from_parts(head, Reply::origin(body, patience))
    }

    /// Learns from an answered GET and adds suggestions to it.
    fn learn(&self, head: &mut http::response::Parts, note: &mut Note, config: &Config) {
        if note.personal && !rules::is_public(&head.headers) {
            self.metrics.personal.inc();
            note.follows = true;
        }
        let is_never = |path: &str| rules::is_never(&config.never, path);
        let never = is_never(note.path());
        let reusable = rules::is_reusable(head.status, &head.headers);
        note.object = match head.status {
            StatusCode::NOT_MODIFIED | StatusCode::PARTIAL_CONTENT => None,
            _ if note.follows || never => None,
            _ => Some(reusable),
        };
        let seen = matches!(head.status, StatusCode::OK | StatusCode::NOT_MODIFIED);
        let page = match head.status {
            StatusCode::OK => rules::is_page(&head.headers),
            _ => rules::looks_like_page(note.path()),
        };
        note.page = seen && page && !note.background;
        let learned = !never && rules::is_local_path(note.path());
        if !seen || !learned || rules::is_private(&head.headers) {
            return;
        }
        let mode = self.mode_of(&note.peer, config);
        let limits = &config.suggestions;
        let mut predictor = self.predictor();
        let client = predictor.client(note.name(), text(&note.agent));
        let client = if note.follows { client.apart() } else { client };
        note.client = Some(client);
        if !note.background {
            let referer = own_referer(note).filter(|referer| !is_never(referer.path()));
            if let Some(referer) = &referer {
                self.credit(&mut predictor, client, referer);
            }
            let id = predictor.visit(client, now_s(), note.path(), page);
            if let (Some(id), Some(referer)) = (id, referer.filter(|_| !page)) {
                predictor.part_of(referer.path(), id);
            }
            if page {
                let predictions = predictor.predict_for(client, limits.threshold);
                let verdicts = suggest::judge(&predictions, limits, &config.never);
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
            let mut paths = predictor.take_waiting(client, limits.per_reply);
            drop(predictor);
            paths.retain(|path| !is_never(path)); // named since they were chosen
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
        self.metrics.spoken(note.background, note.version);
        if note.page && whole {
            self.metrics.page_s.observe(took.as_secs_f64());
        }
        if self.access_log.is_some() {
            let Note { method, target, version, .. } = &note;
            let request = format!("{method} {target} {version:?}");
            let by = [text(&note.referer), text(&note.agent)];
            self.log(note.name(), request.as_bytes(), note.status, sent, by, note.background);
        }
    }

    /// Writes a line into the access log: for whom, the request's first line, what it got, its referer
    /// and agent, and whether it was a prefetch.
    fn log(
        &self,
        client: &str,
        request: &[u8],
        status: StatusCode,
        sent: u64,
        by: [&[u8]; 2],
        prefetch: bool,
    ) {
        let Some(access_log) = &self.access_log else { return };
        let time = log::format_time(jiff::Timestamp::now());
        let (request, [referer, agent]) = (log::escape(request), by.map(log::escape));
        let status = status.as_u16();
        let mark = if prefetch { " \"prefetch\"" } else { "" };
        let line = format!(
            r#"{client} - - [{time}] "{request}" {status} {sent} "{referer}" "{agent}"{mark}"#
        );
        access_log.write(line);
    }
}

/// Where HTTP/3 is (RFC 9114, section 3.1.1): behind the port that the client knows.
fn alternative(note: &Note) -> HeaderValue {
    let host = Authority::try_from(text(&note.host)).ok();
    let port = host.and_then(|host| host.port_u16()).unwrap_or(443);
    HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).expect("visible ASCII")
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

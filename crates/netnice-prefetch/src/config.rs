// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The configuration of `netnice-prefetch serve`: a TOML file, each key with a default.

use std::mem::replace;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::uri::Authority;
use http::Uri;
use netnice_core::{Algorithm, Class};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::headers::is_host;
use crate::predict::Settings;
use crate::suggest::Limits;
use crate::trust::Prefix;
use crate::{files, range, rules};

/// The whole file. docs/prefetch.md explains each key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `http://host:port` of the web server behind the proxy.
    pub origin: String,
    /// Addresses and ports to listen on; see [`address`].
    #[serde(deserialize_with = "addresses")]
    pub listen: Vec<SocketAddr>,
    /// Address and port of `/metrics` and `/healthz`.
    pub admin: Option<SocketAddr>,
    /// File of the model: loaded at the start, saved from time to time and at the end.
    pub model: Option<PathBuf>,
    /// Seconds between savings of the model.
    pub save_every_s: u64,
    /// Access log in the combined format; `-` is standard output.
    pub access_log: Option<PathBuf>,
    /// Other proxies in front of this one, believed in what they say of their clients.
    pub trust: Vec<Prefix>,
    /// Whether a cookie tells who asks; what such a request does teaches nothing then.
    pub cookies_identify: bool,
    /// Beginnings of paths that are neither learned nor suggested; see [`check_never`].
    pub never: Vec<String>,
    /// Where the page of the proxy is served: to local clients only, or to all.
    pub page_for_all: bool,
    /// Certificate and key; without, plain HTTP/1.1.
    pub tls: Option<Tls>,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Bounds of what clients may take.
    pub bounds: Bounds,
    /// How the predictor learns.
    pub learning: Settings,
    /// What is suggested.
    pub suggestions: Limits,
    /// How prefetches are answered.
    pub background: Background,
}

/// Where to listen: `IP:PORT`, or `:PORT` for all addresses, IPv6 and IPv4, as `[::]:PORT`.
///
/// # Errors
/// If it is neither.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    match text.strip_prefix(':').map(str::parse) {
        Some(Ok(port)) => Ok(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port)),
        _ => text.parse().map_err(|_| format!("`{text}` is neither IP:PORT nor :PORT")),
    }
}

/// Checks that beginnings of paths could be those of paths that are learned.
///
/// # Errors
/// The first that could not.
pub fn check_never(never: &[String]) -> Result<(), Error> {
    let Some(start) = never.iter().find(|start| !rules::is_local_path(start)) else {
        return Ok(());
    };
    let what = format!(
        "`{start}` is no beginning of a path: it begins with / and is percent-encoded, as /caf%C3%A9"
    );
    Err(Error { place: "never".into(), what })
}

fn addresses<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<SocketAddr>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    texts.iter().map(|text| address(text).map_err(D::Error::custom)).collect()
}

impl Default for Config {
    fn default() -> Self {
        Self {
            origin: "http://127.0.0.1:8080".into(),
            listen: Vec::new(),
            admin: None,
            model: None,
            save_every_s: 300,
            access_log: None,
            trust: Vec::new(),
            cookies_identify: true,
            never: Vec::new(),
            page_for_all: false,
            tls: None,
            timeouts: Timeouts::default(),
            bounds: Bounds::default(),
            learning: Settings::default(),
            suggestions: Limits::default(),
            background: Background::default(),
        }
    }
}

/// TLS: HTTP/1.1 and HTTP/2, chosen by ALPN, and maybe HTTP/3.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM file of the certificate and its chain.
    pub cert: PathBuf,
    /// PEM file of the private key.
    pub key: PathBuf,
    /// Whether HTTP/3 is served on the same ports of UDP.
    #[serde(default)]
    pub http3: bool,
}

/// Timeouts, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// To connect to the origin, and before it for a place among the connections to it.
    pub connect_s: u64,
    /// For the head of the origin's answer.
    pub answer_s: u64,
    /// Without a byte of a body, in either direction.
    pub body_s: u64,
    /// For a client's handshake and the head of a request; an idle connection is closed after it.
    pub idle_s: u64,
    /// For answers under way when the proxy ends.
    pub shutdown_s: u64,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect_s: 5, answer_s: 60, body_s: 60, idle_s: 60, shutdown_s: 30 }
    }
}

const DAY_S: u64 = 24 * 3600;
const WEEK_S: u64 = 7 * DAY_S;
/// Most header lines that a request may be allowed to have.
pub const MOST_HEADERS: usize = 1000;

/// Seconds as a duration.
pub fn seconds(s: u64) -> Duration {
    Duration::from_secs(s)
}

/// Bounds of what clients may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bounds {
    /// Connections at once. One more takes the place of the one idle longest, or waits for the first
    /// that will be idle, or whose client takes nothing of its answers for [`Timeouts::body_s`].
    pub connections: usize,
    /// Connections to the origin at once. Further requests wait for up to [`Timeouts::connect_s`];
    /// prefetches do not, and leave half of them to demand.
    pub origin_connections: usize,
    /// Bytes of a request's head.
    pub header_bytes: usize,
    /// Header lines of a request.
    pub headers: usize,
    /// Requests at once on one connection of HTTP/2 or HTTP/3.
    pub streams: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 10_000,
            origin_connections: 1000,
            header_bytes: 32 << 10,
            headers: 100,
            streams: 100,
        }
    }
}

/// How prefetches are answered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Background {
    /// Which way.
    pub mode: Wanted,
    /// Congestion control of the background; HTTP/3 knows those of netnice alone.
    pub control: String,
    /// A second port that something else keeps in the background, such as a router's priorities.
    pub port: Option<u16>,
}

impl Default for Background {
    fn default() -> Self {
        Self { mode: Wanted::Auto, control: Class::default().algorithm().control(), port: None }
    }
}

impl Background {
    /// Whether prefetches may go over the client's connection, where that can be put in the background.
    pub fn may_switch(&self) -> bool {
        matches!(self.mode, Wanted::Auto | Wanted::Connection)
    }

    /// The algorithm of netnice that the control is, if it is one: QUIC has no others.
    pub fn algorithm(&self) -> Option<Algorithm> {
        Algorithm::all().find(|algorithm| algorithm.control() == self.control)
    }
}

/// The way that is wanted for prefetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wanted {
    /// The first of the others that is possible.
    Auto,
    /// Over the client's connection.
    Connection,
    /// Over the second port.
    Port,
    /// No prefetching.
    Off,
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Error {
    /// The file, or the command line.
    pub place: String,
    /// What is wrong and what would be right.
    pub what: String,
}

impl Error {
    /// Of an option on the command line.
    pub fn option(what: String) -> Self {
        Self { place: "command line".into(), what }
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or has a key that is unknown or of the wrong type.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let fail = |what: String| Error { place: path.display().to_string(), what };
        let bytes = files::read(path).map_err(|e| fail(e.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| fail("it is not UTF-8".into()))?;
        toml::from_str(&text).map_err(|e| {
            let before = e.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            let line = before.matches('\n').count() + 1;
            fail(format!("line {line}: {}", e.message().trim_end().replace('\n', ", ")))
        })
    }

    /// The origin's scheme and authority.
    ///
    /// # Errors
    /// If it is not `http://HOST` or `http://HOST:PORT`.
    pub fn origin(&self) -> Result<Authority, Error> {
        let wrong = || Error {
            place: "origin".into(),
            what: format!(
                "`{}` is not http://HOST:PORT, its port from 1 to 65535, without a path",
                self.origin
            ),
        };
        let uri: Uri = self.origin.parse().map_err(|_| wrong())?;
        let is_reachable = |authority: &Authority| {
            let no_port = authority.as_str() == authority.host();
            is_host(authority.as_str().as_bytes()) && (no_port || authority.port_u16() > Some(0))
        };
        let plain = uri.path_and_query().is_none_or(|p| p == "/" || p == "");
        match (uri.scheme_str(), uri.authority()) {
            (Some("http"), Some(authority)) if plain && is_reachable(authority) => {
                Ok(authority.clone())
            }
            _ => Err(wrong()),
        }
    }

    /// Whether HTTP/3 is served.
    pub fn http3(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.http3)
    }

    /// Puts back what only a restart can change, and tells which keys wanted to.
    pub fn keep_started(&mut self, old: &Self) -> Vec<&'static str> {
        fn keep<T: Clone + PartialEq>(new: &mut T, old: &T) -> bool {
            replace(new, old.clone()) != *old
        }
        let (learning, was) = (&mut self.learning, &old.learning);
        // without a certificate there is none to serve it with, until there is one again
        let http3 = old.http3();
        let http3_kept = self.tls.as_mut().is_some_and(|tls| keep(&mut tls.http3, &http3));
        let kept = [
            ("listen", keep(&mut self.listen, &old.listen)),
            ("admin", keep(&mut self.admin, &old.admin)),
            ("access_log", keep(&mut self.access_log, &old.access_log)),
            ("bounds.connections", keep(&mut self.bounds.connections, &old.bounds.connections)),
            ("learning.n", keep(&mut learning.n, &was.n)),
            ("learning.w", keep(&mut learning.w, &was.w)),
            ("background.port", keep(&mut self.background.port, &old.background.port)),
            ("tls.http3", http3_kept),
        ];
        kept.into_iter().filter_map(|(key, changed)| changed.then_some(key)).collect()
    }

    /// Checks every value that has a range.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        let fail = |place: &str, what: String| Error { place: place.into(), what };
        self.origin()?;
        check_never(&self.never)?;
        self.learning.check().map_err(|e| fail("learning", e))?;
        self.suggestions.check().map_err(|e| fail("suggestions", e))?;
        let (t, b) = (self.timeouts, self.bounds);
        range::check([("save_every_s", self.save_every_s, 1..=WEEK_S)])
            .map_err(|e| fail("configuration", e))?;
        range::check([
            ("connect_s", t.connect_s, 1..=DAY_S),
            ("answer_s", t.answer_s, 1..=DAY_S),
            ("body_s", t.body_s, 1..=DAY_S),
            ("idle_s", t.idle_s, 1..=DAY_S),
            ("shutdown_s", t.shutdown_s, 0..=DAY_S),
        ])
        .map_err(|e| fail("timeouts", e))?;
        range::check([
            ("connections", b.connections, 1..=1_000_000),
            ("origin_connections", b.origin_connections, 1..=1_000_000),
            ("header_bytes", b.header_bytes, 8192..=1 << 20),
            ("headers", b.headers, 1..=MOST_HEADERS),
            ("streams", b.streams as usize, 1..=100_000),
        ])
        .map_err(|e| fail("bounds", e))?;
        match () {
            _ if self.listen.is_empty() => Err(fail("listen", "no address to listen on".into())),
            _ if self.background.port == Some(0) => {
                Err(fail("background", "port is 0, not 1 to 65535".into()))
            }
            _ if self.background.mode == Wanted::Port && self.background.port.is_none() => {
                Err(fail("background", "mode = \"port\" needs `port`".into()))
            }
            _ if self.http3() && self.background.algorithm().is_none() => Err(fail(
                "background",
                format!(
                    "control `{}` is not of netnice, so HTTP/3 does not have it: choose another, \
                     such as {}, or leave http3 out",
                    self.background.control,
                    Class::default().algorithm().control()
                ),
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is kept of a request, what may be wrong with it, and what of it goes to the origin.

use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, StatusCode, Uri, Version};
use tokio::time::Instant;

use super::Peer;
use crate::config::Config;
use crate::head::TOO_MANY;
use crate::headers::{
    is_framed_plainly, is_host, join, members, strip_hop_by_hop, X_FORWARDED_FOR, X_FORWARDED_PROTO,
};
use crate::predict::Client;
use crate::{rules, trust};

/// What is remembered of a request until its answer ends. What it shares with the request is not
/// copied.
pub(super) struct Note {
    pub(super) begun: Instant,
    pub(super) peer: Arc<Peer>,
    /// Whether the peer is believed in what it says of its own client, and that, if it says it.
    pub(super) trusted: bool,
    pub(super) client_name: Option<String>,
    pub(super) method: Method,
    pub(super) target: PathAndQuery,
    pub(super) version: Version,
    pub(super) host: Option<HeaderValue>,
    pub(super) referer: Option<HeaderValue>,
    pub(super) agent: Option<HeaderValue>,
    pub(super) background: bool,
    /// Whether the request tells who asks: what that one does is nobody else's to know, unless the
    /// answer is public.
    pub(super) personal: bool,
    /// Whether suggestions are unwanted.
    pub(super) declines: bool,
    pub(super) client: Option<Client>,
    /// Whether its client is followed apart, and teaches nothing.
    pub(super) follows: bool,
    /// Whether a page was asked for, not ahead, and is answered.
    pub(super) page: bool,
    pub(super) status: StatusCode,
    /// What a whole answer makes of the object; `None`: it says nothing of it.
    pub(super) object: Option<bool>,
}

impl Note {
    pub(super) fn path(&self) -> &str {
        self.target.as_str()
    }

    /// The address for which the request is.
    pub(super) fn name(&self) -> &str {
        self.client_name.as_deref().unwrap_or(&self.peer.name)
    }
}

pub(super) fn text(value: &Option<HeaderValue>) -> &[u8] {
    value.as_ref().map_or(b"", HeaderValue::as_bytes)
}

/// What is kept of a request.
pub(super) fn note<B>(peer: &Arc<Peer>, request: &Request<B>, config: &Config) -> Note {
    let headers = request.headers();
    // http's empty path looks like `/`, but is not written so
    let target = request.uri().path_and_query().filter(|target| target.as_str() != "/").cloned();
    let host = request.uri().authority().and_then(|a| HeaderValue::from_str(a.as_str()).ok());
    let trusted = trust::is_trusted(&config.trust, peer.address);
    let told = || trust::client(&config.trust, headers).map(|client| client.to_string());
    let has_cookie = || config.cookies_identify && headers.contains_key(header::COOKIE);
    Note {
        begun: Instant::now(),
        peer: peer.clone(),
        trusted,
        client_name: trusted.then(told).flatten(),
        method: request.method().clone(),
        target: target.unwrap_or(PathAndQuery::from_static("/")),
        version: request.version(),
        // of HTTP/2 and 3, or an absolute target, which overrules Host
        host: host.or_else(|| headers.get(header::HOST).cloned()),
        referer: headers.get(header::REFERER).cloned(),
        agent: headers.get(header::USER_AGENT).cloned(),
        background: peer.second_port
            || rules::is_prefetch(headers)
            || rules::is_background_priority(headers),
        personal: headers.contains_key(header::AUTHORIZATION) || has_cookie(),
        declines: rules::declines(headers),
        client: None,
        follows: false,
        page: false,
        status: StatusCode::OK,
        object: None,
    }
}

/// What a request names as `Referer`, if that is of this site.
pub(super) fn own_referer(note: &Note) -> Option<Uri> {
    let referer = Uri::try_from(note.referer.as_ref()?.as_bytes()).ok()?;
    let named = referer.authority()?.as_str().as_bytes();
    (note.host.as_ref().map(HeaderValue::as_bytes) == Some(named)).then_some(referer)
}

/// Why a request goes no further, in a sentence.
pub(super) type Wrong = (StatusCode, &'static str);

/// Says what is wrong with a request, if anything is: with one of HTTP/2 or 3, which may have so many
/// header lines, too.
pub(super) fn check<B>(
    request: &Request<B>,
    note: &Note,
    most: usize,
    own: &str,
) -> Result<(), Wrong> {
    let headers = request.headers();
    let hosts = || headers.get_all(header::HOST).iter();
    // HTTP/2 and 3 may split what is one cookie line
    let lines = headers.len() - headers.get_all(header::COOKIE).iter().skip(1).count();
    let wrong = match () {
        _ if note.method == Method::CONNECT => "This is no forward proxy.",
        // RFC 9112, section 3.2
        _ if hosts().count() > 1 => "A request names one host.",
        _ if note.host.is_none() && note.version != Version::HTTP_10 => "A request names its host.",
        _ if !note.host.iter().chain(hosts()).all(|host| is_host(host.as_bytes())) => {
            "A host is NAME or NAME:PORT."
        }
        _ if !is_framed_plainly(headers) => {
            "Of the transfer codings, only chunked is taken, and that once."
        }
        _ if !note.path().starts_with('/') && note.method != Method::OPTIONS => {
            "The target of a request is a path."
        }
        _ if lines > most => return Err((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, TOO_MANY)),
        _ if members(headers, &header::VIA).any(|by| by.split(' ').nth(1) == Some(own)) => {
            return Err((StatusCode::LOOP_DETECTED, LOOP));
        }
        _ => return Ok(()),
    };
    Err((StatusCode::BAD_REQUEST, wrong))
}

const LOOP: &str = "This request has been here before: the origin of this proxy leads back to it. \
                    Let `origin` be the web server's address.";

/// Turns a client's request, which [`check`] let pass, into the one for the origin.
pub(super) fn redirect<B>(request: &mut Request<B>, note: &Note, via: &HeaderValue) {
    if request.uri().authority().is_some() || request.uri().path_and_query().is_none() {
        *request.uri_mut() = note.target.clone().into();
    }
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    strip_hop_by_hop(headers);
    join(headers, &header::COOKIE, b"; ", None); // HTTP/2 and 3 may split it (RFC 9113, section 8.2.3)
    if let Some(host) = note.host.clone() {
        headers.insert(header::HOST, host);
    }
    join(headers, &X_FORWARDED_FOR, b", ", Some(note.peer.name.as_bytes()));
    if headers.contains_key(header::VIA) {
        join(headers, &header::VIA, b", ", Some(via.as_bytes()));
    } else {
        headers.insert(header::VIA, via.clone());
    }
    let mut told = headers.get_all(&X_FORWARDED_PROTO).iter().map(HeaderValue::as_bytes);
    let known = matches!((told.next(), told.next()), (Some(b"http" | b"https"), None));
    if !(note.trusted && known) {
        let scheme = if note.peer.secure { "https" } else { "http" };
        headers.insert(&X_FORWARDED_PROTO, HeaderValue::from_static(scheme));
    }
}

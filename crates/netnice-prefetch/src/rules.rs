// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What may be predicted: paths that name static content of this site, and answers that any
//! client may keep for a while.

use std::time::SystemTime;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::StatusCode;

use crate::headers::members;

static PRIORITY: HeaderName = HeaderName::from_static("priority");
static SAVE_DATA: HeaderName = HeaderName::from_static("save-data");
/// By which a request says that it is a prefetch.
static PURPOSES: [HeaderName; 3] = [
    HeaderName::from_static("sec-purpose"),
    HeaderName::from_static("purpose"),
    HeaderName::from_static("x-moz"),
];

/// Longest path that is learned, in bytes.
pub const LONGEST_PATH: usize = 1024;

/// Endings of programs: what they answer is generated for each request.
const PROGRAMS: [&str; 12] =
    ["asp", "aspx", "cgi", "do", "dll", "exe", "fcgi", "jsp", "php", "pl", "py", "rb"];
/// Endings of pages; a path without an ending is a page too.
const PAGES: [&str; 4] = ["htm", "html", "shtml", "xhtml"];

fn ending(path: &str) -> Option<&str> {
    let file = path.split('?').next()?.rsplit('/').next()?;
    file.rsplit_once('.').map(|(_, ending)| ending)
}

fn is_one_of(ending: &str, list: &[&str]) -> bool {
    list.iter().any(|e| ending.eq_ignore_ascii_case(e))
}

/// Whether a path stays on this site and can stand in a `Link` header as it is: it starts with one
/// slash, has only visible ASCII but `" < > \ ^ {` `|` `}` and backtick, and at most [`LONGEST_PATH`]
/// bytes. What a log or a client sends beyond that is not learned.
pub fn is_local_path(path: &str) -> bool {
    let bytes = path.as_bytes();
    bytes.len() <= LONGEST_PATH
        && bytes.first() == Some(&b'/')
        && bytes.get(1) != Some(&b'/')
        && bytes.iter().all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(b))
}

/// Whether the operator has named the beginning of a path as one that is neither learned nor suggested.
pub fn is_never(never: &[String], path: &str) -> bool {
    never.iter().any(|start| path.starts_with(&**start))
}

/// Whether a path names something generated for each request: it has a query, or the ending of a
/// program, or lies in `cgi-bin` (the paper's rule).
pub fn is_dynamic(path: &str) -> bool {
    path.contains('?')
        || path.contains("/cgi-bin/")
        || ending(path).is_some_and(|e| is_one_of(e, &PROGRAMS))
}

/// Whether a path looks like a page, for logs, which do not tell the type of the content.
pub fn looks_like_page(path: &str) -> bool {
    ending(path).is_none_or(|e| is_one_of(e, &PAGES) || is_one_of(e, &PROGRAMS))
}

/// Whether an answer is a page: its `Content-Type` is HTML.
pub fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    let kind = kind.split(';').next().unwrap_or("").trim();
    kind.eq_ignore_ascii_case("text/html") || kind.eq_ignore_ascii_case("application/xhtml+xml")
}

/// Whether a directive stands in `Cache-Control`; its argument is ignored.
fn has_directive(headers: &HeaderMap, wanted: &str) -> bool {
    members(headers, &header::CACHE_CONTROL)
        .any(|d| d.split('=').next().is_some_and(|d| d.trim().eq_ignore_ascii_case(wanted)))
}

fn max_age_s(headers: &HeaderMap) -> Option<u64> {
    members(headers, &header::CACHE_CONTROL)
        .find_map(|d| {
            let (name, age) = d.split_once('=')?;
            name.trim()
                .eq_ignore_ascii_case("max-age")
                .then(|| age.trim().trim_matches('"').parse())
        })?
        .ok()
}

/// The date in a header. RFC 9111, section 5.3: what is no date (`Expires: 0`) is past, and of several
/// the first counts.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?.trim()).ok()
}

/// Whether `Expires` is later than the answer's `Date`, or than now if that is missing or no date.
fn expires_later(headers: &HeaderMap) -> bool {
    let from = date(headers, &header::DATE).unwrap_or_else(SystemTime::now);
    date(headers, &header::EXPIRES).is_some_and(|expires| expires > from)
}

/// Whether a client that got this answer ahead of time could use it, and any client would get the
/// same: a complete answer (200) without cookies that may be stored by a shared cache, does not
/// expire at once, does not depend on more than the encoding, and has a lifetime or a validator
/// from which the browser derives one (RFC 9111, sections 3 and 4.2). `max-age` overrules `Expires`;
/// `s-maxage` is left out, since the cache that counts is the browser's own.
pub fn is_reusable(status: StatusCode, headers: &HeaderMap) -> bool {
    let forbidden = ["no-store", "no-cache", "private"].iter().any(|d| has_directive(headers, d));
    let varies = members(headers, &header::VARY)
        .any(|v| !v.eq_ignore_ascii_case("accept-encoding") && !v.is_empty());
    let lives = match max_age_s(headers) {
        Some(age_s) => age_s > 0,
        None if headers.contains_key(header::EXPIRES) => expires_later(headers),
        None => [header::LAST_MODIFIED, header::ETAG].iter().any(|n| headers.contains_key(n)),
    };
    let not_cached = members(headers, &header::PRAGMA).any(|v| v == "no-cache");
    status == StatusCode::OK
        && !forbidden
        && !varies
        && lives
        && !not_cached
        && !headers.contains_key(header::SET_COOKIE)
}

/// Whether an answer is meant for one client: private, not to be stored, or with a cookie. Nothing is
/// learned from it.
pub fn is_private(headers: &HeaderMap) -> bool {
    headers.contains_key(header::SET_COOKIE)
        || ["no-store", "private"].iter().any(|d| has_directive(headers, d))
}

/// Whether an answer is said to be for everybody, whoever asked (RFC 9111, section 5.2.2.9).
pub fn is_public(headers: &HeaderMap) -> bool {
    has_directive(headers, "public")
}

/// Whether a request says that it is a prefetch: `Sec-Purpose: prefetch` (with parameters such as
/// `prerender`), or the older `Purpose` and `X-Moz`.
pub fn is_prefetch(headers: &HeaderMap) -> bool {
    let says = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or("");
        value.split([';', ',']).any(|part| part.trim().eq_ignore_ascii_case("prefetch"))
    };
    PURPOSES.iter().any(|name| headers.get_all(name).iter().any(says))
}

/// Whether a request asks for urgency 7, background, of RFC 9218 (section 4.1).
pub fn is_background_priority(headers: &HeaderMap) -> bool {
    members(headers, &PRIORITY)
        .any(|p| p.split_once('=').is_some_and(|(k, v)| k.trim() == "u" && v.trim() == "7"))
}

/// Whether suggestions are unwanted by the client: it saves data (`Save-Data: on`) or forbids
/// storing (`Cache-Control: no-store`).
pub fn declines(headers: &HeaderMap) -> bool {
    members(headers, &SAVE_DATA)
        .any(|v| v.split(';').next().is_some_and(|v| v.trim().eq_ignore_ascii_case("on")))
        || has_directive(headers, "no-store")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in lines {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn only_plain_paths_of_this_site_are_local() {
        for good in ["/", "/a/b.html", "/a?b=c", "/%C3%A4", "/~me/"] {
            assert!(is_local_path(good), "{good}");
        }
        let long = format!("/{}", "a".repeat(LONGEST_PATH));
        for bad in [
            "",
            "a",
            "//evil.example/x",
            "http://evil.example/",
            "/a b",
            "/a>",
            "/a\r\nX: y",
            "/ä",
            "/a\\b",
            "/a#b",
            "*",
            &long,
        ] {
            assert!(!is_local_path(bad), "{bad}");
        }
    }

    #[test]
    fn queries_and_programs_are_dynamic_and_pages_have_no_other_ending() {
        for dynamic in ["/?q", "/a.php", "/A.PHP", "/cgi-bin/x", "/b/x.cgi"] {
            assert!(is_dynamic(dynamic), "{dynamic}");
        }
        for fixed in ["/", "/a.html", "/a.php.txt", "/v1.2/", "/img.png"] {
            assert!(!is_dynamic(fixed), "{fixed}");
        }
        for page in ["/", "/blog/a", "/a.html", "/v1.2/", "/a.php"] {
            assert!(looks_like_page(page), "{page}");
        }
        assert!(!looks_like_page("/a.css") && !looks_like_page("/a/b.png"));
    }

    #[test]
    fn answers_are_reusable_only_if_any_client_may_keep_them() {
        let ok = StatusCode::OK;
        assert!(is_reusable(ok, &headers(&[("cache-control", "public, max-age=60")])));
        assert!(is_reusable(ok, &headers(&[("etag", "\"a\""), ("vary", "Accept-Encoding")])));
        for bad in [
            &[("cache-control", "max-age=0")][..],
            &[("cache-control", "private, max-age=60")],
            &[("cache-control", "max-age=60"), ("cache-control", "No-Store")],
            &[("cache-control", "no-cache=\"x\""), ("etag", "\"a\"")],
            &[("etag", "\"a\""), ("vary", "Cookie")],
            &[("etag", "\"a\""), ("vary", "*")],
            &[("etag", "\"a\""), ("set-cookie", "a=b")],
            &[("etag", "\"a\""), ("pragma", "no-cache")],
            &[],
        ] {
            assert!(!is_reusable(ok, &headers(bad)), "{bad:?}");
        }
        let fresh = headers(&[("cache-control", "max-age=60")]);
        assert!(!is_reusable(StatusCode::NOT_FOUND, &fresh));
        assert!(!is_reusable(StatusCode::PARTIAL_CONTENT, &fresh));
    }

    #[test]
    fn an_answer_expires_at_the_date_it_tells_unless_it_tells_an_age() {
        let (past, sent) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT");
        let (later, never) = ("Sun, 06 Nov 1994 08:49:39 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
        let lives = |lines: &[(&'static str, &str)]| is_reusable(StatusCode::OK, &headers(lines));
        assert!(lives(&[("expires", never)]), "later than now");
        assert!(lives(&[("expires", later), ("date", sent)]), "later than its own date");
        assert!(lives(&[("expires", never), ("date", "0")]));
        assert!(lives(&[("expires", "Sunday, 06-Nov-94 08:49:39 GMT"), ("date", sent)]));
        assert!(lives(&[("expires", "Sun Nov  6 08:49:39 1994"), ("date", sent)]));
        assert!(lives(&[("expires", past), ("cache-control", "max-age=60")]));
        for expired in [
            &[("expires", "0")][..],
            &[("expires", "-1"), ("etag", "\"a\"")],
            &[("expires", ""), ("last-modified", past)],
            &[("expires", later)],
            &[("expires", past), ("date", sent)],
            &[("expires", sent), ("date", sent)],
            &[("expires", never), ("cache-control", "max-age=0")],
            // no browser's cache is shared
            &[("expires", "0"), ("cache-control", "s-maxage=60")],
            &[("expires", past), ("expires", never)],
        ] {
            assert!(!lives(expired), "{expired:?}");
        }
    }

    #[test]
    fn requests_say_what_they_are() {
        assert!(is_prefetch(&headers(&[("sec-purpose", "prefetch;prerender")])));
        assert!(is_prefetch(&headers(&[("purpose", "prefetch")])));
        assert!(is_prefetch(&headers(&[("x-moz", "prefetch")])));
        assert!(!is_prefetch(&headers(&[("sec-purpose", "prefetching")])));
        assert!(is_background_priority(&headers(&[("priority", "i, u=7")])));
        assert!(!is_background_priority(&headers(&[("priority", "u=3, i")])));
        assert!(declines(&headers(&[("save-data", "on")])));
        assert!(declines(&headers(&[("cache-control", "no-store")])));
        assert!(!declines(&headers(&[("save-data", "off"), ("cache-control", "no-cache")])));
    }
}

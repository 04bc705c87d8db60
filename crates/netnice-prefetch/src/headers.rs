// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Headers that are lists, over all their lines, and what a proxy does with those of a message that
//! passes. Several lines of one name are one list (RFC 9110, section 5.3): whoever reads the first
//! alone believes whom he should not.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Who asked, and whom those in between asked for (de facto).
pub static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// By which scheme the first of them asked (de facto).
pub static X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

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

/// The members of a comma-separated header, over all its lines. One that is no text is empty: it is
/// none of those that are looked for, and hides none of its line.
pub fn members<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl DoubleEndedIterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .flat_map(|v| v.as_bytes().split(|b| *b == b','))
        .map(|member| std::str::from_utf8(member.trim_ascii()).unwrap_or_default())
}

/// Makes one line of all lines of a header, with `between` them, and `more` as the last.
pub fn join(headers: &mut HeaderMap, name: &HeaderName, between: &[u8], more: Option<&[u8]>) {
    if more.is_none() && headers.get_all(name).iter().nth(1).is_none() {
        return;
    }
    let mut joined = Vec::new();
    for part in headers.get_all(name).iter().map(HeaderValue::as_bytes).chain(more) {
        if !joined.is_empty() {
            joined.extend_from_slice(between);
        }
        joined.extend_from_slice(part);
    }
    if let Ok(joined) = HeaderValue::from_maybe_shared(Bytes::from(joined)) {
        headers.insert(name, joined);
    }
}

/// Makes one line of all that is said of the length of a body; whether it is one number, however often
/// (RFC 9110, section 8.6).
pub fn join_length(headers: &mut HeaderMap) -> bool {
    let length = {
        let mut said = members(headers, &header::CONTENT_LENGTH);
        let Some(first) = said.next() else { return true };
        let is_number = !first.is_empty() && first.bytes().all(|b| b.is_ascii_digit());
        (is_number && said.all(|other| other == first)).then(|| HeaderValue::from_str(first))
    };
    let Some(Ok(length)) = length else { return false };
    headers.insert(header::CONTENT_LENGTH, length);
    true
}

/// Removes what belongs to one hop, and what `Connection` names.
pub fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = members(headers, &header::CONNECTION)
        .filter_map(|name| name.parse().ok())
        .chain(headers.keys().filter(|name| HOP_BY_HOP.contains(name)).cloned())
        .collect();
    for name in named {
        headers.remove(name);
    }
}

/// Whether a body has no transfer coding but `chunked`, once: `Transfer-Encoding` goes no further than
/// this hop, so any other coding would be lost from what it says, or is a trick.
pub fn is_framed_plainly(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let first = codings.next().map_or(&b"chunked"[..], HeaderValue::as_bytes);
    first.eq_ignore_ascii_case(b"chunked") && codings.next().is_none()
}

/// Whether this is a host, with or without a port, as RFC 3986, section 3.2, has it.
pub fn is_host(host: &[u8]) -> bool {
    let is_port = |port: &[u8]| port.len() <= 5 && port.iter().all(u8::is_ascii_digit);
    if let Some(rest) = host.strip_prefix(b"[") {
        let Some(end) = rest.iter().position(|b| *b == b']') else { return false };
        let (inside, behind) = (&rest[..end], &rest[end + 1..]);
        let is_address = std::str::from_utf8(inside)
            .is_ok_and(|text| text.parse::<std::net::Ipv6Addr>().is_ok());
        return is_address && (behind.is_empty() || behind.strip_prefix(b":").is_some_and(is_port));
    }
    let mut parts = host.split(|b| *b == b':');
    let (name, port) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_name = |b: &u8| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(b);
    !name.is_empty() && name.iter().all(is_name) && is_port(port) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_name_become_one_line() {
        let mut headers = HeaderMap::new();
        for (parts, joined) in [("a=1", "a=1"), ("b=2", "a=1; b=2"), ("c", "a=1; b=2; c")] {
            headers.append("cookie", parts.parse().unwrap());
            join(&mut headers, &header::COOKIE, b"; ", None);
            assert_eq!(headers.get_all("cookie").iter().collect::<Vec<_>>(), [joined]);
        }
        let mut list = HeaderMap::new();
        for joined in ["192.0.2.1", "192.0.2.1, 192.0.2.1"] {
            join(&mut list, &X_FORWARDED_FOR, b", ", Some(b"192.0.2.1"));
            assert_eq!(list.get_all(&X_FORWARDED_FOR).iter().collect::<Vec<_>>(), [joined]);
        }
    }

    #[test]
    fn a_length_that_is_said_more_than_once_becomes_one_line_if_it_is_one_number() {
        for (lines, length) in [
            (&[][..], Some(None)),
            (&["3"], Some(Some("3"))),
            (&["3", "3"], Some(Some("3"))),
            (&["3, 3", "3"], Some(Some("3"))),
            (&["3", "4"], None),
            (&["3, 4"], None),
            (&["3", "4", "3"], None),
            (&["3,"], None),
            (&[""], None),
            (&["+3"], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("content-length", line.parse().unwrap());
            }
            assert_eq!(join_length(&mut headers), length.is_some(), "{lines:?}");
            if let Some(length) = length {
                let all: Vec<_> = headers.get_all("content-length").iter().collect();
                assert_eq!(all, Vec::from_iter(length), "{lines:?}");
            }
        }
    }

    #[test]
    fn members_come_from_every_line() {
        let mut headers = HeaderMap::new();
        for line in ["a, b", "", "c ,d"] {
            headers.append("via", line.parse().unwrap());
        }
        headers.append("via", HeaderValue::from_bytes(b"e, \xff f,\tg").unwrap());
        let all: Vec<_> = members(&headers, &header::VIA).collect();
        assert_eq!(all, ["a", "b", "", "c", "d", "e", "", "g"]);
    }

    #[test]
    fn what_belongs_to_one_hop_is_removed_with_what_any_line_of_connection_names() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("connection", "x-other"),
            ("x-mine", "1"),
            ("x-other", "1"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("x-kept", "1"),
        ] {
            headers.append(name, value.parse().unwrap());
        }
        strip_hop_by_hop(&mut headers);
        assert_eq!(headers.len(), 1);
        assert!(headers.contains_key("x-kept"));
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_at_most_a_port() {
        for host in
            ["site", "a.example:80", "192.0.2.1", "[2001:db8::1]", "[::1]:8080", "x:", "a_b"]
        {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "", ":80", "a b", "a/b", "a@b", "a:b", "a:80:81", "a:123456", "[::1", "[x]", "::1",
            "a\"b", "a?b", "a#b", "a<b", "\u{e4}",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}

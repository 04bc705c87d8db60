// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The head of a request of HTTP/1, judged before hyper sees it: what hyper would refuse without a
//! word gets a sentence, and a target that a browser would have encoded is encoded.
//!
//! The rules are those of RFC 9112; where it leaves a choice, nginx's. What is refused here cannot be
//! read in two ways by the servers behind: one framing, one host.

use std::mem::MaybeUninit;

use http::{StatusCode, Uri};
use httparse::{Error, Header, Request, Status};

use crate::config::MOST_HEADERS;

/// Longest target, in bytes: what [`Uri`] takes.
const LONGEST_TARGET: usize = 65_000;
/// Bytes of a refused request's first line that are kept for the log.
const LINE_KEPT: usize = 512;

/// What is said of several lengths of one body, or one that is no number.
pub const NOT_ONE_LENGTH: &str = "The length of a body is one number.";
/// What is said of more header lines than [`Limits`] allow.
pub const TOO_MANY: &str = "The request has too many header lines.";

/// Bounds of a head.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes.
    pub bytes: usize,
    /// Header lines, at most [`MOST_HEADERS`].
    pub headers: usize,
}

/// How a body ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// After so many bytes.
    Sized(u64),
    /// With the last chunk.
    Chunked,
}

/// A request that goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Of the answer.
    pub status: StatusCode,
    /// What is wrong.
    pub sentence: &'static str,
    /// Its first line, or what stands there, as it came.
    pub line: Vec<u8>,
}

/// What stands at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// A head of so many bytes, and what follows it.
    Head(usize, Framing),
    /// A head whose target must be [`encode`]d.
    Odd,
    /// The beginning of a head.
    Partial,
    /// What is answered with this status and sentence.
    Bad(StatusCode, &'static str),
}

/// Whether a byte of a target is no byte of an URI (RFC 3986), and one that [`Uri`] does not take.
fn is_odd(byte: u8) -> bool {
    matches!(byte, b'"' | b'<' | b'>' | b'`' | 0x80..)
}

/// The first line of a head and where it begins: empty lines may stand before it.
fn first_line(bytes: &[u8]) -> (usize, &[u8]) {
    let start = bytes.iter().position(|b| !b"\r\n".contains(b)).unwrap_or(bytes.len());
    let rest = &bytes[start..];
    let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    (start, rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]))
}

/// Reads what stands at the start of some bytes.
pub fn read(bytes: &[u8], limits: Limits) -> Read {
    let (_, line) = first_line(bytes);
    if line.iter().any(|b| is_odd(*b)) && bytes.contains(&b'\n') && is_request_line(line) {
        return Read::Odd;
    }
    let mut lines = [const { MaybeUninit::<Header<'_>>::uninit() }; MOST_HEADERS];
    let mut request = Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut lines[..limits.headers]);
    let length = match parsed {
        Ok(Status::Complete(length)) if length <= limits.bytes => length,
        Ok(Status::Partial) if bytes.len() < limits.bytes => return Read::Partial,
        Ok(_) => return too_large(bytes),
        Err(error) => return bad(error, line),
    };
    let target = request.path.unwrap_or_default();
    if target.len() > LONGEST_TARGET {
        return too_large(bytes);
    }
    let is_target = target.starts_with('/')
        || Uri::try_from(target).is_ok_and(|uri| {
            uri.scheme().is_some() || target == "*" || request.method == Some("CONNECT")
        });
    if !is_target {
        return Read::Bad(StatusCode::BAD_REQUEST, "The target of a request is a path or a URL.");
    }
    match framing(request.headers, request.version == Some(1)) {
        Ok(framing) => Read::Head(length, framing),
        Err((status, sentence)) => Read::Bad(status, sentence),
    }
}

fn is_request_line(line: &[u8]) -> bool {
    line.split(|b| *b == b' ').count() == 3
}

fn too_large(bytes: &[u8]) -> Read {
    match bytes.contains(&b'\n') {
        true => Read::Bad(
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            "The head of the request is too large.",
        ),
        false => Read::Bad(StatusCode::URI_TOO_LONG, "The target of the request is too long."),
    }
}

fn bad(error: Error, line: &[u8]) -> Read {
    let version = line.rsplit(|b| *b == b' ').next().unwrap_or_default();
    let (status, sentence) = match error {
        Error::TooManyHeaders => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, TOO_MANY),
        Error::Version if version.starts_with(b"HTTP/") && is_request_line(line) => (
            StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            "This proxy speaks HTTP/1.1, and HTTP/2 over TLS.",
        ),
        Error::HeaderName | Error::HeaderValue => {
            (StatusCode::BAD_REQUEST, "A header line is NAME: VALUE, without control characters.")
        }
        _ => (StatusCode::BAD_REQUEST, "The first line of a request is METHOD TARGET HTTP/1.1."),
    };
    Read::Bad(status, sentence)
}

/// How the body ends, if every server finds the same end (RFC 9112, section 6.3).
fn framing(lines: &[Header<'_>], is_1_1: bool) -> Result<Framing, (StatusCode, &'static str)> {
    let wrong = |sentence| Err((StatusCode::BAD_REQUEST, sentence));
    let (mut length, mut chunked) = (None, false);
    for line in lines {
        if line.name.eq_ignore_ascii_case("content-length") {
            let digits = std::str::from_utf8(line.value).unwrap_or_default();
            let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            match digits.parse::<u64>() {
                // hyper keeps two values for itself
                Ok(n) if plain && n < u64::MAX - 1 && length.is_none_or(|l| l == n) => {
                    length = Some(n);
                }
                _ => return wrong(NOT_ONE_LENGTH),
            }
        } else if line.name.eq_ignore_ascii_case("transfer-encoding") {
            if !line.value.eq_ignore_ascii_case(b"chunked") || chunked {
                let sentence = "Of the transfer codings, only chunked is taken, and that once.";
                return Err((StatusCode::NOT_IMPLEMENTED, sentence));
            }
            chunked = true;
        }
    }
    match (length, chunked) {
        (Some(_), true) => wrong("A body has a length or comes in chunks, not both."),
        (None, true) if !is_1_1 => wrong("HTTP/1.0 has no transfer codings."),
        (None, true) => Ok(Framing::Chunked),
        (length, false) => Ok(Framing::Sized(length.unwrap_or(0))),
    }
}

/// Makes the target of the first line what a browser would have sent: percent-encoded.
pub fn encode(bytes: &mut Vec<u8>) {
    let (start, line) = first_line(bytes);
    let end = start + line.len();
    let encoded: Vec<u8> = bytes[start..end]
        .iter()
        .flat_map(|b| match is_odd(*b) {
            true => format!("%{b:02X}").into_bytes(),
            false => vec![*b],
        })
        .collect();
    bytes.splice(start..end, encoded);
}

/// The refusal of the request that begins here.
pub fn refusal(bytes: &[u8], status: StatusCode, sentence: &'static str) -> Refusal {
    let (_, line) = first_line(bytes);
    Refusal { status, sentence, line: line[..line.len().min(LINE_KEPT)].to_vec() }
}

/// Where the body ends that comes in chunks. Whether they are what they should be is hyper's to
/// judge: of those that are not, no end is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// In the digits of a size, so far.
    Size(Option<u64>),
    /// Behind them, until the end of the line.
    Extension(u64),
    /// In so many bytes of data, with the end of their line.
    Data(u64),
    /// In the lines behind the last chunk.
    Trailer {
        /// Nothing stands in this one so far.
        empty: bool,
        /// Its `\r` has come, behind which only `\n` may.
        ending: bool,
    },
    /// Beyond the end.
    Over,
    /// In no chunk.
    Senseless,
}

impl Chunks {
    /// Goes on over some bytes, to the end of the body at most, and returns over how many.
    pub fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let mut step = 1;
            *self = match *self {
                Self::Over => return at,
                Self::Senseless => return bytes.len(),
                Self::Size(so_far) => match (char::from(byte).to_digit(16), so_far) {
                    (Some(digit), _) => match so_far.unwrap_or(0).checked_mul(16) {
                        Some(size) => Self::Size(Some(size + u64::from(digit))),
                        None => Self::Senseless,
                    },
                    (None, Some(size)) => {
                        step = 0;
                        Self::Extension(size)
                    }
                    (None, None) => Self::Senseless,
                },
                Self::Extension(0) if byte == b'\n' => Self::Trailer { empty: true, ending: false },
                Self::Extension(size) if byte == b'\n' => Self::Data(size.saturating_add(2)),
                Self::Extension(size) => Self::Extension(size),
                Self::Data(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    step = most.min(bytes.len() - at);
                    match left - step as u64 {
                        0 => Self::Size(None),
                        left => Self::Data(left),
                    }
                }
                Self::Trailer { empty, ending: true } => match byte {
                    b'\n' if empty => Self::Over,
                    b'\n' => Self::Trailer { empty: true, ending: false },
                    _ => Self::Senseless,
                },
                Self::Trailer { empty, .. } => {
                    let ending = byte == b'\r';
                    Self::Trailer { empty: empty && ending, ending }
                }
            };
            at += step;
        }
        at
    }
}

#[cfg(test)]
mod tests;

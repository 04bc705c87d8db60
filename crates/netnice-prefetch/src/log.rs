// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Access logs: the combined and the common format of Apache and nginx, and the lab's CSV
//! (`lab/data`), plain or gzipped, told apart by their content.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;
use jiff::fmt::strtime;
use serde::Deserialize;

/// Longest line that is read, in bytes; a longer one is bad.
pub const LONGEST_LINE: usize = 64 * 1024;
/// Most bytes of an answer, and most seconds from the clock's zero: more is a mistake, and would
/// overflow sums.
const MOST: u64 = 1 << 50;
/// What stands for the `User-Agent` of a robot in the lab's CSV, which has none.
pub const ROBOT: &str = "robot";

/// One logged request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Second in which it was logged, since 1970 (the lab's CSV: since any moment).
    pub time_s: i64,
    /// Address or name of the client.
    pub client: &'a str,
    /// `User-Agent`; empty where the format has none, but [`ROBOT`] where the lab's CSV says so.
    pub agent: &'a str,
    /// Path of the page that it names as `Referer`, of whichever site; empty where there is none.
    pub referer: &'a str,
    /// Method, as it came.
    pub method: &'a str,
    /// Path and query, as they came.
    pub path: &'a str,
    /// Status of the answer.
    pub status: u16,
    /// Bytes of content in the answer; 0 where the log has `-`.
    pub bytes: u64,
    /// Whether it was a prefetch, as this proxy's own log says: nobody has asked for it.
    pub prefetch: bool,
    /// Whether the client had to tell who it is: the log names a user.
    pub personal: bool,
}

impl Entry<'_> {
    /// Whether a client was shown this: GET, no prefetch, answered in full (200) or
    /// still valid (304).
    pub fn is_view(&self) -> bool {
        self.method == "GET" && !self.prefetch && matches!(self.status, 200 | 304)
    }
}

/// Why a line is not a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Bad {
    /// It is not UTF-8.
    #[error("not UTF-8")]
    Text,
    /// It is longer than [`LONGEST_LINE`].
    #[error("longer than {LONGEST_LINE} bytes")]
    Long,
    /// A field is missing or not what the format says.
    #[error("no {0}")]
    Field(&'static str),
}

/// A log could not be read further.
#[derive(Debug, thiserror::Error)]
#[error("Cannot read the log {}: {reason}. Check the path, and that the file is whole.", path.display())]
pub struct Error {
    /// The log.
    pub path: PathBuf,
    /// What the system or the decompressor said.
    pub reason: io::Error,
}

/// Takes a quoted field from the start of `text`; a backslash protects the next character.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, c) in inner.bytes().enumerate() {
        match c {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some((&inner[..at], &inner[at + 1..])),
            _ => {}
        }
    }
    None
}

/// The second since 1970 of a time such as `10/Oct/2000:13:55:36 -0700`.
fn seconds(time: &str) -> Option<i64> {
    let parsed = strtime::parse("%d/%b/%Y:%H:%M:%S %z", time).ok()?;
    Some(parsed.to_timestamp().ok()?.as_second())
}

/// Whether this is what Apache's `vhost_combined` puts before a line: `HOST:PORT` of the site.
fn is_site(word: &str) -> bool {
    let port = word.rsplit_once(':').map_or("", |(_, port)| port);
    port.parse::<u16>().is_ok() && word.parse::<IpAddr>().is_err()
}

/// Parses a line of the combined or the common format:
/// `host ident user [time] "METHOD path protocol" status bytes "referer" "agent"`, maybe behind the
/// site that was asked.
///
/// # Errors
/// The first field that is missing or not what the format says.
pub fn parse(line: &str) -> Result<Entry<'_>, Bad> {
    let (mut client, mut rest) = line.split_once(' ').ok_or(Bad::Field("client"))?;
    if let Some((second, behind)) = rest.split_once(' ').filter(|_| is_site(client)) {
        if second.parse::<IpAddr>().is_ok() {
            (client, rest) = (second, behind);
        }
    }
    let (who, rest) = rest.split_once('[').ok_or(Bad::Field("time"))?;
    let user = who.trim_end().rsplit(' ').next().unwrap_or_default();
    let personal = !matches!(user, "" | "-");
    let (time, rest) = rest.split_once("] ").ok_or(Bad::Field("time"))?;
    let time_s = seconds(time).ok_or(Bad::Field("time"))?;
    let (request, rest) = quoted(rest).ok_or(Bad::Field("request"))?;
    let mut words = request.split(' ');
    let (method, path) = (words.next(), words.next());
    let (method, path) = method.zip(path).ok_or(Bad::Field("request"))?;
    if method.is_empty() || path.is_empty() || words.nth(1).is_some() {
        return Err(Bad::Field("request"));
    }
    let mut words = rest.trim_start().splitn(3, ' ');
    let status = words.next().and_then(|s| s.parse().ok()).ok_or(Bad::Field("status"))?;
    let bytes = match words.next().map(str::trim_end).ok_or(Bad::Field("number of bytes"))? {
        "-" => 0,
        number => number.parse().map_err(|_| Bad::Field("number of bytes"))?,
    };
    if bytes > MOST {
        return Err(Bad::Field("number of bytes"));
    }
    let (referer, rest) =
        words.next().and_then(|rest| quoted(rest.trim_start())).unwrap_or_default();
    let (agent, rest) = quoted(rest.trim_start()).unwrap_or_default();
    let prefetch = rest.trim() == "\"prefetch\"";
    let referer = path_of(referer);
    Ok(Entry { time_s, client, agent, referer, method, path, status, bytes, prefetch, personal })
}

/// The path of an absolute URL; nothing if it is none.
fn path_of(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return "" };
    rest.find('/').map_or("", |at| &rest[at..])
}

/// Formats a moment as the logs do, in UTC.
pub fn format_time(at: jiff::Timestamp) -> String {
    let moment = at.to_zoned(jiff::tz::TimeZone::UTC);
    strtime::format("%d/%b/%Y:%H:%M:%S %z", &moment).unwrap_or_else(|_| "-".into())
}

/// Makes a header value safe to stand between quotes in a line: what is not visible ASCII, quotes
/// and backslashes become `\xHH`, as nginx writes them. Empty becomes `-`.
pub fn escape(value: &[u8]) -> String {
    if value.is_empty() {
        return "-".into();
    }
    let mut escaped = String::with_capacity(value.len());
    for &b in value {
        match b {
            b'"' | b'\\' => escaped.push_str(&format!("\\x{b:02X}")),
            b' '..=b'~' => escaped.push(b.into()),
            _ => escaped.push_str(&format!("\\x{b:02X}")),
        }
    }
    escaped
}

#[derive(Deserialize)]
struct Row {
    time_s: i64,
    client: String,
    method: String,
    path: String,
    status: u16,
    bytes: u64,
    #[serde(default)]
    referer_path: String,
    #[serde(default)]
    bot: u8,
}

/// What a log held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Count {
    /// Lines or rows that were requests.
    pub good: u64,
    /// Lines or rows that were not.
    pub bad: u64,
    /// Number and fault of the first bad line.
    pub first_bad: Option<(u64, String)>,
}

impl Count {
    fn bad(&mut self, what: impl ToString) {
        let line = self.good + self.bad + 1;
        self.first_bad.get_or_insert_with(|| (line, what.to_string()));
        self.bad += 1;
    }
}

/// Reads a whole log and gives every request to `each`; `wrap` may put a progress bar around the
/// file. Bad lines are counted, not fatal.
///
/// # Errors
/// If the file cannot be opened, read or decompressed.
pub fn read(
    path: &Path,
    wrap: impl FnOnce(File) -> Box<dyn Read>,
    each: impl FnMut(Entry<'_>),
) -> Result<Count, Error> {
    let fail = |reason| Error { path: path.into(), reason };
    let file = BufReader::new(wrap(File::open(path).map_err(fail)?));
    read_from(file, each).map_err(fail)
}

/// As [`read`], from anything.
///
/// # Errors
/// If it cannot be read or decompressed.
pub fn read_from(
    mut source: impl BufRead,
    each: impl FnMut(Entry<'_>),
) -> Result<Count, io::Error> {
    if source.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        read_text(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(source)), each)
    } else {
        read_text(source, each)
    }
}

fn read_text(
    mut source: impl BufRead,
    mut each: impl FnMut(Entry<'_>),
) -> Result<Count, io::Error> {
    let mut count = Count::default();
    if source.fill_buf()?.starts_with(b"time_s,client,") {
        read_csv(source, &mut count, each)?;
        return Ok(count);
    }
    let mut line = Vec::new();
    while next_line(&mut source, &mut line)? {
        if line.is_empty() {
            continue;
        }
        let parsed = match line.len() {
            ..=LONGEST_LINE => std::str::from_utf8(&line).map_err(|_| Bad::Text).and_then(parse),
            _ => Err(Bad::Long),
        };
        match parsed {
            Ok(entry) => {
                each(entry);
                count.good += 1;
            }
            Err(bad) => count.bad(bad),
        }
    }
    Ok(count)
}

/// Reads a line without its end into `line`, of which at most [`LONGEST_LINE`] + 1 bytes are kept;
/// false at the end of the source.
fn next_line(source: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, io::Error> {
    line.clear();
    let mut any = false;
    loop {
        let part = source.fill_buf()?;
        if part.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = part.iter().position(|b| *b == b'\n');
        let room = (LONGEST_LINE + 1).saturating_sub(line.len());
        let kept = &part[..end.unwrap_or(part.len())];
        line.extend_from_slice(&kept[..kept.len().min(room)]);
        let used = end.map_or(part.len(), |e| e + 1);
        source.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            return Ok(true);
        }
    }
}

fn read_csv(
    source: impl BufRead,
    count: &mut Count,
    mut each: impl FnMut(Entry<'_>),
) -> Result<(), io::Error> {
    for row in csv::Reader::from_reader(source).deserialize::<Row>() {
        match row {
            Ok(row) if row.time_s.unsigned_abs() > MOST => count.bad(Bad::Field("time")),
            Ok(row) if row.bytes > MOST => count.bad(Bad::Field("number of bytes")),
            Ok(row) => {
                each(Entry {
                    time_s: row.time_s,
                    client: &row.client,
                    agent: if row.bot == 0 { "" } else { ROBOT },
                    referer: &row.referer_path,
                    method: &row.method,
                    path: &row.path,
                    status: row.status,
                    bytes: row.bytes,
                    prefetch: false,
                    personal: false,
                });
                count.good += 1;
            }
            Err(error) => match error.into_kind() {
                csv::ErrorKind::Io(reason) => return Err(reason),
                kind => count.bad(format!("{kind:?}")),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{write::GzEncoder, Compression};
    use proptest::prelude::*;

    use super::*;

    const COMBINED: &str = r#"192.0.2.7 - frank [10/Oct/2000:13:55:36 -0700] "GET /a%20b.html?x=1 HTTP/1.0" 200 2326 "http://example.com/start" "Mozilla/4.08 \"quoted\" [en]""#;

    fn all(text: &[u8]) -> (Vec<String>, Count) {
        let mut seen = Vec::new();
        let count = read_from(text, |e| seen.push(format!("{} {}", e.client, e.path))).unwrap();
        (seen, count)
    }

    #[test]
    fn a_combined_line_gives_every_field() {
        let entry = parse(COMBINED).unwrap();
        // 10 October 2000, 20:55:36 UTC
        assert_eq!(entry.time_s, 971_211_336);
        assert_eq!(
            (entry.client, entry.method, entry.path),
            ("192.0.2.7", "GET", "/a%20b.html?x=1")
        );
        assert_eq!((entry.status, entry.bytes), (200, 2326));
        assert!(entry.personal && !parse(&COMBINED.replace("frank", "-")).unwrap().personal);
        assert_eq!(entry.agent, r#"Mozilla/4.08 \"quoted\" [en]"#);
    }

    #[test]
    fn a_common_line_has_no_agent_and_may_have_no_bytes() {
        let line = r#"::1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 304 -"#;
        let entry = parse(line).unwrap();
        assert_eq!((entry.client, entry.agent, entry.status, entry.bytes), ("::1", "", 304, 0));
        assert!(entry.is_view());
    }

    #[test]
    fn behind_the_site_that_was_asked_stands_the_client() {
        for site in ["www.example.org:80", "[2001:db8::1]:443"] {
            let line = format!("{site} {COMBINED}");
            assert_eq!(parse(&line), parse(COMBINED), "{line}");
        }
        let own = COMBINED.replace("192.0.2.7 -", "::1 192.0.2.7");
        assert_eq!(parse(&own).unwrap().client, "::1", "an address is no site");
    }

    #[test]
    fn each_fault_names_its_field() {
        for (line, field) in [
            ("x", "client"),
            (r#"::1 - - "GET / HTTP/1.1" 200 1"#, "time"),
            (r#"::1 - - [32/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 1"#, "time"),
            (r#"::1 - - [10/Oct/2000:13:55:36 +0000] "GET /"#, "request"),
            (r#"::1 - - [10/Oct/2000:13:55:36 +0000] "\x16\x03" 400 1"#, "request"),
            (r#"::1 - - [10/Oct/2000:13:55:36 +0000] "GET /a b HTTP/1.1" 200 1"#, "request"),
            (r#"::1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" x 1"#, "status"),
            (r#"::1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200 x"#, "number of bytes"),
            (r#"::1 - - [10/Oct/2000:13:55:36 +0000] "GET / HTTP/1.1" 200"#, "number of bytes"),
        ] {
            assert_eq!(parse(line), Err(Bad::Field(field)), "{line}");
        }
    }

    #[test]
    fn bad_lines_are_counted_and_the_first_is_named() {
        let text = format!("{COMBINED}\nrubbish\n\n{COMBINED}\r\n\u{fffd}\n{COMBINED}");
        let (seen, count) = all(text.as_bytes());
        assert_eq!(seen.len(), 3);
        assert_eq!((count.good, count.bad), (3, 2));
        assert_eq!(count.first_bad, Some((2, "no client".into())));
    }

    #[test]
    fn a_line_without_end_takes_no_memory_and_is_bad() {
        let mut text = vec![b'x'; 3 * LONGEST_LINE];
        text.extend_from_slice(format!("\n{COMBINED}\n").as_bytes());
        let (seen, count) = all(&text);
        assert_eq!((seen.len(), count.bad), (1, 1));
        assert_eq!(count.first_bad.unwrap().1, Bad::Long.to_string());
    }

    #[test]
    fn gzipped_logs_and_the_labs_csv_are_recognised() {
        let csv = "time_s,client,method,path,status,bytes,referer_path,bot\n5,c,GET,/p,200,7,,0\n5,c,GET,/q,many,7,,0\n";
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(csv.as_bytes()).unwrap();
        let (seen, count) = all(&gz.finish().unwrap());
        assert_eq!((seen, count.good, count.bad), (vec!["c /p".to_string()], 1, 1));
    }

    #[test]
    fn a_truncated_gzip_is_an_error() {
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all(COMBINED.as_bytes()).unwrap();
        let bytes = gz.finish().unwrap();
        assert!(read_from(&bytes[..bytes.len() / 2], |_| {}).is_err());
    }

    #[test]
    fn what_the_proxy_writes_it_reads() {
        let agent = escape(b"bad \"agent\" \xff\n");
        assert_eq!(agent, r"bad \x22agent\x22 \xFF\x0A");
        let time = format_time(jiff::Timestamp::from_second(971_211_336).unwrap());
        let line = format!(r#"::1 - - [{time}] "GET / HTTP/2.0" 200 5 "-" "{agent}""#);
        let entry = parse(&line).unwrap();
        assert_eq!((entry.time_s, entry.agent), (971_211_336, agent.as_str()));
        assert!(entry.is_view());
        let prefetch = format!("{line} \"prefetch\"");
        assert!(!parse(&prefetch).unwrap().is_view());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(line in ".{0,200}") {
            let _ = parse(&line);
        }

        #[test]
        fn no_mutation_of_a_line_makes_the_parser_panic(at in 0usize..150, c in any::<char>()) {
            let mut line: Vec<char> = COMBINED.chars().collect();
            let at = at % line.len();
            line[at] = c;
            let _ = parse(&line.into_iter().collect::<String>());
        }

        #[test]
        fn every_line_is_counted_once(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let lines = bytes.split(|b| *b == b'\n').filter(|l| !l.is_empty() && *l != b"\r").count();
            if !bytes.starts_with(&[0x1f, 0x8b]) {
                let (_, count) = all(&bytes);
                prop_assert_eq!(count.good + count.bad, lines as u64);
            }
        }

        #[test]
        fn escaped_text_stays_within_its_quotes(bytes in proptest::collection::vec(any::<u8>(), 1..100)) {
            let field = format!("\"{}\" rest", escape(&bytes));
            let (inner, rest) = quoted(&field).unwrap();
            prop_assert_eq!(inner, escape(&bytes));
            prop_assert_eq!(rest, " rest");
        }
    }
}

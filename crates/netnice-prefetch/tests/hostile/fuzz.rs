// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What strangers write, changed at random and without end: lines of logs, heads of requests and of
//! answers. `make fuzz` gives each a minute, by `NN_FUZZ_S`; the tests give a little. An input that
//! makes something happen that none before has is kept and changed further.

use std::collections::HashSet;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::time::{Duration, Instant};

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::StatusCode;
use netnice_prefetch::predict::{Predictor, Served, Settings};
use netnice_prefetch::suggest::{self, Limits, Verdict};
use netnice_prefetch::{log, rules};
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::common::{get, start, PATIENCE};
use super::{hasty, strict_origin};

const LONGEST: usize = 2048;
/// Inputs that are kept.
const MOST_KEPT: usize = 4096;

/// Tells the input of a test that fails.
struct Told<'a>(&'a [u8]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was b\"{}\"", self.0.escape_ascii());
        }
    }
}

/// Makes inputs of examples, and of words that mean something in them.
struct Inputs {
    kept: Vec<Vec<u8>>,
    words: &'static [&'static str],
    seen: HashSet<u64>,
    random: Pcg64Mcg,
    end: Instant,
    count: u64,
}

impl Inputs {
    fn new(examples: &[&str], words: &'static [&'static str]) -> Self {
        let seconds = std::env::var("NN_FUZZ_S").map_or(2, |s| s.parse().expect("seconds"));
        // the short run of the tests is always the same, the long one is not
        let seed = if seconds > 10 { RandomState::new().hash_one(0) } else { 7 };
        println!("seed {seed}, {seconds} s");
        Self {
            kept: examples.iter().map(|e| e.as_bytes().to_vec()).collect(),
            words,
            seen: HashSet::new(),
            random: Pcg64Mcg::seed_from_u64(seed),
            end: Instant::now() + Duration::from_secs(seconds),
            count: 0,
        }
    }

    /// The next input; `None` when the time is over.
    fn next(&mut self) -> Option<Vec<u8>> {
        if Instant::now() >= self.end {
            let test = std::thread::current();
            let (name, kept) = (test.name().unwrap_or(""), self.kept.len());
            println!("{name}: {} inputs, {kept} of them kept; none failed", self.count);
            return None;
        }
        self.count += 1;
        let random = &mut self.random;
        let mut input = self.kept.choose(random).expect("an example").clone();
        for _ in 0..random.random_range(1..6) {
            let at = random.random_range(0..=input.len());
            let end = (at + random.random_range(0..32)).min(input.len());
            match random.random_range(0..7) {
                0 => input.insert(at, random.random()),
                1 => drop(input.drain(at..end)),
                2 => drop(input.splice(at..end, self.words.choose(random).unwrap().bytes())),
                3 => drop(input.splice(at..at, self.words.choose(random).unwrap().bytes())),
                4 => {
                    let part = input[at..end].to_vec();
                    drop(input.splice(at..at, part.repeat(random.random_range(1..20))));
                }
                5 => {
                    let other = self.kept.choose(random).unwrap();
                    let from = random.random_range(0..=other.len());
                    let part = &other[from..(from + 64).min(other.len())];
                    drop(input.splice(at..end, part.iter().copied()));
                }
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << random.random_range(0..8);
                    }
                }
            }
        }
        input.truncate(LONGEST);
        Some(input)
    }

    /// Keeps an input if what it made happen is new.
    fn keep(&mut self, input: Vec<u8>, happened: impl Hash) {
        let mut hasher = DefaultHasher::new();
        happened.hash(&mut hasher);
        if self.kept.len() < MOST_KEPT && self.seen.insert(hasher.finish()) {
            self.kept.push(input);
        }
    }
}

/// So that a number's magnitude counts, not each value.
fn magnitude(n: u64) -> u32 {
    n.checked_ilog2().unwrap_or(0)
}

#[test]
fn fuzzed_logs_teach_only_paths_of_this_site_within_the_bounds() {
    let mut inputs = Inputs::new(
        &[
            "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5 \"-\" \"x\"\n",
            "::1 - - [10/Oct/2000:13:55:37 -0700] \"GET /b?c HTTP/2.0\" 304 - \"http://s/a\" \"\\x22\" \"prefetch\"\r\n",
            "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5\n192.0.2.1 - - [10/Oct/2000:13:55:37 +0000] \"GET /b HTTP/1.1\" 200 99\n192.0.2.2 - - [10/Oct/2000:13:55:38 +0000] \"GET /a HTTP/1.1\" 200 5\n192.0.2.2 - - [10/Oct/2000:13:55:39 +0000] \"GET /b HTTP/1.1\" 200 99\n",
            "time_s,client,method,path,status,bytes,referer_path,bot\n5,c,GET,/p,200,7,,0\n6,d,GET,/q,200,8,/p,0\n",
            "\u{1f}\u{8b}",
        ],
        &[
            "GET ", "\"", "\\", "\\\"", " ", "  ", "[", "] ", "\n", "\r\n", "-", "//evil.example/", "http://",
            "://", "/", "?", "#", ">", "<", "/a>; rel=preload", "\0", "\u{e4}", "\u{fffd}", "99999999999999999999",
            "-9223372036854775808", "9223372036854775807", "31/Dec/9999:23:59:59 +0000", "01/Jan/-9999:00:00:00 +2359",
            "29/Feb/2001:00:00:60 +0000", ",", "\"\"", "200", "304", "206", "0", "time_s,client,",
        ],
    );
    let settings =
        Settings { memory_bytes: 1 << 16, clients: 4, addresses: 1, ..Settings::default() };
    let limits = Limits { threshold: 0.0, max_objects: 3, max_bytes: 100, ..Limits::default() };
    // what was learned before stays: bounds must hold in the long run
    let mut predictor = Predictor::new(settings);
    while let Some(input) = inputs.next() {
        let _told = Told(&input);
        let csv = input.starts_with(b"time_s,client,");
        // CSV takes a lone CR for an end too
        let lines = input.iter().filter(|b| b"\r\n".contains(b)).count() as u64 + 1;
        let mut paths = Vec::new();
        let read = log::read_from(&input[..], |entry| {
            if !csv && !input.starts_with(&[0x1f, 0x8b]) {
                assert!(!entry.path.is_empty() && !entry.path.contains([' ', '\n']), "{entry:?}");
                assert!(!entry.method.is_empty() && !entry.client.contains(' '), "{entry:?}");
                assert!(entry.referer.is_empty() || entry.referer.starts_with('/'), "{entry:?}");
            }
            predictor.learn(&entry);
            predictor.served(entry.path, Served::Reusable(entry.bytes));
            paths.push((entry.path.to_owned(), entry.is_view(), magnitude(entry.bytes)));
        });
        let Ok(count) = read else {
            inputs.keep(input.clone(), "unreadable");
            continue;
        };
        assert!(count.good as usize == paths.len() && count.good + count.bad <= lines, "{count:?}");
        let size = predictor.size();
        assert!(
            size.bytes <= settings.memory_bytes + 4096 && size.clients <= settings.clients,
            "{size:?}"
        );
        let mut verdicts = Vec::new();
        for (path, ..) in paths.iter().take(3) {
            let pages: Vec<_> = predictor.find(path).into_iter().collect();
            assert!(pages.is_empty() || rules::is_local_path(path), "{path:?} was learned");
            let predictions = predictor.predict(&pages);
            let judged = suggest::judge(&predictions, &limits, &[]);
            let chosen: Vec<_> = predictions
                .iter()
                .zip(&judged)
                .filter(|(_, verdict)| **verdict == Verdict::Suggested)
                .map(|(prediction, _)| prediction)
                .collect();
            assert!(chosen.len() <= limits.max_objects);
            assert!(chosen.iter().map(|p| p.bytes).sum::<u64>() <= limits.max_bytes);
            assert!(predictions.iter().all(|p| (0.0..=1.0).contains(&p.probability)));
            assert!(chosen.iter().all(|p| rules::is_local_path(&p.path)));
            let header = suggest::link(chosen.iter().map(|p| &*p.path), "");
            let header = header.as_ref().map_or("", |h| h.to_str().expect("visible"));
            let names: Vec<_> = chosen.iter().map(|p| &*p.path).collect();
            assert_eq!(suggest::paths(header), names, "what is suggested is read back");
            verdicts.push(judged.into_iter().take(8).map(|v| v as u8).collect::<Vec<_>>());
        }
        let kinds: Vec<_> = paths.iter().take(4).map(|(_, view, bytes)| (*view, *bytes)).collect();
        let fault = count.first_bad.map(|(_, what)| what);
        inputs.keep(input.clone(), (kinds, fault, verdicts, csv));
    }
}

#[test]
fn fuzzed_headers_are_judged_without_contradiction() {
    let mut inputs = Inputs::new(
        &[
            "cache-control: public, max-age=60\nvary: accept-encoding\netag: \"1\"\n",
            "cache-control: no-cache=\"x\", private\nset-cookie: a=b\npragma: no-cache\nexpires: 0\n",
            "sec-purpose: prefetch;prerender\npriority: i, u=7\nsave-data: on\n",
            "link: </a>; rel=prefetch, <//evil.example/>; rel=\"next prefetch\", </b>; rel=preload\n",
            "content-type: text/html; charset=utf-8\nlast-modified: x\npurpose: prefetch\nx-moz: prefetch\n",
        ],
        &[
            "cache-control: ", "vary: ", "link: ", "set-cookie: ", "sec-purpose: ", "priority: ", "etag: ",
            "private", "no-store", "max-age=", "max-age=\"", "99999999999999999999", "-1", "0", "*", ",", ";", "=",
            "\"", "<", ">", "<//", "</a>", "; rel=prefetch", "rel=\"prefetch", "u=7", "on", "\n", "\t", " ", "\u{e4}",
            "prefetch", "PREFETCH", "/", "/../", "\\", "http://evil.example/",
        ],
    );
    while let Some(input) = inputs.next() {
        let _told = Told(&input);
        let mut headers = HeaderMap::new();
        for line in input.split(|b| *b == b'\n') {
            let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
            let name = HeaderName::from_bytes(&line[..colon]);
            let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        let reusable = rules::is_reusable(StatusCode::OK, &headers);
        assert!(!(reusable && rules::is_private(&headers)), "private, and for all");
        assert!(!rules::is_reusable(StatusCode::NOT_FOUND, &headers));
        let purposes = ["sec-purpose", "purpose", "x-moz"];
        let prefetch = rules::is_prefetch(&headers);
        assert!(!prefetch || purposes.iter().any(|name| headers.contains_key(*name)));
        let background = rules::is_background_priority(&headers);
        assert!(!background || headers.contains_key("priority"));
        let declines = rules::declines(&headers);
        let mut links = 0;
        for value in headers.values() {
            let escaped = log::escape(value.as_bytes());
            let plain = escaped.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'"');
            assert!(plain, "{escaped:?} would end its field of the log");
            let line = format!(
                "::1 - - [10/Oct/2000:13:55:36 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"{escaped}\""
            );
            assert_eq!(log::parse(&line).map(|entry| entry.agent), Ok(&*escaped));
            for path in suggest::paths(&String::from_utf8_lossy(value.as_bytes())) {
                assert!(rules::is_local_path(path), "{path:?}");
                assert!(path.len() <= rules::LONGEST_PATH);
                let again = suggest::link([path], "").expect("a header");
                assert_eq!(suggest::paths(again.to_str().expect("visible")), [path]);
                links += 1;
            }
        }
        let judged = (reusable, rules::is_page(&headers), prefetch, background, declines);
        let sizes = (magnitude(links), headers.len().min(8), headers.keys_len().min(8));
        inputs.keep(input.clone(), (judged, sizes, rules::is_private(&headers)));
    }
}

#[tokio::test]
async fn fuzzed_requests_reach_the_origin_as_requests_that_cannot_be_misread() {
    let mut inputs = Inputs::new(
        &[
            "GET /a HTTP/1.1\r\nhost: site\r\n\r\n",
            "GET http://evil.example/a?b HTTP/1.1\r\nhost: site\r\nreferer: http://site/b\r\n\r\n",
            "POST /p HTTP/1.1\r\nhost: site\r\ncontent-length: 4\r\n\r\nfourGET /b HTTP/1.1\r\nhost: site\r\n\r\n",
            "POST /p HTTP/1.1\r\nhost: site\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\nfour\r\n0\r\nx: y\r\n\r\n",
            "GET /a HTTP/1.0\r\nconnection: keep-alive, x\r\nx: y\r\nx-forwarded-for: a\r\nsec-purpose: prefetch\r\n\r\n",
            "HEAD /a HTTP/1.1\r\nhost: site\r\nexpect: 100-continue\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\nhost: site\r\nte: trailers\r\n\r\n",
        ],
        &[
            "\r\n", "\n", "\r", "\0", "\t", " ", ":", "\r\n ", "\r\n\r\n", "content-length: ", "content-length: 4\r\n",
            "transfer-encoding: chunked\r\n", "transfer-encoding: ", "chunked", "identity", ", ", "+", "0", "4",
            "0\r\n\r\n", "host: ", "connection: ", "connection: close\r\n", "GET /b HTTP/1.1\r\n", "HTTP/1.1",
            "HTTP/1.0", "CONNECT ", "*", "//", "/", "%0d%0a", "\u{b}", "\u{ff}", "ffffffffffffffff",
            "expect: 100-continue\r\n", "CONTENT-LENGTH", "content_length: 4\r\n",
        ],
    );
    let (origin, heard) = strict_origin().await;
    let proxy = start(hasty(origin)).await;
    while let Some(input) = inputs.next() {
        let _told = Told(&input);
        let mut socket = TcpStream::connect(proxy.at).await.unwrap();
        let _ = socket.write_all(&input).await;
        let _ = socket.shutdown().await; // no more comes, whatever was announced
        let mut got = Vec::new();
        let _ = tokio::time::timeout(PATIENCE, socket.read_to_end(&mut got)).await.expect("an end");
        let heard = std::mem::take(&mut *heard.lock().unwrap());
        assert!(heard.faults.is_empty(), "{heard:?}");
        let heads = input.windows(2).filter(|w| w == b"\n\n").count()
            + input.windows(3).filter(|w| w == b"\n\r\n").count();
        // one that was cut off may be heard of with the next
        assert!(heard.lines.len() <= heads + 1, "{heard:?}");
        let statuses: Vec<_> = super::statuses(&String::from_utf8_lossy(&got))
            .iter()
            .map(|status| (*status).to_owned())
            .collect();
        let bodies: Vec<_> = heard.bodies.iter().map(|b| b.len().min(16)).collect();
        inputs.keep(input.clone(), (statuses, heard.lines.len(), bodies));
    }
    assert!(get(proxy.at, "/next", "x", "").await.ends_with("GET /next HTTP/1.1"));
}

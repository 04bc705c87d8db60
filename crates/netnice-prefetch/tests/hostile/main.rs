// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The proxy among clients and origins that mean it harm: requests smuggled within others, answers
//! that lie about their length, bodies that stop, floods.
#![forbid(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;
mod fuzz;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use netnice_prefetch::config::Config;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;
use tokio_rustls::TlsConnector;

use common::{config, exchange, get, secure, start, Running, PATIENCE};

const SMUGGLED: &str = "GET /smuggled HTTP/1.1\r\nhost: site\r\n\r\n";

/// A configuration that waits no longer than it must.
fn hasty(origin: SocketAddr) -> Config {
    let mut config = config(origin);
    config.timeouts.idle_s = 1;
    config.timeouts.body_s = 1;
    config
}

/// Waits for something that this test has no other way to be told of.
async fn until(what: &str, fit: impl Fn() -> bool) {
    let wait = async {
        while !fit() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// The proxy has nobody left to serve, and ends when it is told to.
async fn ends(proxy: Running) {
    let connections = proxy.server.proxy.metrics.connections.clone();
    until("all connections have ended", || connections.get() == 0).await;
    proxy.stop.send_replace(true);
    timeout(PATIENCE, proxy.task).await.unwrap().unwrap().unwrap();
}

/// What a [`strict_origin`] was sent.
#[derive(Debug, Default, Clone)]
struct Heard {
    /// Request lines, in the order in which they came.
    lines: Vec<String>,
    /// Bodies that came whole.
    bodies: Vec<String>,
    /// What two servers could read differently.
    faults: Vec<String>,
}

/// The length of a body, by its head; `None` if it is chunked. It takes only what nobody could read
/// in another way.
fn framing(head: &str) -> Result<Option<usize>, &'static str> {
    let mut lines = head.strip_suffix("\r\n\r\n").unwrap().split("\r\n");
    if head.replace("\r\n", "").contains(['\r', '\n', '\0']) {
        return Err("a stray control character");
    }
    let words: Vec<_> = lines.next().unwrap().split(' ').collect();
    if words.len() != 3
        || words[2] != "HTTP/1.1"
        || !(words[1].starts_with('/') || words[..2] == ["OPTIONS", "*"])
    {
        return Err("the request line");
    }
    let (mut lengths, mut codings, mut hosts, mut cookies) = (Vec::new(), Vec::new(), 0, 0);
    for line in lines {
        let (name, value) = line.split_once(':').ok_or("a line without a colon")?;
        if name.is_empty()
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
        {
            return Err("a header's name");
        }
        match name.to_ascii_lowercase().as_str() {
            "content-length" => lengths.push(value.strip_prefix(' ').unwrap_or(value)),
            "cookie" => cookies += 1,
            "host" => hosts += 1,
            "transfer-encoding" => codings.push(value.strip_prefix(' ').unwrap_or(value)),
            _ => {}
        }
    }
    if hosts != 1 || cookies > 1 {
        return Err("not one host, or cookies in parts");
    }
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Some(0)),
        ([], ["chunked"]) => Ok(None),
        ([length], []) if length.bytes().all(|b| b.is_ascii_digit()) => {
            length.parse().map(Some).map_err(|_| "a length")
        }
        _ => Err("more than one framing, or none that is plain"),
    }
}

/// Reads one request and notes it; `None` at the end of the connection.
async fn hear(
    socket: &mut BufReader<TcpStream>,
    heard: &Mutex<Heard>,
) -> Result<Option<String>, std::io::Error> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if socket.read_until(b'\n', &mut head).await? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let framed = framing(&head);
    let line = head.split("\r\n").next().unwrap_or_default().to_owned();
    heard.lock().unwrap().lines.push(line.clone());
    let fault = |what: &str| heard.lock().unwrap().faults.push(format!("{what}: {head:?}"));
    let mut body = Vec::new();
    match framed {
        Err(what) => {
            fault(what);
            return Ok(None);
        }
        Ok(Some(length)) => {
            body.resize(length, 0);
            socket.read_exact(&mut body).await?;
        }
        Ok(None) => loop {
            let mut size = String::new();
            socket.read_line(&mut size).await?;
            let Some(digits) = size.strip_suffix("\r\n") else { return Ok(None) };
            let Ok(length) = usize::from_str_radix(digits, 16) else {
                fault("a chunk's size");
                return Ok(None);
            };
            let mut chunk = vec![0; length + 2];
            socket.read_exact(&mut chunk).await?;
            if !chunk.ends_with(b"\r\n") {
                fault("a chunk's end, or a trailer");
                return Ok(None);
            }
            body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                break;
            }
        },
    }
    heard.lock().unwrap().bodies.push(String::from_utf8_lossy(&body).into_owned());
    Ok(Some(line))
}

/// An origin that keeps connections, notes all that it hears, takes nothing that could be read in two
/// ways, and answers with the request line.
async fn strict_origin() -> (SocketAddr, Arc<Mutex<Heard>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let heard: Arc<Mutex<Heard>> = Arc::default();
    let all = heard.clone();
    tokio::spawn(async move {
        loop {
            let mut socket = BufReader::new(listener.accept().await.unwrap().0);
            let heard = all.clone();
            tokio::spawn(async move {
                while let Ok(Some(line)) = hear(&mut socket, &heard).await {
                    let length = line.len();
                    let answer =
                        format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{line}");
                    if socket.write_all(answer.as_bytes()).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (at, heard)
}

/// The status of each answer in what a connection brought.
fn statuses(answers: &str) -> Vec<&str> {
    // a body of the origin's is a request line, and ends with the version
    answers.split("HTTP/1.1 ").skip(1).filter_map(|a| a.get(..3)).collect()
}

/// One after the other on kept connections, each with a proxy and an origin of its own.
async fn tell(requests: impl IntoIterator<Item = String>) -> Vec<(String, String, Heard)> {
    let mut telling = JoinSet::new();
    for request in requests {
        telling.spawn(async move {
            let (origin, heard) = strict_origin().await;
            let proxy = start(hasty(origin)).await;
            let answers = exchange(proxy.at, request.as_bytes()).await;
            let told = heard.lock().unwrap().clone();
            // whoever comes next gets an answer to what he asked
            let next = get(proxy.at, "/next", "x", "").await;
            assert!(next.ends_with("GET /next HTTP/1.1"), "after {request:?}: {next}");
            ends(proxy).await;
            (request, answers, told)
        });
    }
    telling.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_kept_connection_nothing_ambiguous_brings_a_second_request() {
    let chunked = format!("{:x}\r\n{SMUGGLED}\r\n0\r\n\r\n", SMUGGLED.len());
    let ends_early = format!("0\r\n\r\n{SMUGGLED}");
    let mut heads = Vec::new();
    // two framings: by the one, the body is what the other takes for a request
    let length = ends_early.len();
    for (head, body) in [
        (format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"), &ends_early),
        (format!("transfer-encoding: chunked\r\ncontent-length: {length}\r\n"), &ends_early),
        ("content-length: 4\r\ntransfer-encoding: chunked\r\n".to_owned(), &chunked),
        ("transfer-encoding: chunked\r\ncontent-length: 4\r\n".to_owned(), &chunked),
        (format!("content-length: 0\r\ncontent-length: {length}\r\n"), &ends_early),
        (format!("content-length: {length}\r\ncontent-length: 0\r\n"), &ends_early),
    ] {
        heads.push(format!("{head}\r\n{body}"));
    }
    for coding in [
        "transfer-encoding : chunked",
        " transfer-encoding: chunked",
        "x: 1\r\n transfer-encoding: chunked",
        "transfer-encoding:\r\n chunked",
        "transfer-encoding:\u{b}chunked",
        "transfer-encoding: chunked\u{b}",
        "transfer-encoding: \u{0}chunked",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: identity, chunked",
        "transfer-encoding: gzip, chunked",
        "transfer-encoding: chunked, chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked",
        "transfer-encoding: \"chunked\"",
        "transfer-encoding: chunked;q=1",
        "transfer-encoding: chunkedx",
        "transfer-encoding: xchunked",
        "transfer-encoding: ,chunked",
        "transfer-encoding:",
        "x: 1\rtransfer-encoding: chunked",
        "transfer-encoding: chunked\n",
        "transfer\u{0}-encoding: chunked",
        "transfer_encoding: chunked\r\ncontent-length: +5",
    ] {
        heads.push(format!("{coding}\r\n\r\n{ends_early}"));
        // what is taken as plainly chunked ends the connection, what is not is refused
        heads.push(format!("{coding}\r\ncontent-length: 5\r\n\r\n{ends_early}"));
    }
    for length in [
        "+5",
        "-5",
        "0x5",
        "5 5",
        "5, 5",
        "5, 6",
        "5a",
        "",
        "5\u{b}",
        "18446744073709551621",
        "5.0",
    ] {
        heads.push(format!("content-length: {length}\r\n\r\n{ends_early}"));
    }
    heads.push(format!("content-length:\r\n 5\r\n\r\n{ends_early}"));
    heads.push(format!("content-length : 5\r\n\r\n{ends_early}"));
    // chunks whose ends or sizes may be seen elsewhere
    for chunks in [
        "4\nabcd\r\n",
        "4\rabcd\r\n",
        "4;a\nb\r\nabcd\r\n",
        "4;a\rb\r\nabcd\r\n",
        "4\r\nabcd",
        "4\r\nabcd\n",
        "4\r\nabcdXX",
        "0x4\r\nabcd\r\n",
        "+4\r\nabcd\r\n",
        "-4\r\nabcd\r\n",
        " 4\r\nabcd\r\n",
        "\r\n4\r\nabcd\r\n",
        "10000000000000004\r\nabcd\r\n",
        "4,4\r\nabcd\r\n",
        "0\r\nhost: evil\r\ncontent-length: 9\r\ntransfer-encoding: x\r\n\r\n",
        "0\n\n",
    ] {
        heads.push(format!("transfer-encoding: chunked\r\n\r\n{chunks}{ends_early}"));
    }
    let requests =
        heads.into_iter().map(|r| format!("POST /p HTTP/1.1\r\nhost: site\r\n{r}{SMUGGLED}"));
    let mut wrong = Vec::new();
    for (request, answers, heard) in tell(requests).await {
        let statuses = statuses(&answers);
        let served = statuses.first() == Some(&"200");
        let fine = (heard.lines.is_empty() || heard.lines == ["POST /p HTTP/1.1"])
            && heard.faults.is_empty()
            && statuses.iter().skip(1).all(|status| *status == "400")
            && served == (heard.bodies.len() == 1);
        if !fine {
            wrong.push(format!("{request:?}\n  answered {answers:?}\n  {heard:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of these:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_plain_passes_as_the_requests_that_it_is() {
    let length = SMUGGLED.len();
    let body = format!("{length:x}\r\n{SMUGGLED}\r\n0\r\n\r\n");
    let after = "GET /after HTTP/1.1\r\nhost: site\r\n\r\n";
    let post = "POST /p HTTP/1.1\r\nhost: site\r\n";
    let requests = [
        // a request within a body stays there, whatever `Connection` says of the length
        format!("{post}content-length: {length}\r\n\r\n{SMUGGLED}{after}"),
        format!("{post}content-length: {length}\r\ncontent-length: {length}\r\n\r\n{SMUGGLED}{after}"),
        format!(
            "{post}connection: content-length, host\r\ncontent-length: {length}\r\n\r\n{SMUGGLED}{after}"
        ),
        format!("{post}transfer-encoding: chunked\r\n\r\n{body}{after}"),
        format!("{post}Transfer-Encoding:\tCHUNKED \r\n\r\n{body}{after}"),
        format!(
            "{post}connection: transfer-encoding\r\ntransfer-encoding: chunked\r\n\r\n{body}{after}"
        ),
        format!("{post}transfer-encoding: chunked\r\n\r\n{}{after}", body.replacen('\r', ";x=y\r", 1)),
        // trailers are not taken for headers
        format!(
            "{post}transfer-encoding: chunked\r\n\r\n{length:x}\r\n{SMUGGLED}\r\n0\r\n\
             content-length: 9\r\nhost: evil\r\n\r\n{after}"
        ),
        // RFC 9112, section 2.2: a line may end without CR
        format!("POST /p HTTP/1.1\nhost: site\ncontent-length: {length}\n\n{SMUGGLED}{after}"),
        format!(
            "{post}upgrade: h2c\r\nconnection: upgrade\r\ncontent-length: {length}\r\n\r\n{SMUGGLED}{after}"
        ),
    ];
    for (request, answers, heard) in tell(requests).await {
        let told = format!("{request:?}: {answers:?} {heard:?}");
        assert_eq!(heard.lines, ["POST /p HTTP/1.1", "GET /after HTTP/1.1"], "{told}");
        assert_eq!(heard.bodies, [SMUGGLED, ""], "{told}");
        assert!(heard.faults.is_empty(), "{told}");
        assert_eq!(statuses(&answers), ["200", "200"], "{told}");
    }
}

/// Whether an answer came with all of the body that its head announces.
fn is_whole(answer: &str) -> bool {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
    match length {
        Some(length) => body.len() == length.parse::<usize>().unwrap(),
        None => head.contains("transfer-encoding: chunked") && body.ends_with("0\r\n\r\n"),
    }
}

/// An origin that answers the first request with a lie on a connection that it keeps, or closes, and
/// all others with `fine`; what is told later follows the lie.
async fn lying_origin(
    lie: String,
    closes: bool,
    later: Option<(String, Arc<Notify>)>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let first = Arc::new(AtomicBool::new(true));
    tokio::spawn(async move {
        loop {
            let mut socket = BufReader::new(listener.accept().await.unwrap().0);
            let (first, lie, later) = (first.clone(), lie.clone(), later.clone());
            tokio::spawn(async move {
                let heard = Mutex::default();
                while let Ok(Some(_)) = hear(&mut socket, &heard).await {
                    if !first.swap(false, SeqCst) {
                        let fine = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";
                        let _ = socket.write_all(fine).await;
                        continue;
                    }
                    let _ = socket.write_all(lie.as_bytes()).await;
                    if let Some((excess, told)) = &later {
                        told.notified().await;
                        let _ = socket.write_all(excess.as_bytes()).await;
                        told.notify_one();
                    }
                    if closes {
                        break;
                    }
                }
            });
        }
    });
    at
}

const POISON: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_an_answer_never_becomes_the_answer_to_the_next_request() {
    let mut asking = JoinSet::new();
    for (method, lie) in [
        ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 90\r\n\r\n0\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n"),
    ] {
        for excess in [POISON, "x", "\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
            // in one packet with the answer, or when the client has got that and the connection rests
            for waits in [false, true] {
                asking.spawn(async move {
                    let (lie, later) = match waits {
                        false => (format!("{lie}{excess}"), None),
                        true => {
                            (lie.to_owned(), Some((excess.to_owned(), Arc::new(Notify::new()))))
                        }
                    };
                    let told = later.as_ref().map(|(_, told)| told.clone());
                    let proxy = start(hasty(lying_origin(lie.clone(), false, later).await)).await;
                    let head =
                        format!("{method} /a HTTP/1.1\r\nhost: site\r\nconnection: close\r\n\r\n");
                    let answer = exchange(proxy.at, head.as_bytes()).await;
                    assert!(
                        answer.starts_with("HTTP/1.1 ") && !answer.contains("poison"),
                        "{lie:?}: {answer}"
                    );
                    if let Some(told) = told {
                        told.notify_one();
                        told.notified().await;
                    }
                    let next = get(proxy.at, "/b", "x", "").await;
                    assert!(next.ends_with("fine"), "after {lie:?}, {excess:?}: {next}");
                    ends(proxy).await;
                });
            }
        }
    }
    asking.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_or_makes_no_sense_is_never_whole_for_the_client() {
    let mut asking = JoinSet::new();
    for lie in [
        "content-length: 100\r\n\r\nten bytes.",
        "content-length: 100\r\ncontent-length: 10\r\n\r\nten bytes.",
        "content-length: -10\r\n\r\nten bytes.",
        "content-length: +10\r\n\r\nten bytes.",
        "content-length: 99999999999999999999\r\n\r\nten bytes.",
        "content-length: 18446744073709551615\r\n\r\nten bytes.",
        "transfer-encoding: chunked\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\na\r\nten byt",
        "transfer-encoding: chunked\r\n\r\na\r\nten bytes.",
        "transfer-encoding: chunked\r\n\r\na\r\nten bytes.\r\n",
        "transfer-encoding: chunked\r\n\r\na\r\nten bytes.XX0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nzz\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n-1\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n0\r\nno trailer",
        "transfer-encoding: chunked\r\ncontent-length: 10\r\n\r\n5\r\nten b",
        "transfer-encoding: gzip, chunked\r\n\r\na\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked, chunked\r\n\r\na\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: gzip\r\n\r\nten bytes.",
        " folded: 1\r\ncontent-length: 100\r\n\r\nten bytes.",
    ] {
        for closes in [false, true] {
            asking.spawn(async move {
                let lie = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n{lie}");
                let mut config = hasty(lying_origin(lie.clone(), closes, None).await);
                config.timeouts.answer_s = 1;
                let proxy = start(config).await;
                let answer = get(proxy.at, "/a", "x", "").await;
                // its end is the body's timeout, if the origin does not end it
                let refused = answer.starts_with("HTTP/1.1 50");
                assert!(refused || !is_whole(&answer), "closes: {closes}, {lie:?}: {answer:?}");
                let next = get(proxy.at, "/b", "x", "").await;
                assert!(next.ends_with("fine"), "after {lie:?}: {next}");
                ends(proxy).await;
            });
        }
    }
    asking.join_all().await;
}

#[tokio::test]
async fn a_request_whose_body_stops_is_given_up_and_never_looks_whole() {
    for framing in
        ["content-length: 10\r\n\r\nfive.", "transfer-encoding: chunked\r\n\r\na\r\nfive."]
    {
        let (origin, heard) = strict_origin().await;
        let mut config = hasty(origin);
        config.bounds.connections = 1;
        config.bounds.origin_connections = 1;
        config.timeouts.connect_s = 30;
        let proxy = start(config).await;
        let mut slow = TcpStream::connect(proxy.at).await.unwrap();
        let begun = format!("POST /slow HTTP/1.1\r\nhost: site\r\n{framing}");
        slow.write_all(begun.as_bytes()).await.unwrap();
        until("the origin has its head", || !heard.lock().unwrap().lines.is_empty()).await;
        // who comes next waits for both places
        let next = timeout(PATIENCE, get(proxy.at, "/next", "x", "")).await.unwrap();
        assert!(next.ends_with("GET /next HTTP/1.1"), "{next}");
        let mut got = String::new();
        timeout(PATIENCE, slow.read_to_string(&mut got)).await.unwrap().unwrap();
        assert!(!got.contains("HTTP/1.1 200"), "{got}");
        let heard = heard.lock().unwrap().clone();
        assert_eq!((heard.bodies.len(), heard.faults.len()), (1, 0), "{heard:?}");
        ends(proxy).await;
    }
}

/// HTTP/2 frame by frame, so that nothing is too wrong to be sent.
struct Frames {
    stream: TlsStream<TcpStream>,
}

/// Kinds and flags of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields as HPACK has them without tables and without compression.
fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            // RFC 7541, section 5.1
            match text.len().checked_sub(127) {
                None => block.push(u8::try_from(text.len()).unwrap()),
                Some(mut rest) => {
                    block.push(127);
                    while rest >= 128 {
                        block.push((rest % 128) as u8 | 128);
                        rest /= 128;
                    }
                    block.push(rest as u8);
                }
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

fn ask_for(path: &str) -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "https"), (":authority", "site"), (":path", path)])
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    /// The first byte of the answer's head: 0x88 is status 200, 0x8c is 400.
    Answered(u8),
    /// The stream was reset.
    Reset,
    /// The connection was closed.
    Gone,
}

const FINE: Fate = Fate::Answered(0x88);

impl Frames {
    async fn open(at: SocketAddr, connector: &TlsConnector) -> Self {
        let socket = TcpStream::connect(at).await.unwrap();
        let mut stream = connector.connect("site".try_into().unwrap(), socket).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        Self { stream }
    }

    /// False if the connection has ended.
    async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Kind, flags, stream and payload of the next frame; `None` at the end. Pings are answered.
    async fn next(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
            match (head[3], head[4]) {
                (PING, 0) => {
                    self.send(&frame(PING, ACK, 0, &payload)).await;
                }
                (kind, flags) => return Some((kind, flags, stream, payload)),
            }
        }
    }

    async fn fate(&mut self, of: u32) -> Fate {
        let fate = async {
            while let Some((kind, _, stream, payload)) = self.next().await {
                match kind {
                    HEADERS if stream == of => return Fate::Answered(payload[0]),
                    RST_STREAM if stream == of => return Fate::Reset,
                    GOAWAY if payload[4..8] != [0; 4] => return Fate::Gone,
                    _ => {}
                }
            }
            Fate::Gone
        };
        timeout(PATIENCE, fate).await.expect("an answer or an end")
    }

    /// Until the proxy ends the connection.
    async fn end(&mut self) {
        let end = async { while self.next().await.is_some() {} };
        timeout(PATIENCE, end).await.expect("the proxy closes");
    }
}

/// Asks once by HTTP/2, on a connection of its own.
async fn ask(at: SocketAddr, connector: &TlsConnector, path: &str) -> Fate {
    let mut frames = Frames::open(at, connector).await;
    let request = frame(HEADERS, END_STREAM | END_HEADERS, 1, &ask_for(path));
    frames.send(&request).await;
    frames.fate(1).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_http_2_can_carry_and_http_1_cannot_is_refused() {
    let four = "four";
    let mut asking = JoinSet::new();
    for (changed, body) in [
        (("x", "1\r\ntransfer-encoding: chunked"), four),
        (("x", "1\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: site\r\n\r\n"), four),
        (("x", "1\ny: 2"), four),
        (("x", "1\ry: 2"), four),
        (("x", "a\0b"), four),
        (("x: 1\r\ntransfer-encoding", "chunked"), four),
        (("x\r\n\r\nGET /smuggled HTTP/1.1\r\nhost", "site"), four),
        (("x y", "1"), four),
        (("x:y", "1"), four),
        (("", "1"), four),
        (("X-Upper", "1"), four),
        (("transfer-encoding", "chunked"), four),
        (("transfer-encoding", "identity"), four),
        (("connection", "close"), four),
        (("keep-alive", "1"), four),
        (("upgrade", "h2c"), four),
        (("te", "gzip"), four),
        ((":path", "/p HTTP/1.1\r\nhost: site\r\n\r\nGET /smuggled"), four),
        ((":path", "/p HTTP/1.1"), four),
        ((":path", "p"), four),
        ((":path", ""), four),
        ((":method", "GET /smuggled HTTP/1.1\r\nhost: site\r\n\r\nPOST"), four),
        ((":method", "CONNECT"), four),
        ((":authority", "site\r\nx: y"), four),
        ((":authority", "site/smuggled"), four),
        ((":status", "200"), four),
        ((":unknown", "1"), four),
        (("content-length", "3"), four),
        (("content-length", "0"), four),
        (("content-length", "5"), four),
        (("content-length", "+4"), four),
        (("content-length", "4, 4"), four),
        (("content-length", "99999999999999999999"), four),
        // whoever framed this by its own words would find a request in it
        (("content-length", "0"), SMUGGLED),
    ] {
        asking.spawn(async move {
            let (origin, heard) = strict_origin().await;
            let mut config = hasty(origin);
            let (_files, connector) = secure(&mut config);
            let proxy = start(config).await;
            let mut fields = vec![
                (":method", "POST"),
                (":scheme", "https"),
                (":authority", "site"),
                (":path", "/p"),
            ];
            match fields.iter_mut().find(|(name, _)| *name == changed.0) {
                Some(field) => *field = changed,
                None => fields.push(changed),
            }
            let mut frames = Frames::open(proxy.at, &connector).await;
            let request = [
                frame(HEADERS, END_HEADERS, 1, &block(&fields)),
                frame(DATA, END_STREAM, 1, body.as_bytes()),
            ];
            frames.send(&request.concat()).await;
            let fate = frames.fate(1).await;
            assert_ne!(fate, FINE, "{changed:?} {body:?}");
            assert_eq!(ask(proxy.at, &connector, "/next").await, FINE, "after {changed:?}");
            let heard = heard.lock().unwrap().clone();
            let told = format!("{changed:?} {body:?}: {fate:?} {heard:?}");
            assert!(heard.faults.is_empty(), "{told}");
            assert!(heard.bodies.iter().all(String::is_empty) && heard.bodies.len() <= 2, "{told}");
            let expected = ["POST /p HTTP/1.1", "GET /next HTTP/1.1"];
            assert!(heard.lines.iter().all(|line| expected.contains(&line.as_str())), "{told}");
            drop(frames);
            ends(proxy).await;
        });
    }
    asking.join_all().await;
}

#[tokio::test]
async fn what_http_2_splits_or_says_twice_is_one_for_the_origin() {
    let (origin, heard) = strict_origin().await;
    let mut config = hasty(origin);
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    let mut frames = Frames::open(proxy.at, &connector).await;
    let mut request = ask_for("/crumbs");
    request.extend(block(&[("cookie", "a=1"), ("cookie", "b=2"), ("host", "evil.example")]));
    frames.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &request)).await;
    assert_eq!(frames.fate(1).await, FINE);
    let heard = heard.lock().unwrap().clone();
    assert_eq!((heard.lines.len(), heard.faults.len()), (1, 0), "{heard:?}");
    drop(frames);
    ends(proxy).await;
}

/// An origin of one answer without end, `/endless`, and small ones; it counts those endless answers
/// that were broken off.
async fn endless_origin() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let broken = Arc::new(AtomicUsize::new(0));
    let count = broken.clone();
    tokio::spawn(async move {
        loop {
            let mut socket = BufReader::new(listener.accept().await.unwrap().0);
            let count = count.clone();
            tokio::spawn(async move {
                let heard = Mutex::default();
                while let Ok(Some(line)) = hear(&mut socket, &heard).await {
                    if !line.contains("/endless") {
                        let _ = socket
                            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine")
                            .await;
                        continue;
                    }
                    let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
                    let _ = socket.write_all(head).await;
                    while socket.write_all(&[b'.'; 1 << 16]).await.is_ok() {}
                    count.fetch_add(1, SeqCst);
                }
            });
        }
    });
    (at, broken)
}

/// A configuration with one place for clients and one at the origin, for which the next one waits.
fn one_place(origin: SocketAddr) -> Config {
    let mut config = hasty(origin);
    config.bounds.connections = 1;
    config.bounds.origin_connections = 1;
    config.timeouts.connect_s = 30;
    config
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_loses_its_place() {
    let (origin, broken) = endless_origin().await;
    let proxy = start(one_place(origin)).await;
    let mut stuck = TcpStream::connect(proxy.at).await.unwrap();
    stuck.write_all(b"GET /endless HTTP/1.1\r\nhost: site\r\n\r\n").await.unwrap();
    stuck.read_exact(&mut [0; 1000]).await.unwrap();
    let next = timeout(PATIENCE, get(proxy.at, "/next", "x", "")).await.expect("a place");
    assert!(next.ends_with("fine"), "{next}");
    until("the origin's answer is broken off", || broken.load(SeqCst) == 1).await;
    ends(proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_of_http_2_that_lets_its_answers_stand_loses_its_place_to_others() {
    for (connections, origin_connections) in [(1, 10), (10, 1)] {
        let (origin, broken) = endless_origin().await;
        let mut config = one_place(origin);
        config.bounds.connections = connections;
        config.bounds.origin_connections = origin_connections;
        let (_files, connector) = secure(&mut config);
        let proxy = start(config).await;
        let mut stuck = Frames::open(proxy.at, &connector).await;
        let request = frame(HEADERS, END_STREAM | END_HEADERS, 1, &ask_for("/endless"));
        stuck.send(&request).await;
        assert_eq!(stuck.fate(1).await, FINE);
        // it takes what comes and answers pings, so its TCP is alive, but opens no window
        let stuck = tokio::spawn(async move { stuck.end().await });
        let next = timeout(PATIENCE, ask(proxy.at, &connector, "/next")).await.expect("a place");
        assert_eq!(next, FINE);
        stuck.await.unwrap();
        until("the origin's answer is broken off", || broken.load(SeqCst) == 1).await;
        ends(proxy).await;
    }
}

#[tokio::test]
async fn a_handshake_that_stops_is_given_up_and_leaves_its_place() {
    let (origin, _) = endless_origin().await;
    let mut config = one_place(origin);
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    // nothing; a record's head; a record that is announced but does not come; no TLS at all
    for begun in [
        &b""[..],
        b"\x16\x03\x01",
        b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut stalled = TcpStream::connect(proxy.at).await.unwrap();
        stalled.write_all(begun).await.unwrap();
        let mut got = Vec::new();
        let _ = timeout(PATIENCE, stalled.read_to_end(&mut got)).await.expect("the proxy closes");
        assert_eq!(ask(proxy.at, &connector, "/next").await, FINE, "after {begun:?}");
    }
    ends(proxy).await;
}

/// While one client floods, others are answered; returns when the flood is over.
async fn beside<F: std::future::Future<Output = ()>>(flood: F, at: SocketAddr, tls: &TlsConnector) {
    let over = AtomicBool::new(false);
    let flood = async {
        timeout(PATIENCE, flood).await.expect("the flood is ended");
        over.store(true, SeqCst);
    };
    let others = async {
        let mut answered = 0;
        while !over.load(SeqCst) || answered == 0 {
            assert_eq!(ask(at, tls, "/other").await, FINE);
            answered += 1;
        }
    };
    tokio::join!(flood, others);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_without_end_is_cut_off_while_others_are_served() {
    const MOST: usize = 64 << 20; // far more than any bound of a head
    let many: Vec<_> = (0..100).map(|_| ("x-filler", "0123456789")).collect();
    // large parts, small ones, and empty ones
    for part in [block(&many), block(&[("x", "y")]), Vec::new()] {
        let (origin, heard) = strict_origin().await;
        let mut config = hasty(origin);
        let (_files, connector) = secure(&mut config);
        let proxy = start(config).await;
        let flood = async {
            let mut frames = Frames::open(proxy.at, &connector).await;
            frames.send(&frame(HEADERS, END_STREAM, 1, &ask_for("/bomb"))).await;
            let parts = frame(CONTINUATION, 0, 1, &part).repeat(100);
            let mut sent = 0;
            while frames.send(&parts).await {
                sent += parts.len();
                assert!(sent < MOST, "{sent} bytes of a head were taken");
            }
        };
        beside(flood, proxy.at, &connector).await;
        assert!(!heard.lock().unwrap().lines.iter().any(|line| line.contains("/bomb")));
        ends(proxy).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_grows_when_it_is_unpacked_is_refused() {
    let (origin, heard) = strict_origin().await;
    let mut config = hasty(origin);
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    let mut frames = Frames::open(proxy.at, &connector).await;
    // a field that the table keeps, then ten thousand times its number there
    let mut bomb = ask_for("/bomb");
    let mut kept = block(&[("x", &"a".repeat(3000))]);
    kept[0] = 0x40;
    bomb.extend(kept);
    bomb.extend([0xbe; 10_000]);
    frames.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb)).await;
    assert_ne!(frames.fate(1).await, FINE);
    assert_eq!(ask(proxy.at, &connector, "/next").await, FINE);
    assert_eq!(heard.lock().unwrap().lines, ["GET /next HTTP/1.1"]);
    drop(frames);
    ends(proxy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_taken_back_at_once_are_bounded_while_others_are_served() {
    const MOST: u32 = 100_000;
    let (origin, heard) = strict_origin().await;
    let mut config = hasty(origin);
    config.bounds.origin_connections = 8;
    config.timeouts.connect_s = 30;
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    let flood = async {
        let mut frames = Frames::open(proxy.at, &connector).await;
        let cancel = 8u32.to_be_bytes();
        for first in (1..2 * MOST).step_by(200) {
            let burst: Vec<u8> = (first..first + 200)
                .step_by(2)
                .flat_map(|id| {
                    let request = frame(HEADERS, END_STREAM | END_HEADERS, id, &ask_for("/reset"));
                    [request, frame(RST_STREAM, 0, id, &cancel)].concat()
                })
                .collect();
            if !frames.send(&burst).await {
                return;
            }
        }
        panic!("{MOST} requests were taken and taken back");
    };
    beside(flood, proxy.at, &connector).await;
    let asked = heard.lock().unwrap().lines.iter().filter(|l| l.contains("/reset")).count();
    assert!(asked < 1000, "{asked} of them reached the origin");
    ends(proxy).await;
}

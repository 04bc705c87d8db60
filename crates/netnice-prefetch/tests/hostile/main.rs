// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The proxy among clients and origins that mean it harm: requests smuggled within others, answers
//! that lie about their length, bodies that stop, floods.
#![forbid(unsafe_code)]

mod answers;
#[path = "../common/mod.rs"]
mod common;
mod floods;
mod frames;
mod fuzz;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use netnice_prefetch::config::Config;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
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

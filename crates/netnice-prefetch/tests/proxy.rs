// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The proxy on real sockets: in front of origins that behave, and that do not; with clients that
//! behave, and that do not.
#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::io::BufRead;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use netnice_prefetch::config::Config;
use netnice_prefetch::line::Mode;
use netnice_prefetch::log;
use netnice_prefetch::predict::Predictor;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use common::{config, exchange, get, secure, start, start_with, PATIENCE};

/// Connections that are opened at once.
const FLOOD: usize = 10_000;
/// For all of a flood: no measure of speed, only no hanging.
const FLOOD_PATIENCE: Duration = Duration::from_secs(240);

/// An origin of static pages that remembers what it was asked, head by head.
async fn origin() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = asked.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let log = log.clone();
            let service = service_fn(move |request: Request<Incoming>| {
                let log = log.clone();
                async move {
                    let (head, body) = request.into_parts();
                    let body = body.collect().await.map(|b| b.to_bytes()).unwrap_or_default();
                    log.lock().unwrap().push(format!("{head:?} {body:?}"));
                    let kind = match head.uri.path().ends_with(".png") {
                        true => "image/png",
                        false => "text/html",
                    };
                    let length = if head.uri.path() == "/large" { 3_000_000 } else { 10 };
                    let response = Response::builder().header("content-type", kind);
                    let response = match head.uri.path() {
                        "/private" => response.header("cache-control", "private"),
                        _ => response
                            .header("etag", "\"1\"")
                            .header("connection", "x-hop")
                            .header("x-hop", "1"),
                    };
                    response.body(Full::new(Bytes::from(vec![b'.'; length])))
                }
            });
            let builder = hyper::server::conn::http1::Builder::new();
            tokio::spawn(builder.serve_connection(TokioIo::new(socket), service));
        }
    });
    (at, asked)
}

/// An origin that answers each connection with these bytes after it got a head, and closes.
async fn rude_origin(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = socket.read(&mut head).await;
            if answer.is_empty() {
                tokio::spawn(async move {
                    std::future::pending::<()>().await;
                    drop(socket)
                });
            } else {
                socket.write_all(answer).await.unwrap();
            }
        }
    });
    at
}

fn link(answer: &str) -> Option<&str> {
    answer.lines().find_map(|l| l.strip_prefix("link: "))
}

#[tokio::test]
async fn requests_pass_without_what_belongs_to_one_hop() {
    let (origin, asked) = origin().await;
    let proxy = start(config(origin)).await;
    let answer = get(
        proxy.at,
        "/a?b",
        "x",
        "x-mine: 1\r\nkeep-alive: 1\r\nte: trailers\r\nx-forwarded-for: 192.0.2.1\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(".........."), "{answer}");
    assert!(!answer.contains("x-hop"), "{answer}");
    let asked = asked.lock().unwrap()[0].clone();
    for there in [
        "/a?b",
        "\"x-mine\": \"1\"",
        "\"host\": \"site\"",
        "\"x-forwarded-for\": \"192.0.2.1, 127.0.0.1\"",
        "\"x-forwarded-proto\": \"http\"",
    ] {
        assert!(asked.contains(there), "{there}: {asked}");
    }
    assert!(!asked.contains("keep-alive") && !asked.contains("\"te\""), "{asked}");
}

#[tokio::test]
async fn large_answers_and_requests_are_streamed_whole() {
    let (origin, asked) = origin().await;
    let proxy = start(config(origin)).await;
    let answer = get(proxy.at, "/large", "x", "").await;
    assert_eq!(answer.split_once("\r\n\r\n").unwrap().1.len(), 3_000_000);
    let mut request = b"POST /p HTTP/1.1\r\nhost: site\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    request.extend_from_slice(b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
    assert!(exchange(proxy.at, &request).await.starts_with("HTTP/1.1 200"));
    assert!(asked.lock().unwrap()[1].ends_with("b\"abcde\""));
}

#[tokio::test]
async fn what_follows_is_suggested_and_prefetched_in_the_background() {
    let (origin, _) = origin().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let mut config = config(origin);
    config.suggestions.per_reply = 1;
    config.access_log = Some(path.clone());
    let proxy = start(config).await;
    assert_eq!(proxy.server.proxy.mode(), Mode::Connection);
    for path in ["/a", "/b", "/b.png", "/private"] {
        let answer = get(proxy.at, path, "first", "").await;
        assert_eq!(link(&answer), None, "nothing is known yet");
    }
    let answer = get(proxy.at, "/a", "second", "").await;
    // b and b.png followed a once, and are alike; the first by path leads, the second is chained
    assert_eq!(link(&answer), Some("</b>; rel=prefetch"), "{answer}");
    let answer = get(proxy.at, "/b", "second", "sec-purpose: prefetch\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(link(&answer), Some("</b.png>; rel=prefetch"), "{answer}");
    let answer = get(proxy.at, "/b.png", "second", "purpose: prefetch\r\n").await;
    assert_eq!(link(&answer), None, "private answers are not suggested: {answer}");
    for header in ["save-data: on\r\n", "cache-control: no-store\r\n"] {
        let answer = get(proxy.at, "/a", "third", header).await;
        assert_eq!(link(&answer), None, "{header}");
    }
    // the second client shows by its Referer that it used what was sent ahead: 10 bytes
    get(proxy.at, "/c.png", "second", "referer: http://site/b\r\n").await;
    proxy.server.proxy.flush();
    let metrics = proxy.server.proxy.metrics.text();
    for line in [
        "netnice_prefetch_mode{mode=\"connection\"} 1",
        "netnice_prefetch_answers_total{class=\"prefetch\",status=\"2xx\"} 2",
        "netnice_prefetch_bytes_total{class=\"prefetch\"} 20",
        "netnice_prefetch_used_bytes_total 10",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    let (mut lines, mut wishes) = (0, 0);
    let count = log::read(
        &path,
        |f| Box::new(f),
        |entry| {
            lines += 1;
            wishes += u32::from(entry.is_view());
        },
    );
    assert_eq!((count.unwrap().bad, lines, wishes), (0, 10, 8), "the proxy's log is read back");
}

#[tokio::test]
async fn without_a_background_nothing_is_suggested_and_prefetches_are_refused() {
    let (origin, asked) = origin().await;
    let mut config = config(origin);
    config.background.control = "nn_unknown".into();
    let proxy = start(config).await;
    assert_eq!(proxy.server.proxy.mode(), Mode::Off);
    for agent in ["first", "second"] {
        for path in ["/a", "/b"] {
            let answer = get(proxy.at, path, agent, "").await;
            assert!(answer.starts_with("HTTP/1.1 200") && link(&answer).is_none(), "{answer}");
        }
    }
    let before = asked.lock().unwrap().len();
    let answer = get(proxy.at, "/b", "second", "sec-purpose: prefetch\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("no-store"), "{answer}");
    assert_eq!(asked.lock().unwrap().len(), before, "the origin is not troubled");
}

#[tokio::test]
async fn with_a_second_port_suggestions_name_it_and_the_first_refuses() {
    let (origin, _) = origin().await;
    let mut config = config(origin);
    config.background.control = "nn_unknown".into();
    config.background.port = Some(4711);
    let proxy = start(config).await;
    for path in ["/a", "/b"] {
        get(proxy.at, path, "first", "").await;
    }
    let answer = get(proxy.at, "/a", "second", "").await;
    assert_eq!(link(&answer), Some("<http://site:4711/b>; rel=prefetch"));
    let answer = get(proxy.at, "/b", "second", "sec-purpose: prefetch\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

#[tokio::test]
async fn an_origin_that_is_down_slow_or_senseless_is_told_apart() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = start(config(closed)).await;
    let answer = get(proxy.at, "/", "x", "").await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("cannot be reached"), "{answer}");

    let mut slow = config(rude_origin(b"").await);
    slow.timeouts.answer_s = 1;
    let answer = get(start(slow).await.at, "/", "x", "").await;
    assert!(answer.starts_with("HTTP/1.1 504") && answer.contains("within 1 s"), "{answer}");

    let senseless = config(rude_origin(b"SSH-2.0-OpenSSH\r\n\r\n").await);
    let answer = get(start(senseless).await.at, "/", "x", "").await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("valid answer"), "{answer}");
}

/// An origin that answers when it is let, and counts connections: open now, and most at once.
async fn held_origin() -> (SocketAddr, Arc<Semaphore>, Arc<[AtomicUsize; 2]>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (gate, count) = (Arc::new(Semaphore::new(0)), Arc::new([const { AtomicUsize::new(0) }; 2]));
    let (held, counted) = (gate.clone(), count.clone());
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let (held, counted) = (held.clone(), counted.clone());
            tokio::spawn(async move {
                let open = counted[0].fetch_add(1, SeqCst) + 1;
                counted[1].fetch_max(open, SeqCst);
                let service = service_fn(|_| async {
                    held.acquire().await.unwrap().forget();
                    Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from("ok")))
                });
                let builder = hyper::server::conn::http1::Builder::new();
                let _ = builder.serve_connection(TokioIo::new(socket), service).await;
                counted[0].fetch_sub(1, SeqCst);
            });
        }
    });
    (at, gate, count)
}

#[tokio::test]
async fn connections_to_the_origin_are_bounded_and_requests_wait_for_them() {
    const BOUND: usize = 3;
    let (origin, gate, count) = held_origin().await;
    let mut config = config(origin);
    config.bounds.origin_connections = BOUND;
    let proxy = start(config.clone()).await;
    let mut asking = JoinSet::new();
    for _ in 0..5 * BOUND {
        asking.spawn(async move { get(proxy.at, "/a", "x", "").await });
    }
    let busy = async {
        while count[0].load(SeqCst) < BOUND {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, busy).await.unwrap();
    let prefetch = get(proxy.at, "/a", "x", "sec-purpose: prefetch\r\n").await;
    assert!(prefetch.starts_with("HTTP/1.1 503"), "a prefetch does not wait: {prefetch}");
    gate.add_permits(5 * BOUND);
    for answer in asking.join_all().await {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    assert_eq!(count[1].load(SeqCst), BOUND, "kept ones included");

    config.timeouts.connect_s = 1;
    let proxy = start(config).await;
    let mut asking = JoinSet::new();
    for _ in 0..2 * BOUND {
        asking.spawn(async move { get(proxy.at, "/a", "x", "").await });
    }
    for _ in 0..BOUND {
        let answer = timeout(PATIENCE, asking.join_next()).await.unwrap().unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("busy"), "{answer}");
    }
    gate.add_permits(BOUND);
    for answer in asking.join_all().await {
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

#[tokio::test]
async fn a_connection_that_the_origin_let_go_is_not_used_again() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"; // closes, but does not say so
    let proxy = start(config(rude_origin(answer).await)).await;
    for _ in 0..5 {
        let answer = get(proxy.at, "/", "x", "").await;
        assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
        tokio::time::sleep(Duration::from_millis(20)).await; // for the end to arrive
    }
}

#[tokio::test]
async fn a_client_may_send_all_of_its_request_before_it_takes_an_early_answer() {
    const LENGTH: usize = 20_000_000; // more than all buffers on the way
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let service = service_fn(|request: Request<Incoming>| async {
            tokio::spawn(request.into_body().collect());
            Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(vec![
                b'.';
                LENGTH
            ])))
        });
        let builder = hyper::server::conn::http1::Builder::new();
        builder.serve_connection(TokioIo::new(socket), service).await
    });
    let proxy = start(config(origin)).await;
    let head = format!(
        "POST / HTTP/1.1\r\nhost: site\r\nconnection: close\r\ncontent-length: {LENGTH}\r\n\r\n"
    );
    let request = [head.into_bytes(), vec![b'.'; LENGTH]].concat();
    let answer = timeout(PATIENCE, exchange(proxy.at, &request)).await.expect("nothing hangs");
    assert!(answer.len() > LENGTH, "{} bytes", answer.len());
}

#[tokio::test]
async fn an_answer_shorter_than_it_said_is_cut_off_and_never_suggested() {
    let lying = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\netag: \"1\"\r\ncontent-length: 100\r\n\r\nten bytes.";
    let proxy = start(config(rude_origin(lying).await)).await;
    for path in ["/a", "/b"] {
        let answer = get(proxy.at, path, "first", "").await;
        let body = answer.split_once("\r\n\r\n").map_or("", |parts| parts.1);
        assert!(body.len() <= 10, "nothing is made up: {answer}");
    }
    assert_eq!(link(&get(proxy.at, "/a", "second", "").await), None);
}

#[tokio::test]
async fn requests_that_two_servers_could_read_differently_stay_one_request() {
    let (origin, asked) = origin().await;
    let proxy = start(config(origin)).await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: site\r\n\r\n";
    for head in [
        "content-length: 4\r\ncontent-length: 5\r\n",
        "content-length: 4\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "content-length: +4\r\n",
        "content-length : 4\r\n",
        "transfer-encoding:\u{b}chunked\r\n",
        "x: 1\r\n folded: 2\r\n",
        "x\0y: 1\r\n",
        "host: other\r\n",
    ] {
        let request = format!(
            "POST /p HTTP/1.1\r\nhost: site\r\nconnection: close\r\n{head}\r\n0\r\n\r\n{smuggled}"
        );
        let answer = exchange(proxy.at, request.as_bytes()).await;
        let answers = answer.matches("HTTP/1.1 ").count();
        assert!(answers <= 1, "{head}: {answer}");
    }
    let asked = asked.lock().unwrap();
    assert!(
        !asked.iter().any(|head| head.contains("uri: http") || head.contains("/smuggled")),
        "{asked:?}"
    );
}

#[tokio::test]
async fn header_bombs_foreign_targets_and_tunnels_are_refused() {
    let (origin, asked) = origin().await;
    let proxy = start(config(origin)).await;
    let many: String = (0..1000).map(|n| format!("x-{n}: 1\r\n")).collect();
    let large = format!("x: {}\r\n", "a".repeat(100_000));
    for bomb in [many, large] {
        let answer = get(proxy.at, "/", "x", &bomb).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{}", &answer[..60]);
    }
    let answer = exchange(
        proxy.at,
        b"CONNECT evil.example:80 HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(asked.lock().unwrap().is_empty());
    // an absolute target goes to the origin all the same, never elsewhere
    let answer = exchange(
        proxy.at,
        b"GET http://evil.example/a HTTP/1.1\r\nhost: site\r\nconnection: close\r\n\r\n",
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(asked.lock().unwrap()[0].contains("\"host\": \"evil.example\""));
}

#[tokio::test]
async fn a_client_that_never_finishes_its_head_is_let_go() {
    let (origin, _) = origin().await;
    let mut config = config(origin);
    config.timeouts.idle_s = 1;
    let proxy = start(config).await;
    let mut socket = TcpStream::connect(proxy.at).await.unwrap();
    let mut got = Vec::new();
    let slow = async {
        loop {
            if socket.write_all(b"GET / HTTP/1.1\r\nx: ").await.is_err() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            if let Ok(Ok(0)) = timeout(Duration::from_millis(1), socket.read_buf(&mut got)).await {
                break;
            }
        }
    };
    timeout(PATIENCE, slow).await.expect("the connection is closed");
}

#[tokio::test]
async fn the_page_is_for_local_clients_alone() {
    let (origin, asked) = origin().await;
    let proxy = start(config(origin)).await;
    let answer = get(proxy.at, "/_netnice/", "x", "").await;
    assert!(answer.contains("Prefetches go: <b>connection</b>"), "{answer}");
    let answer = get(proxy.at, "/_netnice/", "x", "x-forwarded-for: 192.0.2.1\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn the_end_waits_for_answers_under_way() {
    let (origin, _) = origin().await;
    let proxy = start(config(origin)).await;
    let mut socket = TcpStream::connect(proxy.at).await.unwrap();
    socket.write_all(b"GET /large HTTP/1.1\r\nhost: site\r\n\r\n").await.unwrap();
    let mut got = vec![0; 1000];
    socket.read_exact(&mut got).await.unwrap();
    proxy.stop.send_replace(true);
    timeout(PATIENCE, socket.read_to_end(&mut got)).await.unwrap().unwrap();
    assert!(got.len() > 3_000_000, "{}", got.len());
    timeout(PATIENCE, proxy.task).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(proxy.at).await.is_err(), "nobody is let in any more");
}

#[tokio::test]
async fn a_new_configuration_takes_effect_and_a_wrong_one_does_not() {
    let (origin, _) = origin().await;
    let proxy = start(config(origin)).await;
    let mut wrong = config(origin);
    wrong.origin = "https://elsewhere".into();
    assert!(proxy.server.reload(wrong).is_err());
    assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
    let mut off = config(origin);
    off.background.mode = netnice_prefetch::config::Wanted::Off;
    proxy.server.reload(off).unwrap();
    let answer = get(proxy.at, "/a", "x", "sec-purpose: prefetch\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

/// `netnice-prefetch serve` as a process of its own, so that what it takes can be told.
struct Served {
    process: Child,
    at: SocketAddr,
}

impl Served {
    fn start(origin: SocketAddr, connections: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        // nothing is closed for being idle
        let text = format!(
            "origin = 'http://{origin}'\nlisten = ['127.0.0.1:0']\n\
             [bounds]\nconnections = {connections}\n[timeouts]\nidle_s = 900\n"
        );
        fs::write(&file, text).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_netnice-prefetch"))
            .args(["serve", "--config"])
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = process.stdout.take().unwrap();
        std::io::BufReader::new(out).read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("listening ").unwrap().parse().unwrap();
        Self { process, at }
    }

    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }

    /// Bytes of memory.
    fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    async fn until_files(&self, fit: impl Fn(usize) -> bool) {
        while !fit(self.files()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends the rest of a request; true if it is answered whole, false if it is refused: the
/// connection is closed or reset without a byte.
async fn asks(socket: &mut TcpStream, rest: &str) -> bool {
    if socket.write_all(rest.as_bytes()).await.is_err() {
        return false;
    }
    let mut got = Vec::new();
    while !got.ends_with(b"..........") {
        if !matches!(socket.read_buf(&mut got).await, Ok(1..)) {
            assert!(got.is_empty(), "half an answer: {}", String::from_utf8_lossy(&got));
            return false;
        }
    }
    assert!(got.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&got));
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_connections_at_once_are_served_and_so_is_one_more() {
    let needed = FLOOD as u64 + 2000;
    let allowed = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(allowed >= needed, "{needed} open files are needed, {allowed} allowed: ulimit -Hn");
    const HEAD: &str = "GET /a HTTP/1.1\r\n";
    const REST: &str = "host: site\r\n\r\n";
    const AT_ONCE: usize = 500; // requests, so that the origin's side of this test has files too
    const OTHERS: usize = 100; // files that are no connections
    let (origin, _) = origin().await;

    let flood = async {
        let proxy = Served::start(origin, FLOOD);
        assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
        let memory = proxy.memory();
        let mut opening = JoinSet::new();
        for i in 0..FLOOD {
            let at = proxy.at;
            opening.spawn(async move {
                let mut socket = TcpStream::connect(at).await.unwrap();
                // each begins a request and lets the proxy wait: bytes are sent again until they are
                // taken, while a silent connection may be lost when too many begin at once
                let begun = if i % 2 == 0 { HEAD.len() } else { 1 };
                socket.write_all(&HEAD.as_bytes()[..begun]).await.unwrap();
                (socket, begun)
            });
        }
        let opened = opening.join_all().await;
        proxy.until_files(|n| n >= FLOOD).await;
        let answer = get(proxy.at, "/a", "x", "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "one more is served: {answer}");
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut asking = JoinSet::new();
        for (mut socket, begun) in opened {
            let room = room.clone();
            asking.spawn(async move {
                let _place = room.acquire().await.unwrap();
                let rest = format!("{}{REST}", &HEAD[begun..]);
                (asks(&mut socket, &rest).await, socket)
            });
        }
        let asked = asking.join_all().await;
        let refused = asked.iter().filter(|(served, _)| !served).count();
        // none if one of them was yet to be accepted when the further one came
        assert!(refused <= 1, "one at most makes room, not {refused}");
        assert!(proxy.files() <= FLOOD + AT_ONCE + OTHERS, "{} files", proxy.files());
        let each = proxy.memory().saturating_sub(memory) / FLOOD;
        assert!(each < 64 << 10, "{each} bytes of memory for each connection");
        drop(asked);
        proxy.until_files(|n| n <= AT_ONCE + OTHERS).await;
        assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
    };
    timeout(FLOOD_PATIENCE, flood).await.expect("nothing hangs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_for_few_places_is_served_or_refused_and_never_left_waiting() {
    const PLACES: usize = 500;
    let needed = FLOOD as u64 + 2000;
    let allowed = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(allowed >= needed, "{needed} open files are needed, {allowed} allowed: ulimit -Hn");
    let (origin, _) = origin().await;
    let proxy = Served::start(origin, PLACES);
    let mut crowd = JoinSet::new();
    for _ in 0..FLOOD {
        let at = proxy.at;
        crowd.spawn(async move {
            let mut socket = TcpStream::connect(at).await.unwrap();
            let served = asks(&mut socket, "GET /a HTTP/1.1\r\nhost: site\r\n\r\n").await;
            // it would stay, if others did not need its place
            assert!(matches!(socket.read(&mut [0]).await, Ok(0) | Err(_)));
            served
        });
    }
    let mut served = Vec::new();
    let each = async {
        // the last have nobody behind them to make room for
        while served.len() + PLACES < FLOOD {
            served.push(crowd.join_next().await.unwrap().unwrap());
        }
    };
    let ended = timeout(FLOOD_PATIENCE, each).await;
    assert!(ended.is_ok(), "{} of {FLOOD} were answered or refused", served.len());
    let served = served.into_iter().filter(|served| *served).count();
    assert!(served > FLOOD / 2, "{served} were served");
    crowd.abort_all();
    proxy.until_files(|n| n < PLACES).await;
    assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_poisoned_log_or_client_makes_others_fetch_nothing_foreign_huge_or_never_served() {
    let (origin, asked) = origin().await;
    let mut config = config(origin);
    config.learning.addresses = 2;
    config.suggestions.max_objects = 2;
    config.suggestions.per_reply = 100;
    let wishes = [
        "/a",
        "//evil.example/x",
        "http://evil.example/y",
        "/never-served",
        "/e>;rel=preload,<//evil.example/z",
        "/large", // 3 MB
        "/b",
        "/c",
        "/d",
    ];
    let mut poison = String::new();
    for client in 1..=200 {
        for path in wishes {
            let line = r#" - - [10/Oct/2000:13:55:36 +0000] "GET PATH HTTP/1.1" 200 5 "-" "x""#;
            poison += &format!("192.0.2.{client}{}\n", line.replace("PATH", path));
        }
    }
    let mut predictor = Predictor::new(config.learning);
    let count = log::read_from(poison.as_bytes(), |entry| {
        predictor.learn(&entry);
    })
    .unwrap();
    assert_eq!(count.bad, 0);
    let proxy = start_with(config, predictor).await;
    assert_eq!(link(&get(proxy.at, "/a", "first", "").await), None, "a log alone is not believed");
    // the same client asks for all of it, with hosts of its own, and for what only it knows
    for path in wishes.iter().skip(1).chain(&["/its-secret"]) {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: evil.example\r\nuser-agent: first\r\n\
             x-forwarded-host: evil.example\r\nreferer: http://evil.example/a\r\n\
             connection: close\r\n\r\n"
        );
        exchange(proxy.at, head.as_bytes()).await;
    }
    let answer = get(proxy.at, "/a", "second", "").await;
    let suggested =
        netnice_prefetch::suggest::paths(link(&answer).expect("something is suggested"));
    assert_eq!(suggested.len(), 2, "{answer}");
    assert!(suggested.iter().all(|path| ["/b", "/c", "/d"].contains(path)), "{answer}");
    assert!(!answer.contains("evil") && !answer.contains("secret"), "{answer}");
    // a prefetch goes to the origin as any request does, whatever host it names
    let before = asked.lock().unwrap().len();
    get(proxy.at, "http://evil.example/b", "second", "sec-purpose: prefetch\r\n").await;
    assert_eq!(asked.lock().unwrap().len(), before + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_heads_say_each_is_one_request_or_refused_and_the_next_client_is_served(
        heads in proptest::collection::vec(
            proptest::collection::vec(
                prop_oneof![
                    "(host|connection|te|content-length|transfer-encoding|expect|upgrade|referer|priority\
                      |sec-purpose|cache-control|save-data|x-forwarded-for|range): ?[ -~]{0,40}\r\n"
                        .prop_map(String::into_bytes),
                    "[!-~]{1,20}:[ -~]{0,40}\r\n".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..60),
                ],
                0..6,
            ),
            1..4,
        ),
        path in "[ -~]{0,30}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (origin, asked) = origin().await;
            let mut config = config(origin);
            config.timeouts.idle_s = 1;
            config.timeouts.body_s = 1;
            let proxy = start(config).await;
            for lines in heads {
                asked.lock().unwrap().clear();
                let mut request = format!("GET /{path} HTTP/1.1\r\nhost: site\r\n").into_bytes();
                request.extend(lines.concat());
                request.extend(b"connection: close\r\n\r\n");
                let mut socket = TcpStream::connect(proxy.at).await.unwrap();
                let _ = socket.write_all(&request).await;
                let _ = socket.shutdown().await; // a body that was announced does not come
                let mut got = Vec::new();
                let ended = timeout(PATIENCE, socket.read_to_end(&mut got)).await;
                assert!(ended.is_ok(), "{}", String::from_utf8_lossy(&request));
                let blank = request.windows(4).filter(|w| w == b"\r\n\r\n").count()
                    + request.windows(2).filter(|w| w == b"\n\n").count();
                assert!(asked.lock().unwrap().len() <= blank.max(1));
            }
            assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
        });
    }

    #[test]
    fn whatever_a_log_says_only_paths_of_this_site_that_were_served_are_suggested(
        rows in proptest::collection::vec(("[ -~]{0,40}", 0usize..3, any::<u32>()), 1..40),
        served in "/[a-z]{0,8}",
    ) {
        let mut predictor = Predictor::new(Config::default().learning);
        let mut text = String::new();
        for (path, client, bytes) in &rows {
            for path in [path, &served] {
                text += &format!(
                    "192.0.2.{client} - - [10/Oct/2000:13:55:36 +0000] \"GET {path} HTTP/1.1\" 200 {bytes}\n"
                );
            }
        }
        log::read_from(text.as_bytes(), |entry| {
 predictor.learn(&entry);
 }).unwrap();
        predictor.served(&served, netnice_prefetch::predict::Served::Reusable(1));
        let limits = Config::default().suggestions;
        for (path, _, _) in &rows {
            let pages: Vec<_> = predictor.find(path).into_iter().collect();
            let predictions = predictor.predict(&pages);
            let verdicts = netnice_prefetch::suggest::judge(&predictions, &limits, 1);
            for (prediction, verdict) in predictions.iter().zip(verdicts) {
                if verdict == netnice_prefetch::suggest::Verdict::Suggested {
                    prop_assert_eq!(&*prediction.path, served.as_str());
                }
            }
        }
    }
}

/// A client of HTTP/2 that lets so many bytes of each answer come before it reads.
struct Http2(SendRequest<Empty<Bytes>>);

impl Http2 {
    async fn connect(at: SocketAddr, connector: &TlsConnector, window: u32) -> Self {
        let socket = TcpStream::connect(at).await.unwrap();
        let stream = connector.connect("site".try_into().unwrap(), socket).await.unwrap();
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(window)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    async fn get(&self, path: &str, priority: &str) -> Incoming {
        let request = Request::get(format!("https://site{path}"))
            .header("user-agent", "h2")
            .header("priority", priority)
            .body(Empty::new())
            .unwrap();
        let answer = self.0.clone().send_request(request);
        timeout(PATIENCE, answer).await.unwrap().unwrap().into_body()
    }
}

/// The length of a body that comes to its end.
async fn length(body: Incoming) -> usize {
    timeout(PATIENCE, body.collect()).await.unwrap().unwrap().to_bytes().len()
}

async fn waits(body: &mut Incoming) -> bool {
    timeout(Duration::from_millis(300), body.frame()).await.is_err()
}

#[tokio::test]
async fn http_2_over_tls_serves_demand_and_prefetches() {
    let (origin, _) = origin().await;
    let mut config = config(origin);
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    let client = Http2::connect(proxy.at, &connector, 65_535).await;
    // a prefetch waits until the large demand answer, which nobody reads yet, has ended
    let large = client.get("/large", "u=0").await;
    let mut ahead = client.get("/b", "u=7").await;
    assert!(waits(&mut ahead).await);
    assert_eq!((length(large).await, length(ahead).await), (3_000_000, 10));
}

#[tokio::test]
async fn a_prefetch_waits_for_the_tail_of_a_page_that_its_http_2_client_has_yet_to_read() {
    let (origin, _) = origin().await;
    let mut config = config(origin);
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    assert_eq!(proxy.server.proxy.mode(), Mode::Connection);
    let client = Http2::connect(proxy.at, &connector, 4).await;
    let page = client.get("/page", "u=0").await;
    let handed_over = async {
        while proxy.server.proxy.metrics.demand_s.get_sample_count() == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, handed_over).await.expect("the whole page is with HTTP/2");
    let mut ahead = client.get("/ahead", "u=7").await;
    assert!(waits(&mut ahead).await);
    assert_eq!((length(page).await, length(ahead).await), (10, 10));
    // nor does an answer that its client gave up keep the others waiting
    let page = client.get("/page", "u=0").await;
    let mut ahead = client.get("/ahead", "u=7").await;
    assert!(waits(&mut ahead).await);
    drop(page);
    assert_eq!(length(ahead).await, 10);
}

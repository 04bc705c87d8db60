// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The proxy on real sockets: in front of origins that behave, and that do not; with clients that
//! behave, and that do not.
#![forbid(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;
mod crowd;
mod http2_clients;
mod http3_class;
mod http3_clients;
mod passing;
mod privacy;
mod strangers;

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
                        "/public" => response.header("cache-control", "public, max-age=60"),
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

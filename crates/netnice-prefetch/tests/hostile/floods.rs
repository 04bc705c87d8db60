// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Clients that take places and do nothing with them, and clients that send without end.

use super::frames::*;
use super::*;

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

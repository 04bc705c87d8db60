// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Clients of HTTP/2.

use super::*;

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

#[tokio::test]
async fn what_came_of_an_answer_before_it_broke_off_is_passed_over_http_2() {
    for sent in [0, 10_000] {
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: 20000\r\n\r\n{}", "x".repeat(sent));
        let mut config = config(rude_origin(answer.leak().as_bytes()).await);
        let (_files, connector) = secure(&mut config);
        let proxy = start(config).await;
        // the client lets the rest come when it has read
        let client = Http2::connect(proxy.at, &connector, 4_000).await;
        let mut body = client.get("/a", "u=0").await;
        let mut got = 0;
        let error = loop {
            match timeout(PATIENCE, body.frame()).await.unwrap().expect("an end that is none") {
                Ok(frame) => got += frame.into_data().unwrap().len(),
                Err(error) => break error,
            }
        };
        assert_eq!(got, sent, "{error}");
    }
}

#[tokio::test]
async fn a_client_that_says_nothing_over_tls_does_not_delay_the_end() {
    let (origin, _) = origin().await;
    let mut config = config(origin);
    config.timeouts.shutdown_s = 900;
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    let connect = || async {
        let socket = TcpStream::connect(proxy.at).await.unwrap();
        connector.connect("site".try_into().unwrap(), socket).await.unwrap()
    };
    let _without_handshake = TcpStream::connect(proxy.at).await.unwrap();
    let _without_preface = connect().await;
    let mut mute = connect().await; // it has begun, and answers no PING
    mute.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    mute.read_exact(&mut [0; 9]).await.unwrap();
    let accepted = async {
        while proxy.server.proxy.metrics.connections.get() < 3 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, accepted).await.expect("all are there");
    proxy.stop.send_replace(true);
    timeout(PATIENCE, proxy.task).await.expect("an end").unwrap().unwrap();
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whose turn it is on an HTTP/2 connection, when the end of a demand answer waits for its client.
#![forbid(unsafe_code)]

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use netnice_prefetch::config::{Config, Tls};
use netnice_prefetch::line::Mode;
use netnice_prefetch::predict::Predictor;
use netnice_prefetch::proxy::Proxy;
use netnice_prefetch::server::{prepare, Server};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);
/// A whole answer, which the proxy hands to HTTP/2 at once.
const PAGE: usize = 1000;
/// What the client lets come of it before it reads.
const WINDOW: u32 = 100;

/// A control that is not the system's default, for the background: any will do here.
fn background_control() -> String {
    let read = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
    let default = read("tcp_congestion_control");
    let allowed = read("tcp_allowed_congestion_control");
    let other = allowed.split_whitespace().find(|c| *c != default.trim());
    other.expect("a second congestion control to switch to, such as reno").to_owned()
}

#[tokio::test]
async fn a_prefetch_waits_for_the_tail_of_a_page_that_its_client_has_yet_to_read() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let service = service_fn(|_: Request<Incoming>| async {
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from(vec![
                    b'.';
                    PAGE
                ])))
            });
            let builder = hyper::server::conn::http1::Builder::new();
            tokio::spawn(builder.serve_connection(TokioIo::new(socket), service));
        }
    });

    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["site".to_owned()]).unwrap();
    let files = Tls { cert: folder.path().join("cert.pem"), key: folder.path().join("key.pem") };
    fs::write(&files.cert, made.cert.pem()).unwrap();
    fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    let mut config = Config { origin: format!("http://{origin}"), ..Config::default() };
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    config.background.control = background_control();
    config.tls = Some(files);
    let predictor = Predictor::new(config.learning);
    let (setup, tls) = prepare(config).unwrap();
    let server = Server::new(Proxy::new(setup, predictor, None), tls);
    assert_eq!(server.proxy.mode(), Mode::Connection);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (_stop, stopped) = watch::channel(false);
    tokio::spawn(server.clone().run(vec![(listener, false)], stopped));

    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let stream = tokio_rustls::TlsConnector::from(Arc::new(client))
        .connect("site".try_into().unwrap(), TcpStream::connect(at).await.unwrap())
        .await
        .unwrap();
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(WINDOW)
        .handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let get = |path: &str, priority: &'static str| {
        let request = Request::get(format!("https://site{path}"))
            .header("priority", priority)
            .body(Empty::<Bytes>::new())
            .unwrap();
        let mut sender = sender.clone();
        async move { timeout(PATIENCE, sender.send_request(request)).await.unwrap().unwrap() }
    };

    let page = get("/page", "u=0").await;
    let handed_over = async {
        while server.proxy.metrics.demand_s.get_sample_count() == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, handed_over).await.expect("the whole page is with HTTP/2");
    let mut ahead = get("/ahead", "u=7").await.into_body();
    let frame = timeout(Duration::from_millis(300), ahead.frame()).await;
    assert!(frame.is_err(), "it waits, as the page is under way: {frame:?}");
    let body = timeout(PATIENCE, page.into_body().collect()).await.unwrap().unwrap();
    assert_eq!(body.to_bytes().len(), PAGE);
    let body = timeout(PATIENCE, ahead.collect()).await.unwrap().unwrap();
    assert_eq!(body.to_bytes().len(), PAGE);

    // nor does an answer that its client gave up keep the others waiting
    let page = get("/page", "u=0").await;
    let mut ahead = get("/ahead", "u=7").await.into_body();
    assert!(timeout(Duration::from_millis(300), ahead.frame()).await.is_err());
    drop(page);
    let body = timeout(PATIENCE, ahead.collect()).await.unwrap().unwrap();
    assert_eq!(body.to_bytes().len(), PAGE);
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Under what a connection of HTTP/3 sends, as quinn has it.

use netnice_prefetch::proxy::{Peer, Proxy};
use netnice_prefetch::{http3, server};
use quinn::Endpoint;

use super::http3_clients::{with_http_3, Http3};
use super::*;

/// The proxy's end of a client's connection, and the client's.
async fn connected(config: Config) -> (quinn::Connection, Http3) {
    let predictor = Predictor::new(config.learning);
    let (setup, secrets) = server::prepare(config.clone()).unwrap();
    let proxy = Arc::new(Proxy::new(setup, predictor).unwrap());
    let mut quic = secrets.unwrap().quic.unwrap();
    let endpoint = Endpoint::server(quic.clone(), "127.0.0.1:0".parse().unwrap()).unwrap();
    let at = endpoint.local_addr().unwrap();
    let algorithm = config.background.algorithm().unwrap();
    let (transport, line) = http3::transport(algorithm, &config.bounds);
    quic.transport_config(Arc::new(transport));
    let served = async {
        let incoming = endpoint.accept().await.unwrap();
        let connection = incoming.accept_with(Arc::new(quic)).unwrap().await.unwrap();
        let address = at.ip();
        let peer =
            Peer { address, name: address.to_string(), secure: true, second_port: false, line };
        let stop = Box::pin(std::future::pending());
        let bounds = config.bounds;
        tokio::spawn(http3::carry(connection.clone(), proxy, Arc::new(peer), bounds, stop));
        connection
    };
    tokio::join!(served, Http3::connect_to(at, &config))
}

/// Whether it yields: only then its algorithm has something to show.
fn yields(connection: &quinn::Connection) -> bool {
    connection.stats(); // has the controller look at its switch, as whatever is sent does
    !netnice_quinn::show(connection).expect("it is one of netnice").is_empty()
}

/// What an origin has of one path: requests, and leave to answer them.
struct Held {
    asked: AtomicUsize,
    leave: Semaphore,
}

/// An origin that answers a page, and what is fetched ahead, when it is let.
async fn origin_of_two() -> (SocketAddr, &'static [Held; 2]) {
    let held = || Held { asked: AtomicUsize::new(0), leave: Semaphore::new(0) };
    let both: &[Held; 2] = Box::leak(Box::new([held(), held()]));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let service = service_fn(move |request: Request<Incoming>| async move {
                let held = &both[usize::from(request.uri().path() == "/ahead")];
                held.asked.fetch_add(1, SeqCst);
                held.leave.acquire().await.unwrap().forget();
                Ok::<_, std::convert::Infallible>(Response::new(Full::<Bytes>::from("ok")))
            });
            let builder = hyper::server::conn::http1::Builder::new();
            tokio::spawn(builder.serve_connection(TokioIo::new(socket), service));
        }
    });
    (at, both)
}

async fn until(what: &str, fit: impl Fn() -> bool) {
    let wait = async {
        while !fit() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("never: {what}"));
}

#[tokio::test]
async fn a_connection_of_http_3_yields_while_it_carries_prefetches_and_nothing_else() {
    let (origin, [page, ahead]) = origin_of_two().await;
    let (config, _files) = with_http_3(origin);
    let (connection, client) = connected(config).await;
    assert!(!yields(&connection), "who connects is a user");

    let mut asking = JoinSet::new();
    let client = Arc::new(client);
    let ask = |path: &'static str, ahead| {
        let client = client.clone();
        async move { (path, client.get(path, ahead).await.body().await) }
    };
    asking.spawn(ask("/ahead", true));
    until("the prefetch is at the origin", || ahead.asked.load(SeqCst) == 1).await;
    assert!(yields(&connection), "the prefetch is alone");
    asking.spawn(ask("/page", false));
    until("demand is at the origin", || page.asked.load(SeqCst) == 1).await;
    assert!(!yields(&connection), "demand takes the foreground");

    ahead.leave.add_permits(1);
    let early = timeout(Duration::from_millis(300), asking.join_next()).await;
    assert!(early.is_err(), "the prefetch waits for demand");
    assert!(!yields(&connection));
    page.leave.add_permits(1);
    for path in ["/page", "/ahead"] {
        assert_eq!(asking.join_next().await.unwrap().unwrap(), (path, b"ok".to_vec()));
    }
    assert!(yields(&connection), "the prefetch was last");

    page.leave.add_permits(1);
    assert_eq!(client.get("/page", false).await.body().await, b"ok");
    assert!(!yields(&connection));
}

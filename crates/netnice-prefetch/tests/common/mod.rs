// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What tests of the proxy on real sockets share.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use netnice_prefetch::config::{Config, Tls};
use netnice_prefetch::predict::Predictor;
use netnice_prefetch::proxy::Proxy;
use netnice_prefetch::server::{prepare, Listener, Server};
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// For whatever must end: no measure of speed, only no hanging.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A control that is not the system's default, for the background: any will do here.
fn background_control() -> String {
    let read = |name| std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
    let default = read("tcp_congestion_control");
    let allowed = read("tcp_allowed_congestion_control");
    let other = allowed.split_whitespace().find(|c| *c != default.trim());
    other.expect("a second congestion control to switch to, such as reno").to_owned()
}

/// A configuration for a proxy in front of this origin.
pub fn config(origin: SocketAddr) -> Config {
    let mut config = Config { origin: format!("http://{origin}"), ..Config::default() };
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    config.background.control = background_control();
    config.learning.addresses = 1; // all clients here have one address
    config
}

/// A proxy that serves.
pub struct Running {
    pub at: SocketAddr,
    pub server: Arc<Server>,
    pub stop: watch::Sender<bool>,
    pub task: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// A proxy that knows nothing yet.
pub async fn start(config: Config) -> Running {
    let predictor = Predictor::new(config.learning);
    start_with(config, predictor).await
}

pub async fn start_with(config: Config, predictor: Predictor) -> Running {
    let http3 = config.http3();
    let (setup, tls) = prepare(config).unwrap();
    let server = Server::new(Proxy::new(setup, predictor).unwrap(), tls);
    let (at, listener, udp) = loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        // the same port of UDP may be another's
        if let Ok(udp) = http3.then(|| UdpSocket::bind(at)).transpose() {
            break (at, listener, udp);
        }
    };
    let (stop, stopped) = watch::channel(false);
    let listener = Listener { tcp: listener, udp, second_port: false };
    let task = tokio::spawn(server.clone().run(vec![listener], stopped));
    Running { at, server, stop, task }
}

/// Sends bytes on a new connection and returns all that comes until it is closed.
pub async fn exchange(at: SocketAddr, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(at).await.unwrap();
    let _ = socket.write_all(bytes).await; // the proxy may refuse before it has read all
    let mut got = Vec::new();
    let _ = timeout(PATIENCE, socket.read_to_end(&mut got)).await.expect("the proxy closes");
    String::from_utf8_lossy(&got).into_owned()
}

/// Asks once, on a connection of its own.
pub async fn get(at: SocketAddr, path: &str, agent: &str, more: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nhost: site\r\nuser-agent: {agent}\r\nconnection: close\r\n{more}\r\n");
    exchange(at, head.as_bytes()).await
}

/// A client of TLS that trusts this certificate alone.
pub fn trusting(certificate: CertificateDer<'static>) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Gives a configuration a certificate for `site`, in a folder that lives until it is dropped, and
/// returns what connects to it with HTTP/2.
pub fn secure(config: &mut Config) -> (tempfile::TempDir, TlsConnector) {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["site".to_owned()]).unwrap();
    let tls = Tls {
        cert: folder.path().join("cert.pem"),
        key: folder.path().join("key.pem"),
        http3: false,
    };
    std::fs::write(&tls.cert, made.cert.pem()).unwrap();
    std::fs::write(&tls.key, made.signing_key.serialize_pem()).unwrap();
    config.tls = Some(tls);

    let mut client = trusting(made.cert.der().clone());
    client.alpn_protocols = vec![b"h2".to_vec()];
    (folder, TlsConnector::from(Arc::new(client)))
}

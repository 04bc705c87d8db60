// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Real sockets: what is sent arrives whole, under every algorithm, and while it is switched.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use netnice_quinn::{show, Algorithm, Background, Class, Config, Gaps, Group};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};

/// A server with a certificate of its own, and what makes clients trust it.
struct Server {
    endpoint: Endpoint,
    roots: Arc<rustls::RootCertStore>,
}

fn bind(server: Option<ServerConfig>) -> Result<Endpoint> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    let runtime = Gaps::over(quinn::default_runtime().context("no runtime")?);
    Ok(Endpoint::new(Default::default(), server, socket, Arc::new(runtime))?)
}

impl Server {
    fn start() -> Result<Server> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
        let certificate = made.cert.der().clone();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())
            .map_err(anyhow::Error::msg)?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone())?;
        let config = ServerConfig::with_single_cert(vec![certificate], key)?;
        Ok(Server { endpoint: bind(Some(config))?, roots: Arc::new(roots) })
    }

    /// A connection from a client under that controller, and its other end.
    async fn connect(&self, background: &Background) -> Result<(Endpoint, Connection, Connection)> {
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(background.clone()));
        let mut config = ClientConfig::with_root_certificates(self.roots.clone())?;
        config.transport_config(Arc::new(transport));
        let client = bind(None)?;
        let connecting = client.connect_with(config, self.endpoint.local_addr()?, "localhost")?;
        let incoming = self.endpoint.accept().await.context("closed")?;
        let (here, there) = tokio::try_join!(connecting, incoming)?;
        Ok((client, here, there))
    }
}

/// Bytes that differ at every place.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

async fn send(connection: &Connection, data: &[u8]) -> Result<()> {
    let mut stream = connection.open_uni().await?;
    for part in data.chunks(100_000) {
        stream.write_all(part).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}

async fn receive(connection: &Connection, most: usize) -> Result<Vec<u8>> {
    Ok(connection.accept_uni().await?.read_to_end(most).await?)
}

/// As a test fails that waits for ever.
async fn within<T>(seconds: u64, what: impl Future<Output = Result<T>>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), what).await.expect("in time").expect("whole")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_arrives_whole_under_every_algorithm() {
    let server = Server::start().expect("a server");
    let data = content(300_000);
    for algorithm in Algorithm::all() {
        let background = Background::new(Config::new(algorithm));
        within(60, async {
            let (_client, here, there) = server.connect(&background).await?;
            let (sent, received) = tokio::join!(send(&here, &data), receive(&there, data.len()));
            sent?;
            assert!(received? == data, "{algorithm:?}");
            let shown = show(&here).context("a controller of ours")?;
            assert_eq!(shown.len(), algorithm.shown().len(), "{algorithm:?}");
            Ok(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_switched_every_few_milliseconds_sends_all() {
    let server = Server::start().expect("a server");
    let background = Background::of_class(Class::default());
    let switch = background.switch();
    let data = content(20_000_000);
    within(60, async {
        let (_client, here, there) = server.connect(&background).await?;
        let turning = tokio::spawn(async move {
            loop {
                switch.to_foreground();
                tokio::time::sleep(Duration::from_millis(3)).await;
                switch.to_background();
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        });
        let (sent, received) = tokio::join!(send(&here, &data), receive(&there, data.len()));
        turning.abort();
        sent?;
        assert!(received? == data);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_group_on_several_threads_send_all() {
    let server = Server::start().expect("a server");
    let grouped = Algorithm::all().find(|a| a.divides()).expect("one of the list");
    let group = Group::new(false);
    let background = Background::new(Config::new(grouped)).in_group(&group);
    let data = Arc::new(content(1_000_000));
    within(60, async {
        let mut connections = Vec::new();
        for _ in 0..4 {
            connections.push(server.connect(&background).await?);
        }
        assert_eq!(group.members(), 4);
        let mut tasks = Vec::new();
        for (client, here, there) in connections {
            let data = data.clone();
            tasks.push(tokio::spawn(async move {
                let (sent, received) =
                    tokio::join!(send(&here, &data), receive(&there, data.len()));
                sent?;
                assert!(received? == *data);
                drop(client);
                anyhow::Ok(())
            }));
        }
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
    .await;
}

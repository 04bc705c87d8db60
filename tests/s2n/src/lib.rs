// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A server and clients of s2n-quic over loopback, whose controllers are given.

#![forbid(unsafe_code)]

pub mod relay;

use std::net::SocketAddr;

use anyhow::{Context, Result};
use s2n_quic::client::{Client, Connect};
use s2n_quic::connection::Connection;
use s2n_quic::provider::congestion_controller::{Cubic, Endpoint};
use s2n_quic::provider::tls::rustls;
use s2n_quic::server::Server;

/// A server with a certificate of its own, under s2n-quic's CUBIC.
pub struct Peer {
    server: Server,
    pem: String,
}

impl Peer {
    /// Listens on loopback.
    pub fn start() -> Result<Peer> {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
        let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let tls = rustls::Server::builder()
            .with_certificate(pem.as_str(), key.as_str())
            .map_err(anyhow::Error::msg)?
            .build()
            .map_err(anyhow::Error::msg)?;
        let server = Server::builder()
            .with_tls(tls)?
            .with_io("127.0.0.1:0")?
            .with_congestion_controller(Cubic::default())?
            .start()?;
        Ok(Peer { server, pem })
    }

    /// A client under these controllers.
    pub fn client(&self, controllers: impl Endpoint) -> Result<Client> {
        let tls = rustls::Client::builder()
            .with_certificate(self.pem.as_str())
            .map_err(anyhow::Error::msg)?
            .build()
            .map_err(anyhow::Error::msg)?;
        Ok(Client::builder()
            .with_tls(tls)?
            .with_io("127.0.0.1:0")?
            .with_congestion_controller(controllers)?
            .start()?)
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.server.local_addr()?)
    }

    /// A connection from a client, and its other end.
    pub async fn connect(&mut self, client: &Client) -> Result<(Connection, Connection)> {
        let address = self.address()?;
        self.connect_by(address, client).await
    }

    /// The same by another address than the server's own.
    pub async fn connect_by(
        &mut self,
        address: SocketAddr,
        client: &Client,
    ) -> Result<(Connection, Connection)> {
        let connecting = client.connect(Connect::new(address).with_server_name("localhost"));
        let accepted = async { self.server.accept().await.context("closed") };
        let (here, there) = tokio::join!(connecting, accepted);
        Ok((here?, there?))
    }
}

/// Sends all of it on a stream of its own.
pub async fn send(connection: &mut Connection, data: &[u8]) -> Result<()> {
    let mut stream = connection.open_send_stream().await?;
    for part in data.chunks(100_000) {
        stream.send(part.to_vec().into()).await?;
    }
    stream.close().await?;
    Ok(())
}

/// What comes on the next stream.
pub async fn receive(connection: &mut Connection) -> Result<Vec<u8>> {
    let mut stream = connection.accept_receive_stream().await?.context("closed")?;
    let mut all = Vec::new();
    while let Some(part) = stream.receive().await? {
        all.extend_from_slice(&part);
    }
    Ok(all)
}

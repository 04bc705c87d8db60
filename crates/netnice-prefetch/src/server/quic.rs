// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Clients that come over QUIC.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use netnice_quinn::Gaps;
use quinn::{Endpoint, Incoming};
use tokio::sync::{watch, Semaphore};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Server;
use crate::config::seconds;
use crate::http3;
use crate::proxy::Peer;

/// Becomes true at the end.
pub(super) type Stop = watch::Receiver<bool>;

/// Until `stop` becomes true.
pub(super) async fn stopped(mut stop: Stop) {
    let _ = stop.wait_for(|stop| *stop).await; // or nobody is left who could say it
}

impl Server {
    /// What QUIC connections need, if HTTP/3 is served.
    fn quic(&self) -> Option<quinn::ServerConfig> {
        self.front().tls.as_ref().and_then(|tls| tls.quic.clone())
    }

    /// Where connections of QUIC arrive.
    pub(super) fn endpoint(&self, udp: UdpSocket) -> io::Result<Endpoint> {
        let runtime = quinn::default_runtime().ok_or_else(|| io::Error::other("no runtime"))?;
        Endpoint::new(Default::default(), self.quic(), udp, Arc::new(Gaps::over(runtime)))
    }

    /// Serves until `stop` becomes true, then finishes what is under way.
    pub(super) async fn accept_quic(
        self: Arc<Self>,
        endpoint: Endpoint,
        room: Arc<Semaphore>,
        stop: Stop,
    ) {
        let mut connections = JoinSet::new();
        loop {
            let incoming = tokio::select! {
                Some(incoming) = endpoint.accept() => incoming,
                Some(_) = connections.join_next() => continue,
                () = stopped(stop.clone()) => break,
            };
            let place = match room.clone().try_acquire_owned() {
                Ok(place) => place,
                // whoever waits shows first that its address is its own
                Err(_) if incoming.may_retry() => {
                    let _ = incoming.retry(); // it may
                    continue;
                }
                Err(_) => {
                    self.crowded.notify_one();
                    tokio::select! {
                        Ok(place) = room.clone().acquire_owned() => place,
                        () = stopped(stop.clone()) => break,
                    }
                }
            };
            let (this, stop) = (self.clone(), stop.clone());
            connections.spawn(async move {
                this.proxy.metrics.connections.inc();
                this.serve_quic(incoming, stop).await;
                this.proxy.metrics.connections.dec();
                drop(place);
            });
        }
        endpoint.set_server_config(None); // nobody is let in any more
        connections.join_all().await;
        endpoint.close(http3::NO_ERROR, b"the server ends");
        endpoint.wait_idle().await;
    }

    async fn serve_quic(&self, incoming: Incoming, stop: Stop) {
        let config = &self.proxy.setup().config;
        let (Some(mut secrets), Some(algorithm)) = (self.quic(), config.background.algorithm())
        else {
            return incoming.refuse(); // a reload took the certificate, or the background
        };
        let (transport, line) = http3::transport(algorithm, &config.bounds);
        secrets.transport_config(Arc::new(transport));
        let patience = seconds(config.timeouts.idle_s);
        let Ok(connecting) = incoming.accept_with(Arc::new(secrets)) else { return };
        let connection = tokio::select! {
            connected = timeout(patience, connecting) => connected,
            () = self.crowded.notified() => return,
            () = stopped(stop.clone()) => return,
        };
        let Ok(Ok(connection)) = connection else { return };
        let address = connection.remote_address().ip().to_canonical();
        let peer = Arc::new(Peer {
            address,
            name: address.to_string(),
            secure: true,
            second_port: false,
            line: line.clone(),
        });
        let taking = Some(seconds(config.timeouts.body_s));
        let stops = Box::pin(stopped(stop.clone()));
        let requests = http3::carry(connection, self.proxy.clone(), peer, config.bounds, stops);
        self.until_idle(requests, &line, (patience, taking), &stop).await;
    }
}

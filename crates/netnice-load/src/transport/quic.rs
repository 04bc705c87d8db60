// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! HTTP/3 over QUIC: a connection is one request. Its body is what goes there, the body of its
//! answer what comes back.
//!
//! Each client has a socket of its own, as a connection of TCP has a port. quinn's segmentation
//! offload is off, so that each datagram meets the queues on its way by itself.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3_quinn::BidiStream;
use http::{Request, Response};
use netnice_quinn::Gaps;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, Incoming, ServerConfig, TransportConfig,
    VarInt,
};
use tokio::sync::mpsc;
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use crate::Error;
use netnice_scenario::pattern::{self, Checker};

mod certificate;
mod control;

pub use control::Control;

/// How long the other end may be silent.
const SILENCE: Duration = Duration::from_secs(30);

/// Why a connection was closed (RFC 9114, 8.1): all went well, or nobody needs the rest.
const NO_ERROR: VarInt = VarInt::from_u32(0x100);
const CANCELLED: VarInt = VarInt::from_u32(0x10c);

/// Codes of errors that are an alert of TLS (RFC 9001, 4.8).
const TLS_ALERTS: Range<u64> = 0x100..0x200;

/// Bytes in a frame of data.
const FRAME_BYTES: u64 = 16 * 1024;

/// Connections that wait to be accepted.
const BACKLOG: usize = 4096;

fn transport(control: &Control, silence: Duration) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(control.factory());
    transport.enable_segmentation_offload(false);
    transport.max_idle_timeout(Some(silence.try_into().expect("a time that people wait")));
    Arc::new(transport)
}

fn endpoint(address: SocketAddr, server: Option<ServerConfig>) -> io::Result<Endpoint> {
    let runtime = quinn::default_runtime().ok_or_else(|| io::Error::other("no runtime"))?;
    let socket = UdpSocket::bind(address)?;
    Endpoint::new(Default::default(), server, socket, Arc::new(Gaps::over(runtime)))
}

/// The address that packets to `to` leave from, with any port.
fn near(to: SocketAddr) -> io::Result<SocketAddr> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(to)?;
    Ok(SocketAddr::new(socket.local_addr()?.ip(), 0))
}

/// Where requests arrive.
pub struct Listener {
    endpoint: Endpoint,
    requests: mpsc::Receiver<(Stream, SocketAddr)>,
}

impl Listener {
    /// Answers under that congestion control, with a certificate of its own. Clients find that in the
    /// file.
    ///
    /// # Errors
    /// [`Error::Network`] if the address cannot be used, [`Error::Certificate`] if the file cannot be
    /// written.
    pub fn new(address: SocketAddr, file: &Path, control: Control) -> Result<Self, Error> {
        let tls = QuicServerConfig::try_from(certificate::made(file)?).expect("it has TLS 1.3");
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(transport(&control, SILENCE));
        let endpoint = endpoint(address, Some(config)).map_err(|reason| Error::Network {
            what: format!("Cannot receive datagrams on {address}"),
            reason,
            next: "Choose an address of this host and a free port (`ss -lun` lists those in use).",
        })?;
        let (accepted, requests) = mpsc::channel(BACKLOG);
        let control = control.name().to_owned();
        tokio::spawn(accept_all(endpoint.clone(), accepted, control));
        Ok(Self { endpoint, requests })
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    pub async fn accept(&mut self) -> (Stream, SocketAddr) {
        self.requests.recv().await.expect("whoever accepts ends with the endpoint")
    }

    /// Tells all clients that this is the end.
    pub async fn close(self) {
        self.endpoint.close(NO_ERROR, b"the server ends");
        self.endpoint.wait_idle().await;
    }
}

async fn accept_all(
    endpoint: Endpoint,
    accepted: mpsc::Sender<(Stream, SocketAddr)>,
    control: String,
) {
    while let Some(incoming) = endpoint.accept().await {
        let (accepted, control) = (accepted.clone(), control.clone());
        tokio::spawn(async move {
            // Its stream, if it came so far, has the error too.
            let _ = serve(incoming, accepted, control).await;
        });
    }
}

/// Drives a connection until its client closes it.
async fn serve(
    incoming: Incoming,
    accepted: mpsc::Sender<(Stream, SocketAddr)>,
    control: String,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let connection = incoming.await?;
    let mut requests = h3::server::builder()
        .send_grease(false)
        .build(h3_quinn::Connection::new(connection.clone()))
        .await?;
    while let Some(request) = requests.accept().await? {
        let (_, mut body) = request.resolve_request().await?;
        body.send_response(Response::new(())).await?;
        let peer = connection.remote_address();
        let (connection, control) = (connection.clone(), control.clone());
        let body = Body::Server(body);
        accepted.send((Stream { body, left: Bytes::new(), connection, control }, peer)).await?;
    }
    Ok(())
}

/// What connects.
#[derive(Debug, Clone)]
pub struct Client {
    config: ClientConfig,
    control: Control,
    file: PathBuf,
}

impl Client {
    /// Of the server whose certificate is in that file, under that congestion control; `silence` is
    /// how long the server may be silent.
    ///
    /// # Errors
    /// [`Error::Certificate`] if there is none in the file.
    pub fn new(file: &Path, control: Control, silence: Option<Duration>) -> Result<Self, Error> {
        let tls = QuicClientConfig::try_from(certificate::trusted(file)?).expect("it has TLS 1.3");
        let mut config = ClientConfig::new(Arc::new(tls));
        config.transport_config(transport(&control, silence.unwrap_or(SILENCE)));
        Ok(Self { config, control, file: file.into() })
    }

    pub async fn connect(&self, to: SocketAddr) -> io::Result<Stream> {
        let endpoint = endpoint(near(to)?, None)?;
        let connecting = endpoint.connect_with(self.config.clone(), to, certificate::NAME);
        let connecting = connecting.map_err(io::Error::other)?;
        let connection = connecting.await.map_err(|reason| self.refused(reason))?;
        let (mut driver, mut requests) = h3::client::builder()
            .send_grease(false)
            .build::<_, _, Bytes>(h3_quinn::Connection::new(connection.clone()))
            .await
            .map_err(|e| failure(&connection, &e))?;
        tokio::spawn(async move { driver.wait_idle().await });
        let request = Request::post(format!("https://{}/", certificate::NAME)).body(());
        let request = request.expect("it has a method and a place");
        let body = requests.send_request(request).await.map_err(|e| failure(&connection, &e))?;
        let body = Body::Client { body, answered: false, endpoint, _requests: requests };
        let control = self.control.name().to_owned();
        Ok(Stream { body, left: Bytes::new(), connection, control })
    }

    /// Why there is no connection.
    fn refused(&self, reason: ConnectionError) -> io::Error {
        match reason {
            ConnectionError::TransportError(e) if TLS_ALERTS.contains(&u64::from(e.code)) => {
                let (file, why) = (self.file.display(), e.reason);
                io::Error::other(format!("this server's certificate is not that in {file}: {why}"))
            }
            reason => of_connection(reason),
        }
    }
}

/// A request and its answer.
pub struct Stream {
    body: Body,
    /// What has arrived and nobody has read.
    left: Bytes,
    connection: Connection,
    control: String,
}

enum Body {
    Client {
        body: h3::client::RequestStream<BidiStream<Bytes>, Bytes>,
        /// Whether the head of the answer was read.
        answered: bool,
        endpoint: Endpoint,
        /// The connection ends with it.
        _requests: h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>,
    },
    Server(h3::server::RequestStream<BidiStream<Bytes>, Bytes>),
}

impl Body {
    async fn send(&mut self, data: Bytes) -> Result<(), StreamError> {
        match self {
            Self::Client { body, .. } => body.send_data(data).await,
            Self::Server(body) => body.send_data(data).await,
        }
    }

    async fn finish(&mut self) -> Result<(), StreamError> {
        match self {
            Self::Client { body, .. } => body.finish().await,
            Self::Server(body) => body.finish().await,
        }
    }

    /// What comes next; `None` is the end.
    async fn receive(&mut self) -> Result<Option<Bytes>, StreamError> {
        match self {
            Self::Client { body, answered, .. } => {
                if !*answered {
                    body.recv_response().await?;
                    *answered = true;
                }
                Ok(body.recv_data().await?.map(whole))
            }
            Self::Server(body) => Ok(body.recv_data().await?.map(whole)),
        }
    }
}

fn whole(mut data: impl Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

impl Stream {
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.body {
            Body::Client { endpoint, .. } => endpoint.local_addr(),
            Body::Server(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    pub fn control(&self) -> &str {
        &self.control
    }

    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = self.body.send(Bytes::copy_from_slice(bytes)).await;
        sent.map_err(|e| failure(&self.connection, &e))
    }

    pub async fn write_pattern(
        &mut self,
        seed: u64,
        length: Option<u64>,
        written: &mut u64,
    ) -> io::Result<()> {
        loop {
            let left = length.map_or(u64::MAX, |length| length - *written);
            if left == 0 {
                return Ok(());
            }
            consume_budget().await;
            let mut frame = vec![0; left.min(FRAME_BYTES) as usize];
            pattern::fill(seed, *written, &mut frame);
            let count = frame.len() as u64;
            let sent = self.body.send(frame.into()).await;
            sent.map_err(|e| failure(&self.connection, &e))?;
            *written += count;
        }
    }

    pub async fn finish(&mut self) -> io::Result<()> {
        self.body.finish().await.map_err(|e| failure(&self.connection, &e))
    }

    /// What has arrived; nothing at the end.
    async fn arrived(&mut self) -> io::Result<Bytes> {
        while self.left.is_empty() {
            consume_budget().await;
            match self.body.receive().await.map_err(|e| failure(&self.connection, &e))? {
                Some(data) => self.left = data,
                None => break,
            }
        }
        Ok(std::mem::take(&mut self.left))
    }

    pub async fn read_u64(&mut self) -> io::Result<u64> {
        let mut number = Vec::with_capacity(8);
        while number.len() < 8 {
            let mut data = self.arrived().await?;
            if data.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            number.extend_from_slice(&data.split_to(data.len().min(8 - number.len())));
            self.left = data;
        }
        Ok(number.as_slice().get_u64())
    }

    pub async fn read_pattern(&mut self, checker: &mut Checker) -> io::Result<(Instant, usize)> {
        let data = self.arrived().await?;
        let now = Instant::now();
        checker.take(&data);
        Ok((now, data.len()))
    }

    /// Closes the connection, which its client does.
    pub async fn close(self, well: bool) {
        if let Body::Client { endpoint, .. } = &self.body {
            self.connection.close(if well { NO_ERROR } else { CANCELLED }, b"");
            endpoint.wait_idle().await; // or nobody says so to the server
        }
    }
}

/// Why a stream failed: for what its connection did, if that is it.
fn failure(connection: &Connection, e: &(dyn std::error::Error + 'static)) -> io::Error {
    match (connection.close_reason(), e.downcast_ref()) {
        (Some(reason), _) => of_connection(reason),
        (None, Some(StreamError::RemoteTerminate { .. })) => reset(),
        (None, _) => io::Error::other(e.to_string()),
    }
}

fn of_connection(reason: ConnectionError) -> io::Error {
    match reason {
        ConnectionError::TimedOut => {
            io::Error::new(io::ErrorKind::TimedOut, "the other end is silent")
        }
        ConnectionError::ApplicationClosed(_) | ConnectionError::Reset => reset(),
        other => io::Error::other(other),
    }
}

/// As TCP has it: whoever ends in the middle resets the connection.
fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the other end closed the connection")
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What carries bytes: one stream of bytes there and one back, over TCP or over HTTP/3.
//!
//! The traffic modes know nothing else of a transport. What they send is content of
//! [`netnice_scenario::pattern`], and a few bytes before or after it.
//!
//! Over HTTP/3 a connection is one request (POST): what goes there is its body, what comes back is
//! the body of its answer.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{timeout, Instant};

use crate::Error;
use netnice_scenario::pattern::Checker;

mod quic;
mod tcp;

pub use quic::Control as QuicControl;

/// Where connections arrive.
pub struct Listener(Listens);

enum Listens {
    Tcp(TcpListener),
    Quic(quic::Listener),
}

impl Listener {
    /// Listens for TCP connections, which inherit the congestion control.
    ///
    /// # Errors
    /// [`Error::Control`] if the control cannot be set, [`Error::Network`] if the address cannot be
    /// used.
    pub fn tcp(address: SocketAddr, control: Option<&str>) -> Result<Self, Error> {
        tcp::listen(address, control).map(Listens::Tcp).map(Self)
    }

    /// Answers HTTP/3 requests under that congestion control. The server makes a certificate of its
    /// own, which clients find in the file.
    ///
    /// # Errors
    /// [`Error::Network`] if the address cannot be used, [`Error::Certificate`] if the file cannot be
    /// written.
    pub fn quic(
        address: SocketAddr,
        certificate: &Path,
        control: QuicControl,
    ) -> Result<Self, Error> {
        quic::Listener::new(address, certificate, control).map(Listens::Quic).map(Self)
    }

    /// Its own address.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Listens::Quic(listener) => listener.local_addr(),
            Listens::Tcp(listener) => listener.local_addr(),
        }
    }

    /// Accepts the next connection; those that failed before they were accepted do not count.
    ///
    /// # Errors
    /// [`Error::Network`] if the system is out of files or memory.
    pub async fn accept(&mut self) -> Result<(Stream, SocketAddr), Error> {
        match &mut self.0 {
            Listens::Tcp(listener) => {
                let (stream, peer) = tcp::accept(listener).await?;
                Ok((Stream::tcp(stream), peer))
            }
            Listens::Quic(listener) => {
                let (stream, peer) = listener.accept().await;
                Ok((Stream::quic(stream), peer))
            }
        }
    }

    /// Ends it and its connections, as the system does for TCP.
    pub async fn close(self) {
        if let Listens::Quic(listener) = self.0 {
            listener.close().await;
        }
    }
}

/// How to connect.
#[derive(Debug, Clone)]
pub struct Connector {
    to: SocketAddr,
    limit: Option<Duration>,
    how: How,
}

#[derive(Debug, Clone)]
enum How {
    Tcp { control: Option<String> },
    Quic(quic::Client),
}

impl Connector {
    /// Over TCP with that congestion control, `None` leaves the system's; within `limit` if there is
    /// one.
    ///
    /// # Errors
    /// [`Error::Control`] if the control is not available.
    pub fn tcp(
        to: SocketAddr,
        control: Option<String>,
        limit: Option<Duration>,
    ) -> Result<Self, Error> {
        if let Some(name) = &control {
            tcp::check_control(name, to)?;
        }
        Ok(Self { to, limit, how: How::Tcp { control } })
    }

    /// Over HTTP/3 with the server that has the certificate in the file, within `limit` if there is
    /// one. So long, or 30 s, the server may be silent later, too.
    ///
    /// # Errors
    /// [`Error::Certificate`] if there is none in the file.
    pub fn quic(
        to: SocketAddr,
        certificate: &Path,
        control: QuicControl,
        limit: Option<Duration>,
    ) -> Result<Self, Error> {
        let client = quic::Client::new(certificate, control, limit)?;
        Ok(Self { to, limit, how: How::Quic(client) })
    }

    /// Connects.
    ///
    /// # Errors
    /// Those of the transport; [`io::ErrorKind::TimedOut`] at the limit.
    pub async fn connect(&self) -> io::Result<Stream> {
        let connecting = async {
            match &self.how {
                How::Tcp { control } => {
                    tcp::connect(self.to, control.as_deref()).await.map(Stream::tcp)
                }
                How::Quic(client) => client.connect(self.to).await.map(Stream::quic),
            }
        };
        match self.limit {
            None => connecting.await,
            Some(limit) => timeout(limit, connecting).await.unwrap_or_else(|_| {
                let what = format!("no connection within {} s", limit.as_secs_f64());
                Err(io::Error::new(io::ErrorKind::TimedOut, what))
            }),
        }
    }
}

/// A connection: bytes there, and bytes back.
pub struct Stream(Carries);

enum Carries {
    Tcp(TcpStream),
    Quic(Box<quic::Stream>),
}

impl Stream {
    fn tcp(stream: TcpStream) -> Self {
        Self(Carries::Tcp(stream))
    }

    fn quic(stream: quic::Stream) -> Self {
        Self(Carries::Quic(Box::new(stream)))
    }
}

impl Stream {
    /// Its own address.
    ///
    /// # Errors
    /// Those of the system.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Carries::Tcp(stream) => stream.local_addr(),
            Carries::Quic(stream) => stream.local_addr(),
        }
    }

    /// The congestion control that it really has.
    pub fn control(&self) -> Option<String> {
        match &self.0 {
            Carries::Tcp(stream) => tcp::control_of(stream),
            Carries::Quic(stream) => Some(stream.control().into()),
        }
    }

    /// Writes these bytes.
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Carries::Tcp(stream) => stream.write_all(bytes).await,
            Carries::Quic(stream) => stream.write(bytes).await,
        }
    }

    /// Writes `length` bytes (endlessly if `None`) of the content with `seed`, counting in `written`.
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn write_pattern(
        &mut self,
        seed: u64,
        length: Option<u64>,
        written: &mut u64,
    ) -> io::Result<()> {
        match &mut self.0 {
            Carries::Tcp(stream) => tcp::write_pattern(stream, seed, length, written).await,
            Carries::Quic(stream) => stream.write_pattern(seed, length, written).await,
        }
    }

    /// The other end is to know that no more bytes come.
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn finish(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Carries::Tcp(stream) => stream.shutdown().await,
            Carries::Quic(stream) => stream.finish().await,
        }
    }

    /// Reads a number, big-endian.
    ///
    /// # Errors
    /// Those of the transport; [`io::ErrorKind::UnexpectedEof`] if fewer than 8 bytes come.
    pub async fn read_u64(&mut self) -> io::Result<u64> {
        match &mut self.0 {
            Carries::Tcp(stream) => stream.read_u64().await,
            Carries::Quic(stream) => stream.read_u64().await,
        }
    }

    /// Reads what has arrived, waiting for at least one byte, and checks it. Returns the moment after
    /// the read and the number of bytes; 0 at the end of the stream.
    ///
    /// # Errors
    /// Those of the transport.
    pub async fn read_pattern(&mut self, checker: &mut Checker) -> io::Result<(Instant, usize)> {
        match &mut self.0 {
            Carries::Tcp(stream) => tcp::read_pattern(stream, checker).await,
            Carries::Quic(stream) => stream.read_pattern(checker).await,
        }
    }

    /// Closes it. Unless all went `well`, what is unsent is discarded: it must not load the link any
    /// longer.
    pub async fn close(self, well: bool) {
        match self.0 {
            Carries::Tcp(stream) if !well => {
                // best effort: it is closed in any case
                let _ = tcp::abort_on_close(&stream);
            }
            Carries::Tcp(_) => {}
            Carries::Quic(stream) => stream.close(well).await,
        }
    }
}

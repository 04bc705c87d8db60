// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! quinn's streams as h3 takes them. Those of requests have a priority here, tell when their client has
//! acknowledged all, and say what became of them if they end early (RFC 9114, section 4.1.1); others are
//! h3-quinn's.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{ready, Context, Poll};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{
    self, ConnectionErrorIncoming as Lost, StreamErrorIncoming as Failed, StreamId, WriteBuf,
};
use quinn::{ConnectionError, ReadError, StoppedError, VarInt, WriteError};

use crate::reply::Piece;

/// Bytes of answers that quinn holds beyond a window: with that, as much as may still leave in the
/// foreground after a switch.
const UNSENT: u64 = 64 * 1024;
/// Bytes of a request that are taken at once.
const READ: usize = 16 * 1024;

fn lost(error: ConnectionError) -> Lost {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            Lost::ApplicationClose { error_code: close.error_code.into() }
        }
        ConnectionError::TimedOut => Lost::Timeout,
        error => Lost::Undefined(Arc::new(error)),
    }
}

fn lost_stream(error: ConnectionError) -> Failed {
    Failed::ConnectionErrorIncoming { connection_error: lost(error) }
}

fn id(id: quinn::StreamId) -> StreamId {
    u64::from(id).try_into().expect("both are those of RFC 9000, section 2.1")
}

fn code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// How the answer to a request goes out.
pub struct Sending {
    /// Ends when the client has acknowledged the whole answer, or wants no more of it.
    pub stopped: Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync>>,
    /// Of the stream: what has more goes first.
    pub priority: Arc<AtomicI32>,
    /// Whether there is a request to be answered. Before, h3 alone answers: that a head is too large.
    pub asked: Arc<AtomicBool>,
}

/// Of the request that was accepted last.
pub type Accepted = Arc<Mutex<Option<Sending>>>;

type Accepting = Pin<
    Box<
        dyn Future<Output = Result<(quinn::SendStream, quinn::RecvStream), ConnectionError>> + Send,
    >,
>;

/// A connection of a client.
pub struct Streams {
    connection: quinn::Connection,
    others: h3_quinn::Connection,
    accepting: Option<Accepting>,
    accepted: Accepted,
}

impl Streams {
    /// Of that connection; how an answer goes out is in `accepted` when its request has been accepted.
    pub fn new(connection: quinn::Connection, accepted: Accepted) -> Self {
        let others = h3_quinn::Connection::new(connection.clone());
        Self { connection, others, accepting: None, accepted }
    }
}

impl quic::Connection<Piece> for Streams {
    type RecvStream = h3_quinn::RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::RecvStream, Lost>> {
        quic::Connection::<Piece>::poll_accept_recv(&mut self.others, cx)
    }

    fn poll_accept_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both, Lost>> {
        let accepting = self.accepting.get_or_insert_with(|| {
            let connection = self.connection.clone();
            Box::pin(async move { connection.accept_bi().await })
        });
        let accepted = ready!(accepting.as_mut().poll(cx));
        self.accepting = None;
        let (stream, incoming) = accepted.map_err(lost)?;
        let priority = Arc::<AtomicI32>::default();
        let asked = Arc::<AtomicBool>::default();
        let stopped = Box::pin(stream.stopped());
        let sending = Sending { stopped, priority: priority.clone(), asked: asked.clone() };
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(sending);
        let connection = self.connection.clone();
        let send = Outgoing { stream, connection, priority, asked, writing: None, ended: false };
        Poll::Ready(Ok(Both { send, receive: Arriving(incoming) }))
    }

    fn opener(&self) -> Opener {
        Opener(quic::Connection::<Piece>::opener(&self.others))
    }
}

impl quic::OpenStreams<Piece> for Streams {
    type BidiStream = Both;
    type SendStream = h3_quinn::SendStream<Piece>;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Both, Failed>> {
        Poll::Ready(Err(none()))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::SendStream, Failed>> {
        self.others.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Piece>::close(&mut self.others, code, reason);
    }
}

/// What opens streams of a server's own.
pub struct Opener(h3_quinn::OpenStreams);

impl quic::OpenStreams<Piece> for Opener {
    type BidiStream = Both;
    type SendStream = h3_quinn::SendStream<Piece>;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Both, Failed>> {
        Poll::Ready(Err(none()))
    }

    fn poll_open_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<Self::SendStream, Failed>> {
        self.0.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<Piece>::close(&mut self.0, code, reason);
    }
}

/// RFC 9114, section 6.1.
fn none() -> Failed {
    Failed::Unknown("a server begins no requests".into())
}

/// The stream of a request.
pub struct Both {
    send: Outgoing,
    receive: Arriving,
}

/// The way of its answer.
pub struct Outgoing {
    stream: quinn::SendStream,
    connection: quinn::Connection,
    priority: Arc<AtomicI32>,
    asked: Arc<AtomicBool>,
    writing: Option<WriteBuf<Piece>>,
    ended: bool,
}

/// The way of the request.
pub struct Arriving(quinn::RecvStream);

impl quic::SendStream<Piece> for Outgoing {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        let Some(writing) = &mut self.writing else { return Poll::Ready(Ok(())) };
        // a stream that has ended has nothing to write
        let _ = self.stream.set_priority(self.priority.load(Relaxed));
        while writing.has_remaining() {
            self.connection.set_send_window(self.connection.stats().path.cwnd + UNSENT);
            let written = Pin::new(&mut self.stream).poll_write(cx, writing.chunk());
            let written = ready!(written).map_err(|error| match error {
                WriteError::Stopped(code) => Failed::StreamTerminated { error_code: code.into() },
                WriteError::ConnectionLost(error) => lost_stream(error),
                error => Failed::Unknown(Box::new(error)),
            })?;
            writing.advance(written);
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Piece>>>(&mut self, data: T) -> Result<(), Failed> {
        self.writing = Some(data.into()); // h3 waits until it is ready
        Ok(())
    }

    fn poll_finish(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.ended = true;
        Poll::Ready(self.stream.finish().map_err(|error| Failed::Unknown(Box::new(error))))
    }

    fn reset(&mut self, error: u64) {
        self.ended = true;
        let _ = self.stream.reset(code(error)); // it has ended already
    }

    fn send_id(&self) -> StreamId {
        id(self.stream.id())
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        // quinn would end it as if it were whole
        if !self.ended && self.asked.load(Relaxed) {
            quic::SendStream::reset(self, Code::H3_INTERNAL_ERROR.value());
        }
    }
}

impl quic::RecvStream for Arriving {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Failed>> {
        let mut read = [0; READ];
        let mut read = tokio::io::ReadBuf::new(&mut read);
        let got = ready!(self.0.poll_read_buf(cx, &mut read));
        got.map_err(|error| match error {
            ReadError::Reset(code) => Failed::StreamTerminated { error_code: code.into() },
            ReadError::ConnectionLost(error) => lost_stream(error),
            error => Failed::Unknown(Box::new(error)),
        })?;
        let got = Bytes::copy_from_slice(read.filled());
        Poll::Ready(Ok((!got.is_empty()).then_some(got)))
    }

    fn stop_sending(&mut self, error: u64) {
        let _ = self.0.stop(code(error)); // it has ended already
    }

    fn recv_id(&self) -> StreamId {
        id(self.0.id())
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        // whoever has its answer need send no more: RFC 9114, section 4.1
        quic::RecvStream::stop_sending(self, Code::H3_NO_ERROR.value());
    }
}

impl quic::SendStream<Piece> for Both {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Piece>>>(&mut self, data: T) -> Result<(), Failed> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failed>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, error: u64) {
        self.send.reset(error);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for Both {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Failed>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, error: u64) {
        self.receive.stop_sending(error);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl quic::BidiStream<Piece> for Both {
    type SendStream = Outgoing;
    type RecvStream = Arriving;

    fn split(self) -> (Outgoing, Arriving) {
        (self.send, self.receive)
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Answers on their way to a client: streamed, counted, and held back while the connection carries
//! something more urgent.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tokio::time::Instant;

use crate::body::{Error, Timed};
use crate::line::{Kept, Turn};
use crate::origin::Download;

/// An answer of the proxy's own; errors tell why, in one sentence.
pub fn own(status: StatusCode, sentence: &str) -> Response<Reply> {
    let mut response = Response::new(Reply::own(Bytes::from(format!("{sentence}\n"))));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Told how an answer ended, once: bytes of content sent, whether it is whole, seconds it took.
pub type Ended = Box<dyn FnOnce(u64, bool, Duration) + Send + Sync>;

/// A piece of an answer. It keeps the answer's turn until it was written to the connection: HTTP/2 may
/// hold it until the client lets it come.
pub struct Piece {
    bytes: Bytes,
    _turn: Option<Arc<Kept>>,
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}

enum Source {
    Origin(Timed<Download>),
    Own(Full<Bytes>),
}

/// An answer's body.
pub struct Reply {
    source: Source,
    turn: Option<Turn>,
    begun: Instant,
    sent: u64,
    whole: bool,
    ended: Option<Ended>,
}

impl Reply {
    /// The origin's answer.
    pub fn origin(body: Download, patience: Duration) -> Self {
        let whole = body.is_end_stream();
        Self::new(Source::Origin(Timed::new(body, patience)), whole)
    }

    /// The proxy's own.
    pub fn own(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let whole = text.is_empty();
        Self::new(Source::Own(Full::new(text)), whole)
    }

    fn new(source: Source, whole: bool) -> Self {
        Self { source, turn: None, begun: Instant::now(), sent: 0, whole, ended: None }
    }

    /// Attaches the turn on the connection, when the request came, and who is told of the end.
    pub fn attach(mut self, turn: Option<Turn>, begun: Instant, ended: Ended) -> Self {
        (self.turn, self.begun, self.ended) = (turn, begun, Some(ended));
        self
    }

    /// What keeps its turn on the connection, if it has one.
    pub fn keep(&self) -> Option<Arc<Kept>> {
        self.turn.as_ref().map(Turn::keep)
    }
}

impl Body for Reply {
    type Data = Piece;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, Error>>> {
        let this = self.get_mut();
        if let Some(turn) = &mut this.turn {
            turn.set_offered(false);
            if let Err(error) = ready!(turn.poll_may_send(cx)) {
                return Poll::Ready(Some(Err(error.into())));
            }
        }
        let frame = match &mut this.source {
            Source::Origin(body) => ready!(Pin::new(body).poll_frame(cx)),
            Source::Own(body) => ready!(Pin::new(body).poll_frame(cx)).map(|f| Ok(f?)),
        };
        if let (Some(turn), Some(Ok(_))) = (&this.turn, &frame) {
            turn.set_offered(true);
        }
        match &frame {
            Some(Ok(frame)) => this.sent += frame.data_ref().map_or(0, |d| d.len() as u64),
            Some(Err(_)) => {}
            None => this.whole = true,
        }
        this.whole |= frame.as_ref().is_some_and(Result::is_ok) && this.is_end_stream();
        let piece = |bytes| Piece { bytes, _turn: this.turn.as_ref().map(Turn::keep) };
        Poll::Ready(frame.map(|frame| frame.map(|frame| frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Origin(body) => body.is_end_stream(),
            Source::Own(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Origin(body) => body.size_hint(),
            Source::Own(body) => body.size_hint(),
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended(self.sent, self.whole, self.begun.elapsed());
        }
    }
}

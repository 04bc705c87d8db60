// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Answers on their way to a client: streamed, counted, and held back while the connection carries
//! something more urgent.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use tokio::time::{sleep, Instant, Sleep};

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

/// How long the end of an answer that breaks off is held back at first: what came before leaves by then.
const HELD_BACK: Duration = Duration::from_millis(10);
/// The longest time until it is looked again whether the connection still holds some of it.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A piece of an answer. It keeps the answer's turn until it was written to the connection: HTTP/2 may
/// hold it until the client lets it come.
pub struct Piece {
    bytes: Bytes,
    _turn: Option<Arc<Kept>>,
    _unwritten: Arc<()>,
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
    BrokenOff(BrokenOff),
}

/// Why an answer ends early. Whatever carries the answer throws away with it what it has not written
/// yet, so it is told when nothing of that is left.
struct BrokenOff {
    error: Option<Error>,
    wait: Duration,
    timer: Pin<Box<Sleep>>,
}

impl BrokenOff {
    fn new(error: Error) -> Self {
        Self { error: Some(error), wait: HELD_BACK, timer: Box::pin(sleep(HELD_BACK)) }
    }

    /// Ready when the pieces that go with `unwritten` have gone.
    fn poll(&mut self, cx: &mut Context<'_>, unwritten: &Arc<()>) -> Poll<Option<Error>> {
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if Arc::strong_count(unwritten) == 1 {
                return Poll::Ready(self.error.take());
            }
            self.wait = LOOK_AGAIN.min(2 * self.wait);
            self.timer.as_mut().reset(Instant::now() + self.wait);
        }
    }
}

/// An answer's body.
pub struct Reply {
    source: Source,
    turn: Option<Turn>,
    /// Shared with the pieces that lie with the connection.
    unwritten: Arc<()>,
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
        let (begun, unwritten) = (Instant::now(), Arc::default());
        Self { source, turn: None, unwritten, begun, sent: 0, whole, ended: None }
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
        if let Source::BrokenOff(broken) = &mut this.source {
            return broken.poll(cx, &this.unwritten).map(|error| error.map(Err));
        }
        if let Some(turn) = &mut this.turn {
            turn.set_offered(false);
            if let Err(error) = ready!(turn.poll_may_send(cx)) {
                return Poll::Ready(Some(Err(error.into())));
            }
        }
        let frame = match &mut this.source {
            Source::Origin(body) => ready!(Pin::new(body).poll_frame(cx)),
            Source::Own(body) => ready!(Pin::new(body).poll_frame(cx)).map(|f| Ok(f?)),
            Source::BrokenOff(_) => None,
        };
        let frame = match frame.transpose() {
            Ok(frame) => frame,
            Err(error) => {
                // the connection to the origin ends here
                this.source = Source::BrokenOff(BrokenOff::new(error));
                this.turn.iter().for_each(|turn| turn.set_offered(true));
                return Pin::new(this).poll_frame(cx);
            }
        };
        if let (Some(turn), Some(_)) = (&this.turn, &frame) {
            turn.set_offered(true);
        }
        match &frame {
            Some(frame) => this.sent += frame.data_ref().map_or(0, |d| d.len() as u64),
            None => this.whole = true,
        }
        this.whole |= this.is_end_stream();
        let piece = |bytes| Piece {
            bytes,
            _turn: this.turn.as_ref().map(Turn::keep),
            _unwritten: this.unwritten.clone(),
        };
        Poll::Ready(frame.map(|frame| Ok(frame.map_data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Origin(body) => body.is_end_stream(),
            Source::Own(body) => body.is_end_stream(),
            Source::BrokenOff(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Origin(body) => body.size_hint(),
            Source::Own(body) => body.size_hint(),
            Source::BrokenOff(_) => SizeHint::default(),
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

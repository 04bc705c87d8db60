// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Bodies that fail if nothing comes of them for a while.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::task::{ready, Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{sleep, Instant, Sleep};

/// Any failure of a body.
pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// The body of a client's request.
pub enum Inbound {
    /// Of HTTP/1 and HTTP/2.
    Hyper(Incoming),
    /// Of HTTP/3.
    Quic(Pin<Box<dyn Body<Data = Bytes, Error = Error> + Send>>),
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match self.get_mut() {
            Self::Hyper(body) => {
                let frame = ready!(Pin::new(body).poll_frame(cx));
                Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
            }
            Self::Quic(body) => body.as_mut().poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Hyper(body) => body.is_end_stream(),
            Self::Quic(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Hyper(body) => body.size_hint(),
            Self::Quic(body) => body.size_hint(),
        }
    }
}

/// A body that fails if no frame comes for a while.
#[derive(Debug)]
pub struct Timed<B> {
    inner: Option<B>,
    patience: Duration,
    deadline: Option<Pin<Box<Sleep>>>,
    waits: bool,
    /// Set whenever a frame was taken, if somebody watches.
    taken: Option<Arc<AtomicBool>>,
}

impl<B> Timed<B> {
    /// Gives `inner` this long for each frame.
    pub fn new(inner: B, patience: Duration) -> Self {
        Self { inner: Some(inner), patience, deadline: None, waits: false, taken: None }
    }

    /// No body.
    pub fn none() -> Self {
        Self { inner: None, patience: Duration::ZERO, deadline: None, waits: false, taken: None }
    }

    /// What becomes true whenever a frame was taken from now on.
    pub fn watch(&mut self) -> Arc<AtomicBool> {
        self.taken.get_or_insert_default().clone()
    }
}

impl<B: Body<Data = Bytes, Error: Into<Error>> + Unpin> Body for Timed<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(inner).poll_frame(cx) {
            this.waits = false;
            this.taken.iter().for_each(|taken| taken.store(true, Relaxed));
            return Poll::Ready(frame.map(|f| f.map_err(Into::into)));
        }
        let patience = this.patience;
        let deadline = this.deadline.get_or_insert_with(|| Box::pin(sleep(patience)));
        if !this.waits {
            // moved on rather than made anew: a timer is cheap to keep, not to set
            deadline.as_mut().reset(Instant::now() + patience);
            this.waits = true;
        }
        ready!(deadline.as_mut().poll(cx));
        let late = io::Error::new(io::ErrorKind::TimedOut, format!("no byte for {patience:?}"));
        Poll::Ready(Some(Err(late.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(B::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or(SizeHint::with_exact(0), B::size_hint)
    }
}

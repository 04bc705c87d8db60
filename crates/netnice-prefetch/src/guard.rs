// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A client's connection of HTTP/1 as hyper reads it: of every request the whole head at once, with
//! what [`head`] makes of it. One that is refused comes as a plain request, so that the refusal is
//! answered in its turn, and logged.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{ready, Context, Poll};
use std::time::Duration;

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{sleep, Sleep};

use crate::head::{self, Chunks, Framing, Limits, Read, Refusal};

/// How long what a refused client still sends is taken and thrown away: without, its system would
/// throw away the answer (RFC 9112, section 9.6).
const LINGER: Duration = Duration::from_secs(2);
/// Room for the rest of a head.
const PIECE: usize = 4096;

/// Which request of a connection is refused, told to whoever answers them in order.
#[derive(Debug, Default)]
pub struct Refused {
    /// The last one: none follows it.
    last: OnceLock<(u64, Refusal)>,
    answered: AtomicU64,
}

impl Refused {
    /// Why the next request is refused, if it is.
    pub fn next(&self) -> Option<&Refusal> {
        let number = self.answered.fetch_add(1, Relaxed);
        self.last.get().filter(|(refused, _)| *refused == number).map(|(_, refusal)| refusal)
    }
}

/// In what the next byte of the client is.
enum Place {
    Head,
    Sized(u64),
    Chunked(Chunks),
    /// Beyond the last request that is taken.
    Over,
}

/// The connection.
pub struct Guard<S> {
    inner: S,
    limits: Limits,
    place: Place,
    /// Heads handed on.
    heads: u64,
    /// What came and was not handed on: of it, the first `good` bytes may be.
    held: Vec<u8>,
    good: usize,
    refused: Arc<Refused>,
    linger: Option<Pin<Box<Sleep>>>,
}

impl<S> Guard<S> {
    /// Around a connection from which nothing was read; refusals are told to `refused`.
    pub fn new(inner: S, limits: Limits, refused: Arc<Refused>) -> Self {
        let (place, held) = (Place::Head, Vec::new());
        Self { inner, limits, place, heads: 0, held, good: 0, refused, linger: None }
    }

    /// How many of some bytes may be handed on as they are: whole heads, and bodies.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            match &mut self.place {
                Place::Head => match head::read(&bytes[at..], self.limits) {
                    Read::Head(length, framing) => {
                        self.heads += 1;
                        at += length;
                        self.place = match framing {
                            Framing::Sized(0) => Place::Head,
                            Framing::Sized(length) => Place::Sized(length),
                            Framing::Chunked => Place::Chunked(Chunks::Size(None)),
                        };
                    }
                    _ => break,
                },
                Place::Sized(left) => {
                    let step = ((bytes.len() - at) as u64).min(*left);
                    at += step as usize; // no more than there are
                    *left -= step;
                    if *left == 0 {
                        self.place = Place::Head;
                    }
                }
                Place::Chunked(chunks) => {
                    at += chunks.pass(&bytes[at..]);
                    if *chunks == Chunks::Over {
                        self.place = Place::Head;
                    }
                }
                Place::Over => break,
            }
        }
        at
    }

    /// Makes of what is held something that may be handed on, unless it is a part of a head.
    fn resolve(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.good = self.pass(&held);
        self.held = held;
        if self.good > 0 || !matches!(self.place, Place::Head) {
            return;
        }
        match head::read(&self.held, self.limits) {
            Read::Odd => {
                head::encode(&mut self.held);
                self.resolve();
            }
            Read::Bad(status, sentence) => self.refuse(status, sentence),
            Read::Head(..) | Read::Partial => {}
        }
    }

    fn refuse(&mut self, status: StatusCode, sentence: &'static str) {
        let refusal = head::refusal(&self.held, status, sentence);
        // an answer to HEAD has no body
        let method = if refusal.line.starts_with(b"HEAD ") { "HEAD" } else { "GET" };
        self.held = format!("{method} / HTTP/1.1\r\nhost: -\r\nconnection: close\r\n\r\n").into();
        self.good = self.held.len();
        self.place = Place::Over;
        let _ = self.refused.last.set((self.heads, refusal)); // it is the only one
    }

    fn hand_on(&mut self, buf: &mut ReadBuf<'_>) {
        let count = self.good.min(buf.remaining());
        buf.put_slice(&self.held[..count]);
        self.held.drain(..count);
        self.good -= count;
        if self.held.is_empty() {
            self.held = Vec::new(); // an idle connection needs none
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.good == 0 && !this.held.is_empty() {
                this.resolve();
            }
            if this.good > 0 {
                this.hand_on(buf);
                return Poll::Ready(Ok(()));
            }
            if matches!(this.place, Place::Over) {
                return Poll::Pending; // its answer ends the connection
            }
            if this.held.is_empty() {
                let before = buf.filled().len();
                ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
                let good = this.pass(&buf.filled()[before..]);
                if before + good == buf.filled().len() {
                    return Poll::Ready(Ok(())); // the end, too
                }
                this.held.extend_from_slice(&buf.filled()[before + good..]);
                buf.set_filled(before + good);
                if good > 0 {
                    return Poll::Ready(Ok(()));
                }
            } else {
                let mut piece = [0; PIECE];
                let mut piece = ReadBuf::new(&mut piece);
                ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
                if piece.filled().is_empty() {
                    return Poll::Ready(Ok(())); // no head without its end
                }
                this.held.extend_from_slice(piece.filled());
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.inner).poll_shutdown(cx))?;
            if matches!(this.place, Place::Head) {
                return Poll::Ready(Ok(())); // nothing more is to come
            }
        }
        let linger = this.linger.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut thrown = [0; PIECE];
        while linger.as_mut().poll(cx).is_pending() {
            let mut thrown = ReadBuf::new(&mut thrown);
            let read = ready!(Pin::new(&mut this.inner).poll_read(cx, &mut thrown));
            if read.is_err() || thrown.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

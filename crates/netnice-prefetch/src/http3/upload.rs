// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The body of a request over HTTP/3.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{ready, Context, Poll};

use bytes::{Buf, Bytes};
use h3::server::RequestStream;
use http::header;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::streams::Arriving;
use crate::body::Error;
use crate::reply::Piece;

/// What a client sends with a request, as long as its head announces.
pub struct Upload {
    stream: RequestStream<Arriving, Piece>,
    /// Of what was announced.
    left: Option<u64>,
    first: Option<Bytes>,
    ended: bool,
}

/// The length that a head announces; `Err`: it is none (RFC 9110, section 8.6).
fn announced(headers: &HeaderMap) -> Result<Option<u64>, ()> {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return Ok(None) };
    let digits = first.to_str().ok().filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    match (digits.and_then(|text| text.parse().ok()), lengths.next()) {
        (Some(length), None) => Ok(Some(length)),
        _ => Err(()),
    }
}

impl Upload {
    /// What comes on the stream behind this head; `None` if the head is malformed.
    pub async fn new(stream: RequestStream<Arriving, Piece>, headers: &HeaderMap) -> Option<Self> {
        let left = announced(headers).ok()?;
        let mut new = Self { stream, left, first: None, ended: false };
        // whoever sends no body has said so by now, and its request can be sent to the origin again
        let first = poll_fn(|cx| Poll::Ready(new.poll_data(cx))).await;
        match first {
            Poll::Ready(Ok(first)) => new.first = first,
            Poll::Ready(Err(_)) => return None,
            Poll::Pending => {}
        }
        Some(new)
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        let data = ready!(self.stream.poll_recv_data(cx))?;
        let data = data.map(|mut data| data.copy_to_bytes(data.remaining()));
        let length = data.as_ref().map_or(0, |data| data.len() as u64);
        if let Some(left) = &mut self.left {
            // RFC 9114, section 4.1.2
            *left = left.checked_sub(length).ok_or("more came than was announced")?;
            if data.is_none() && *left > 0 {
                return Poll::Ready(Err("less came than was announced".into()));
            }
        }
        self.ended = data.is_none();
        Poll::Ready(Ok(data))
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        this.poll_data(cx).map(|data| data.transpose().map(|data| data.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.ended && self.first.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |first| first.len() as u64);
        match self.left {
            _ if self.ended => SizeHint::with_exact(first),
            Some(left) => SizeHint::with_exact(left + first),
            None => SizeHint::default(),
        }
    }
}

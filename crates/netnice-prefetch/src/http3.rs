// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! HTTP/3 (RFC 9114): requests come over streams of QUIC, and their answers go through the same proxy
//! as those over TCP. A connection yields by quinn's congestion controllers, so that needs neither a
//! kernel nor a right. Prefetches have the lower priority of its streams, too: what quinn still holds of
//! them goes behind demand.

mod streams;
mod upload;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use h3::error::Code;
use h3::server::{RequestResolver, RequestStream};
use http::header::{self, HeaderValue};
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use netnice_quinn::{Algorithm, Background, Config};
use quinn::{TransportConfig, VarInt};
use tokio::task::JoinSet;

use crate::body::Inbound;
use crate::config::Bounds;
use crate::headers::strip_hop_by_hop;
use crate::line::{Kept, Line, BACKGROUND_PATIENCE};
use crate::proxy::{Peer, Proxy};
use crate::reply::{Piece, Reply};
use streams::{Accepted, Outgoing, Sending, Streams};
use upload::Upload;

/// Of the streams of prefetches; demand has 0, as has what HTTP/3 itself sends.
const PREFETCH: i32 = -1;
/// Streams that a client may open for no request: HTTP/3 has use for three (RFC 9114, section 6.2).
const OTHERS: u32 = 16;
/// Bytes that a client may send before they are taken, as hyper has it on HTTP/2.
const WINDOW: u32 = 1024 * 1024;

/// What a client's connection is like: it yields under this algorithm when its line says so.
pub fn transport(algorithm: Algorithm, bounds: &Bounds) -> (TransportConfig, Arc<Line>) {
    let background = Background::new(Config::new(algorithm));
    let line = Line::quic(background.switch());
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(background))
        .max_concurrent_bidi_streams(bounds.streams.into())
        .max_concurrent_uni_streams(OTHERS.into())
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .datagram_receive_buffer_size(None)
        // a client may be silent for less: its own bound counts, too
        .max_idle_timeout(Some(timeout(BACKGROUND_PATIENCE)));
    (transport, line)
}

fn timeout(patience: Duration) -> quinn::IdleTimeout {
    patience.try_into().expect("far less than QUIC can say")
}

/// What ends without a result, some time.
pub type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Answers what a client asks for, until it or `stop` ends the connection.
pub fn carry(
    connection: quinn::Connection,
    proxy: Arc<Proxy>,
    peer: Arc<Peer>,
    bounds: Bounds,
    stop: Boxed,
) -> Boxed {
    Box::pin(answer_all(connection, proxy, peer, bounds, stop))
}

async fn answer_all(
    connection: quinn::Connection,
    proxy: Arc<Proxy>,
    peer: Arc<Peer>,
    bounds: Bounds,
    mut stop: Boxed,
) {
    let accepted = Accepted::default();
    let streams = Streams::new(connection, accepted.clone());
    let mut builder = h3::server::builder();
    builder.max_field_section_size(bounds.header_bytes as u64).send_grease(false);
    let Ok(mut requests) = builder.build(streams).await else { return };
    let mut answers = JoinSet::new();
    let mut stops = false;
    while !(stops && answers.is_empty()) {
        tokio::select! {
            request = requests.accept() => {
                let Ok(Some(request)) = request else { break };
                let sending = accepted.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let Some(sending) = sending {
                    answers.spawn(answer(request, sending, proxy.clone(), peer.clone()));
                }
            }
            Some(_) = answers.join_next() => {} // what failed concerns its client alone
            () = &mut stop, if !stops => {
                stops = true;
                if requests.shutdown(0).await.is_err() {
                    break;
                }
            }
        }
    }
}

/// Answers a request. Its turn ends when the client has acknowledged all of the answer: what was lost
/// on the way goes as the answer did.
async fn answer(
    request: RequestResolver<Streams, Piece>,
    mut sending: Sending,
    proxy: Arc<Proxy>,
    peer: Arc<Peer>,
) {
    let Ok((request, stream)) = request.resolve_request().await else { return };
    sending.asked.store(true, Relaxed);
    let (mut send, receive) = stream.split();
    let Some(upload) = Upload::new(receive, request.headers()).await else {
        return send.stop_stream(Code::H3_MESSAGE_ERROR);
    };
    let has_body = request.method() != Method::HEAD;
    let request: Request<_> = request.map(|()| Inbound::Quic(Box::pin(upload)));
    let kept = tokio::select! {
        response = proxy.answer(peer, request) => {
            let kept = response.body().keep();
            if kept.as_ref().is_some_and(|kept| kept.is_background()) {
                sending.priority.store(PREFETCH, Relaxed);
            }
            tokio::select! {
                sent = pass(response, &mut send, has_body) => sent.map(|()| kept),
                _ = &mut sending.stopped => None,
            }
        }
        _ = &mut sending.stopped => None,
    };
    if let Some(kept) = kept {
        let _ = sending.stopped.await; // or the connection has ended
        drop::<Option<Arc<Kept>>>(kept);
    }
}

/// Sends an answer; `None` if it broke off.
async fn pass(
    response: Response<Reply>,
    send: &mut RequestStream<Outgoing, Piece>,
    has_body: bool,
) -> Option<()> {
    let (mut head, mut body) = response.into_parts();
    strip_hop_by_hop(&mut head.headers); // RFC 9114, section 4.2

    // as hyper does it
    let now = || HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::now()));
    head.headers.entry(header::DATE).or_insert_with(|| now().expect("visible ASCII"));
    if let (Some(length), true) = (body.size_hint().exact(), has_body) {
        head.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    send.send_response(Response::from_parts(head, ())).await.ok()?;
    while let Some(frame) = if has_body { body.frame().await } else { None } {
        match frame.ok()?.into_data() {
            Ok(piece) => send.send_data(piece).await.ok()?,
            Err(frame) => send.send_trailers(frame.into_trailers().ok()?).await.ok()?,
        }
    }
    drop(body); // it has ended here
    send.finish().await.ok()
}

/// Why a connection is closed when all went well (RFC 9114, section 8.1).
pub const NO_ERROR: VarInt = VarInt::from_u32(0x100);

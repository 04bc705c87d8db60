// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The HTTP responder of `/metrics`.

use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use netnice_manager::snapshot::View;
use tokio::sync::Semaphore;

use crate::exporter::{Exporter, Format};

/// At a time; others wait to be accepted.
const CONNECTIONS: usize = 16;
/// A request has to arrive, and a connection to end, within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers requests for `/metrics` at `listener` with what `source` sees then, for ever. Whoever has other
/// work calls it in a thread of its own, and makes the source there.
///
/// # Errors
/// When the system refuses to listen.
pub fn serve<E: Display>(
    listener: TcpListener,
    source: impl FnMut() -> Result<View, E> + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let answering = Rc::new(RefCell::new((Exporter::new(), source)));
    runtime.block_on(async {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                loop {
                    let Ok(place) = room.clone().acquire_owned().await else { continue };
                    let Ok((stream, _)) = listener.accept().await else {
                        tokio::time::sleep(Duration::from_millis(100)).await; // out of descriptors
                        continue;
                    };
                    let answering = answering.clone();
                    tokio::task::spawn_local(async move {
                        let service = service_fn(|request| {
                            let answer = answer(&request, &answering);
                            async move { Ok::<_, Infallible>(answer) }
                        });
                        let connection = http1::Builder::new()
                            .timer(TokioTimer::new())
                            .header_read_timeout(PATIENCE)
                            .keep_alive(false)
                            .serve_connection(TokioIo::new(stream), service);
                        // who asks and does not read is not waited for
                        let _ = tokio::time::timeout(2 * PATIENCE, connection).await;
                        drop(place);
                    });
                }
            })
            .await
    })
}

type Answering<S> = RefCell<(Exporter, S)>;

fn answer<E: Display, S: FnMut() -> Result<View, E>>(
    request: &Request<Incoming>,
    answering: &Answering<S>,
) -> Response<Full<Bytes>> {
    let plain = "text/plain; charset=utf-8";
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => {}
        (&Method::GET | &Method::HEAD, _) => {
            return respond(StatusCode::NOT_FOUND, plain, "see /metrics\n".into());
        }
        _ => return respond(StatusCode::METHOD_NOT_ALLOWED, plain, "GET /metrics\n".into()),
    }
    let accepts = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let format = match accepts.is_some_and(|a| a.contains("application/openmetrics-text")) {
        true => Format::OpenMetrics,
        false => Format::Prometheus,
    };
    let mut both = answering.borrow_mut();
    let (exporter, source) = &mut *both;
    match source() {
        Ok(view) => {
            exporter.add(&view);
            respond(StatusCode::OK, format.content_type(), exporter.text(format))
        }
        Err(error) => respond(StatusCode::INTERNAL_SERVER_ERROR, plain, format!("{error}\n")),
    }
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    response
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The web server behind the proxy: a bounded number of connections to it, kept and used again.
//!
//! A connection is carried on by the task of the client that it serves, not by one of its own: what
//! arrives from the origin wakes the task that passes it on. Two futures polled there, one after the
//! other, need not wake each other, so all but the socket get a waker that does nothing.

use std::future::{poll_fn, Future};
use std::io;
use std::net::SocketAddr;
use std::pin::{pin, Pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{ready, Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::{lookup_host, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::unconstrained;
use tokio::time::{sleep, timeout, Instant, Sleep};

use crate::body::{self, Inbound, Timed};
use crate::config::{seconds, Timeouts};
use crate::headers::members;

/// How long a connection without a request is kept, unless its server says how long it keeps it:
/// common ones do for 5 s.
const KEPT: Duration = Duration::from_secs(4);
/// The longest, whatever a server says.
const LONGEST_KEPT: Duration = Duration::from_secs(60);
/// Header lines that an answer may have.
const HEADERS: usize = 256;

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// The body of a client's request.
pub type Upload = Timed<Inbound>;

/// Why the origin gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// As many requests as may be are under way, and none ended in time.
    #[error("The web server behind this proxy is busy.")]
    Busy,
    /// No connection could be made.
    #[error("The web server behind this proxy cannot be reached.")]
    Unreachable(#[source] io::Error),
    /// No head came for so many seconds.
    #[error("The web server behind this proxy did not answer within {0} s.")]
    Late(u64),
    /// The body of the client's request was cut off, or is not what its head says.
    #[error("The body of the request is not what its head announces, or stopped.")]
    Upload(#[source] hyper::Error),
    /// What came is no answer.
    #[error("The web server behind this proxy did not give a valid answer.")]
    Senseless(#[source] hyper::Error),
}

impl Error {
    /// What the client is told.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Late(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Upload(_) if is_timeout(self) => StatusCode::REQUEST_TIMEOUT,
            Self::Upload(_) => StatusCode::BAD_REQUEST,
            _ if is_timeout(self) => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Whether something on the way from `error` down took too long.
fn is_timeout(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |e| e.source())
        .filter_map(|e| e.downcast_ref::<io::Error>())
        .any(|e| e.kind() == io::ErrorKind::TimedOut)
}

/// A connection to the origin.
struct Connection {
    sender: http1::SendRequest<Upload>,
    io: Box<http1::Connection<TokioIo<TcpStream>, Upload>>,
    /// For answers, moved on for each: cheaper than a timer for each.
    timer: Pin<Box<Sleep>>,
    used: Instant,
    /// How long it is kept without a request.
    kept: Duration,
}

/// The web server behind the proxy.
#[derive(Debug)]
pub struct Origin {
    address: String,
    host: HeaderValue,
    timeouts: Timeouts,
    /// Most requests under way, and so most connections: one is opened only if none is idle.
    most: usize,
    places: Arc<Semaphore>,
    /// Connections of clients that do not take their answers wait here, to be told that others need
    /// their places.
    pub(crate) crowded: Notify,
    /// The one used last comes last.
    idle: Mutex<Vec<Connection>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("used", &self.used).finish_non_exhaustive()
    }
}

/// A connection in use, with its place among them.
struct Taken {
    connection: Connection,
    origin: Arc<Origin>,
    _place: OwnedSemaphorePermit,
}

/// What became of a request on one connection.
enum Outcome {
    Answered(Response<Incoming>),
    /// The connection had ended before the request was sent.
    Unsent(Request<Upload>),
    /// It ended when the request was sent, before an answer.
    Lost(hyper::Error),
    Failed(Error),
}

/// How long a connection is kept after this answer: a second less than its server keeps it.
fn kept(headers: &HeaderMap) -> Duration {
    let told = members(headers, &KEEP_ALIVE).find_map(|member| {
        let (name, value) = member.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| value.trim().parse().ok())?
    });
    told.map_or(KEPT, |s: u64| seconds(s.saturating_sub(1)).min(LONGEST_KEPT))
}

/// A request that may be sent again (RFC 9110, section 9.2.2): it has no body, and sent twice it does
/// what it does once.
fn again(request: &Request<Upload>) -> Option<Request<Upload>> {
    use Method as M;
    let safe =
        matches!(*request.method(), M::GET | M::HEAD | M::OPTIONS | M::TRACE | M::DELETE | M::PUT);
    (safe && request.body().is_end_stream()).then(|| {
        let mut copy = Request::new(Upload::none());
        copy.method_mut().clone_from(request.method());
        copy.uri_mut().clone_from(request.uri());
        copy.headers_mut().clone_from(request.headers());
        copy
    })
}

/// Whether a connection ended, rather than brought something else than an answer.
fn is_end(error: &hyper::Error) -> bool {
    use io::ErrorKind as K;
    let ends = [K::ConnectionReset, K::ConnectionAborted, K::BrokenPipe, K::UnexpectedEof];
    error.is_incomplete_message()
        || std::error::Error::source(error)
            .and_then(|e| e.downcast_ref::<io::Error>())
            .is_some_and(|e| ends.contains(&e.kind()))
}

impl Origin {
    /// The server at this address, to which at most so many connections are made.
    pub fn new(authority: &Authority, most: usize, timeouts: Timeouts) -> Arc<Self> {
        let most = most.min(Semaphore::MAX_PERMITS);
        let (host, port) = (authority.host(), authority.port_u16().unwrap_or(80));
        let named = match port {
            80 => host.to_owned(),
            port => format!("{host}:{port}"),
        };
        Arc::new(Self {
            address: format!("{host}:{port}"),
            // an authority has no bytes that a header may not have
            host: HeaderValue::from_str(&named).unwrap_or(HeaderValue::from_static("origin")),
            timeouts,
            most,
            places: Arc::new(Semaphore::new(most)),
            crowded: Notify::new(),
            idle: Mutex::default(),
        })
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().expect("no panic while held")
    }

    /// Closes connections that were not used for a while.
    pub fn prune(&self) {
        self.idle().retain(Connection::is_kept);
    }

    /// An idle connection that its server should not have closed yet.
    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle();
        while let Some(connection) = idle.pop() {
            if connection.is_kept() {
                return Some(connection);
            }
        }
        None
    }

    /// A place for a request: at once if one is free, else in turn. Prefetches, which may hold
    /// theirs for long, do not wait, and leave half of the places to demand.
    async fn place(&self, prefetch: bool) -> Result<OwnedSemaphorePermit, Error> {
        if prefetch && self.places.available_permits() <= self.most / 2 {
            return Err(Error::Busy);
        }
        if let Ok(place) = self.places.clone().try_acquire_owned() {
            return Ok(place);
        }
        self.crowded.notify_one();
        let turn = self.places.clone().acquire_owned();
        match timeout(seconds(self.timeouts.connect_s), turn).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Error::Busy),
        }
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let patience = seconds(self.timeouts.connect_s);
        let open = async {
            let addresses: Vec<SocketAddr> = lookup_host(&self.address).await?.collect();
            let share = patience / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
            let mut last = io::Error::from(io::ErrorKind::NotFound);
            for address in addresses {
                match timeout(share, TcpStream::connect(address)).await {
                    Ok(Ok(socket)) => return socket.set_nodelay(true).map(|()| socket),
                    Ok(Err(error)) => last = error,
                    Err(late) => last = late.into(),
                }
            }
            Err(last)
        };
        let socket = timeout(patience, open).await.unwrap_or_else(|late| Err(late.into()));
        let socket = TokioIo::new(socket.map_err(Error::Unreachable)?);
        let mut builder = http1::Builder::new();
        let shaken = builder.max_headers(HEADERS).handshake(socket).await;
        let (sender, io) = shaken.map_err(Error::Senseless)?;
        let timer = Box::pin(sleep(Duration::ZERO));
        Ok(Connection { sender, io: Box::new(io), timer, used: Instant::now(), kept: KEPT })
    }

    /// Sends a request, whose target is a path, and returns the answer. If a connection that was kept
    /// ends before it, the request is sent once more on a new one, if that does no harm.
    ///
    /// # Errors
    /// If there is none.
    pub async fn send(
        self: &Arc<Self>,
        mut request: Request<Upload>,
        prefetch: bool,
    ) -> Result<Response<Download>, Error> {
        request.headers_mut().entry(header::HOST).or_insert_with(|| self.host.clone());
        let uploads = !request.body().is_end_stream();
        let _place = self.place(prefetch).await?;
        let mut lost = false;
        loop {
            let idle = if lost { None } else { self.take_idle() };
            let is_new = idle.is_none();
            let copy = if is_new { None } else { again(&request) };
            let connection = match idle {
                Some(connection) => connection,
                None => Box::pin(self.connect()).await?, // rare, and large
            };
            let (outcome, connection) = connection.exchange(request, self.timeouts.answer_s).await;
            match outcome {
                Outcome::Answered(answer) => {
                    let mut connection = connection;
                    if let Some(connection) = &mut connection {
                        connection.kept = kept(answer.headers());
                    }
                    let origin = self.clone();
                    let taken = connection.map(|connection| Taken { connection, origin, _place });
                    return Ok(answer.map(|body| Download::new(body, taken, uploads)));
                }
                Outcome::Failed(error) => return Err(error),
                Outcome::Lost(error) => match copy {
                    Some(copy) => (request, lost) = (copy, true),
                    None => return Err(Error::Senseless(error)),
                },
                Outcome::Unsent(back) if !is_new => request = back, // the origin has let it go
                Outcome::Unsent(_) => {
                    return Err(Error::Unreachable(io::ErrorKind::ConnectionReset.into()))
                }
            }
        }
    }
}

impl Connection {
    fn is_kept(&self) -> bool {
        self.used.elapsed() < self.kept
    }

    /// Sends a request and waits for the head of its answer, for so long from the last frame of the
    /// request that was taken; returns the connection unless it ended.
    async fn exchange(
        mut self,
        mut request: Request<Upload>,
        patience_s: u64,
    ) -> (Outcome, Option<Self>) {
        let patience = seconds(patience_s);
        self.timer.as_mut().reset(Instant::now() + patience);
        let taken = (!request.body().is_end_stream()).then(|| request.body_mut().watch());
        // a budget would end with a call to the waker, which does nothing here
        let mut answer = pin!(unconstrained(self.sender.try_send_request(request)));
        let step = poll_fn(|cx| {
            let ended = Pin::new(&mut self.io).poll(cx).is_ready();
            if taken.as_ref().is_some_and(|taken| taken.swap(false, Relaxed)) {
                self.timer.as_mut().reset(Instant::now() + patience);
            }
            let answer = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            match answer {
                Poll::Ready(answer) => Poll::Ready((ended, Ok(Some(answer)))),
                Poll::Pending if ended => Poll::Ready((ended, Ok(None))),
                Poll::Pending => {
                    self.timer.as_mut().poll(cx).map(|()| (ended, Err(Error::Late(patience_s))))
                }
            }
        });
        let (ended, answered) = step.await;
        let connection = (!ended).then_some(self);
        let answered = match answered {
            Ok(Some(answered)) => answered,
            Ok(None) => answer.await, // the end of the connection hands the request back
            Err(late) => return (Outcome::Failed(late), None),
        };
        match answered {
            Ok(answer) => (Outcome::Answered(answer), connection),
            Err(mut error) => match error.take_message() {
                Some(request) => (Outcome::Unsent(request), None),
                None => {
                    let error = error.into_error();
                    let outcome = match () {
                        _ if error.is_user() => Outcome::Failed(Error::Upload(error)),
                        _ if is_end(&error) => Outcome::Lost(error),
                        _ => Outcome::Failed(Error::Senseless(error)),
                    };
                    (outcome, None)
                }
            },
        }
    }
}

impl Taken {
    /// Keeps the connection for the next request, if it has nothing left to do.
    fn put_back(mut self) {
        let connection = &mut self.connection;
        let mut cx = Context::from_waker(Waker::noop());
        if Pin::new(&mut connection.io).poll(&mut cx).is_pending() && connection.sender.is_ready() {
            connection.used = Instant::now();
            self.origin.idle().push(self.connection);
        }
    }

    /// Carries the connection on by itself until the request is sent and the answer taken.
    async fn finish(mut self) {
        let connection = &mut self.connection;
        let ended = poll_fn(|cx| {
            if Pin::new(&mut connection.io).poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            connection.sender.poll_ready(cx).map(|ready| ready.is_err())
        });
        if !ended.await {
            self.put_back();
        }
    }
}

/// The body of the origin's answer, which carries its connection on.
pub struct Download {
    body: Incoming,
    taken: Option<Taken>,
}

impl Download {
    fn new(body: Incoming, taken: Option<Taken>, uploads: bool) -> Self {
        let mut new = Self { body, taken };
        if !uploads {
            new.put_back_at_end();
        } else if let Some(taken) = new.taken.take() {
            // a client may take nothing of the answer before the origin took all of the request
            tokio::spawn(taken.finish());
        }
        new
    }

    fn put_back_at_end(&mut self) {
        if let Some(taken) = self.taken.take_if(|_| self.body.is_end_stream()) {
            taken.put_back();
        }
    }
}

impl Body for Download {
    type Data = Bytes;
    type Error = body::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, body::Error>>> {
        let this = &mut *self;
        let mut quiet = Context::from_waker(Waker::noop());
        let mut frame = Poll::Pending;
        if let Some(taken) = &mut this.taken {
            // what has arrived comes first; only then more is read
            frame = Pin::new(&mut this.body).poll_frame(&mut quiet);
            if frame.is_pending() && Pin::new(&mut taken.connection.io).poll(cx).is_ready() {
                this.taken = None;
            }
        }
        if frame.is_pending() {
            let cx = if this.taken.is_some() { &mut quiet } else { cx };
            frame = Pin::new(&mut this.body).poll_frame(cx);
        }
        let frame = ready!(frame);
        match (&frame, this.taken.take()) {
            (None, Some(taken)) => taken.put_back(),
            (Some(Ok(_)), taken) => {
                this.taken = taken;
                this.put_back_at_end();
            }
            _ => {} // a connection that failed is closed
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

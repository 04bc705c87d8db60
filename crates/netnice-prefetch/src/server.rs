// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The sockets of the proxy: listening, TLS, QUIC, HTTP/1.1, HTTP/2 and HTTP/3, the end.

mod quic;
mod room;

use std::convert::Infallible;
use std::future::{poll_fn, Future};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use netnice_manners::say;
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::futures::Notified;
use tokio::sync::{watch, Notify, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout, Instant};
use tokio_rustls::TlsAcceptor;

use crate::body::Inbound;
use crate::config::{self, seconds, Config, Wanted};
use crate::guard::{Guard, Refused};
use crate::head::Limits;
use crate::line::{Controls, Line, Mode, Stream, BACKGROUND_PATIENCE};
use crate::origin::Origin;
use crate::proxy::{Peer, Proxy, Setup};
use crate::store::Held;
use crate::tls::Secrets;
use crate::{store, tls};
use quic::{stopped, Stop};
pub use room::allow_files;

/// How often it is tried whether prefetches can go in the background, when they could not.
const PROBE_EVERY: Duration = Duration::from_secs(10);

/// How often it is said that no connection can be accepted.
const SAY_EVERY: Duration = Duration::from_secs(60);

/// How often idle connections to the origin are looked through.
const PRUNE_EVERY: Duration = Duration::from_secs(1);

/// How long a connection without an answer under way has at the end.
const LAST: Duration = Duration::from_secs(1);

/// Content that waits in memory for one HTTP/2 stream: little, since what waits of a prefetch goes in
/// the foreground after a switch.
const STREAM_BUFFER: usize = 64 * 1024;

/// The most headers that hyper takes by default: it needs not clear its table of them for each request
/// then.
const HYPERS_HEADERS: usize = 100;

/// Where prefetches can go by this configuration, now, and why not where it would rather have them.
pub fn find_mode(wanted: &config::Background) -> (Mode, Option<Controls>, Option<String>) {
    let port = wanted.port.map(Mode::Port);
    match wanted.mode {
        Wanted::Off => (Mode::Off, None, None),
        Wanted::Port => (port.unwrap_or(Mode::Off), None, None),
        Wanted::Auto | Wanted::Connection => match Controls::probe(&wanted.control) {
            Ok(controls) => (Mode::Connection, Some(controls), None),
            Err(why) => {
                let port = port.filter(|_| wanted.mode == Wanted::Auto);
                (port.unwrap_or(Mode::Off), None, Some(why))
            }
        },
    }
}

/// Where clients come from.
pub struct Listener {
    /// Over TCP.
    pub tcp: TcpListener,
    /// Over QUIC, if HTTP/3 is served there.
    pub udp: Option<UdpSocket>,
    /// Whether it is the second port, whose connections are in the background.
    pub second_port: bool,
}

/// What a connection needs from a configuration.
struct Front {
    tls: Option<Secrets>,
    controls: Option<Controls>,
}

/// The server: the proxy with what its connections need.
pub struct Server {
    /// The proxy.
    pub proxy: Arc<Proxy>,
    front: RwLock<Arc<Front>>,
    held: Mutex<Option<Held>>,
    /// Idle connections wait here, to be told that others need their place: the first is the one idle
    /// longest.
    crowded: Notify,
}

/// Checks a configuration and makes what depends on it.
///
/// # Errors
/// If a value is out of its range, or the certificate or key cannot be used.
pub fn prepare(config: Config) -> Result<(Setup, Option<Secrets>), config::Error> {
    config.check()?;
    let most = room::fit(config.bounds).origin_connections;
    let origin = Origin::new(&config.origin()?, most, config.timeouts);
    let tls = config.tls.as_ref().map(tls::read).transpose()?;
    Ok((Setup { config, origin }, tls))
}

impl Server {
    /// A server that answers by `proxy`.
    pub fn new(proxy: Proxy, tls: Option<Secrets>) -> Arc<Self> {
        let new = Self {
            proxy: Arc::new(proxy),
            front: RwLock::new(Arc::new(Front { tls, controls: None })),
            held: Mutex::default(),
            crowded: Notify::new(),
        };
        new.probe();
        Arc::new(new)
    }

    fn front(&self) -> Arc<Front> {
        self.front.read().expect("no panic while held").clone()
    }

    /// Keeps what keeps others from its model.
    pub fn hold(&self, held: Option<Held>) {
        *self.held.lock().expect("no panic while held") = held;
    }

    /// Finds where prefetches can go and says so if that changed.
    pub fn probe(&self) {
        let (mode, controls, why) = find_mode(&self.proxy.setup().config.background);
        let mut front = self.front.write().expect("no panic while held");
        *front = Arc::new(Front { tls: front.tls.clone(), controls });
        let first =
            self.proxy.metrics.text().lines().all(|l| !l.starts_with("netnice_prefetch_mode"));
        if mode != self.proxy.mode() || first {
            let told = match mode {
                Mode::Connection => {
                    "in the background of each connection, switched per response".into()
                }
                Mode::Port(port) => {
                    format!("to port {port}, which something else must keep in the background")
                }
                Mode::Off => "nowhere: nothing is suggested, and prefetches are refused".to_owned(),
            };
            let why = why.map_or(String::new(), |why| format!(" ({why})"));
            let config = &self.proxy.setup().config;
            let go = match config.http3() && config.background.may_switch() {
                true if mode != Mode::Connection => {
                    "over HTTP/3 go in the background of each connection; others go"
                }
                _ => "go",
            };
            say!("netnice-prefetch: prefetches {go} {told}{why}");
        }
        self.proxy.set_mode(mode);
    }

    /// Takes on a new configuration, but for what needs a restart, and says so. The model in memory
    /// stays; it is saved to the file that is named now.
    ///
    /// # Errors
    /// As [`prepare`]; the old configuration stays in force then.
    pub fn reload(&self, mut config: Config) -> Result<(), config::Error> {
        config.check()?;
        for key in config.keep_started(&self.proxy.setup().config) {
            say!("netnice-prefetch: {key} is as it was: a change needs a restart");
        }
        let moved = config.model != self.proxy.setup().config.model;
        let model = config.model.as_deref().filter(|_| moved);
        let held = model.map(store::hold).transpose()?;
        let (setup, tls) = prepare(config)?;
        self.proxy.reload(setup);
        if moved {
            self.hold(held);
        }
        let controls = self.front().controls.clone();
        *self.front.write().expect("no panic while held") = Arc::new(Front { tls, controls });
        self.probe();
        Ok(())
    }

    /// Keeps the model saved and the mode true.
    pub async fn maintain(self: Arc<Self>) {
        let (mut probed, mut saved) = (Instant::now(), Instant::now());
        loop {
            sleep(PRUNE_EVERY).await;
            self.proxy.setup().origin.prune();
            if probed.elapsed() >= PROBE_EVERY {
                probed = Instant::now();
                let this = self.clone();
                // reading /proc and the like may block
                let _ = tokio::task::spawn_blocking(move || this.probe()).await;
                self.proxy.metrics.set_model(self.proxy.predictor().size());
            }
            if saved.elapsed() >= seconds(self.proxy.setup().config.save_every_s) {
                saved = Instant::now();
                if let Err(error) = self.save().await {
                    say!("netnice-prefetch: {error}");
                }
            }
        }
    }

    /// Saves the model, if the configuration names a file.
    ///
    /// # Errors
    /// As [`store::write`].
    pub async fn save(&self) -> io::Result<()> {
        let Some(path) = self.proxy.setup().config.model.clone() else { return Ok(()) };
        let encoded = store::encode(&self.proxy.predictor());
        let saved = tokio::task::spawn_blocking(move || {
            let encoded = encoded.map_err(io::Error::other)?;
            store::write(&encoded, &path).map_err(io::Error::other)
        });
        saved.await?
    }

    /// Serves until `stop` becomes true, then finishes what is under way. (A box is compiled here, not
    /// again in each program that waits for it.)
    ///
    /// # Errors
    /// If a listening socket fails for good.
    pub fn run(
        self: Arc<Self>,
        listeners: Vec<Listener>,
        stop: watch::Receiver<bool>,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + Send>> {
        Box::pin(self.run_all(listeners, stop))
    }

    async fn run_all(
        self: Arc<Self>,
        listeners: Vec<Listener>,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let bounds = room::fit(self.proxy.setup().config.bounds);
        let room = Arc::new(Semaphore::new(bounds.connections));
        let graceful = Arc::new(GracefulShutdown::new());
        let mut tasks = JoinSet::new();
        let mut quic = JoinSet::new();
        for Listener { tcp: listener, udp, second_port } in listeners {
            let (this, room, graceful) = (self.clone(), room.clone(), graceful.clone());
            if let Some(udp) = udp {
                let endpoint = self.endpoint(udp)?;
                quic.spawn(self.clone().accept_quic(endpoint, room.clone(), stop.clone()));
            }
            let stop = stop.clone();
            tasks.spawn(async move {
                tokio::select! {
                    result = this.accept(listener, second_port, room, &graceful, &stop) => result,
                    () = stopped(stop.clone()) => Ok(()),
                }
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(io::Error::other)??;
        }
        let patience = seconds(self.proxy.setup().config.timeouts.shutdown_s);
        let ended = async {
            if let Some(graceful) = Arc::into_inner(graceful) {
                graceful.shutdown().await;
            }
            quic.join_all().await;
        };
        if timeout(patience, ended).await.is_err() {
            say!("netnice-prefetch: answers were still under way after {patience:?}; cut off");
        }
        Ok(())
    }

    /// The next connection. If none can be accepted, it tries again now and then, and says so once in
    /// a while; `said` is when it last did. A client has left, or there are no descriptors: then one
    /// that is idle gives its own.
    pub async fn accepted(
        &self,
        listener: &TcpListener,
        said: &mut Option<Instant>,
    ) -> (TcpStream, SocketAddr) {
        loop {
            let error = match listener.accept().await {
                Ok(accepted) => return accepted,
                Err(error) => error,
            };
            if let Some(Errno::MFILE | Errno::NFILE) = Errno::from_io_error(&error) {
                self.crowded.notify_one();
            }
            if said.is_none_or(|said| said.elapsed() > SAY_EVERY) {
                say!("netnice-prefetch: accepting a connection failed: {error}; trying again");
                *said = Some(Instant::now());
            }
            sleep(Duration::from_millis(100)).await;
        }
    }

    async fn accept(
        self: &Arc<Self>,
        listener: TcpListener,
        second_port: bool,
        room: Arc<Semaphore>,
        graceful: &GracefulShutdown,
        stop: &Stop,
    ) -> io::Result<()> {
        let mut said = None;
        loop {
            let (socket, from) = self.accepted(&listener, &mut said).await;
            let place = match room.clone().try_acquire_owned() {
                Ok(place) => place,
                Err(_) => {
                    self.crowded.notify_one();
                    room.clone().acquire_owned().await.map_err(io::Error::other)?
                }
            };
            let (this, ends) = (self.clone(), (graceful.watcher(), stop.clone()));
            tokio::spawn(async move {
                this.proxy.metrics.connections.inc();
                this.serve(socket, from, second_port, ends).await;
                this.proxy.metrics.connections.dec();
                drop(place);
            });
        }
    }

    async fn serve(
        &self,
        socket: TcpStream,
        from: SocketAddr,
        second_port: bool,
        ends: (Watcher, Stop),
    ) {
        let front = self.front();
        let timeouts = self.proxy.setup().config.timeouts;
        let patience = match second_port {
            true => BACKGROUND_PATIENCE,
            false => seconds(timeouts.body_s),
        };
        let socket = Arc::new(socket);
        let line = socket
            .set_nodelay(true)
            .and_then(|()| Line::new(socket.clone(), front.controls.clone(), patience));
        let Ok(line) = line else { return }; // reset already
        let address = from.ip().to_canonical();
        let peer = Arc::new(Peer {
            address,
            name: address.to_string(),
            secure: front.tls.is_some(),
            second_port,
            line,
        });
        let stream = Stream(socket);
        let Some(tls) = &front.tls else {
            return self.speak(stream, peer, false, ends).await;
        };
        let handshake = TlsAcceptor::from(tls.tcp.clone()).accept(stream);
        let handshake = timeout(seconds(timeouts.idle_s), handshake);
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = self.crowded.notified() => return,
            () = stopped(ends.1.clone()) => return,
        };
        if let Ok(Ok(stream)) = shaken {
            let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            self.speak(stream, peer, h2, ends).await;
        }
    }

    async fn speak<S>(&self, stream: S, peer: Arc<Peer>, h2: bool, (watcher, stop): (Watcher, Stop))
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let config = &self.proxy.setup().config;
        let (bounds, patience) = (config.bounds, seconds(config.timeouts.idle_s));
        // on HTTP/1.1 the kernel finds who takes nothing
        let taking = h2.then(|| seconds(config.timeouts.body_s));
        let (proxy, line) = (self.proxy.clone(), peer.line.clone());
        if h2 {
            let service = service_fn(move |request| {
                let (proxy, peer) = (proxy.clone(), peer.clone());
                async move { Ok::<_, Infallible>(proxy.answer(peer, request.map(Inbound::Hyper)).await) }
            });
            let stream = TokioIo::new(stream);
            let connection = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .max_concurrent_streams(bounds.streams)
                .max_send_buf_size(STREAM_BUFFER)
                .max_header_list_size(u32::try_from(bounds.header_bytes).unwrap_or(u32::MAX))
                .keep_alive_interval(Some(patience))
                .keep_alive_timeout(BACKGROUND_PATIENCE) // before, the kernel finds who is gone
                .serve_connection(stream, service);
            self.until_idle(watcher.watch(connection), &line, (patience, taking), &stop).await;
        } else {
            let refused = Arc::new(Refused::default());
            let limits = Limits { bytes: bounds.header_bytes, headers: bounds.headers };
            let stream = TokioIo::new(Guard::new(stream, limits, refused.clone()));
            let service = service_fn(move |request| {
                let (proxy, peer) = (proxy.clone(), peer.clone());
                let refusal = refused.next().cloned();
                async move {
                    Ok::<_, Infallible>(match refusal {
                        Some(refusal) => proxy.refuse(peer, refusal),
                        None => proxy.answer(peer, request.map(Inbound::Hyper)).await,
                    })
                }
            });
            let mut builder = http1::Builder::new();
            // the head of a request has the time of an idle connection; a client that has said all
            // may still listen
            builder.header_read_timeout(None).half_close(true).max_buf_size(bounds.header_bytes);
            if bounds.headers > HYPERS_HEADERS {
                builder.max_headers(bounds.headers);
            }
            let connection = builder.serve_connection(stream, service);
            self.until_idle(watcher.watch(connection), &line, (patience, taking), &stop).await;
        }
    }

    /// Carries a connection on until it ends or had nothing to do for so long, or for [`LAST`] at the
    /// end, or while others need its place and it has nothing to do, or its client takes none of its
    /// answers for so long.
    async fn until_idle(
        &self,
        connection: impl Future,
        line: &Line,
        (patience, taking): (Duration, Option<Duration>),
        stop: &Stop,
    ) {
        let origin = self.proxy.setup().origin.clone();
        let mut connection = pin!(connection);
        let mut called = pin!(None);
        let mut called_for_origin = pin!(None);
        // one for all requests: when it ends, it is found out how long it should have been
        let mut timer = pin!(sleep(patience));
        let mut stopped_at = None;
        poll_fn(|cx| {
            // a failed connection concerns its client alone, who knows
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            // whatever ends the connection in good order at the end has woken this, too
            if stopped_at.is_none() && stop.has_changed().unwrap_or(true) {
                let now = Instant::now();
                stopped_at = Some(now);
                timer.as_mut().reset(now + LAST);
            }
            let (idle_until, patience) = match stopped_at {
                None => (line.idle_until(patience), patience),
                Some(at) => (line.idle_since().map(|since| at.max(since) + LAST), LAST),
            };
            let untaken_until = match (idle_until, taking) {
                (None, Some(taking)) => line.untaken_until(taking),
                _ => None,
            };
            while timer.as_mut().poll(cx).is_ready() {
                let now = Instant::now();
                if idle_until.is_some_and(|end| end <= now) {
                    return Poll::Ready(());
                }
                let end = idle_until.or(untaken_until.filter(|end| *end > now));
                timer.as_mut().reset(end.unwrap_or(now + patience));
            }
            let untaken = untaken_until.is_some_and(|end| end <= Instant::now());
            if idle_until.is_none() && !untaken {
                called.set(None);
            } else if called.is_none() {
                called.set(Some(self.crowded.notified()));
            }
            if !untaken {
                called_for_origin.set(None);
            } else if called_for_origin.is_none() {
                called_for_origin.set(Some(origin.crowded.notified()));
            }
            let is_called = |called: Option<Pin<&mut Notified<'_>>>, cx: &mut Context<'_>| {
                called.is_some_and(|called| called.poll(cx).is_ready())
            };
            if is_called(called.as_mut().as_pin_mut(), cx)
                || is_called(called_for_origin.as_mut().as_pin_mut(), cx)
            {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
    }
}

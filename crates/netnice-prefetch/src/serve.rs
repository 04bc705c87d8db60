// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-prefetch serve`.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{bail, Context, Result};
use clap::Args;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use netnice_manners::{output, say, show};
use netnice_prefetch::config::{self, Config, Tls};
use netnice_prefetch::predict::Predictor;
use netnice_prefetch::proxy::Proxy;
use netnice_prefetch::server::{self, Listener, Server};
use netnice_prefetch::store;
use netnice_prefetch::trust::Prefix;
use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpSocket};
use tokio::signal::unix::{signal, Signal, SignalKind};
use tokio::sync::watch;

/// Serves a web site through the proxy.
///
/// It passes requests to the origin and learns which pages follow which. It adds `Link: <...>;
/// rel=prefetch` to pages, and answers prefetches in the background. For that it needs `netnice enable
/// --allow-all`, or CAP_NET_ADMIN after `netnice enable`; it says at the start, and in the metrics,
/// whether it can. Options overrule the configuration file.
///
/// SIGHUP reads the configuration and certificates again, reopens the access log, and says which changes
/// need a restart. SIGTERM and SIGINT finish the answers under way and save the model.
#[derive(Args)]
#[command(before_help = "Examples:\n  \
                         netnice-prefetch serve --origin http://127.0.0.1:8080 --listen 0.0.0.0:80\n  \
                         netnice-prefetch serve --config /etc/netnice/prefetch.toml")]
pub struct Arguments {
    /// Configuration file in TOML; docs/prefetch.md has its keys.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The web server behind the proxy [default: http://127.0.0.1:8080].
    #[arg(long, value_name = "http://HOST:PORT")]
    origin: Option<String>,
    /// Address and port to listen on; may be repeated. Port 0 takes a free one.
    ///
    /// :PORT, like [::]:PORT, means all addresses: IPv6 and IPv4, or IPv4 alone where the kernel has no
    /// IPv6. 0.0.0.0:PORT means those of IPv4.
    #[arg(long, value_name = "[IP]:PORT", value_parser = config::address)]
    listen: Vec<SocketAddr>,
    /// Address and port to serve /metrics and /healthz on [default: they are not served].
    #[arg(long, value_name = "IP:PORT")]
    admin: Option<SocketAddr>,
    /// Certificate chain in PEM, for HTTPS with HTTP/2 [default: HTTP].
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its private key in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Serve HTTP/3 too, on the same ports of UDP; there, prefetches go in the background without
    /// `netnice enable`.
    #[arg(long)]
    http3: bool,
    /// Another proxy in front of this one, whose X-Forwarded-For and X-Forwarded-Proto are believed;
    /// may be repeated.
    #[arg(long, value_name = "IP[/BITS]")]
    trust: Vec<Prefix>,
    /// The file of the model: loaded if it exists, and saved [default: the model is not kept].
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Access log in the combined format; "-" is standard output [default: none].
    #[arg(long, value_name = "FILE")]
    access_log: Option<PathBuf>,
}

impl Arguments {
    fn config(&self) -> Result<Config> {
        let mut config = match &self.config {
            Some(path) => Config::read(path)?,
            None => Config::default(),
        };
        if let Some(origin) = &self.origin {
            config.origin.clone_from(origin);
        }
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
        }
        if !self.trust.is_empty() {
            config.trust.clone_from(&self.trust);
        }
        if let (Some(cert), Some(key)) = (self.cert.clone(), self.key.clone()) {
            config.tls = Some(Tls { cert, key, http3: config.http3() });
        }
        if self.http3 {
            let tls = config.tls.as_mut().ok_or_else(|| {
                let what = "--http3 needs a certificate: give --cert and --key";
                config::Error::option(what.into())
            })?;
            tls.http3 = true;
        }
        config.admin = self.admin.or(config.admin);
        config.model = self.model.clone().or(config.model);
        config.access_log = self.access_log.clone().or(config.access_log);
        Ok(config)
    }
}

/// Checks that the model could be saved.
fn check_folder(config: &Config) -> Result<()> {
    let folder = config.model.as_ref().and_then(|path| path.parent());
    if let Some(folder) = folder.filter(|f| !f.as_os_str().is_empty() && !f.is_dir()) {
        bail!("the model cannot be saved: there is no directory {}; make it", folder.display());
    }
    Ok(())
}

/// The saved model, which must fit the configuration, or a new one.
fn predictor(config: &Config) -> Result<Predictor> {
    let Some(path) = config.model.as_ref().filter(|path| path.exists()) else {
        return Ok(Predictor::new(config.learning));
    };
    let mut predictor = store::load(path)?;
    let (has, wants) = (predictor.settings(), config.learning);
    anyhow::ensure!(
        (has.n, has.w) == (wants.n, wants.w),
        "the model {} was learned with n = {}, w = {}, but [learning] says n = {}, w = {}; \
         set them alike, or learn again with --anew",
        path.display(),
        has.n,
        has.w,
        wants.n,
        wants.w
    );
    predictor.set_bounds(wants);
    Ok(predictor)
}

/// Listens. As many connections may wait to be accepted as the system allows (`net.core.somaxconn`):
/// one for which there is no room is tried again by its client, later and later. `[::]` takes IPv4 too,
/// whatever the system says of it, and alone where there is no IPv6.
fn bind(address: SocketAddr) -> Result<TcpListener> {
    let all = address.ip() == Ipv6Addr::UNSPECIFIED;
    let address = match TcpSocket::new_v6() {
        Err(_) if all => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port()),
        _ => address,
    };
    let listen = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        if all && address.is_ipv6() {
            SockRef::from(&socket).set_only_v6(false)?;
        }
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(i32::MAX as u32)
    };
    let listener = listen()
        .with_context(|| format!("cannot listen on {address}; is the port taken or privileged?"))?;
    let _ = show!("listening {}", listener.local_addr()?); // it serves without a reader, too
    Ok(listener)
}

/// Takes the same address for QUIC.
fn bind_quic(beside: &TcpListener) -> Result<UdpSocket> {
    let address = beside.local_addr()?;
    let socket = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
        if address.is_ipv6() {
            socket.set_only_v6(SockRef::from(beside).only_v6()?)?;
        }
        socket.bind(&address.into())?;
        Ok::<_, std::io::Error>(socket.into())
    };
    socket().with_context(|| {
        format!(
            "cannot receive datagrams on {address} for HTTP/3; `ss -lunp` shows who does: end that, \
             choose another port, or leave http3 out"
        )
    })
}

fn listeners(config: &Config) -> Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for address in &config.listen {
        let tcp = bind(*address)?;
        let udp = if config.http3() { Some(bind_quic(&tcp)?) } else { None };
        listeners.push(Listener { tcp, udp, second_port: false });
        if let Some(port) = config.background.port {
            let tcp = bind(SocketAddr::new(address.ip(), port))?;
            listeners.push(Listener { tcp, udp: None, second_port: true });
        }
    }
    Ok(listeners)
}

async fn administer(listener: TcpListener, server: Arc<Server>) {
    let mut said = None;
    loop {
        let (socket, _) = server.accepted(&listener, &mut said).await;
        let server = server.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let (status, text) = match request.uri().path() {
                "/metrics" => (StatusCode::OK, server.proxy.metrics.text()),
                "/healthz" => (StatusCode::OK, "ok\n".into()),
                _ => (StatusCode::NOT_FOUND, "Here are /metrics and /healthz.\n".into()),
            };
            let mut response = Response::new(Full::new(Bytes::from(text)));
            *response.status_mut() = status;
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(socket), service);
        tokio::spawn(async move { connection.await.ok() });
    }
}

/// The signals that it obeys, from when this is made: before, they end it.
struct Signals {
    hup: Signal,
    term: Signal,
    int: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let [hup, term, int] =
            [SignalKind::hangup(), SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        Ok(Self { hup: hup?, term: term?, int: int? })
    }
}

async fn watch_signals(
    Signals { mut hup, mut term, mut int }: Signals,
    arguments: &Arguments,
    server: &Server,
    stop: &watch::Sender<bool>,
) {
    loop {
        tokio::select! {
            _ = hup.recv() => {
                let reloaded = arguments.config().and_then(|c| Ok(server.reload(c)?));
                match reloaded {
                    Ok(()) => say!("netnice-prefetch: configuration read again"),
                    Err(error) => say!("netnice-prefetch: {error:#}; the old configuration stays in force"),
                }
            }
            _ = term.recv() => break,
            _ = int.recv() => break,
        }
    }
    stop.send_replace(true);
}

async fn serve(arguments: &Arguments) -> Result<()> {
    let config = arguments.config()?;
    config.check()?;
    server::allow_files(&config.bounds);
    let (setup, tls) = server::prepare(config)?;
    check_folder(&setup.config)?;
    let held = setup.config.model.as_deref().map(store::hold).transpose()?;
    let predictor = predictor(&setup.config)?;
    let log = setup.config.access_log.clone().unwrap_or_default();
    let proxy = Proxy::new(setup, predictor)
        .with_context(|| format!("cannot open the access log {}", log.display()))?;
    let config = &proxy.setup().config;
    let signals = Signals::new()?; // before it tells that it listens
    let listeners = listeners(config)?;
    let admin = match config.admin {
        Some(address) => Some(bind(address)?),
        None => None,
    };
    let server = Server::new(proxy, tls);
    server.hold(held);
    let (stop, stopped) = watch::channel(false);
    let _working = output::working();
    if let Some(listener) = admin {
        tokio::spawn(administer(listener, server.clone()));
    }
    tokio::spawn(server.clone().maintain());
    let (served, ()) = tokio::join!(
        server.clone().run(listeners, stopped),
        watch_signals(signals, arguments, &server, &stop)
    );
    let saved = server.save().await;
    server.hold(None);
    server.proxy.flush();
    Ok(served.and(saved)?)
}

/// Serves until SIGTERM or SIGINT.
pub fn main(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(arguments))
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the traffic modes share: time line, stopping, congestion control, transfers.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;
use tokio::task::coop::consume_budget;
use tokio::time::{sleep_until, timeout, Instant};

use crate::Error;
use netnice_scenario::pattern::{self, Checker};

/// A time origin further ahead than this, in seconds, is a mistake.
const FARTHEST_EPOCH_S: f64 = 3600.0;

/// The time line of a scenario: t = 0 at an agreed moment, in seconds.
///
/// It is tied to the wall clock once and then follows the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Timeline {
    base: Instant,
    base_s: f64,
}

impl Timeline {
    /// A time line with t = 0 at `epoch` (Unix seconds), or now.
    ///
    /// # Errors
    /// [`Error::Epoch`] if `epoch` is more than an hour ahead.
    pub fn new(epoch: Option<f64>) -> Result<Self, Error> {
        let (base, unix_s) = moment();
        match epoch.map(|epoch| (epoch, unix_s - epoch)) {
            None => Ok(Self { base, base_s: 0.0 }),
            Some((epoch, base_s)) if base_s < -FARTHEST_EPOCH_S => {
                Err(Error::Epoch { epoch, ahead_s: -base_s })
            }
            Some((_, base_s)) => Ok(Self { base, base_s }),
        }
    }

    /// Seconds since t = 0 at `instant`.
    pub fn seconds(&self, instant: Instant) -> f64 {
        self.base_s + seconds_between(self.base, instant)
    }

    /// Seconds since t = 0; negative before.
    pub fn now_s(&self) -> f64 {
        self.seconds(Instant::now())
    }

    /// The moment of `t_s` seconds; the making of the time line if that was later.
    pub fn at(&self, t_s: f64) -> Instant {
        self.base + Duration::from_secs_f64((t_s - self.base_s).max(0.0))
    }
}

/// A moment on the monotonic clock and in Unix seconds.
///
/// The process may be put aside between readings of the clocks, so the closest of several counts.
fn moment() -> (Instant, f64) {
    let reading = || {
        let before = Instant::now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        (before.elapsed(), before, unix.unwrap_or_default())
    };
    let (_, before, unix) = [(); 5]
        .map(|()| reading())
        .into_iter()
        .min_by_key(|&(apart, ..)| apart)
        .expect("there are five readings");
    (before, unix.as_secs_f64())
}

/// Seconds from one moment to another; negative if the other was earlier.
pub fn seconds_between(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
        - from.saturating_duration_since(to).as_secs_f64()
}

/// Tells tasks that they are to stop.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Stops when `true` is sent; never, once the sender is gone.
    pub fn new() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Stops at SIGTERM or SIGINT.
    ///
    /// # Errors
    /// If the signals cannot be caught.
    pub fn at_signal() -> io::Result<Self> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let (sender, stop) = Self::new();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            // Nobody listens any more when the run is over.
            let _ = sender.send(true);
        });
        Ok(stop)
    }

    /// Waits until it is time to stop.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|&stop| stop).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until it is time to stop, at `deadline` at the latest.
    pub async fn wait_until(&mut self, deadline: Option<Instant>) {
        match deadline {
            None => self.wait().await,
            Some(deadline) => {
                tokio::select! {
                    () = self.wait() => {}
                    () = sleep_until(deadline) => {}
                }
            }
        }
    }
}

/// Allows as many open files as the system permits, since each flow takes one.
///
/// # Errors
/// If the limit cannot be read or raised.
pub fn raise_file_limit() -> io::Result<()> {
    rlimit::increase_nofile_limit(u64::MAX).map(drop)
}

/// Fails unless this process may use the congestion control `name` here.
///
/// # Errors
/// [`Error::Control`] with what is available.
pub fn check_control(name: &str, for_address: SocketAddr) -> Result<(), Error> {
    tcp_socket(for_address)
        .and_then(|socket| set_control(&socket, Some(name)))
        .map_err(|reason| control_error(name, reason))
}

fn control_error(name: &str, reason: io::Error) -> Error {
    let list = |which: &str| {
        fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}_congestion_control"))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let next = if reason.kind() == io::ErrorKind::PermissionDenied {
        format!(
            "Without root only these are allowed: {}. Run with sudo, or allow all with `sudo netnice enable --allow-all`.",
            list("allowed")
        )
    } else {
        format!(
            "Available in /proc/sys/net/ipv4/tcp_available_congestion_control: {}. \
             Register an nn_ control with `sudo netnice enable`, load one of the kernel's with `sudo modprobe tcp_NAME`.",
            list("available")
        )
    };
    Error::Control { name: name.into(), reason, next }
}

fn set_control(socket: &TcpSocket, control: Option<&str>) -> io::Result<()> {
    control.map_or(Ok(()), |name| SockRef::from(socket).set_tcp_congestion(name.as_bytes()))
}

/// The congestion control that a connection really has, which a cgroup may have chosen.
pub fn control_of(stream: &TcpStream) -> Option<String> {
    let name = SockRef::from(stream).tcp_congestion().ok()?;
    let end = name.iter().position(|&c| c == 0).unwrap_or(name.len());
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}

fn tcp_socket(for_address: SocketAddr) -> io::Result<TcpSocket> {
    match for_address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

/// Listens for TCP connections, which inherit the congestion control.
///
/// # Errors
/// [`Error::Control`] if the control cannot be set, [`Error::Network`] if the address cannot be used.
pub fn listen(address: SocketAddr, control: Option<&str>) -> Result<TcpListener, Error> {
    if let Some(name) = control {
        check_control(name, address)?;
    }
    tcp_socket(address)
        .and_then(|socket| {
            set_control(&socket, control)?;
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(4096)
        })
        .map_err(|reason| Error::Network {
            what: format!("Cannot listen on {address}"),
            reason,
            next: "Choose an address of this host and a free port (`ss -ltn` lists those in use).",
        })
}

/// Accepts the next connection; those that failed before they were accepted do not count.
///
/// # Errors
/// [`Error::Network`] if the system is out of files or memory.
pub async fn accept(listener: &TcpListener) -> Result<(TcpStream, SocketAddr), Error> {
    loop {
        match listener.accept().await {
            Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
            result => {
                return result.map_err(|reason| Error::Network {
                    what: "Cannot accept a connection".into(),
                    reason,
                    next: "If files ran out, raise the limit with `ulimit -n`.",
                })
            }
        }
    }
}

/// Connects with the given congestion control, within `limit` if there is one.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::TimedOut`] at the limit.
pub async fn connect(
    address: SocketAddr,
    control: Option<&str>,
    limit: Option<Duration>,
) -> io::Result<TcpStream> {
    let socket = tcp_socket(address)?;
    set_control(&socket, control)?;
    match limit {
        None => socket.connect(address).await,
        Some(limit) => timeout(limit, socket.connect(address)).await.unwrap_or_else(|_| {
            let what = format!("no connection within {} s", limit.as_secs_f64());
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        }),
    }
}

/// Makes the coming close of a connection abortive: what is unsent is discarded.
///
/// # Errors
/// Those of the system.
pub fn abort_on_close(stream: &TcpStream) -> io::Result<()> {
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// Bytes per write; what a full socket does not take is made again, so not too large.
const WRITE_BYTES: usize = 16 * 1024;
/// Bytes per read.
const READ_BYTES: usize = 64 * 1024;

thread_local! {
    /// Shared by all flows of the thread, since none keeps it while it waits.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// Writes `length` bytes (endlessly if `None`) of the content with `seed`, counting in `written`.
///
/// # Errors
/// Those of the system.
pub async fn write_pattern(
    stream: &TcpStream,
    seed: u64,
    length: Option<u64>,
    written: &mut u64,
) -> io::Result<()> {
    loop {
        let left = length.map_or(u64::MAX, |length| length - *written);
        if left == 0 {
            return Ok(());
        }
        // A socket that is always ready must not keep the thread from the other flows.
        consume_budget().await;
        stream.ready(Interest::WRITABLE).await?;
        let result = SCRATCH.with_borrow_mut(|scratch| {
            let out = &mut scratch[..(left.min(WRITE_BYTES as u64)) as usize];
            pattern::fill(seed, *written, out);
            stream.try_write(out)
        });
        match result {
            Ok(count) => *written += count as u64,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(e) => return Err(e),
        }
    }
}

/// Reads what has arrived, waiting for at least one byte, and checks it. Returns the moment after
/// the read and the number of bytes; 0 at the end of the stream.
///
/// # Errors
/// Those of the system.
pub async fn read_pattern(
    stream: &TcpStream,
    checker: &mut Checker,
) -> io::Result<(Instant, usize)> {
    loop {
        consume_budget().await;
        stream.ready(Interest::READABLE).await?;
        let result: io::Result<_> = SCRATCH.with_borrow_mut(|scratch| {
            let count = stream.try_read(scratch)?;
            let now = Instant::now();
            checker.take(&scratch[..count]);
            Ok((now, count))
        });
        match result {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix_s() -> f64 {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
    }

    #[test]
    fn without_an_epoch_time_begins_now() {
        let line = Timeline::new(None).unwrap();
        assert_eq!(line.seconds(line.at(0.0)), 0.0);
        assert_eq!(line.seconds(line.at(2.5)), 2.5);
    }

    #[test]
    fn time_before_the_epoch_is_negative_and_past_moments_are_not_waited_for() {
        let line = Timeline::new(Some(unix_s() + 1000.0)).unwrap();
        assert!(line.now_s() < 0.0);
        assert!(line.at(0.0) > Instant::now());
        let line = Timeline::new(Some(unix_s() - 1000.0)).unwrap();
        assert!(line.now_s() >= 1000.0);
        assert!(line.at(5.0) <= Instant::now());
    }

    #[test]
    fn two_time_lines_with_one_epoch_agree() {
        let epoch = unix_s() + 10.0;
        let before = Instant::now();
        let [a, b] = [(); 2].map(|()| Timeline::new(Some(epoch)).unwrap());
        let making_s = seconds_between(before, Instant::now());
        assert!(seconds_between(a.at(20.0), b.at(20.0)).abs() <= making_s + 1e-6);
    }

    #[test]
    fn an_epoch_far_ahead_is_an_error() {
        let said = Timeline::new(Some(unix_s() + 1e6)).unwrap_err().to_string();
        assert!(said.contains("--epoch"), "{said}");
    }

    #[tokio::test]
    async fn an_unknown_control_is_an_error_that_lists_those_available() {
        let address = "127.0.0.1:0".parse().unwrap();
        let said = check_control("nosuch", address).unwrap_err().to_string();
        assert!(said.contains("`nosuch`") && said.contains("cubic"), "{said}");
        assert!(said.contains("tcp_available_congestion_control"), "{said}");
    }
}

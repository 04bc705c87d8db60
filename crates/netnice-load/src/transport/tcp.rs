// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! TCP: congestion control, connections, transfers.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::coop::consume_budget;
use tokio::time::Instant;

use crate::Error;
use netnice_scenario::pattern::{self, Checker};

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

/// Connects with the given congestion control.
///
/// # Errors
/// Those of the system.
pub async fn connect(address: SocketAddr, control: Option<&str>) -> io::Result<TcpStream> {
    let socket = tcp_socket(address)?;
    set_control(&socket, control)?;
    socket.connect(address).await
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

    #[tokio::test]
    async fn an_unknown_control_is_an_error_that_lists_those_available() {
        let address = "127.0.0.1:0".parse().unwrap();
        let said = check_control("nosuch", address).unwrap_err().to_string();
        assert!(said.contains("`nosuch`") && said.contains("cubic"), "{said}");
        assert!(said.contains("tcp_available_congestion_control"), "{said}");
    }
}

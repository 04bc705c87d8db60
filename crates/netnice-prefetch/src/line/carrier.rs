// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What carries a connection's bytes, and how it is put into the background: TCP by the kernel, which
//! must have a control for that, QUIC by this process, which always may.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use netnice_quinn::Switch;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use socket2::SockRef;
use tokio::net::TcpStream;

/// Bytes that the kernel holds unsent for a background answer: as much as may still leave in the
/// foreground after a switch.
const BACKGROUND_UNSENT: u32 = 64 * 1024;

/// How long a client in the background may take nothing, or ask for nothing. There the reason may be
/// ours: what waits for the traffic of others is acknowledged late, and the kernel still sends when
/// the answer has ended here, so closing would cross with the client's next request.
pub const BACKGROUND_PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The two congestion controls of a switched connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Controls {
    /// The system's default.
    pub foreground: Vec<u8>,
    /// The background's.
    pub background: Vec<u8>,
}

impl Controls {
    /// The system's control and the named one, if this process may set both.
    ///
    /// # Errors
    /// A sentence with the reason and the next step.
    pub fn probe(background: &str) -> Result<Self, String> {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .map_err(|e| format!("no socket can be opened: {e}"))?;
        let foreground = socket.tcp_congestion().map_err(|e| format!("TCP_CONGESTION: {e}"))?;
        let foreground: Vec<u8> = foreground.into_iter().take_while(|b| *b != 0).collect();
        let new = Self { foreground, background: background.as_bytes().to_vec() };
        for control in [&new.background, &new.foreground] {
            socket.set_tcp_congestion(control).map_err(|e| refusal(background, &e))?;
        }
        Ok(new)
    }
}

fn refusal(control: &str, error: &io::Error) -> String {
    let next = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "this process may not choose it: sudo netnice enable --allow-all, or CAP_NET_ADMIN"
        }
        io::ErrorKind::NotFound => "the kernel does not have it: sudo netnice enable",
        _ => "the kernel refused it",
    };
    format!("{control}: {error}; {next}")
}

/// What carries a connection.
#[derive(Debug)]
pub enum Carrier {
    /// A socket of TCP, which can be switched if there are controls. It ends when its client takes
    /// nothing for so long, whatever that says; in the background for [`BACKGROUND_PATIENCE`].
    Tcp(Arc<TcpStream>, Option<Controls>, Duration),
    /// A connection of QUIC, which is moved by that.
    Quic(Switch),
}

impl Carrier {
    /// Whether it can be switched.
    pub fn can_yield(&self) -> bool {
        !matches!(self, Self::Tcp(_, None, _))
    }

    /// Whether the kernel has sent all, and much of it has arrived: with this bound it calls a socket
    /// writable only then. Who writes meanwhile is woken by the second change. (On QUIC an answer's
    /// turn ends when all of it was acknowledged.)
    pub fn all_sent(&self) -> io::Result<bool> {
        let Self::Tcp(socket, ..) = self else { return Ok(true) };
        let bound = SockRef::from(&**socket);
        bound.set_tcp_notsent_lowat(1)?;
        let mut polled = [PollFd::new(&**socket, PollFlags::OUT)];
        let ready = poll(&mut polled, Some(&Timespec::default()));
        bound.set_tcp_notsent_lowat(0)?; // the system's
        Ok(ready? > 0)
    }

    /// Moves the connection.
    pub fn switch(&self, to_background: bool) -> io::Result<()> {
        let (socket, controls, patience) = match self {
            Self::Tcp(socket, controls, patience) => (socket, controls, *patience),
            Self::Quic(switch) => {
                match to_background {
                    true => switch.to_background(),
                    false => switch.to_foreground(),
                }
                return Ok(());
            }
        };
        let controls = controls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let socket = SockRef::from(&**socket);
        let (control, unsent, patience) = match to_background {
            true => (&controls.background, BACKGROUND_UNSENT, BACKGROUND_PATIENCE),
            false => (&controls.foreground, 0, patience), // 0: the system's bound
        };
        socket.set_tcp_congestion(control)?;
        socket.set_tcp_notsent_lowat(unsent)?;
        socket.set_tcp_user_timeout(Some(patience))
    }
}

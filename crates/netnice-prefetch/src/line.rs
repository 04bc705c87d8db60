// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One client's connection, switched between foreground and background for each response: the
//! paper's wish for later (TCP Nice, section 6.1).
//!
//! While an answer to a demand request is under way, the connection has the system's congestion
//! control; while it carries nothing but prefetches, it has the background's. On HTTP/1.1, where
//! answers follow each other, that is a switch before each response. On HTTP/2 the prefetches wait
//! while demand answers are under way: urgency 7 of RFC 9218 against the rest.
//!
//! A demand answer is under way until all of it was written to the connection, and the kernel has
//! sent what it held: what follows it would otherwise take its tail along into the background.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{ready, Context, Poll, Waker};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{sleep, Instant, Sleep};

/// Bytes that the kernel holds unsent for a background answer: as much as may still leave in the
/// foreground after a switch.
const BACKGROUND_UNSENT: u32 = 64 * 1024;

/// How often it is looked whether the kernel has sent the end of a demand answer.
const SENT_YET: Duration = Duration::from_millis(10);

/// How long a client in the background may take nothing, or ask for nothing. There the reason may be
/// ours: what waits for the traffic of others is acknowledged late, and the kernel still sends when
/// the answer has ended here, so closing would cross with the client's next request.
pub const BACKGROUND_PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Where background answers go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Over the client's connection, which is switched for each response.
    Connection,
    /// Over a second port, whose connections something else keeps in the background.
    Port(u16),
    /// Nowhere: prefetches are refused, nothing is suggested.
    Off,
}

impl Mode {
    /// Its name in the configuration and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Port(_) => "port",
            Self::Off => "off",
        }
    }
}

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

#[derive(Debug)]
struct State {
    foreground: usize,
    background: usize,
    /// Foreground answers of which a piece lies with the connection, to be taken by the client, and
    /// when that last changed.
    offered: usize,
    offered_at: Instant,
    /// The end of the last answer.
    ended: Instant,
    yields: bool,
    waiting: Vec<Waker>,
}

/// A client's connection.
#[derive(Debug)]
pub struct Line {
    socket: Arc<TcpStream>,
    controls: Option<Controls>,
    patience: Duration,
    state: Mutex<State>,
}

/// An answer under way; dropped when it ends.
#[derive(Debug)]
pub struct Turn {
    kept: Arc<Kept>,
    timer: Option<Pin<Box<Sleep>>>,
}

/// Keeps an answer's turn from ending, until what it is attached to was written.
#[derive(Debug)]
pub struct Kept {
    line: Arc<Line>,
    background: bool,
    offered: AtomicBool,
}

impl Line {
    /// A connection that can be switched if `controls` are given, and ends when its client takes
    /// nothing for so long, whatever it says; in the background for [`BACKGROUND_PATIENCE`].
    ///
    /// # Errors
    /// If the connection has been reset.
    pub fn new(
        socket: Arc<TcpStream>,
        controls: Option<Controls>,
        patience: Duration,
    ) -> io::Result<Arc<Self>> {
        SockRef::from(&*socket).set_tcp_user_timeout(Some(patience))?;
        let state = State {
            foreground: 0,
            background: 0,
            offered: 0,
            offered_at: Instant::now(),
            ended: Instant::now(),
            yields: false,
            waiting: Vec::new(),
        };
        Ok(Arc::new(Self { socket, controls, patience, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while held")
    }

    /// Begins an answer in the foreground.
    ///
    /// # Errors
    /// If the connection is in the background and cannot be taken back; it is unusable then.
    pub fn foreground(self: &Arc<Self>) -> io::Result<Turn> {
        let mut state = self.state();
        self.switch(&mut state, false)?;
        state.foreground += 1;
        Ok(self.turn(false))
    }

    fn turn(self: &Arc<Self>, background: bool) -> Turn {
        let kept = Kept { line: self.clone(), background, offered: AtomicBool::new(false) };
        Turn { kept: Arc::new(kept), timer: None }
    }

    /// Begins an answer in the background.
    ///
    /// # Errors
    /// If the connection cannot be put there; [`io::ErrorKind::Unsupported`] if it began without
    /// controls.
    pub fn background(self: &Arc<Self>) -> io::Result<Turn> {
        let mut state = self.state();
        if state.foreground == 0 {
            self.switch_when_sent(&mut state)?;
        }
        state.background += 1;
        Ok(self.turn(true))
    }

    /// Switches to the background if the kernel holds nothing unsent of the foreground's; whether the
    /// connection is there.
    fn switch_when_sent(&self, state: &mut State) -> io::Result<bool> {
        if state.yields {
            return Ok(true);
        }
        if self.controls.is_none() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let all_sent = self.all_sent()?;
        if all_sent {
            self.switch(state, true)?;
        }
        Ok(all_sent)
    }

    /// Whether the kernel has sent all, and much of it has arrived: with this bound it calls a socket
    /// writable only then. Who writes meanwhile is woken by the second change.
    fn all_sent(&self) -> io::Result<bool> {
        let socket = SockRef::from(&*self.socket);
        socket.set_tcp_notsent_lowat(1)?;
        let mut polled = [PollFd::new(&*self.socket, PollFlags::OUT)];
        let ready = poll(&mut polled, Some(&Timespec::default()));
        socket.set_tcp_notsent_lowat(0)?; // the system's
        Ok(ready? > 0)
    }

    fn switch(&self, state: &mut State, to_background: bool) -> io::Result<()> {
        if state.yields == to_background {
            return Ok(());
        }
        let controls = self.controls.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        let socket = SockRef::from(&*self.socket);
        let (control, unsent, patience) = match to_background {
            true => (&controls.background, BACKGROUND_UNSENT, BACKGROUND_PATIENCE),
            false => (&controls.foreground, 0, self.patience), // 0: the system's bound
        };
        socket.set_tcp_congestion(control)?;
        socket.set_tcp_notsent_lowat(unsent)?;
        socket.set_tcp_user_timeout(Some(patience))?;
        state.yields = to_background;
        Ok(())
    }

    /// When the connection has been idle for so long, in the background for at least
    /// [`BACKGROUND_PATIENCE`]; `None` while an answer is under way.
    pub fn idle_until(&self, patience: Duration) -> Option<Instant> {
        let state = self.state();
        let patience = if state.yields { patience.max(BACKGROUND_PATIENCE) } else { patience };
        (state.foreground + state.background == 0).then(|| state.ended + patience)
    }

    /// When the client has taken nothing for so long, of any foreground answer; `None` while one of
    /// them waits for the origin, or there is none.
    pub fn untaken_until(&self, patience: Duration) -> Option<Instant> {
        let state = self.state();
        let waits = state.foreground > 0 && state.foreground == state.offered;
        waits.then(|| state.offered_at + patience)
    }
}

impl Turn {
    /// What keeps the turn, with whatever carries it.
    pub fn keep(&self) -> Arc<Kept> {
        self.kept.clone()
    }

    /// Ready when this answer may send: always in the foreground, in the background while the
    /// connection carries nothing else.
    ///
    /// # Errors
    /// If the connection could not be put into the background.
    pub fn poll_may_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Kept { line, background, .. } = &*self.kept;
        if !background {
            return Poll::Ready(Ok(()));
        }
        loop {
            let mut state = line.state();
            if state.foreground > 0 {
                if !state.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
                    state.waiting.push(cx.waker().clone());
                }
                return Poll::Pending;
            }
            if line.switch_when_sent(&mut state)? {
                return Poll::Ready(Ok(()));
            }
            drop(state);
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(SENT_YET)));
            ready!(timer.as_mut().poll(cx));
            timer.as_mut().reset(Instant::now() + SENT_YET);
        }
    }

    /// Notes that a piece of this answer lies with the connection, or that more is asked for.
    pub fn set_offered(&self, offered: bool) {
        let Kept { line, background, offered: is } = &*self.kept;
        if *background || is.swap(offered, Ordering::Relaxed) == offered {
            return;
        }
        let mut state = line.state();
        state.offered_at = Instant::now();
        match offered {
            true => state.offered += 1,
            false => state.offered -= 1,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.set_offered(true); // what is kept of it lies with the connection
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut state = self.line.state();
        if self.offered.load(Ordering::Relaxed) {
            state.offered -= 1;
            state.offered_at = Instant::now();
        }
        match self.background {
            true => state.background -= 1,
            false => state.foreground -= 1,
        }
        if state.foreground == 0 {
            state.ended = Instant::now();
            state.waiting.drain(..).for_each(Waker::wake);
        }
    }
}

/// The socket's two directions, while a [`Line`] keeps it for switching.
#[derive(Debug)]
pub struct Stream(pub Arc<TcpStream>);

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            let room = buf.remaining();
            let mut got = 0;
            let result = self.0.try_io(Interest::READABLE, || {
                got = self.0.try_read_buf(buf)?;
                // nothing is left: waiting for more at once spares a call that would say so
                match 0 < got && got < room {
                    true => Err(io::ErrorKind::WouldBlock.into()),
                    false => Ok(()),
                }
            });
            match result {
                Err(e) if got == 0 && e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if got == 0 => return Poll::Ready(Err(e)),
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl Stream {
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        mut send: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match send(&self.0) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| socket.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| socket.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = || SockRef::from(&*self.0).shutdown(std::net::Shutdown::Write);
        Poll::Ready(self.0.try_io(Interest::WRITABLE, shut).or_else(|e| match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected => Ok(()),
            _ => Err(e),
        }))
    }
}

#[cfg(test)]
mod tests;

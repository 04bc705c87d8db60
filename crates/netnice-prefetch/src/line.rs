// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One client's connection, switched between foreground and background for each response: the
//! paper's wish for later (TCP Nice, section 6.1).
//!
//! While an answer to a demand request is under way, the connection has the system's congestion
//! control; while it carries nothing but prefetches, it has the background's. On HTTP/1.1, where
//! answers follow each other, that is a switch before each response. On HTTP/2 and HTTP/3 the
//! prefetches wait while demand answers are under way: urgency 7 of RFC 9218 against the rest.
//!
//! A demand answer is under way until all of it was written to the connection, and the kernel has
//! sent what it held: what follows it would otherwise take its tail along into the background. On
//! QUIC it is under way until its client has acknowledged all of it.

mod carrier;
mod stream;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{ready, Context, Poll, Waker};
use std::time::Duration;

use netnice_quinn::Switch;
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{sleep, Instant, Sleep};

use carrier::Carrier;
pub use carrier::{Controls, BACKGROUND_PATIENCE};
pub use stream::Stream;

/// How often it is looked whether the kernel has sent the end of a demand answer.
const SENT_YET: Duration = Duration::from_millis(10);

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
    carrier: Carrier,
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
    /// A connection over TCP that can be switched if `controls` are given, and ends when its client
    /// takes nothing for so long, whatever it says; in the background for [`BACKGROUND_PATIENCE`].
    ///
    /// # Errors
    /// If the connection has been reset.
    pub fn new(
        socket: Arc<TcpStream>,
        controls: Option<Controls>,
        patience: Duration,
    ) -> io::Result<Arc<Self>> {
        SockRef::from(&*socket).set_tcp_user_timeout(Some(patience))?;
        Ok(Self::over(Carrier::Tcp(socket, controls, patience)))
    }

    /// A connection over QUIC, which this moves to the foreground first.
    pub fn quic(switch: Switch) -> Arc<Self> {
        switch.to_foreground();
        Self::over(Carrier::Quic(switch))
    }

    fn over(carrier: Carrier) -> Arc<Self> {
        let state = State {
            foreground: 0,
            background: 0,
            offered: 0,
            offered_at: Instant::now(),
            ended: Instant::now(),
            yields: false,
            waiting: Vec::new(),
        };
        Arc::new(Self { carrier, state: Mutex::new(state) })
    }

    /// Whether it is of QUIC, which goes to the background without the kernel's leave.
    pub fn is_quic(&self) -> bool {
        matches!(self.carrier, Carrier::Quic(_))
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
        if !self.carrier.can_yield() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let all_sent = self.carrier.all_sent()?;
        if all_sent {
            self.switch(state, true)?;
        }
        Ok(all_sent)
    }

    fn switch(&self, state: &mut State, to_background: bool) -> io::Result<()> {
        if state.yields != to_background {
            self.carrier.switch(to_background)?;
            state.yields = to_background;
        }
        Ok(())
    }

    /// Since when no answer is under way; `None` while one is.
    pub fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        (state.foreground + state.background == 0).then_some(state.ended)
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

impl Kept {
    /// Whether the answer is in the background.
    pub fn is_background(&self) -> bool {
        self.background
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

#[cfg(test)]
mod tests;

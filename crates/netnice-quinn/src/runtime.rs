// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A runtime for quinn in which connections look again at the end of a gap.

use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use netnice_host::Switch;
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};

use crate::gaps::watched;

/// A runtime around another, which wakes a connection when a gap ends that held its data back. Give it
/// to `quinn::Endpoint::new`.
#[derive(Clone, Debug)]
pub struct Gaps(Arc<dyn Runtime>);

impl Gaps {
    /// Around that runtime, such as `quinn::default_runtime()`.
    pub fn over(runtime: Arc<dyn Runtime>) -> Gaps {
        Gaps(runtime)
    }
}

impl Runtime for Gaps {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        self.0.new_timer(at)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn(Box::pin(Held {
            runtime: self.0.clone(),
            future,
            timer: None,
            waiting: None,
        }));
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        self.0.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        self.0.now()
    }
}

/// What drives a connection.
struct Held {
    runtime: Arc<dyn Runtime>,
    future: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// Made at the first gap.
    timer: Option<Pin<Box<dyn AsyncTimer>>>,
    /// What wakes it in a gap, and as whom.
    waiting: Option<(Waker, Vec<Switch>)>,
}

impl Held {
    fn forget(&mut self) {
        if let Some((waker, switches)) = self.waiting.take() {
            switches.iter().for_each(|switch| switch.forget(&waker));
        }
    }
}

impl Future for Held {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.forget();
            let now = self.runtime.now();
            let (done, again, switches) = watched(now, || self.future.as_mut().poll(cx));
            let Some(again) = again.filter(|_| done.is_pending()) else {
                return done;
            };
            let changed = switches.iter().any(|switch| switch.wakes(cx.waker()));
            self.waiting = Some((cx.waker().clone(), switches));
            let mut timer = self.timer.take().unwrap_or_else(|| self.runtime.new_timer(again));
            timer.as_mut().reset(again);
            let over = timer.as_mut().poll(cx).is_ready();
            self.timer = Some(timer);
            if !over && !changed {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.forget();
    }
}

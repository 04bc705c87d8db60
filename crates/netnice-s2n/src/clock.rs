// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! From the clock of an endpoint to that of the process: groups compare times of several endpoints.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use s2n_quic_core::time::{Clock as _, NoopClock, Timestamp};

/// The clock of an endpoint.
#[derive(Clone)]
pub struct Clock {
    /// When the endpoint's clock began, as soon as it told of a time.
    zero: Arc<OnceLock<Instant>>,
    /// The clock of the process.
    now: fn() -> Instant,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock::over(Instant::now)
    }
}

impl Clock {
    /// Beside that clock of the process.
    pub fn over(now: fn() -> Instant) -> Clock {
        Clock { zero: Arc::default(), now }
    }

    /// As another endpoint has a clock of its own.
    pub fn of_another_endpoint(&self) -> Clock {
        Clock::over(self.now)
    }

    /// What the process' clock says now.
    pub fn now(&self) -> Instant {
        (self.now)()
    }

    /// The process' time at an endpoint's.
    pub fn instant(&self, at: Timestamp) -> Instant {
        let since = at - NoopClock.get_time();
        let zero = self.zero.get_or_init(|| {
            let now = self.now();
            now.checked_sub(since).unwrap_or(now)
        });
        *zero + since
    }

    /// The endpoint's time at one of the process; `None`: it told of no time yet, or began later.
    pub fn stamp(&self, at: Instant) -> Option<Timestamp> {
        let since = at.checked_duration_since(*self.zero.get()?)?;
        // whole microseconds, and never before
        let us = Duration::from_micros(since.as_nanos().div_ceil(1000).try_into().ok()?);
        NoopClock.get_time().checked_add(us)
    }
}

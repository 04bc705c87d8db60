// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the traffic modes share beside their transport: time line, stopping, open files.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::signal::unix::{signal, SignalKind};
use tokio::sync::watch;
use tokio::time::{sleep_until, Instant};

use crate::Error;

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
}

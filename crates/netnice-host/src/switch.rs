// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What moves connections between foreground and background.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Moves connections between foreground and background while they run. A clone is the same switch.
#[derive(Clone, Default)]
pub struct Switch(Arc<State>);

#[derive(Default)]
struct State {
    foreground: AtomicBool,
    /// Connections in a gap, which a change ends.
    waiting: Mutex<Vec<Waker>>,
}

impl Switch {
    /// The connections yield from now on.
    pub fn to_background(&self) {
        self.set(false);
    }

    /// The connections compete from now on.
    pub fn to_foreground(&self) {
        self.set(true);
    }

    /// Whether they yield.
    pub fn is_background(&self) -> bool {
        !self.0.foreground.load(Ordering::Acquire)
    }

    fn set(&self, foreground: bool) {
        self.0.foreground.store(foreground, Ordering::Release);
        let waiting = std::mem::take(&mut *self.waiting());
        waiting.into_iter().for_each(Waker::wake);
    }

    /// A change wakes that task, which waits for the end of a gap. Whether one came meanwhile.
    #[doc(hidden)] // for transports' runtimes
    pub fn wakes(&self, waker: &Waker) -> bool {
        self.waiting().push(waker.clone());
        !self.is_background()
    }

    /// That task waits no more.
    #[doc(hidden)]
    pub fn forget(&self, waker: &Waker) {
        self.waiting().retain(|w| !w.will_wake(waker));
    }

    /// Tasks that a change would wake.
    #[doc(hidden)]
    pub fn waiting_tasks(&self) -> usize {
        self.waiting().len()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waker>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_background() { "background" } else { "foreground" })
    }
}

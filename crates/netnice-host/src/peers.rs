// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How many connections of the process are under an algorithm.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::LazyLock;

use netnice_core::Algorithm;

static COUNTS: LazyLock<Vec<AtomicU32>> =
    LazyLock::new(|| Algorithm::all().map(|_| AtomicU32::new(0)).collect());

/// A connection among those of its algorithm, as long as it is kept.
pub struct Peers(&'static AtomicU32);

impl Peers {
    pub fn join(algorithm: Algorithm) -> Peers {
        let at = Algorithm::all().position(|a| a == algorithm).expect("it is of the list");
        COUNTS[at].fetch_add(1, Ordering::Relaxed);
        Peers(&COUNTS[at])
    }

    /// This one included.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

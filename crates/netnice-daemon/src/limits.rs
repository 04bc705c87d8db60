// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much a user may have of the daemon, so that none takes another's share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests at a time, in all and of a user.
const REQUESTS: usize = 128;
const REQUESTS_OF_USER: usize = 8;
/// Connections that look again and again, likewise.
const LOOKS: usize = 64;
pub const LOOKS_OF_USER: usize = 4;
/// Runs at a time, in all and of a user.
pub const RUNS: usize = 512;
pub const RUNS_OF_USER: usize = 64;
/// How long a client may take to say its line, and to read the answer.
pub const PATIENCE: Duration = Duration::from_secs(5);
/// How long one that looks may do so no more: longer than the longest interval.
pub const IDLE: Duration = Duration::from_secs(25 * 60 * 60);
/// Looks of a connection are so far apart, at least: each reads all of netnice in the kernel.
pub const APART: Duration = Duration::from_millis(100);

/// The connections of a kind that are open, by user.
#[derive(Clone)]
pub struct Connections {
    all: usize,
    of_user: usize,
    open: Arc<Mutex<HashMap<u32, usize>>>,
}

/// One of them, until it is dropped.
pub struct Place {
    of: Connections,
    uid: u32,
}

impl Connections {
    pub fn of_requests() -> Connections {
        Connections::new(REQUESTS, REQUESTS_OF_USER)
    }

    pub fn of_looks() -> Connections {
        Connections::new(LOOKS, LOOKS_OF_USER)
    }

    fn new(all: usize, of_user: usize) -> Connections {
        Connections { all, of_user, open: Arc::default() }
    }

    /// None: this user has as many as he may have, or all together have.
    pub fn enter(&self, uid: u32) -> Option<Place> {
        let mut open = self.open();
        let of_user = open.get(&uid).copied().unwrap_or(0);
        if of_user >= self.of_user || open.values().sum::<usize>() >= self.all {
            return None;
        }
        open.insert(uid, of_user + 1);
        Some(Place { of: self.clone(), uid })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.of.open();
        if let Some(of_user) = open.get_mut(&self.uid) {
            *of_user -= 1;
            if *of_user == 0 {
                open.remove(&self.uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_has_all_that_he_may_have_leaves_others_theirs() {
        let connections = Connections::of_requests();
        let his: Vec<_> = (0..8).map(|_| connections.enter(1).expect("one of 8")).collect();
        assert!(connections.enter(1).is_none());
        assert!(connections.enter(2).is_some());
        drop(his);
        assert!(connections.enter(1).is_some());
        assert!(connections.open().is_empty(), "who has none takes no memory");
    }

    #[test]
    fn all_together_have_128() {
        let connections = Connections::of_requests();
        let all: Vec<_> =
            (0..16).flat_map(|uid| [uid; 8]).map(|uid| connections.enter(uid)).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(connections.enter(16).is_none());
    }

    #[test]
    fn who_looks_has_a_few_places_of_his_own_beside_those_of_requests() {
        let looks = Connections::of_looks();
        let his: Vec<_> = (0..4).map(|_| looks.enter(1).expect("one of 4")).collect();
        assert!(looks.enter(1).is_none() && looks.enter(2).is_some());
        drop(his);
        let all: Vec<_> = (0..16).flat_map(|uid| [uid; 4]).map(|uid| looks.enter(uid)).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(looks.enter(16).is_none());
    }
}

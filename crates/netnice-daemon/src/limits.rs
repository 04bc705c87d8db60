// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much a user may have of the daemon, so that none takes another's share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections at a time, in all and of a user.
const CONNECTIONS: usize = 128;
const CONNECTIONS_OF_USER: usize = 8;
/// Runs at a time, in all and of a user.
pub const RUNS: usize = 512;
pub const RUNS_OF_USER: usize = 64;
/// How long a client may take to say its line, and to read the answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// The connections that are open, by user.
#[derive(Clone, Default)]
pub struct Connections(Arc<Mutex<HashMap<u32, usize>>>);

/// One of them, until it is dropped.
pub struct Place {
    of: Connections,
    uid: u32,
}

impl Connections {
    /// None: this user has as many as he may have, or all together have.
    pub fn enter(&self, uid: u32) -> Option<Place> {
        let mut open = self.open();
        let of_user = open.get(&uid).copied().unwrap_or(0);
        if of_user >= CONNECTIONS_OF_USER || open.values().sum::<usize>() >= CONNECTIONS {
            return None;
        }
        open.insert(uid, of_user + 1);
        Some(Place { of: self.clone(), uid })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let connections = Connections::default();
        let his: Vec<_> = (0..8).map(|_| connections.enter(1).expect("one of 8")).collect();
        assert!(connections.enter(1).is_none());
        assert!(connections.enter(2).is_some());
        drop(his);
        assert!(connections.enter(1).is_some());
        assert!(connections.open().is_empty(), "who has none takes no memory");
    }

    #[test]
    fn all_together_have_128() {
        let connections = Connections::default();
        let all: Vec<_> =
            (0..16).flat_map(|uid| [uid; 8]).map(|uid| connections.enter(uid)).collect();
        assert!(all.iter().all(Option::is_some));
        assert!(connections.enter(16).is_none());
    }
}

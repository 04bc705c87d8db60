// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How much a user may have of the daemon, so that none takes another's share.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::rights::ROOT;

/// Requests at a time, in all and of a user.
const REQUESTS: usize = 128;
const REQUESTS_OF_USER: usize = 8;
/// Connections that look again and again, likewise.
pub const LOOKS: usize = 64;
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

/// The uids that users were given beside their own (subuid(5)), to be whoever they like: in user
/// namespaces, and by programs with the set-user-ID bit that they make there.
pub struct Given {
    /// The first of each range, and how many.
    ranges: Vec<(u32, u32)>,
}

impl Given {
    pub fn now() -> Given {
        Given::parse(&fs::read_to_string("/etc/subuid").unwrap_or_default())
    }

    fn parse(text: &str) -> Given {
        let range = |line: &str| {
            let mut numbers = line.split(':').skip(1).map(|number| number.trim().parse().ok());
            Some((numbers.next()??, numbers.next()??))
        };
        Given { ranges: text.lines().filter_map(range).collect() }
    }

    /// As whom a uid counts: all of a range are one user.
    pub fn user(&self, uid: u32) -> u32 {
        let has =
            |(first, count): &&(u32, u32)| uid.checked_sub(*first).is_some_and(|n| n < *count);
        self.ranges.iter().find(has).map_or(uid, |(first, _)| *first)
    }
}

/// Whose places are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The user's own.
    His,
    /// Those of all together.
    All,
}

/// Whose places are taken, if one more of this user is too many: he has `of_user` of `most_of_user`, and all
/// together have `all` of `most`. Root may have any number.
pub fn full(
    uid: u32,
    (of_user, most_of_user): (usize, usize),
    (all, most): (usize, usize),
) -> Option<Full> {
    if uid == ROOT {
        return None;
    }
    let his = (of_user >= most_of_user).then_some(Full::His);
    his.or((all >= most).then_some(Full::All))
}

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
    user: u32,
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

    /// One more of this user.
    ///
    /// # Errors
    /// When he may have no more, or all together may not.
    pub fn enter(&self, uid: u32) -> Result<Place, Full> {
        self.enter_as(uid, &Given::now())
    }

    fn enter_as(&self, uid: u32, given: &Given) -> Result<Place, Full> {
        let mut open = self.open();
        let user = given.user(uid);
        let of_user = open.get(&user).copied().unwrap_or(0);
        let all = open.values().sum();
        if let Some(full) = full(uid, (of_user, self.of_user), (all, self.all)) {
            return Err(full);
        }
        open.insert(user, of_user + 1);
        Ok(Place { of: self.clone(), user })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.of.open();
        if let Some(of_user) = open.get_mut(&self.user) {
            *of_user -= 1;
            if *of_user == 0 {
                open.remove(&self.user);
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
        assert_eq!(connections.enter(1).err(), Some(Full::His));
        assert!(connections.enter(2).is_ok());
        drop(his);
        assert!(connections.enter(1).is_ok());
        assert!(connections.open().is_empty(), "who has none takes no memory");
    }

    #[test]
    fn all_together_have_128_and_root_whatever_they_have() {
        let connections = Connections::of_requests();
        let all: Vec<_> =
            (1..17).flat_map(|uid| [uid; 8]).map(|uid| connections.enter(uid)).collect();
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(connections.enter(17).err(), Some(Full::All));
        let roots: Vec<_> = (0..9).map(|_| connections.enter(ROOT)).collect();
        assert!(roots.iter().all(Result::is_ok));
    }

    #[test]
    fn the_uids_that_a_user_was_given_take_no_more_than_those_of_one_user() {
        let connections = Connections::of_requests();
        let given = Given::parse("# given\nann:100000:65536\nbob:165536:65536\nodd:1:\n");
        let enter = |uid| connections.enter_as(uid, &given);
        let anns: Vec<_> = (100_000..100_128).map(enter).collect();
        assert_eq!(anns.iter().filter(|place| place.is_ok()).count(), 8);
        assert_eq!(enter(165_535).err(), Some(Full::His));
        assert!(enter(165_536).is_ok() && enter(99_999).is_ok() && enter(1).is_ok());
        drop(anns);
        assert!(connections.open().is_empty(), "each place is given back to whom it was of");
    }

    #[test]
    fn who_looks_has_a_few_places_of_his_own_beside_those_of_requests() {
        let looks = Connections::of_looks();
        let his: Vec<_> = (0..4).map(|_| looks.enter(1).expect("one of 4")).collect();
        assert!(looks.enter(1).is_err() && looks.enter(2).is_ok());
        drop(his);
        let all: Vec<_> = (1..17).flat_map(|uid| [uid; 4]).map(|uid| looks.enter(uid)).collect();
        assert!(all.iter().all(Result::is_ok));
        assert_eq!(looks.enter(17).err(), Some(Full::All));
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Looking again and again: at this machine, or with the daemon's eyes at what is one's own.

use anyhow::Result;
use netnice_daemon::client::Looking;
use netnice_manager::snapshot::{LeftOut, View, Watch};

use crate::args::SocketArgs;
use crate::units::count;

/// Who looks.
pub enum Sight {
    Own(Box<Watch>),
    Daemons(Looking),
}

impl Sight {
    /// This process, if it has the rights, else the daemon. `waits`: for one that is restarted.
    pub fn new(daemon: &SocketArgs, waits: bool) -> Sight {
        match daemon.is_needed() {
            false => Sight::own(),
            true => Sight::Daemons(Looking::at(&daemon.socket, waits)),
        }
    }

    /// This process, which has the rights.
    pub fn own() -> Sight {
        Sight::Own(Box::default())
    }

    /// What happened since the last look. Of a first one the view says that there was none before: where
    /// it is not the first asked for, [`ANEW`].
    pub fn look(&mut self) -> Result<View> {
        match self {
            Sight::Own(watch) => Ok(watch.look()?),
            Sight::Daemons(looking) => Ok(looking.look()?),
        }
    }
}

/// What it means if there was no look before, all of a sudden.
pub const ANEW: &str = "netnice's daemon was restarted: rates and histories begin anew";

/// What a view does not show, in a sentence; none: it shows all.
pub fn not_shown(left_out: &LeftOut) -> Option<String> {
    let LeftOut { runs, connections, jobs } = *left_out;
    let some = |n: usize, one: &str, many: &str| (n > 0).then(|| count(n as u64, one, many));
    let others: Vec<_> =
        [some(runs, "run", "runs"), some(connections, "connection", "connections")]
            .into_iter()
            .flatten()
            .collect();
    let own = some(jobs, "job of yours", "jobs of yours");
    let others = (!others.is_empty()).then(|| others.join(" and ") + " of other users");
    let all: Vec<_> = own.into_iter().chain(others).collect();
    (!all.is_empty()).then(|| format!("Not shown: {}; all: sudo netnice top", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_shown_is_one_sentence_that_fits_on_a_terminal() {
        let of = |runs, connections, jobs| not_shown(&LeftOut { runs, connections, jobs });
        assert_eq!(of(0, 0, 0), None);
        let one = "Not shown: 1 run and 2 connections of other users; all: sudo netnice top";
        assert_eq!(of(1, 2, 0).as_deref(), Some(one));
        let own = "Not shown: 7 jobs of yours, 1 run of other users; all: sudo netnice top";
        assert_eq!(of(1, 0, 7).as_deref(), Some(own));
        assert!(of(512, 10_000, 0).is_some_and(|text| text.len() <= 80));
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a copy lacks.

use std::collections::BTreeSet;
use std::ffi::OsString;

/// More paths than this are not listed: everything is looked through instead. rsync asks a rule or two
/// about each of them for whatever is beside any of them, which would take longer then.
pub const LISTED: usize = 1000;

/// What a transfer is to bring up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Everything below the source.
    Full,
    /// Paths relative to the source; those that do not exist any more were removed.
    Paths(BTreeSet<OsString>),
}

/// Adds `more` to what is needed already.
pub fn merge(have: Option<Need>, more: Need) -> Need {
    match (have, more) {
        (None, more) => more,
        (Some(Need::Paths(mut all)), Need::Paths(mut more)) => {
            all.append(&mut more);
            if all.len() > LISTED {
                Need::Full
            } else {
                Need::Paths(all)
            }
        }
        _ => Need::Full,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Need {
        Need::Paths(names.iter().map(OsString::from).collect())
    }

    #[test]
    fn needs_add_up_and_too_many_paths_become_everything() {
        assert_eq!(merge(None, paths(&["a"])), paths(&["a"]));
        assert_eq!(merge(Some(paths(&["b", "c"])), paths(&["a", "c"])), paths(&["a", "b", "c"]));
        assert_eq!(merge(Some(Need::Full), paths(&["a"])), Need::Full);
        let many = Need::Paths((0..LISTED).map(|i| OsString::from(i.to_string())).collect());
        assert_eq!(merge(Some(many.clone()), paths(&["0"])), many);
        assert_eq!(merge(Some(many), paths(&["x"])), Need::Full);
    }
}

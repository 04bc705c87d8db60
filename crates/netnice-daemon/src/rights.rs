// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a caller may: lower what is his own, and never raise anything.
//!
//! All decisions are here, and nothing else is. Root may everything.

use netnice_manager::cgroup::Above;

pub const ROOT: u32 = 0;

/// Whether a user may begin a run where a process of his is: in no run of somebody else, which the new
/// one would take it out of. If not, the run where it stays.
pub fn begin(uid: u32, above: &[Above]) -> Result<(), u64> {
    let others = |at: &&Above| at.is_run && uid != ROOT && at.owner != Some(uid);
    above.iter().find(others).map_or(Ok(()), |at| Err(at.id))
}

/// Whether a user may have the connections of a process changed: all of its users (real, effective,
/// saved, of files) are he. So he may end it, too.
pub fn touch(uid: u32, of_process: &[u32]) -> bool {
    uid == ROOT || (!of_process.is_empty() && of_process.iter().all(|of| *of == uid))
}

/// Whether a user may give a socket other settings, or take it out of the background: `by` is who put
/// it there, None if it is not there.
pub fn change(uid: u32, by: Option<u32>) -> bool {
    uid == ROOT || by.is_none_or(|by| by == uid)
}

/// Whether a user may see what a run did, and change its share.
pub fn see(uid: u32, owner: u32) -> bool {
    uid == ROOT || uid == owner
}

#[cfg(test)]
mod tests {
    use super::*;

    const ME: u32 = 1000;
    const YOU: u32 = 1001;

    fn run(id: u64, owner: Option<u32>) -> Above {
        Above { id, is_run: true, owner }
    }

    fn plain(id: u64) -> Above {
        Above { id, is_run: false, owner: None }
    }

    #[test]
    fn a_run_begins_where_there_is_none_and_in_ones_own() {
        assert_eq!(begin(ME, &[plain(2), plain(1)]), Ok(()));
        assert_eq!(begin(ME, &[run(3, Some(ME)), plain(1)]), Ok(()));
    }

    #[test]
    fn what_root_or_another_user_lowered_stays_lowered_however_far_above() {
        assert_eq!(begin(ME, &[run(3, None), plain(1)]), Err(3));
        assert_eq!(begin(ME, &[run(3, Some(YOU)), plain(1)]), Err(3));
        assert_eq!(begin(ME, &[run(4, Some(ME)), plain(2), run(3, None), plain(1)]), Err(3));
        assert!(!change(ME, Some(ROOT)));
        assert!(!change(ME, Some(YOU)));
    }

    #[test]
    fn what_he_lowered_himself_he_may_change() {
        assert!(change(ME, Some(ME)) && change(ME, None));
        assert!(see(ME, ME) && !see(ME, YOU) && !see(ME, ROOT));
    }

    #[test]
    fn a_process_is_his_if_all_of_its_users_are_he() {
        assert!(touch(ME, &[ME; 4]));
        // one of a program with the set-user-ID bit: real, effective, saved, of files
        for uids in [[ME, ROOT, ROOT, ROOT], [ME, ME, ROOT, ME], [YOU, ME, ME, ME], [YOU; 4]] {
            assert!(!touch(ME, &uids), "{uids:?}");
        }
        assert!(!touch(ME, &[]), "it has ended");
    }

    #[test]
    fn root_may_everything() {
        assert_eq!(begin(ROOT, &[run(3, Some(ME))]), Ok(()));
        assert!(touch(ROOT, &[ME; 4]) && change(ROOT, Some(ME)) && see(ROOT, ME));
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What rsync really does with what it is handed, from one directory to another.

use super::*;
use crate::job::tests::job;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

/// A source and its copy.
struct Setting {
    base: tempfile::TempDir,
    job: Job,
}

impl Setting {
    /// The source has its name in the copy unless it ends with a slash.
    fn new(source: &str) -> Setting {
        let base = tempfile::tempdir().unwrap();
        let mut job = job(&format!("{}/copy/", base.path().display()));
        job.source = format!("{}/{source}", base.path().display());
        job.delete = true;
        fs::create_dir(&job.source).unwrap();
        Setting { base, job }
    }

    fn source(&self, name: impl AsRef<Path>) -> PathBuf {
        Path::new(&self.job.source).join(name)
    }

    fn copy(&self, name: impl AsRef<Path>) -> PathBuf {
        let copy = self.base.path().join("copy");
        crate::place::named(&self.job.source).map_or(copy.clone(), |n| copy.join(n)).join(name)
    }

    fn transfer(&self, need: &Need, mode: Mode) -> End {
        let start = |command: &mut Command| command.spawn();
        transfer(&self.job, 0, need, mode, &Running::default(), &start, |_| {})
    }

    /// Brings the copy up to date in these paths.
    fn update(&self, paths: &[&OsStr]) {
        let need = Need::Paths(paths.iter().map(OsString::from).collect());
        let end = self.transfer(&need, Mode::Quick);
        assert!(matches!(end, End::Done { vanished: false, .. }), "{end:?}");
    }

    fn assert_same(&self) {
        assert_eq!(tree(&self.source("")), tree(&self.copy("")));
    }
}

/// Everything below `root`: a directory's content is None, a link's its target.
fn tree(root: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            let content = if kind.is_dir() {
                open.push(path.clone());
                None
            } else if kind.is_symlink() {
                Some(fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else {
                Some(fs::read(&path).unwrap())
            };
            found.insert(path.strip_prefix(root).unwrap().to_path_buf(), content);
        }
    }
    found
}

const ODD: [&str; 9] = ["#x", ";y", "#d", "-rf", " blank ", "two\nlines", "*", "st[a]r", "back\\"];

fn odd() -> Vec<&'static OsStr> {
    ODD.iter().map(OsStr::new).collect()
}

#[test]
fn names_that_rsync_could_take_for_comments_are_copied_verified_mended_and_removed() {
    for source in ["source/", "#source", ";"] {
        let mut setting = Setting::new(source);
        for name in ODD {
            match name {
                "#d" => {
                    fs::create_dir_all(setting.source("#d/;e")).unwrap();
                    fs::write(setting.source("#d/;e/#f"), "deep").unwrap();
                }
                name => fs::write(setting.source(name), format!("in {name}")).unwrap(),
            }
        }
        setting.update(&odd());
        setting.assert_same();

        // of the same size and time: only a look into the file tells
        let (from, to) = (setting.source("#x"), setting.copy("#x"));
        fs::write(&to, "IN #x").unwrap();
        let time = fs::metadata(&from).unwrap().modified().unwrap();
        fs::File::options().write(true).open(&to).unwrap().set_modified(time).unwrap();
        setting.job.verify = true;
        let need = Need::Paths(odd().iter().map(OsString::from).collect());
        match setting.transfer(&need, Mode::Quick) {
            End::Differs { count: 1, some, .. } => assert!(some[0].ends_with("#x"), "{some:?}"),
            other => panic!("{other:?}"),
        }
        assert!(matches!(setting.transfer(&need, Mode::Checksum), End::Done { .. }));
        setting.assert_same();

        for name in ODD.iter().filter(|n| **n != "#d") {
            fs::remove_file(setting.source(name)).unwrap();
        }
        fs::remove_dir_all(setting.source("#d")).unwrap();
        setting.update(&odd());
        assert_eq!(tree(&setting.copy("")), BTreeMap::new());
    }
}

#[test]
fn what_rsync_says_beside_names_of_paths_that_differ_is_no_difference() {
    for option in ["-v", "-vv", "-ii", "--stats", "--progress", "--info=all2"] {
        let mut setting = Setting::new("source/");
        setting.job.verify = true;
        setting.job.rsync = vec![option.into()];
        for name in ["file", "linked", "dir/file"] {
            fs::create_dir_all(setting.source(name).parent().unwrap()).unwrap();
            fs::write(setting.source(name), "content").unwrap();
        }
        fs::hard_link(setting.source("linked"), setting.source("link")).unwrap();
        for _ in 0..2 {
            let end = setting.transfer(&Need::Full, Mode::Quick);
            assert!(matches!(end, End::Done { .. }), "{option}: {end:?}");
        }
    }
}

#[test]
fn a_directory_that_became_a_link_is_one_in_the_copy_too() {
    let setting = Setting::new("source/");
    for name in ["w", "v"] {
        fs::create_dir(setting.source(name)).unwrap();
        fs::write(setting.source(name).join("a"), name).unwrap();
    }
    setting.update(&[OsStr::new("w"), OsStr::new("v")]);
    fs::remove_dir_all(setting.source("w")).unwrap();
    symlink("v", setting.source("w")).unwrap();
    setting.update(&[OsStr::new("w"), OsStr::new("w/a")]); // what the watch told of both moments
    setting.assert_same();
}

#[test]
fn a_directory_that_became_a_file_and_a_file_that_became_a_directory_are_so_in_the_copy_too() {
    let setting = Setting::new("source");
    fs::create_dir_all(setting.source("d/deep")).unwrap();
    fs::write(setting.source("d/deep/a"), "a").unwrap();
    fs::write(setting.source("f"), "f").unwrap();
    setting.update(&[OsStr::new("d"), OsStr::new("f")]);
    fs::remove_dir_all(setting.source("d")).unwrap();
    fs::write(setting.source("d"), "d").unwrap();
    fs::remove_file(setting.source("f")).unwrap();
    fs::create_dir(setting.source("f")).unwrap();
    symlink("nowhere", setting.source("f/link")).unwrap();
    setting.update(&[OsStr::new("d"), OsStr::new("f/link")]);
    setting.assert_same();
}

/// A source and a copy that have `kept`, `same/old` and `cache/own` of different content, where
/// `cache/secret`, `same/new` and what was removed, `gone/a` and `cache/gone`, changed.
fn changed(setting: &Setting) -> [&'static OsStr; 4] {
    for name in ["kept", "same/old", "same/new", "cache/own", "cache/secret"] {
        fs::create_dir_all(setting.source(name).parent().unwrap()).unwrap();
        fs::write(setting.source(name), "here").unwrap();
    }
    for name in ["kept", "same/old", "gone/a", "cache/own", "cache/gone", "beside"] {
        fs::create_dir_all(setting.copy(name).parent().unwrap()).unwrap();
        fs::write(setting.copy(name), "there").unwrap();
    }
    ["same/new", "gone", "cache/secret", "cache/gone"].map(OsStr::new)
}

#[test]
fn what_the_user_excludes_is_neither_copied_nor_removed_when_something_in_it_changes() {
    for source in ["source/", "source"] {
        for rule in ["--exclude=cache/", "--exclude=cach*", "-F", "-C", "--filter=-_cache"] {
            let mut setting = Setting::new(source);
            setting.job.rsync = vec![rule.into()];
            let changed = changed(&setting);
            // the receiver reads its own, which an earlier transfer brought
            for root in [setting.source(""), setting.copy("")] {
                fs::write(root.join(".rsync-filter"), "- cache\n").unwrap();
                fs::write(root.join(".cvsignore"), "cache\n").unwrap();
            }
            setting.update(&changed);
            let copy = tree(&setting.copy(""));
            let has = |name: &str| copy.get(Path::new(name)).cloned().flatten();
            for (name, content) in [
                ("same/new", Some("here")),
                ("gone/a", None),
                ("cache/secret", None),
                ("cache/gone", Some("there")),
                ("cache/own", Some("there")),
            ] {
                assert_eq!(has(name), content.map(Into::into), "{rule} {name} {copy:?}");
            }
        }
    }
}

#[test]
fn what_is_not_listed_stays_as_it_is_whatever_deletes() {
    for option in ["--delete", "--delete-after", "--delete-excluded"] {
        let mut setting = Setting::new("source/");
        setting.job.rsync = vec![option.into()];
        let changed = changed(&setting);
        setting.update(&changed);
        for kept in ["kept", "same/old", "cache/own", "beside"] {
            assert_eq!(fs::read(setting.copy(kept)).unwrap(), b"there", "{option} {kept}");
        }
        for copied in ["same/new", "cache/secret"] {
            assert_eq!(fs::read(setting.copy(copied)).unwrap(), b"here", "{option} {copied}");
        }
        assert!(!setting.copy("gone").exists() && !setting.copy("cache/gone").exists());
    }
}

#[test]
fn whom_a_remote_shell_leaves_behind_is_not_waited_for() {
    // one that is silent, and one that goes on talking; each keeps the standard error open
    for (left, rest, copied) in
        [("sleep 60 >&2", "exit 9", false), ("yes >&2", "shift; exec \"$@\"", true)]
    {
        let mut setting = Setting::new("source/");
        fs::write(setting.source("file"), "here").unwrap();
        let (rsh, pid) = (setting.base.path().join("rsh"), setting.base.path().join("pid"));
        let script = format!("#!/bin/sh\n{left} &\necho $! >{}\n{rest}\n", pid.display());
        fs::write(&rsh, script).unwrap();
        fs::set_permissions(&rsh, fs::Permissions::from_mode(0o755)).unwrap();
        setting.job.rsync.push(format!("--rsh={}", rsh.display()));
        let copy = format!("host:{}/copy/", setting.base.path().display());
        setting.job.destinations = job(&copy).destinations;
        let began = Instant::now();
        let end = setting.transfer(&Need::Full, Mode::Quick);
        let took = began.elapsed();
        let pid = fs::read_to_string(pid).unwrap();
        let _ = Command::new("kill").arg(pid.trim()).status();
        assert_eq!(matches!(end, End::Done { .. }), copied, "{end:?}");
        assert_eq!(setting.copy("file").exists(), copied);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}

#[test]
fn partial_files_of_a_source_that_is_a_copy_itself_are_not_copied() {
    let setting = Setting::new("source/");
    for name in ["a/.netnice-partial/x", "a/y"] {
        fs::create_dir_all(setting.source(name).parent().unwrap()).unwrap();
        fs::write(setting.source(name), "part").unwrap();
    }
    setting.update(&[OsStr::new("a"), OsStr::new("a/.netnice-partial/x")]);
    setting.update(&[OsStr::new("a/.netnice-partial/x")]);
    let names: Vec<_> = tree(&setting.copy("")).into_keys().collect();
    assert_eq!(names, [Path::new("a"), Path::new("a/y")]);
}

#[test]
fn as_many_paths_as_are_listed_reach_rsync_however_long_they_are() {
    let setting = Setting::new("source/");
    let deep = ["d".repeat(200), "e".repeat(200), "f".repeat(200)].join("/");
    fs::create_dir_all(setting.source(&deep)).unwrap();
    let names: Vec<_> = (0..crate::need::LISTED).map(|i| format!("{deep}/{i:0200}")).collect();
    names.iter().for_each(|name| fs::write(setting.source(name), "").unwrap());
    setting.update(&names.iter().map(OsStr::new).collect::<Vec<_>>());
    setting.assert_same();
}

#[test]
fn what_is_left_out_is_neither_copied_nor_removed_where_it_is() {
    for (source, left_out) in [("source/", "lib/state"), ("#s", "state"), ("s*", "a\\[b]?/#")] {
        let mut setting = Setting::new(source);
        setting.job.left_out = Some(left_out.into());
        for directory in [left_out.to_string(), format!("{left_out}2")] {
            fs::create_dir_all(setting.source(&directory)).unwrap();
            fs::write(setting.source(&directory).join("db"), "here").unwrap();
        }
        fs::create_dir_all(setting.copy(left_out)).unwrap();
        fs::write(setting.copy(left_out).join("db"), "there").unwrap();
        let top = left_out.split('/').next().unwrap();
        for need in [Need::Full, Need::Paths([top.into(), format!("{left_out}2").into()].into())] {
            assert!(matches!(setting.transfer(&need, Mode::Quick), End::Done { .. }));
            assert_eq!(fs::read(setting.copy(left_out).join("db")).unwrap(), b"there");
            assert_eq!(fs::read(setting.copy(format!("{left_out}2/db"))).unwrap(), b"here");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// As fuzzing does: names of what rsync gives a meaning to, in any order.
    #[test]
    fn whatever_names_are_listed_the_copy_is_the_same_byte_for_byte(
        named in any::<bool>(),
        names in prop::collection::btree_set("[#;. *?\\[\\]\\\\:~+\n-]{1,4}(/[#;a]{1,2})?", 1..8),
        removed in prop::collection::vec(any::<bool>(), 8),
    ) {
        let setting = Setting::new(if named { "#s" } else { "s/" });
        let dots = |name: &str| name.split('/').any(|part| part == "." || part == "..");
        let mut listed = Vec::new();
        for name in names.iter().filter(|n| !dots(n)) {
            let path = setting.source(name);
            // one that is below a file of the same list cannot be made
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && fs::write(&path, name).is_ok() {
                listed.push(name.as_str());
            }
        }
        let listed: Vec<_> = listed.into_iter().map(OsStr::new).collect();
        setting.update(&listed);
        setting.assert_same();
        for (name, _) in listed.iter().zip(&removed).filter(|(_, removed)| **removed) {
            fs::remove_file(setting.source(name)).unwrap();
        }
        setting.update(&listed);
        setting.assert_same();
    }

    #[test]
    fn a_list_of_all_that_differs_makes_the_same_copy_as_a_look_through_everything(
        here in prop::collection::btree_set("[ab](/[ab.\\[]{1,2}){0,3}", 0..12),
        there in prop::collection::btree_set("[ab](/[ab.\\[]{1,2}){0,3}", 0..12),
        rules in prop::collection::vec("--(exclude|include)=/?[ab](/|\\*|/[ab]|/\\*\\*)?", 0..3),
    ) {
        let made = || {
            let mut setting = Setting::new("s/");
            setting.job.rsync = rules.clone();
            for (names, root) in [(&here, setting.source("")), (&there, setting.copy(""))] {
                for name in names.iter().filter(|n| !n.contains("/./") && !n.contains("..")) {
                    let path = root.join(name);
                    // what cannot be, below a file or where a directory is, is left alone
                    let _ = fs::create_dir_all(path.parent().unwrap());
                    let _ = fs::write(path, name);
                }
            }
            setting
        };
        let (by_list, by_look) = (made(), made());
        let (source, copy) = (tree(&by_list.source("")), tree(&by_list.copy("")));
        let differ = source.keys().chain(copy.keys()).filter(|p| source.get(*p) != copy.get(*p));
        let need = Need::Paths(differ.map(|p| p.clone().into_os_string()).collect());
        let ends = [by_list.transfer(&need, Mode::Quick), by_look.transfer(&Need::Full, Mode::Quick)];
        let done = ends.map(|end| matches!(end, End::Done { .. }));
        // what is excluded may stand in the way of what is not
        prop_assert!(done[0] || !done[1]);
        if done[1] {
            prop_assert_eq!(tree(&by_list.copy("")), tree(&by_look.copy("")));
        }
    }
}

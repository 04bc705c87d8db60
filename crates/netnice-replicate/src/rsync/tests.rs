// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What rsync really does with what it is handed, from one directory to another.

use super::*;
use crate::job::tests::job;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
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
}

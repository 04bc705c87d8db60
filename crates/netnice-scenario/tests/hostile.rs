// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whatever a scenario file or a setting says, it is read, or refused with a sentence.

use std::fs;
use std::path::{Path, PathBuf};

use netnice_scenario::{Error, Scenario};
use proptest::prelude::*;
use proptest::sample::{select, Index};

/// The scenarios of the lab, each a start for what is almost one.
fn scenarios() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/scenarios");
    let mut found: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    found.sort();
    assert!(found.len() > 3);
    found
}

/// What people and programs write in place of something else.
const PIECES: [&str; 24] = [
    "",
    " ",
    "\n",
    "=",
    "[",
    "]]",
    "\"",
    "'",
    "#",
    "\0",
    "\u{feff}",
    "-",
    "-1",
    "0",
    "1e308",
    "nan",
    "inf",
    "18446744073709551616",
    "9223372036854775807",
    "true",
    "[[background]]",
    "[x]",
    "é",
    ".",
];

/// A scenario file in which some places hold something else.
fn altered() -> impl Strategy<Value = (PathBuf, String)> {
    let cut = (any::<Index>(), 0..12usize, select(&PIECES[..]));
    (select(scenarios()), prop::collection::vec(cut, 1..4)).prop_map(|(path, cuts)| {
        let mut text: Vec<char> = fs::read_to_string(&path).unwrap().chars().collect();
        for (at, length, piece) in cuts {
            let begin = at.index(text.len() + 1);
            let end = text.len().min(begin + length);
            text.splice(begin..end, piece.chars());
        }
        (path, text.into_iter().collect())
    })
}

/// A sentence says where and what, and fits on a screen.
fn require_a_sentence(error: &Error) {
    let said = error.to_string();
    assert!((10..1000).contains(&said.chars().count()), "{said:?}");
    assert!(
        said.trim_end().ends_with(['.', ')', ']', '`', '"', '^', '?']) || said.contains('\n'),
        "{said:?}"
    );
    assert!(!said.contains("panicked"), "{said:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_altered_file_is_read_or_refused_with_a_sentence((path, text) in altered()) {
        if let Err(error) = Scenario::parse(&text, &path.display().to_string()) {
            require_a_sentence(&error);
        }
    }

    #[test]
    fn any_setting_is_taken_or_refused_with_a_sentence(
        key in "(foreground|bottleneck|background|background\\[[0-9]{1,3}\\]|link|x|)(\\.[a-z_]{0,14}){0,2}",
        assigned in select(vec!["=", "", "==", " = "]),
        value in select(&PIECES[..]),
    ) {
        let path = &scenarios()[0];
        if let Err(error) = Scenario::read_with(path, &[format!("{key}{assigned}{value}")]) {
            require_a_sentence(&error);
        }
    }
}

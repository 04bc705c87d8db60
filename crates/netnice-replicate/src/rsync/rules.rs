// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What keeps rsync to the paths that changed: rules of its filter, behind the user's own.
//!
//! A list of paths (`--files-from`) would pass the user's rules by: rsync asks these about a path
//! that is listed, but not about the directories that it is in. As rules, paths are found from the
//! top, and what is excluded is neither copied nor removed, nor is anything in it.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::need::Need;
use crate::place::named;

use super::command::PARTIAL;

/// What rsync reads as its rules to bring the `need` of a source up to date.
///
/// Each is for both sides: with `--delete-excluded` it would be for the sender alone, and whatever
/// did not change would be removed. The rule about partial files is rsync's own, which stands last.
pub fn rules(source: &str, need: &Need) -> Option<Vec<u8>> {
    let Need::Paths(paths) = need else { return None };
    let root = Path::new("/").join(named(source).unwrap_or_default());
    let listed = |path: &Path| paths.contains(path.as_os_str());
    let (mut above, mut rules) = (BTreeSet::new(), format!("-p {PARTIAL}/\n").into_bytes());
    // what is in a directory of the list is copied with that
    for path in paths.iter().map(Path::new).filter(|p| !p.ancestors().skip(1).any(listed)) {
        let whole = root.join(path);
        for end in ["", "/***"] {
            rule(&mut rules, &whole, end); // itself, and what is in it, here or in the copy
        }
        above
            .extend(whole.ancestors().skip(1).filter(|p| p.parent().is_some()).map(Path::to_owned));
    }
    for directory in above {
        rule(&mut rules, &directory, "/");
    }
    rules.extend_from_slice(b"-rs *\n");
    Some(rules)
}

/// Adds the rule that includes a path. What rsync gives a meaning to is written as `?`, any byte:
/// another path of that pattern is only brought up to date before it must.
fn rule(rules: &mut Vec<u8>, path: &Path, end: &str) {
    let plain = |byte: u8| if b"*?[\\\n\r".contains(&byte) { b'?' } else { byte };
    rules.extend_from_slice(b"+rs ");
    rules.extend(path.as_os_str().as_bytes().iter().map(|b| plain(*b)));
    rules.extend_from_slice(end.as_bytes());
    rules.push(b'\n');
}

/// Whether options of the user leave room for [`rules`]: some add rules behind all others, which
/// would never be asked then, some give paths another root, and one ends each rule with a zero.
pub fn leave_room(options: &[String]) -> bool {
    let long = [
        "--cvs-exclude",
        "--backup",
        "--partial-dir",
        "--prune-empty-dirs",
        "--relative",
        "--files-from",
        "--from0",
    ];
    let takes_it = |o: &String| long.iter().any(|l| o.starts_with(l)) || has_short(o, "CbmR0");
    !options.iter().any(takes_it)
}

/// Whether an option is short, or several in one, and one of them is in `letters`; none of these takes a value.
pub fn has_short(option: &str, letters: &str) -> bool {
    let short = option.strip_prefix('-').filter(|o| !o.starts_with('-')).unwrap_or_default();
    // what follows one of these is its value
    short.chars().take_while(|c| !"BMTef@".contains(*c)).any(|c| letters.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(source: &str, paths: &[&str]) -> String {
        let need = Need::Paths(paths.iter().map(Into::into).collect());
        String::from_utf8(rules(source, &need).unwrap()).unwrap()
    }

    #[test]
    fn rules_lead_from_the_top_to_each_path_and_to_nothing_else() {
        let expected = "-p .netnice-partial/\n\
                        +rs /a/b/x\n+rs /a/b/x/***\n+rs /c\n+rs /c/***\n\
                        +rs /a/\n+rs /a/b/\n-rs *\n";
        for contents in ["/home/www/", "/home/www/.", ".", "..", "/home/.."] {
            assert_eq!(text(contents, &["a/b/x", "c"]), expected);
        }
        assert_eq!(rules("/home/www/", &Need::Full), None);
    }

    #[test]
    fn a_source_without_a_slash_has_its_name_in_the_rules() {
        for source in ["/home/w*", "w*"] {
            let rules = text(source, &["x"]);
            assert!(rules.contains("+rs /w?/x\n+rs /w?/x/***\n+rs /w?/\n"), "{rules}");
        }
    }

    #[test]
    fn what_is_in_a_listed_directory_is_not_listed_again() {
        let rules = text("/s/", &["w", "w-x", "w/a/b", "x/y/z", "x/y"]);
        let included: Vec<_> = rules.lines().filter_map(|l| l.strip_prefix("+rs ")).collect();
        let expected = ["/w", "/w/***", "/w-x", "/w-x/***", "/x/y", "/x/y/***", "/x/"];
        assert_eq!(included, expected);
    }

    #[test]
    fn what_rsync_gives_a_meaning_to_is_any_byte() {
        let rules = text("/s/", &["a*b?[c]\\d\n\r#; _"]);
        assert!(rules.contains("+rs /a?b??c]?d??#; _\n"), "{rules}");
    }

    #[test]
    fn options_that_add_rules_behind_all_others_or_move_the_root_leave_no_room() {
        for option in ["-C", "-zb", "--cvs-exclude", "--backup-dir=x", "-aR", "--from0", "-m0"] {
            assert!(!leave_room(&["-z".into(), option.into()]), "{option}");
        }
        let fine = [
            "-z",
            "-B1000",
            "-zfmerge x",
            "--exclude=-C",
            "-F",
            "--filter=- *.o",
            "--delete-excluded",
            "--no-R",
        ];
        assert!(leave_room(&fine.map(String::from)));
    }
}

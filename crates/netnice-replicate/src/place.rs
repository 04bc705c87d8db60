// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Places in rsync's syntax: `path`, `[user@]host:path`, `rsync://…` and `host::module`.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::error::{at, ensure, wrong};
use crate::paths::resolved;
use crate::{Error, Result};

/// The port of an rsync daemon unless another is named.
const RSYNC_PORT: u16 = 873;

/// Where a copy is, or goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    text: String,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A path on this machine.
    Local,
    /// Through a remote shell: the login (`user@host`, an IPv6 address without brackets), and
    /// where the path begins in the text.
    Shell { login: String, path: usize },
    /// A module of an rsync daemon.
    Daemon,
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Place> {
        ensure!(!text.is_empty(), "a place is empty");
        ensure!(!text.starts_with('-'), "{text}: a place cannot begin with a dash; write ./{text}");
        ensure!(
            !text.contains(char::is_control),
            "{text:?}: a place cannot have control characters"
        );
        Ok(Place { text: text.into(), kind: kind(text)? })
    }
}

/// As rsync tells places apart: a colon before any slash makes one remote.
fn kind(text: &str) -> Result<Kind> {
    if let Some(rest) = text.strip_prefix("rsync://") {
        let (host, module) = rest.split_once('/').unwrap_or((rest, ""));
        ensure!(!host.is_empty(), "{text}: a host belongs after rsync://");
        ensure!(
            !module.is_empty(),
            "{text}: a module belongs after the host: rsync://{host}/module"
        );
        return Ok(Kind::Daemon);
    }
    let Some(colon) = end_of_host(text) else { return Ok(Kind::Local) };
    let (login, rest) = (&text[..colon], &text[colon + 1..]);
    let host = login.rsplit('@').next().unwrap_or(login);
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    ensure!(!bare.is_empty(), "{text}: a host belongs before the colon; a file's name: ./{text}");
    if let Some(module) = rest.strip_prefix(':') {
        ensure!(!module.is_empty(), "{text}: a module belongs after the colons: {host}::module");
        return Ok(Kind::Daemon);
    }
    let user = &login[..login.len() - host.len()];
    Ok(Kind::Shell { login: format!("{user}{bare}"), path: colon + 1 })
}

/// Where the colon after the host is; None in a local path.
fn end_of_host(text: &str) -> Option<usize> {
    let until_slash = text.find('/').unwrap_or(text.len());
    let after_brackets = match text[..until_slash].find('[') {
        Some(open) if open == 0 || text[..open].ends_with('@') => {
            open + text[open..until_slash].find("]:").map(|i| i + 1)?
        }
        _ => 0,
    };
    text[after_brackets..until_slash].find(':').map(|i| after_brackets + i)
}

impl Place {
    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        self.kind == Kind::Local
    }

    /// Whether an rsync daemon serves it.
    pub fn is_daemon(&self) -> bool {
        self.kind == Kind::Daemon
    }

    /// How ssh reaches its host: `host` or `user@host`; None unless it is reached by ssh.
    pub fn login(&self) -> Option<&str> {
        match &self.kind {
            Kind::Shell { login, .. } => Some(login),
            _ => None,
        }
    }

    /// Its path on its host; None for a daemon's module.
    pub fn path(&self) -> Option<&str> {
        match &self.kind {
            Kind::Local => Some(&self.text),
            Kind::Shell { path, .. } => Some(&self.text[*path..]),
            Kind::Daemon => None,
        }
    }

    /// Its host, as it was written, without a user and a port; None on this machine.
    pub fn host(&self) -> Option<&str> {
        let login = match &self.kind {
            Kind::Local => return None,
            Kind::Shell { login, .. } => login,
            Kind::Daemon => match self.text.strip_prefix("rsync://") {
                Some(rest) => rest.split('/').next()?,
                None => &self.text[..end_of_host(&self.text)?],
            },
        };
        let host = login.rsplit('@').next()?;
        Some(match host.strip_prefix('[').and_then(|h| h.split(']').next()) {
            Some(bare) => bare,
            None if self.is_daemon() => host.split(':').next()?,
            None => host,
        })
    }

    /// Whether what is copied there is copied to `other` too, as far as can be seen from here.
    pub fn leads_to(&self, other: &Place) -> bool {
        self.whole() == other.whole()
    }

    /// Kind, login and path, the same for each way to write them.
    fn whole(&self) -> (&'static str, String, PathBuf) {
        // without a slash at the end, and dots and slashes between that mean nothing
        let plain = |path: &str| {
            let parts = Path::new(path).components();
            parts.filter(|part| *part != Component::CurDir).collect::<PathBuf>()
        };
        let login = |login: &str| {
            let host = login.len() - login.rsplit('@').next().map_or(0, str::len);
            format!("{}{}", &login[..host], login[host..].to_lowercase())
        };
        match (&self.kind, self.text.strip_prefix("rsync://")) {
            (Kind::Local, _) => {
                let path = Path::new(&self.text);
                ("local", String::new(), resolved(path).unwrap_or_else(|_| path.into()))
            }
            (Kind::Shell { login: l, path }, _) => ("ssh", login(l), plain(&self.text[*path..])),
            (Kind::Daemon, Some(rest)) => {
                let (at, path) = rest.split_once('/').unwrap_or((rest, ""));
                let at = at.strip_suffix(&format!(":{RSYNC_PORT}")).unwrap_or(at);
                ("rsync", login(at), plain(path))
            }
            (Kind::Daemon, None) => {
                let colon = end_of_host(&self.text).unwrap_or(0);
                (
                    "rsync",
                    login(&self.text[..colon]),
                    plain(self.text[colon..].trim_start_matches(':')),
                )
            }
        }
    }

    /// Whether `name` means it: the place itself, its login or its host alone.
    pub fn is_called(&self, name: &str) -> bool {
        let host = |login: &str| login.rsplit('@').next() == Some(name);
        self.text == name || self.login().is_some_and(|l| l == name || host(l))
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where the copy of `source` in this place is, as a source for the next copy; None if this
    /// place cannot be one. rsync copies `dir/` as its contents, `dir` as a directory of that name.
    pub fn copy_of(&self, source: &str) -> Option<String> {
        self.login()?;
        let path = match self.path()? {
            "" => ".",
            path => path,
        };
        Some(match named(source) {
            None => format!("{}/", path.trim_end_matches('/')),
            Some(name) => format!("{}/{name}", path.trim_end_matches('/')),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The name that `source` has in its copies, in rsync's sense; None: these have what is in it.
pub fn named(source: &str) -> Option<&str> {
    let last = source.rsplit('/').next().unwrap_or(source);
    (!matches!(last, "" | "." | "..")).then_some(last)
}

/// A destination in a list: its line, how deeply it is indented, where.
pub type Listed = (usize, usize, Place);

/// Parses a list of destinations, one on each line. Empty lines are skipped, and comments: what
/// begins with `#` at the start of a line, or after a blank.
///
/// # Errors
/// With the number of the line that is not a place, or of one whose indentation cannot be compared
/// with that of the line before: tabs in one, blanks in the other.
pub fn list(text: &str) -> Result<Vec<Listed>> {
    let mut found = Vec::new();
    let mut before = "";
    let text = text.strip_prefix('\u{feff}').unwrap_or(text); // a mark that some editors leave
    for (i, line) in text.lines().enumerate() {
        let place = line[..comment(line)].trim();
        if place.is_empty() {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let on = || format!("line {}", i + 1);
        if !indent.starts_with(before) && !before.starts_with(indent) {
            return Err(at(on())(wrong!(
                "{place} is indented otherwise than the line before; use tabs or blanks, not both"
            )));
        }
        before = indent;
        found.push((i + 1, indent.len(), place.parse().map_err(at(on()))?));
    }
    Ok(found)
}

/// Where the comment of a line begins: at its end if it has none.
fn comment(line: &str) -> usize {
    let mut blank = true;
    for (i, c) in line.char_indices() {
        if c == '#' && blank {
            return i;
        }
        blank = c.is_whitespace();
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn place(text: &str) -> Place {
        text.parse().unwrap()
    }

    #[test]
    fn a_colon_before_any_slash_makes_a_place_remote() {
        assert!(place("/srv/www").is_local());
        assert!(place("./a:b").is_local());
        assert!(place("dir/a:b").is_local());
        assert_eq!(place("host:/srv").login(), Some("host"));
        assert_eq!(place("host:/srv").path(), Some("/srv"));
        assert_eq!(place("me@host:dir:1").login(), Some("me@host"));
        assert_eq!(place("me@host:dir:1").path(), Some("dir:1"));
        assert_eq!(place("host:").path(), Some(""));
    }

    #[test]
    fn brackets_hold_ipv6_addresses() {
        assert_eq!(place("[fd00::1]:/srv").login(), Some("fd00::1"));
        assert_eq!(place("me@[fd00::1]:srv").login(), Some("me@fd00::1"));
        assert_eq!(place("me@[fd00::1]:srv").path(), Some("srv"));
        assert!(place("[fd00::1]::module").is_daemon());
        assert!(place("[1]").is_local());
    }

    #[test]
    fn daemons_are_told_from_shells() {
        assert!(place("rsync://host/module").is_daemon());
        assert!(place("rsync://me@[fd00::1]:8730/module/dir").is_daemon());
        assert!(place("host::module/dir").is_daemon());
        assert_eq!(place("host::module").login(), None);
    }

    #[test]
    fn a_host_is_named_without_user_and_port() {
        for (text, host) in [
            ("/srv", None),
            ("me@host:dir", Some("host")),
            ("[fd00::1]:srv", Some("fd00::1")),
            ("rsync://me@host:8730/module", Some("host")),
            ("rsync://[fd00::1]:8730/module", Some("fd00::1")),
            ("me@host::module", Some("host")),
            ("[fd00::1]::module", Some("fd00::1")),
        ] {
            assert_eq!(place(text).host(), host, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in ["", "-e", "a\nb", ":path", "user@:path", "rsync://", "rsync://host", "host::"]
        {
            assert!(text.parse::<Place>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_copy_of_contents_and_of_a_directory_are_where_rsync_puts_them() {
        assert_eq!(place("a:/srv/www").copy_of("/home/www/").unwrap(), "/srv/www/");
        assert_eq!(place("a:/srv").copy_of("/home/www").unwrap(), "/srv/www");
        assert_eq!(place("a:").copy_of("www").unwrap(), "./www");
        assert_eq!(place("a:").copy_of(".").unwrap(), "./");
        assert_eq!(place("a:/").copy_of("/home/www").unwrap(), "/www");
        assert_eq!(place("/srv").copy_of("/home/www"), None);
        assert_eq!(place("a::srv").copy_of("/home/www"), None);
    }

    #[test]
    fn a_list_has_comments_and_names_the_line_of_an_error() {
        let found = list("# hosts\n\nhub:/srv\n  leaf:/srv\r\n").unwrap();
        let short: Vec<_> = found.iter().map(|(l, i, p)| (*l, *i, p.as_str())).collect();
        assert_eq!(short, [(3, 0, "hub:/srv"), (4, 2, "leaf:/srv")]);
        let error = list("a:/b\n:c\n").unwrap_err().to_string();
        assert!(error.starts_with("line 2: "), "{error}");
    }

    #[test]
    fn a_list_may_begin_with_a_byte_order_mark_and_have_comments_after_places() {
        let found = list("\u{feff}hub:/srv # the first\n\tleaf:/srv\t#\n\tb:/x#y\n").unwrap();
        let short: Vec<_> = found.iter().map(|(l, i, p)| (*l, *i, p.as_str())).collect();
        assert_eq!(short, [(1, 0, "hub:/srv"), (2, 1, "leaf:/srv"), (3, 1, "b:/x#y")]);
    }

    #[test]
    fn a_list_whose_indentation_says_nothing_is_refused() {
        for (text, line) in [("a:/\n\tb:/\n        c:/\n", 3), ("a:/\n  b:/\n \tc:/\n", 3)] {
            let error = list(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}: c:/ is indented")), "{error}");
        }
        list("a:/\n\tb:/\nc:/\n    d:/\n\n# x\n      e:/\n").unwrap(); // each block as it likes
    }

    #[test]
    fn the_same_destination_is_known_in_whatever_way_it_is_written() {
        for (one, other) in [
            ("tw", "tw/"),
            ("tw", "./tw/."),
            ("/tmp", "/tmp/../tmp/"),
            ("host:/srv", "HOST:/srv//"),
            ("host:", "host:./"),
            ("[fd00::1]:/srv", "[fd00::1]:/srv/"),
            ("host::m/x", "rsync://host/m/x/"),
            ("[fd00::1]::m", "rsync://[FD00::1]/m"),
            ("rsync://host:873/m", "host::m/"),
        ] {
            assert!(place(one).leads_to(&place(other)), "{one} {other}");
        }
        for (one, other) in [
            ("tw", "tw2"),
            ("host:srv", "host:/srv"),
            ("me@host:srv", "host:srv"),
            ("host::srv", "host:srv"),
            ("rsync://host:8730/m", "rsync://host/m"),
            ("host:/a/../b", "host:/b"), // a may be a link
        ] {
            assert!(!place(one).leads_to(&place(other)), "{one} {other}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_kept_as_it_is(text in "\\PC{0,30}|[a@:/\\[\\]]{0,12}") {
            if let Ok(place) = text.parse::<Place>() {
                prop_assert_eq!(place.as_str(), &text);
                let kinds = [place.is_local(), place.is_daemon(), place.login().is_some()];
                prop_assert_eq!(kinds.iter().filter(|k| **k).count(), 1);
                // what ssh and rsync get can be no option
                prop_assert!(!text.starts_with('-'));
            }
        }

        #[test]
        fn any_list_is_refused_or_has_no_more_places_than_lines(text in "(\\PC{0,20}\n){0,5}") {
            if let Ok(found) = list(&text) {
                prop_assert!(found.len() <= text.lines().count());
            }
        }

        /// As fuzzing does: from what lists are made of, in any order.
        #[test]
        fn a_list_gives_back_the_places_that_were_written_whatever_stands_around_them(
            bom in any::<bool>(),
            lines in prop::collection::vec(
                ("[ ]{0,3}|\t{0,2}", "[a-c]{1,3}:/[a-z#;/.:]{0,6}[a-z]|", "[ \t]{0,2}",
                 "([ \t]#[#a-z: \t]{0,8})?", "\r?"), 0..12),
        ) {
            let mut text = String::from(if bom { "\u{feff}" } else { "" });
            for (indent, place, blank, comment, end) in &lines {
                text += &format!("{indent}{place}{blank}{comment}{end}\n");
            }
            let written: Vec<_> = lines.iter().map(|l| &l.1).filter(|p| !p.is_empty()).collect();
            match list(&text) {
                Ok(found) => {
                    let read: Vec<_> = found.iter().map(|(_, _, p)| p.as_str()).collect();
                    prop_assert_eq!(read, written);
                }
                Err(error) => {
                    let message = error.to_string();
                    prop_assert!(message.contains("tabs or blanks"), "{}", message);
                    prop_assert!(text.contains('\t') && text.contains(' '));
                }
            }
        }

        #[test]
        fn a_place_leads_to_itself_however_it_ends(text in "[a-c]{1,2}:{1,2}[a-c/.]{1,8}|/[a-c/]{0,8}") {
            if let Ok(place) = text.parse::<Place>() {
                for more in ["/", "//", "/."] {
                    let other: Place = format!("{text}{more}").parse().unwrap();
                    prop_assert!(place.leads_to(&other) && other.leads_to(&place), "{} {}", place, other);
                }
            }
        }
    }
}

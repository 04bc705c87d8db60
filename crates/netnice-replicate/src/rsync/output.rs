// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What rsync says, and its exit status in words.

use std::io::{self, BufRead, BufReader, Read};

/// Bytes of what `%i` of rsync's `--out-format` says of a path.
const ITEMIZED: usize = 11;

/// A line of `--info=progress2`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Of the files transferred so far, bytes; what the receiver had already included.
    pub bytes: u64,
    /// Share of all files' bytes, 0 to 1.
    pub share: f64,
    /// Share of the files known so far that were dealt with, 0 to 1.
    pub checked: f64,
}

/// Parses a line of `--info=progress2`; None: another line.
pub fn progress(line: &str) -> Option<Progress> {
    let mut words = line.split_whitespace();
    let bytes = words.next()?.parse().ok()?;
    let percent: f64 = words.next()?.strip_suffix('%')?.parse().ok()?;
    let checked = line
        .split_once("-chk=")
        .and_then(|(_, rest)| rest.split_once(')'))
        .and_then(|(counts, _)| counts.split_once('/'))
        .and_then(|(left, all)| Some((left.parse::<u64>().ok()?, all.parse::<u64>().ok()?)))
        .filter(|(_, all)| *all > 0)
        .map_or(0.0, |(left, all)| 1.0 - left.min(all) as f64 / all as f64);
    Some(Progress { bytes, share: (percent / 100.0).clamp(0.0, 1.0), checked })
}

/// The bytes that rsync sent, from its statistics; None: another line.
pub fn bytes_sent(line: &str) -> Option<u64> {
    line.strip_prefix("Total bytes sent: ")?.trim().parse().ok()
}

/// How a line begins that names a path which differs. Others are a daemon's greeting, or what
/// options of the user ask for.
pub const DIFFERS: &str = "netnice-replicate differs: ";

/// The path that a line names because it differs; None: another line.
pub fn differing(line: &str) -> Option<&str> {
    let (what, name) = line.strip_prefix(DIFFERS)?.split_at_checked(ITEMIZED)?;
    // with -vv what is alike is named too: only its kind is said
    let differs = what.get(2..).is_some_and(|how| !how.trim().is_empty());
    differs.then(|| name.strip_prefix(' ').unwrap_or(name))
}

/// Hands on each line that ends with a line feed or a carriage return, at most 4 KiB of it.
pub fn lines(from: impl Read, mut each: impl FnMut(&str)) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    loop {
        let chunk = match from.fill_buf() {
            Ok([]) => break,
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let end = chunk.iter().position(|b| matches!(b, b'\n' | b'\r'));
        let text = &chunk[..end.unwrap_or(chunk.len())];
        line.extend_from_slice(&text[..text.len().min(4096 - line.len().min(4096))]);
        let used = end.map_or(chunk.len(), |e| e + 1);
        from.consume(used);
        if end.is_some() {
            hand_on(&mut line, &mut each);
        }
    }
    hand_on(&mut line, &mut each);
}

fn hand_on(line: &mut Vec<u8>, each: &mut impl FnMut(&str)) {
    let text = String::from_utf8_lossy(line);
    if !text.trim().is_empty() {
        each(text.trim_end());
    }
    line.clear();
}

/// The exit values of rsync(1), and those of what starts it.
fn words(code: i32) -> &'static str {
    match code {
        1 => "a wrong option",
        2 => "the two rsyncs' protocols do not fit",
        3 => "files or directories cannot be chosen",
        4 => "an action that is not supported",
        5 => "the daemon refused",
        6 => "the daemon cannot write its log",
        10 => "the connection failed",
        11 => "reading or writing a file failed",
        12 => "the connection broke",
        13 => "the other rsync reported errors",
        14 => "processes cannot talk to each other",
        20 => "it was interrupted",
        21 => "waiting for a process failed",
        22 => "memory ran out",
        23 => "some files could not be transferred",
        24 => "some files vanished from the source",
        25 => "the limit of deletions stopped it",
        30 => "nothing came or went for too long",
        35 => "the daemon did not answer in time",
        124 => "the remote command failed",
        125 => "netnice failed at the feeder",
        126 => "the remote command cannot be run",
        127 => "the remote command was not found",
        255 => "ssh failed",
        _ => "a failure that rsync does not document",
    }
}

/// Why a transfer failed and what to do, and whether another attempt would fail alike.
pub fn explain(
    code: Option<i32>,
    signal: Option<i32>,
    errors: &[String],
    place: &str,
    feeder: Option<&str>,
) -> (String, bool) {
    let Some(code) = code else {
        return (format!("rsync was ended by signal {}", signal.unwrap_or(0)), false);
    };
    let has = |what: &str| errors.iter().any(|e| e.contains(what));
    let host = |place: &str| place.split(':').next().unwrap_or(place).to_string();
    let near = host(feeder.unwrap_or(place));
    let words = words(code);
    if has("Host key verification failed") {
        let next = format!("check it and accept it once: ssh {near} true");
        return (format!("ssh does not know the host key of {near}; {next}"), true);
    }
    // ssh's own words; a file's "Permission denied" ends with a number in brackets
    if has("Permission denied (publickey") || has("Permission denied, please") {
        let next = format!("give it this user's key: ssh-copy-id {near}");
        return (format!("ssh cannot log in to {near} without a password; {next}"), true);
    }
    if has("@ERROR: auth failed on module") {
        let next =
            "write it into a file that nobody else can read, and add: -- --password-file=FILE";
        return (format!("the daemon wants a password; {next}"), true);
    }
    // rsync's own status depends on which end of the broken pipe it notices first
    if let Some(said) = errors.iter().find(|e| e.starts_with("ssh: ")) {
        return (format!("ssh cannot reach {near}: {said}"), false);
    }
    if code == 127 && feeder.is_some() && has("netnice") {
        return (format!("netnice was not found at the feeder {near}; install it there"), true);
    }
    if code == 127 {
        return (format!("rsync was not found at {}; install it there", host(place)), true);
    }
    let said = errors
        .iter()
        .find(|e| !e.starts_with("rsync error: ") && !e.starts_with("Warning: "))
        .or(errors.last());
    let text = match said {
        Some(said) => format!("{words} (rsync's exit status {code}): {said}"),
        None => format!("{words} (rsync's exit status {code})"),
    };
    (text, matches!(code, 1..=4 | 6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn progress_lines_are_read() {
        let line = "      1238099  25%  146.38kB/s    0:00:08 (xfr#5, to-chk=30/40)";
        let expected = Progress { bytes: 1_238_099, share: 0.25, checked: 0.25 };
        assert_eq!(progress(line), Some(expected));
        let early = progress("  32768   0%    0.00kB/s    0:00:00  ").unwrap();
        assert_eq!((early.bytes, early.checked), (32768, 0.0));
        assert_eq!(progress("Total bytes sent: 12"), None);
        assert_eq!(bytes_sent("Total bytes sent: 12"), Some(12));
    }

    #[test]
    fn only_lines_about_paths_that_differ_name_some() {
        for (line, name) in [
            ("netnice-replicate differs: >fc........  a b", Some(" a b")),
            ("netnice-replicate differs: *deleting   dir/", Some("dir/")),
            ("netnice-replicate differs: .f          same", None),
            (">fc........ as a greeting", None),
            ("netnice-replicate differs: short", None),
            ("sending incremental file list", None),
        ] {
            assert_eq!(differing(line), name, "{line}");
        }
    }

    #[test]
    fn lines_end_with_either_return_and_are_bounded() {
        let mut seen = vec![];
        let long = "x".repeat(10_000);
        lines(format!("a\rb\n\n{long}\nlast").as_bytes(), |l| seen.push(l.to_string()));
        assert_eq!(seen.iter().map(String::len).collect::<Vec<_>>(), [1, 1, 4096, 4]);
    }

    #[test]
    fn errors_name_the_next_command() {
        let said = |code, text: &str, feeder| {
            explain(Some(code), None, &[text.to_string()], "me@b:/1", feeder)
        };
        let (text, lasting) = said(255, "me@b: Permission denied (publickey).", None);
        assert!(text.contains("ssh-copy-id me@b") && lasting, "{text}");
        let (text, lasting) = said(5, "Password: @ERROR: auth failed on module m", None);
        assert!(text.contains("the daemon wants a password; ") && lasting, "{text}");
        assert!(text.ends_with("--password-file=FILE"), "{text}");
        let (text, _) = said(127, "sh: 1: netnice: not found", Some("hub:/2"));
        assert!(text.contains("netnice was not found at the feeder hub"), "{text}");
        let (text, lasting) = said(11, "rsync: write failed: No space left on device (28)", None);
        assert!(text.contains("No space left") && !lasting, "{text}");
        let (text, lasting) = said(23, "rsync: mkdir: Permission denied (13)", None);
        assert!(text.contains("some files") && !lasting, "{text}");
        assert!(said(1, "unknown option", None).1);
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_harm(line in "\\PC{0,60}|[ 0-9%#/()a-z=.,-]{0,60}") {
            if let Some(p) = progress(&line) {
                prop_assert!((0.0..=1.0).contains(&p.share) && (0.0..=1.0).contains(&p.checked));
            }
        }
    }
}

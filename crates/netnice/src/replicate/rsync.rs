// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! rsync: its command line, its output, and its exit status in words.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use rustix::process::{kill_process_group, Pid, Signal};

use super::job::{Job, SCOPE};

/// Where a receiver keeps a partial file until the next attempt; rsync hides it from transfers.
const PARTIAL: &str = ".netnice-partial";
/// Seconds without a byte either way after which a peer counts as gone. A background flow may
/// rest for tens of seconds (96 round trips between two bursts), so it is not short.
const SILENCE_S: u32 = 180;
/// Seconds until a host that does not answer counts as unreachable.
const CONNECT_S: u32 = 10;
/// Lines of the standard error that are kept.
const KEPT: usize = 20;

/// What a transfer is to bring up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Everything below the source.
    Full,
    /// Paths relative to the source; those that do not exist any more were removed.
    Paths(BTreeSet<OsString>),
}

/// The remote shell that rsync uses: it must not wait for somebody to type a password.
pub fn remote_shell() -> String {
    format!("ssh -o BatchMode=yes -o ConnectTimeout={CONNECT_S} -o ServerAliveInterval=30")
}

/// How content is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By size and time, then copied.
    Quick,
    /// By checksum, then copied.
    Checksum,
    /// By checksum, only listed.
    Verify,
}

/// The command that copies what `need` says to destination `i`: rsync, or ssh to the feeder with
/// `netnice run -- rsync` there.
///
/// # Errors
/// When the tree of destinations makes no sense.
pub fn command(job: &Job, i: usize, need: &Need, mode: Mode) -> Result<Command> {
    let chain = job.feeders(i)?;
    let mut arguments = vec!["rsync".to_string()];
    arguments.extend(options(job, i, need, mode));
    let source = job.source_of(i)?;
    let source = match need {
        Need::Full => source,
        Need::Paths(_) => split(&source).0,
    };
    arguments.extend(["--".into(), source, job.destinations[i].place.as_str().into()]);

    let mut command = match chain.split_first() {
        None => {
            let mut command = Command::new(&arguments[0]);
            command.args(&arguments[1..]);
            command
        }
        Some((first, others)) => {
            let login = |i: &usize| job.destinations[*i].place.login().unwrap_or_default();
            let shell = remote_shell();
            let run = under_netnice(job, i, &arguments)?;
            let mut text = format!("RSYNC_RSH=${{RSYNC_RSH:-{shell}}} exec {run}");
            for hop in others.iter().rev() {
                text = format!("exec ${{RSYNC_RSH:-{shell}}} {} {}", login(hop), quote(&text));
            }
            let mut command = Command::new("sh");
            command.args(["-c", "exec $RSYNC_RSH \"$@\"", "sh", login(first), &text]);
            command
        }
    };
    if std::env::var_os("RSYNC_RSH").is_none() {
        command.env("RSYNC_RSH", remote_shell());
    }
    // names in messages are escaped, and messages are in English
    command.env("LC_ALL", "C");
    Ok(command)
}

/// The text of a shell's command that runs `arguments`, the transfer to destination `i`, in the
/// background class of this job, and in its group if it has a share.
fn under_netnice(job: &Job, i: usize, arguments: &[String]) -> Result<String> {
    let config = job.choice.config()?;
    let dscp = if job.choice.tos() == 0 { "none" } else { "le" };
    let mut all: Vec<String> =
        ["netnice", "run", "--algorithm", config.algorithm().name(), "--dscp", dscp]
            .map(String::from)
            .into();
    for set in &job.choice.set {
        all.extend(["--set".into(), set.clone()]);
    }
    if let Some(share) = job.share(i) {
        let (group, share, scope) = (job.group().name, share.to_string(), SCOPE.to_string());
        all.extend(["--group".into(), group, "--share".into(), share, "--scope".into(), scope]);
    }
    all.push("--".into());
    Ok(all.iter().chain(arguments).map(|a| quote(a)).collect::<Vec<_>>().join(" "))
}

/// `text` as one word of a shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn options(job: &Job, i: usize, need: &Need, mode: Mode) -> Vec<String> {
    let mut options: Vec<String> = vec![
        "--archive".into(),
        "--hard-links".into(),
        "--sparse".into(),
        // with nanoseconds: what is read after a change has the time from before it, and would pass
        // for the same for ever if both are in one second
        "--modify-window=-1".into(),
        format!("--partial-dir={PARTIAL}"),
        format!("--timeout={SILENCE_S}"),
        "--no-human-readable".into(),
        "--outbuf=L".into(),
    ];
    if job.destinations[i].place.is_daemon() {
        options.push(format!("--contimeout={CONNECT_S}"));
    }
    if job.delete {
        options.push("--delete".into());
    }
    if let Need::Paths(_) = need {
        let missing = if job.delete { "--delete-missing-args" } else { "--ignore-missing-args" };
        options.extend(["--files-from=-", "--from0", "--recursive", missing].map(String::from));
    }
    options.extend(job.rsync.iter().cloned());
    // last: what is parsed must not be changed
    match mode {
        Mode::Quick => options.push("--info=progress2,stats2".into()),
        Mode::Checksum => {
            options.extend(["--checksum", "--info=progress2,stats2"].map(String::from));
        }
        Mode::Verify => {
            options.extend(["--checksum", "--dry-run", "--out-format=%i %n"].map(String::from));
        }
    }
    options
}

/// With a list of paths rsync drops the name of the source: its parent, and what stands before
/// each path then.
fn split(source: &str) -> (String, Option<String>) {
    if source.ends_with('/') || source.ends_with("/.") || source == "." {
        return (source.into(), None);
    }
    match source.rsplit_once('/') {
        Some((parent, name)) => (format!("{parent}/"), Some(name.into())),
        None => ("./".into(), Some(source.into())),
    }
}

/// What rsync reads as its list of paths.
fn file_list(source: &str, need: &Need) -> Option<Vec<u8>> {
    let Need::Paths(paths) = need else { return None };
    let before = split(source).1;
    let mut list = Vec::new();
    for path in paths {
        if let Some(name) = &before {
            list.extend_from_slice(name.as_bytes());
            list.push(b'/');
        }
        list.extend_from_slice(path.as_encoded_bytes());
        list.push(0);
    }
    Some(list)
}

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
fn bytes_sent(line: &str) -> Option<u64> {
    line.strip_prefix("Total bytes sent: ")?.trim().parse().ok()
}

/// What a transfer tells while it goes on.
pub enum News {
    Progress(Progress),
    Verifying,
}

/// How a transfer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// All is there; bytes sent. `vanished`: files of the source went away meanwhile.
    Done { sent: u64, vanished: bool },
    /// Content differs although rsync copied it; how many paths, and some of them.
    Differs { sent: u64, count: usize, some: Vec<String> },
    /// `lasting`: another attempt would fail alike.
    Failed { error: String, lasting: bool },
}

/// A handle for ending a transfer.
#[derive(Clone, Default)]
pub struct Running(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    child: Option<Child>,
    stopped: bool,
}

impl Running {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the processes of the transfer to end, or forces them to.
    pub fn stop(&self, force: bool) {
        let mut state = self.state();
        state.stopped = true;
        if let Some(child) = &state.child {
            let signal = if force { Signal::KILL } else { Signal::TERM };
            // not waited for yet, or it would not be here: the number is still theirs
            let _ = kill_process_group(Pid::from_child(child), signal);
        }
    }

    /// Starts a command by `start`; its process group is ended by `stop`.
    fn spawn(&self, command: &mut Command, start: &Start<'_>) -> io::Result<Pipes> {
        let mut state = self.state();
        if state.stopped {
            return Err(io::Error::from(io::ErrorKind::Interrupted));
        }
        command
            .process_group(0) // the terminal's signals reach netnice alone, which ends it in order
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = start(command)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        state.child = Some(child);
        match pipes {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    }

    /// Waits without holding the lock, so that `stop` always gets it.
    fn wait(&self) -> io::Result<ExitStatus> {
        loop {
            let mut state = self.state();
            let Some(child) = &mut state.child else {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            };
            if let Some(status) = child.try_wait()? {
                state.child = None;
                return Ok(status);
            }
            drop(state);
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// How a process of a transfer is started: where it belongs.
pub type Start<'a> = dyn Fn(&mut Command) -> io::Result<Child> + 'a;

type Pipes = (std::process::ChildStdin, std::process::ChildStdout, std::process::ChildStderr);

/// Copies to destination `i`, and compares if the job wants that.
pub fn transfer(
    job: &Job,
    i: usize,
    need: &Need,
    mode: Mode,
    running: &Running,
    start: &Start<'_>,
    mut tell: impl FnMut(News),
) -> End {
    let mut sent = 0;
    let end = run(job, i, need, mode, running, start, |line| {
        if let Some(progress) = progress(line) {
            tell(News::Progress(progress));
        } else if let Some(bytes) = bytes_sent(line) {
            sent = bytes;
        }
    });
    let vanished = match end {
        Ok(vanished) => vanished,
        Err(failed) => return failed,
    };
    if job.verify {
        tell(News::Verifying);
        let (mut count, mut some) = (0, Vec::new());
        let end = run(job, i, need, Mode::Verify, running, start, |line| {
            count += 1;
            if some.len() < 3 {
                some.push(line.split_once(' ').map_or(line, |(_, name)| name).to_string());
            }
        });
        if let Err(failed) = end {
            return failed;
        }
        if count > 0 {
            return End::Differs { sent, count, some };
        }
    }
    End::Done { sent, vanished }
}

/// Runs one rsync and hands on each line of its output. True if files of the source vanished.
fn run(
    job: &Job,
    i: usize,
    need: &Need,
    mode: Mode,
    running: &Running,
    start: &Start<'_>,
    mut each: impl FnMut(&str),
) -> Result<bool, End> {
    let failed = |error: String, lasting| Err(End::Failed { error, lasting });
    let (mut command, source) = match (command(job, i, need, mode), job.source_of(i)) {
        (Ok(command), Ok(source)) => (command, source),
        (Err(error), _) | (_, Err(error)) => return failed(format!("{error:#}"), true),
    };
    let (mut stdin, stdout, stderr) = match running.spawn(&mut command, start) {
        Ok(pipes) => pipes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return failed("rsync was not found; install it: apt-get install rsync".into(), true);
        }
        Err(error) => return failed(format!("cannot start rsync: {error}"), false),
    };
    let list = file_list(&source, need).unwrap_or_default();
    // threads of their own: rsync may write before it has read everything
    let writer = thread::spawn(move || drop(stdin.write_all(&list)));
    let reader = thread::spawn(move || {
        let mut kept = VecDeque::new();
        lines(stderr, |line| {
            if kept.len() == KEPT {
                kept.pop_front();
            }
            kept.push_back(line.to_string());
        });
        Vec::from(kept)
    });
    lines(stdout, &mut each);
    let status = running.wait();
    let errors = reader.join().unwrap_or_default();
    let _ = writer.join();
    let place = job.destinations[i].place.as_str();
    let feeder = job.destinations[i].feeder.map(|f| job.destinations[f].place.as_str());
    match status {
        Ok(status) => match status.code() {
            Some(0) => Ok(false),
            Some(24) => Ok(true),
            code => {
                let (error, lasting) = explain(code, status.signal(), &errors, place, feeder);
                failed(error, lasting)
            }
        },
        Err(error) => failed(format!("cannot wait for rsync: {error}"), false),
    }
}

/// Hands on each line that ends with a line feed or a carriage return, at most 4 KiB of it.
fn lines(from: impl Read, mut each: impl FnMut(&str)) {
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
fn explain(
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
    use super::super::job::tests::job;
    use super::*;
    use proptest::prelude::*;

    fn arguments(command: &Command) -> Vec<String> {
        command.get_args().map(|a| a.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_plain_transfer_deletes_and_compares_only_when_asked() {
        let mut job = job("a:/1\n");
        let plain = arguments(&command(&job, 0, &Need::Full, Mode::Quick).unwrap());
        assert_eq!(plain[plain.len() - 3..], ["--", "/home/www/", "a:/1"]);
        assert!(!plain.iter().any(|a| a.contains("delete") || a == "--checksum"));
        job.delete = true;
        job.rsync = vec!["--exclude=x".into()];
        let more = arguments(&command(&job, 0, &Need::Full, Mode::Verify).unwrap());
        for option in ["--delete", "--exclude=x", "--checksum", "--dry-run"] {
            assert!(more.iter().any(|a| a == option), "{option}");
        }
    }

    #[test]
    fn a_feeder_runs_rsync_under_its_own_netnice() {
        let job = job("me@hub:/2\n  b:/it's\n    c:/4\n");
        let two = arguments(&command(&job, 1, &Need::Full, Mode::Quick).unwrap());
        assert_eq!(two[3], "me@hub");
        assert!(two[4].contains("'netnice' 'run' '--algorithm' 'nice' '--dscp' 'le' '--' 'rsync'"));
        assert!(two[4].ends_with(r"'--' '/2/' 'b:/it'\''s'"), "{}", two[4]);
        let three = arguments(&command(&job, 2, &Need::Full, Mode::Quick).unwrap());
        assert_eq!(three[3], "me@hub");
        assert!(!three[4].contains("--group"));
        assert!(three[4].contains("} b '"), "{}", three[4]);
    }

    #[test]
    fn a_feeder_divides_among_those_below_it_by_their_shares() {
        let mut job = job("hub:/2\n  b:/3\n  c:/4\n");
        job.destinations[2].share = Some(2.5);
        for (i, share) in [(1, "1"), (2, "2.5")] {
            let text = arguments(&command(&job, i, &Need::Full, Mode::Quick).unwrap()).remove(4);
            let group =
                format!("'--group' 'test' '--share' '{share}' '--scope' 'all' '--' 'rsync'");
            assert!(text.contains(&group), "{text}");
        }
    }

    #[test]
    fn a_list_of_paths_keeps_the_name_of_a_source_without_a_slash() {
        let need = Need::Paths(["x".into(), "y\n/z".into()].into());
        assert_eq!(file_list("/home/www/", &need).unwrap(), b"x\0y\n/z\0");
        assert_eq!(file_list("/home/www", &need).unwrap(), b"www/x\0www/y\n/z\0");
        assert_eq!(split("/home/www").0, "/home/");
        assert_eq!(split("www"), ("./".into(), Some("www".into())));
        assert_eq!(file_list("/home/www", &Need::Full), None);
    }

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

        #[test]
        fn a_quoted_text_is_one_word_to_the_shell(text in "[^\0]{0,20}") {
            let out = Command::new("sh")
                .args(["-c", &format!("printf %s {}", quote(&text))])
                .output()
                .unwrap();
            prop_assert_eq!(out.stdout, text.into_bytes());
        }
    }
}

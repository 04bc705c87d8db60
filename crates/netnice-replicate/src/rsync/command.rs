// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! rsync's command line: what it is told to copy, from where, and how.

use std::process::Command;

use crate::job::{Job, SCOPE};
use crate::need::Need;
use crate::place::named;
use crate::Result;

use super::output::DIFFERS;

/// Where a receiver keeps a partial file until the next attempt; rsync hides it from transfers.
pub const PARTIAL: &str = ".netnice-partial";
/// Seconds without a byte either way after which a peer counts as gone. A background flow may
/// rest for tens of seconds (96 round trips between two bursts), so it is not short.
const SILENCE_S: u32 = 180;
/// The same where files are compared by checksum: nothing comes or goes while a large one is read.
const SILENCE_READING_S: u32 = 6 * 3600;
/// Seconds until a host that does not answer counts as unreachable.
const CONNECT_S: u32 = 10;

/// The remote shell that rsync uses. It must not wait for somebody to type a password, and needs a
/// connection of its own: one that ssh shares with others (ControlMaster) belongs to another
/// process, which is not in the background, or would stay there with somebody's work.
pub fn remote_shell() -> String {
    format!(
        "ssh -o BatchMode=yes -o ControlPath=none -o ConnectTimeout={CONNECT_S} \
         -o ServerAliveInterval=30"
    )
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
    arguments.extend(["--".into(), job.source_of(i)?, job.destinations[i].place.as_str().into()]);

    let mut command = match chain.split_first() {
        None => {
            let mut command = Command::new(&arguments[0]);
            command.args(&arguments[1..]);
            command
        }
        Some((first, others)) => {
            let login = |i: &usize| job.destinations[*i].place.login().unwrap_or_default();
            let shell = remote_shell();
            let run = under_netnice(job, i, &arguments);
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
fn under_netnice(job: &Job, i: usize, arguments: &[String]) -> String {
    let dscp = if job.choice.tos() == 0 { "none" } else { "le" };
    // a class as a class: which algorithm it has is for the feeder's netnice to say
    let (option, name) = match &job.choice.algorithm {
        Some(name) => ("--algorithm", name.as_str()),
        None => ("--class", job.choice.class.unwrap_or_default().name()),
    };
    let mut all: Vec<String> =
        ["netnice", "run", option, name, "--dscp", dscp].map(String::from).into();
    for set in &job.choice.set {
        all.extend(["--set".into(), set.clone()]);
    }
    if let Some(share) = job.share(i) {
        let (group, share, scope) = (job.group().name, share.to_string(), SCOPE.to_string());
        all.extend(["--group".into(), group, "--share".into(), share, "--scope".into(), scope]);
    }
    if job.or_plain {
        all.push("--or-plain".into());
    }
    all.push("--".into());
    all.iter().chain(arguments).map(|a| quote(a)).collect::<Vec<_>>().join(" ")
}

/// `text` as one word of a shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn options(job: &Job, i: usize, need: &Need, mode: Mode) -> Vec<String> {
    let silence = if mode == Mode::Quick { SILENCE_S } else { SILENCE_READING_S };
    let mut options: Vec<String> = vec![
        "--archive".into(),
        "--hard-links".into(),
        "--sparse".into(),
        // with nanoseconds: what is read after a change has the time from before it, and would pass
        // for the same for ever if both are in one second
        "--modify-window=-1".into(),
        format!("--partial-dir={PARTIAL}"),
        format!("--timeout={silence}"),
        "--no-human-readable".into(),
        "--outbuf=L".into(),
    ];
    if job.destinations[i].place.is_daemon() {
        options.push(format!("--contimeout={CONNECT_S}"));
    }
    if job.delete {
        options.push("--delete".into());
    }
    if let Some(path) = job.left_out.as_ref().filter(|_| job.destinations[i].feeder.is_none()) {
        options.push(exclude(&job.source, path));
    }
    options.extend(job.rsync.iter().cloned());
    if let Need::Paths(_) = need {
        options.push("--filter=merge -".into());
    }
    // last: what is parsed must not be changed
    match mode {
        Mode::Quick => options.push("--info=progress2,stats2".into()),
        Mode::Checksum => {
            options.extend(["--checksum", "--info=progress2,stats2"].map(String::from));
        }
        Mode::Verify => {
            options.extend(["--checksum", "--dry-run"].map(String::from));
            options.push(format!("--out-format={DIFFERS}%i %n"));
        }
    }
    options
}

/// Keeps rsync from a path of the source, which it would read as a pattern.
fn exclude(source: &str, path: &str) -> String {
    let whole = match named(source) {
        Some(name) => format!("/{name}/{path}"),
        None => format!("/{path}"),
    };
    // a backslash is one, unless the pattern has something that it could keep from being special
    let special = |c: char| "*?[".contains(c);
    let pattern: String = match whole.contains(special) {
        true => whole
            .chars()
            .flat_map(|c| (special(c) || c == '\\').then_some('\\').into_iter().chain([c]))
            .collect(),
        false => whole,
    };
    format!("--exclude={pattern}/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::tests::job;
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
    fn only_where_large_files_may_be_read_in_silence_that_lasts_for_hours() {
        let job = job("a:/1\n");
        for (mode, timeout) in [(Mode::Quick, 180), (Mode::Checksum, 21600), (Mode::Verify, 21600)]
        {
            let all = arguments(&command(&job, 0, &Need::Full, mode).unwrap());
            assert!(all.contains(&format!("--timeout={timeout}")), "{mode:?}: {all:?}");
        }
    }

    #[test]
    fn ssh_shares_no_connection_though_its_configuration_says_so() {
        let config = tempfile::NamedTempFile::new().unwrap();
        let text = "Host *\n  ControlMaster auto\n  ControlPath /run/shared-%C\n";
        std::fs::write(config.path(), text).unwrap();
        let path_of = |shell: &str| {
            let mut words = shell.split_whitespace();
            let mut ssh = Command::new(words.next().unwrap());
            let out = ssh.args(words).arg("-F").arg(config.path()).args(["-G", "host"]).output();
            let said = String::from_utf8(out.unwrap().stdout).unwrap();
            let path = said.lines().find_map(|l| l.strip_prefix("controlpath "));
            path.unwrap_or("none").to_string()
        };
        assert!(path_of("ssh").starts_with("/run/shared-"));
        assert_eq!(path_of(&remote_shell()), "none");
    }

    #[test]
    fn a_feeder_runs_rsync_under_its_own_netnice() {
        let job = job("me@hub:/2\n  b:/it's\n    c:/4\n");
        let two = arguments(&command(&job, 1, &Need::Full, Mode::Quick).unwrap());
        assert_eq!(two[3], "me@hub");
        assert!(two[4].contains("'netnice' 'run' '--class' 'idle' '--dscp' 'le' '--' 'rsync'"));
        assert!(two[4].ends_with(r"'--' '/2/' 'b:/it'\''s'"), "{}", two[4]);
        let mut named = crate::job::tests::job("hub:/2\n  b:/3\n");
        named.choice.algorithm = Some("vegas".into());
        let text = arguments(&command(&named, 1, &Need::Full, Mode::Quick).unwrap()).remove(4);
        assert!(text.contains("'netnice' 'run' '--algorithm' 'vegas' '--dscp' 'le'"), "{text}");
        named.or_plain = true;
        let text = arguments(&command(&named, 1, &Need::Full, Mode::Quick).unwrap()).remove(4);
        assert!(text.contains("'--dscp' 'le' '--or-plain' '--' 'rsync'"), "{text}");
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
    fn what_is_left_out_is_excluded_from_transfers_of_this_machine_alone() {
        let mut job = job("a:/1\n  b:/2\n/3\n");
        job.left_out = Some("lib/st[a]te".into());
        let has = |job: &Job, i, pattern: &str| {
            let all = arguments(&command(job, i, &Need::Full, Mode::Quick).unwrap());
            let at = |what: &str| all.iter().position(|a| a.contains(what));
            at("--exclude=").is_some() && all.contains(&format!("--exclude={pattern}"))
        };
        assert!(has(&job, 0, r"/lib/st\[a]te/") && has(&job, 2, r"/lib/st\[a]te/"));
        let fed = arguments(&command(&job, 1, &Need::Full, Mode::Quick).unwrap());
        assert!(!fed.iter().any(|a| a.contains("--exclude")));
        job.source = "/home/www".into();
        assert!(has(&job, 0, r"/www/lib/st\[a]te/"));
        job.left_out = Some(r"a\b".into());
        assert!(has(&job, 0, r"/www/a\b/")); // without anything special a backslash is itself
    }

    proptest! {
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

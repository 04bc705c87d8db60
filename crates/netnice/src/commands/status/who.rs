// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whose a connection or a run is, in words.

use netnice_manager::process::Process;
use netnice_manager::snapshot::{Connection, RunStatus};

use crate::units::{count, visible};

/// The most of a command that is shown, in characters.
const COMMAND: usize = 60;

/// The processes of a run: the first with its command, how many others, and what it has open.
pub fn members(run: &RunStatus) -> String {
    let open = count(run.report.open, "open connection", "open connections");
    let Some((first, others)) = run.processes.split_first() else {
        return format!("no process; {open}");
    };
    let others = match others.len() + run.processes_left_out {
        0 => String::new(),
        n => format!(", and {}", count(n as u64, "other process", "other processes")),
    };
    format!("{}: {}{others}; {open}", named(first), shortened(&first.command))
}

/// The processes that hold a connection, or why none does.
pub fn holders(connection: &Connection) -> String {
    match connection.processes.as_slice() {
        _ if connection.orphaned => "none (ended or closed it)".into(),
        [] if connection.inode == 0 => "none (not accepted yet)".into(),
        [] => "not seen from here".into(),
        all => {
            let names = all.iter().map(named).collect::<Vec<_>>().join(" ");
            match connection.processes_left_out {
                0 => names,
                n => format!("{names} and {n} more"),
            }
        }
    }
}

fn named(process: &Process) -> String {
    format!("{}[{}]", visible(&process.name), process.pid)
}

fn shortened(command: &str) -> String {
    match command.char_indices().nth(COMMAND) {
        Some((end, _)) => visible(&command[..end]) + "...",
        None => visible(command),
    }
}

#[cfg(test)]
mod tests {
    use netnice_manager::report::Report;

    use super::*;

    fn process(pid: i32, name: &str, command: &str) -> Process {
        Process { pid, name: name.into(), command: command.into() }
    }

    #[test]
    fn a_run_is_known_by_its_command_and_has_others() {
        let report = Report { open: 1, ..Report::default() };
        let rsync = process(7, "rsync", "rsync -a /home backup:/home");
        let processes = vec![rsync];
        let mut run = RunStatus { report, began: Some(7), processes, ..RunStatus::default() };
        assert_eq!(members(&run), "rsync[7]: rsync -a /home backup:/home; 1 open connection");
        run.processes.push(process(8, "ssh", "ssh backup"));
        assert!(members(&run).ends_with("backup:/home, and 1 other process; 1 open connection"));
        run.processes_left_out = 50;
        assert!(members(&run).ends_with("and 51 other processes; 1 open connection"));
        run.processes.clear();
        assert_eq!(members(&run), "no process; 1 open connection");
    }

    #[test]
    fn what_a_terminal_would_obey_is_not_shown_and_a_long_command_is_cut() {
        let evil = process(7, "a\u{1b}[2Jb", &("é\n".to_string() + &"x".repeat(100)));
        assert_eq!(named(&evil), "a?[2Jb[7]");
        assert_eq!(shortened(&evil.command), "é?".to_string() + &"x".repeat(COMMAND - 2) + "...");
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What of netnice works on this machine, tried one after the other.

use std::fs;
use std::process::Command;

use serde::Serialize;

use crate::choice::Choice;
use crate::error::{io, refuse};
use crate::hold::INSTEAD;
use crate::run::Run;
use crate::system::{require_privileges, System};
use crate::Result;

/// The oldest kernel on which netnice was tried.
const OLDEST: (u32, u32) = (6, 1);

/// Something that netnice needs or does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// In a word.
    pub what: &'static str,
    /// Whether it is there, or works.
    pub works: bool,
    /// Whether `netnice run` needs it.
    pub needed: bool,
    /// What was found; or why it does not work, and what would do.
    pub said: String,
}

/// What finds it out.
type Trial = fn() -> Result<String>;

/// All trials, those that `netnice run` needs first.
const TRIALS: [(bool, &str, Trial); 6] = [
    (true, "rights", rights),
    (true, "kernel", kernel),
    (true, "types", types),
    (true, "run", run),
    (false, "hold", hold),
    (false, "replicate", replicate),
];

/// Tries everything up to what is needed and does not work, and leaves nothing behind.
pub fn findings() -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for (needed, what, trial) in TRIALS {
        let (works, said) = trial().map_or_else(|e| (false, e.to_string()), |said| (true, said));
        found.push(Finding { what, works, needed, said });
        if needed && !works {
            break;
        }
    }
    found
}

fn rights() -> Result<String> {
    require_privileges()?;
    Ok("this process may load programs into the kernel, and attach them".into())
}

fn kernel() -> Result<String> {
    let file = "/proc/sys/kernel/osrelease";
    let release = fs::read_to_string(file).map_err(io(format!("cannot read {file}")))?;
    let release = release.trim();
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < OLDEST {
        let (major, minor) = OLDEST;
        refuse!("Linux {release} is older than {major}.{minor}; boot a newer kernel");
    }
    Ok(format!("Linux {release}"))
}

fn types() -> Result<String> {
    if let Some(why) = netnice_bpf::lacks_types() {
        refuse!("{why}");
    }
    Ok("the kernel describes its types (BTF)".into())
}

fn run() -> Result<String> {
    let choice = Choice::default();
    let config = choice.config()?;
    let control = config.algorithm().control();
    let system = System::change()?;
    let was_ready = netnice_bpf::registered()?.contains(&control);
    drop(Run::begin(&system, &config, choice.tos(), None)?);
    drop(system);
    let system = System::change()?; // takes away what it needed
    if !was_ready {
        system.disable(&[config.algorithm()])?;
    }
    Ok(format!("a run began and ended; its connections have {control}"))
}

fn hold() -> Result<String> {
    let choice = Choice::default();
    let system = System::change()?;
    system.look_for_fq_again()?;
    let held = system.hold_for(&choice, choice.config()?.algorithm());
    drop(system);
    System::change()?; // as above
    if held.devices.is_empty() {
        refuse!("{}{INSTEAD}", held.why_not.join("; "));
    }
    let mut said = format!("packets wait in this host at {}", held.devices.join(", "));
    if !held.why_not.is_empty() {
        said += &format!("; not everywhere: {}", held.why_not.join("; "));
    }
    Ok(said)
}

fn replicate() -> Result<String> {
    let none = "rsync was not found; install it: apt-get install rsync";
    let said = Command::new("rsync").arg("--version").output().map_err(io(none))?.stdout;
    let said = String::from_utf8_lossy(&said);
    let words = said.lines().next().unwrap_or_default().split_whitespace();
    Ok(words.take(3).collect::<Vec<_>>().join(" "))
}

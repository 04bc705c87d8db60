// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The built command and a scenario for it.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A short scenario with many small flows.
pub const SCENARIO: &str = "
name = \"test\"
warmup_s = 0.2
measure_s = 0.8
drain_s = 20.0
[bottleneck]
rate_mbit = 80
rtt_ms = 1
limit_packets = 100
[foreground]
";

pub fn load() -> Command {
    Command::new(env!("CARGO_BIN_EXE_netnice-load"))
}

pub fn run(arguments: &[&str]) -> Output {
    load().args(arguments).output().expect("the command starts")
}

pub fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{}", said(output)))
}

pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn scenario(text: &str) -> (TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("test.toml");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap().to_owned();
    (directory, path)
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A listening mode of the command, in a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;

use crate::common::load;

/// A listening mode of the command, killed at the end of its test.
pub struct Listener {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    pub address: String,
}

impl Listener {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = load()
            .args(arguments)
            .args(["--listen", "127.0.0.1:0", "--json", "-"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the command starts");
        let mut output = BufReader::new(child.stdout.take().expect("it has an output"));
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening ").expect(&line).into();
        Self { child, output, address }
    }

    /// Ends it; returns whether it went well, and its report.
    pub fn finish(mut self) -> (bool, Value) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).unwrap();
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let ended_well = self.child.wait().unwrap().success();
        (ended_well, serde_json::from_str(&text).unwrap())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

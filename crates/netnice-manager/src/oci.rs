// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A container as its runtime tells a hook of it: the state of the OCI runtime specification.

use std::collections::HashMap;
use std::io::Read;

use serde::Deserialize;

use crate::choice::Class;
use crate::error::{io, refuse};
use crate::Result;

/// The annotation that asks for a class.
pub const ANNOTATION: &str = "netnice.class";
/// More than a runtime writes.
const MOST: u64 = 1 << 20;
/// The version that this knows, of all minor ones.
const VERSION: &str = "1.";

/// What is known of a container.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    oci_version: String,
    id: String,
    status: String,
    #[serde(default)]
    pid: i32,
    #[serde(default)]
    annotations: Option<HashMap<String, String>>,
}

/// A container that shall be in the background.
#[derive(Debug, PartialEq)]
pub struct Wanted {
    pub id: String,
    pub pid: i32,
    pub class: Class,
}

impl State {
    /// Reads it to the end.
    ///
    /// # Errors
    /// When it is no state, or of another version.
    pub fn read(input: impl Read) -> Result<State> {
        let mut text = Vec::new();
        let read = input.take(MOST + 1).read_to_end(&mut text);
        read.map_err(io("cannot read the state of the container from standard input"))?;
        if text.len() as u64 > MOST {
            refuse!(
                "the state of the container is longer than {MOST} bytes, which no runtime writes"
            );
        }
        let state: State = match serde_json::from_slice(&text) {
            Ok(state) => state,
            Err(error) => refuse!(
                "standard input has no state of a container as a runtime gives it to a hook: {error}"
            ),
        };
        if !state.oci_version.starts_with(VERSION) {
            refuse!(
                "the state of the container is of version {:?} of the runtime specification; netnice \
                 knows {VERSION}x",
                state.oci_version
            );
        }
        Ok(state)
    }

    /// None: nobody asks for anything, or the container has ended.
    ///
    /// # Errors
    /// When there is no such class, or no process.
    pub fn wanted(self) -> Result<Option<Wanted>> {
        let class = self.annotations.and_then(|mut all| all.remove(ANNOTATION));
        let Some(class) = class.filter(|_| self.status != "stopped") else { return Ok(None) };
        let class = match class.parse() {
            Ok(class) => class,
            Err(_) => {
                let all: Vec<_> = Class::all().map(|c| c.name()).collect();
                refuse!("{ANNOTATION}: there is no class {class:?}; there are {}", all.join(", "))
            }
        };
        if self.pid <= 0 {
            refuse!("the state of the container {:?} has no pid", self.id);
        }
        Ok(Some(Wanted { id: self.id, pid: self.pid, class }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> std::result::Result<Option<Wanted>, String> {
        State::read(text.as_bytes()).and_then(State::wanted).map_err(|e| e.to_string())
    }

    fn state(rest: &str) -> String {
        format!(r#"{{"ociVersion":"1.0.2","id":"a","status":"created","bundle":"/b"{rest}}}"#)
    }

    #[test]
    fn a_container_is_wanted_where_the_annotation_is() {
        let text = state(r#","pid":7,"annotations":{"netnice.class":"fair","x":"y"}"#);
        let class = "fair".parse().expect("a class");
        assert_eq!(wanted(&text), Ok(Some(Wanted { id: "a".into(), pid: 7, class })));
        for rest in ["", r#","annotations":{"x":"y"}"#, r#","annotations":null,"pid":7"#] {
            assert_eq!(wanted(&state(rest)), Ok(None), "{rest}");
        }
        let ended = text.replace("created", "stopped").replace(r#""pid":7,"#, "");
        assert_eq!(wanted(&ended), Ok(None));
    }

    #[test]
    fn what_is_no_state_is_told_so_in_one_line() {
        let asks = r#","annotations":{"netnice.class":"idle"}"#;
        let long = format!("{{\"ociVersion\":\"{}\"}}", "1".repeat(1 << 21));
        for (text, says) in [
            ("", "no state of a container"),
            ("[1]", "no state of a container"),
            ("{\"ociVersion\":\"1.0\"}", "no state of a container"),
            (&state(r#","pid":"7""#), "no state of a container"),
            (&state(asks).replace("1.0.2", "2.0.0"), "version \"2.0.0\""),
            (&state(asks), "has no pid"),
            (
                &state(r#","pid":7,"annotations":{"netnice.class":"a\nb"}"#),
                "there is no class \"a\\nb\"",
            ),
            (&long, "longer than 1048576 bytes"),
        ] {
            let error = wanted(text).expect_err(says);
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }
}

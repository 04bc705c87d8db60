// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Names and settings that were refused.

/// Why a name or a setting was refused. Each message ends with what would do.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum Error {
    /// No algorithm of that name.
    #[error(
        "there is no algorithm {name:?}; did you mean {nearest:?}? The list: netnice algorithms"
    )]
    Algorithm { name: String, nearest: String },
    /// No class of that name.
    #[error("there is no class {name:?}; choose one of {names}")]
    Class { name: String, names: String },
    /// No parameter of that name.
    #[error(
        "{algorithm} has no parameter {name:?}; {hint} The list: netnice algorithms {algorithm}"
    )]
    Param { algorithm: &'static str, name: String, hint: String },
    /// Not of the form NAME=NUMBER.
    #[error("{text:?} is not a setting; write NAME=NUMBER, for example {example}")]
    Setting { text: String, example: String },
    /// Not one of the names that a parameter takes.
    #[error("{name} cannot be {text:?}; choose one of {choices}")]
    Choice { name: &'static str, text: String, choices: String },
    /// A number outside the parameter's range.
    #[error("{name}={value} is out of range; {name} is from {least} to {most} {unit}")]
    Range { name: &'static str, value: f64, least: f64, most: f64, unit: &'static str },
}

/// The name in `names` that is most like `name`.
pub fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)))
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Why a job cannot be run, and what would do.

use std::io;

/// Each message is a whole sentence; it needs no chain of sources.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is to be copied, or where to, makes no sense.
    #[error("{0}")]
    Job(String),
    /// The same, of something that has a place: a file, a line in it, a destination.
    #[error("{at}: {error}")]
    At { at: String, error: Box<Error> },
    /// Transfers cannot be in the background.
    #[error(transparent)]
    Manager(#[from] netnice_manager::Error),
    /// The system refused something.
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    /// The state of a job cannot be read or stored.
    #[error("{what}: {error}{}", remedy(error))]
    State { what: String, error: rusqlite::Error },
    /// A thread of netnice failed.
    #[error("the thread that {0} failed")]
    Thread(&'static str),
}

/// What to do where the file of a state is damaged, as after a disk failed.
fn remedy(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => {
            "; move that file away to start afresh: nothing is copied twice"
        }
        _ => "",
    }
}

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// For `map_err`: says what failed.
pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
    |error| Error::Io { what: what.into(), error: error.into() }
}

/// For `map_err`: says where it is.
pub(crate) fn at<E: Into<Error>>(at: impl Into<String>) -> impl FnOnce(E) -> Error {
    |error| Error::At { at: at.into(), error: Box::new(error.into()) }
}

/// Makes an [`Error::Job`] of this text.
macro_rules! wrong {
    ($($text:tt)*) => { $crate::Error::Job(format!($($text)*)) };
}

/// Returns an [`Error::Job`] of this text unless `$holds`.
macro_rules! ensure {
    ($holds:expr, $($text:tt)*) => {
        if !$holds {
            return Err($crate::error::wrong!($($text)*));
        }
    };
}
pub(crate) use {ensure, wrong};

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Why something cannot be done, and what would do.

use std::io;

/// Each message is a whole sentence; it needs no chain of sources.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused something.
    #[error(transparent)]
    Kernel(#[from] netnice_bpf::Error),
    /// An algorithm or parameter that does not exist, or a value out of range.
    #[error(transparent)]
    Choice(#[from] netnice_core::Error),
    /// The capabilities that are missing, by name.
    #[error("this needs {}; run it as root: sudo netnice ...", .0.join(" and "))]
    Privileges(Vec<&'static str>),
    /// The same, where root lacks them.
    #[error(
        "this needs {}, which root does not have here; a unit of systemd gets what its \
         CapabilityBoundingSet= lists, a container what its engine's --cap-add names: add it there",
        .0.join(" and ")
    )]
    Bounded(Vec<&'static str>),
    /// The system refused something.
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    /// What was asked for contradicts itself, or what there is.
    #[error("{0}")]
    Refused(String),
}

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// For `map_err`: says what failed.
pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Error {
    |error| Error::Io { what: what.into(), error: error.into() }
}

/// Returns [`Error::Refused`] with this text.
macro_rules! refuse {
    ($($text:tt)*) => {
        return Err($crate::Error::Refused(format!($($text)*)))
    };
}
pub(crate) use refuse;

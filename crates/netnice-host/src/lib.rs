// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What hosts of netnice over QUIC have in common: from what a transport tells of a connection to what an
//! algorithm is told, and from its answer to a window and gaps.
//!
//! A controller keeps a [`Told`] and a [`Control`] for each connection. It tells the first what happens, and
//! passes that on to the [`Host`] of the second, or to another controller in the foreground.

#![forbid(unsafe_code)]

mod clock;
mod control;
mod delay;
mod host;
mod peers;
mod setting;
mod switch;
mod told;

pub use control::{Control, INITIAL_WINDOW};
pub use host::{Heard, Host};
pub use setting::Setting;
pub use switch::Switch;
pub use told::{AckDelay, Told};

#[cfg(test)]
mod tests;

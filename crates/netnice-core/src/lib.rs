// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! netnice's congestion-control algorithms, for hosts written in Rust.
//!
//! The algorithms are C headers (`core/`), compiled into this crate; the
//! kernel runs the same source. `core/interface.h` defines the units: time in
//! microseconds, windows in packets as Q16 fixed point.
//!
//! ```
//! use netnice_core::{Ack, Algorithm, Config, Flow};
//!
//! let mut config = Config::new(Algorithm::by_name("nice")?);
//! config.set("threshold=0.1")?;
//! let mut flow = Flow::new(&config, &Ack::default(), 10);
//! let ack = Ack { now_us: 50_000, rtt_us: 50_000, srtt_us: 50_000, acked: 2, una: 2, nxt: 4, ..Default::default() };
//! assert!(flow.ack(&ack).cwnd_q16 >= 2 << 16);
//! # Ok::<(), netnice_core::Error>(())
//! ```

mod algorithm;
mod class;
mod config;
mod down;
mod error;
mod flow;
mod group;
mod line;
mod obey;
mod path;
mod shown;

pub use algorithm::{Algorithm, Param, State};
pub use class::Class;
pub use config::Config;
pub use down::{Datagram, Down, Fetched, Pulled};
pub use error::{nearest, Error};
pub use flow::Flow;
pub use group::Group;
pub use line::{Line, Place};
pub use path::{Base, Path, Sent};
pub use shown::{place, show, Shown, Unit, Value};

/// The C types and constants as the headers declare them.
#[allow(non_camel_case_types, non_snake_case, non_upper_case_globals, missing_docs)]
pub mod sys {
    include!(concat!(env!("OUT_DIR"), "/sys.rs"));
}

pub use sys::{nn_ack as Ack, nn_ctl as Ctl, nn_event as Event};

/// One packet, or 1.0, in Q16 fixed point.
pub const ONE: u64 = sys::NN_ONE as u64;

#[cfg(test)]
mod tests;

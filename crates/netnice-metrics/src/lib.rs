// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is in the background, as metrics: OpenMetrics, and Prometheus' own text for who asks for no
//! other.
//!
//! ```no_run
//! use std::net::TcpListener;
//! use netnice_manager::snapshot::Watch;
//!
//! let mut watch = Watch::default();
//! netnice_metrics::serve(TcpListener::bind("127.0.0.1:9464")?, move || watch.look())?;
//! # Ok::<(), std::io::Error>(())
//! ```

#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]

mod exporter;
mod server;

pub use exporter::{Exporter, Format, JOBS};
pub use server::serve;

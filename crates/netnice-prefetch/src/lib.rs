// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prefetching that costs nobody anything (TCP Nice, section 6.1): a reverse proxy predicts what a
//! client will ask for next, suggests it in `Link: <...>; rel=prefetch`, and answers the requests
//! that browsers make of it in the background, under `nn_nice`.
//!
//! - [`log`] reads access logs: combined, common, and the lab's CSV, plain or gzipped.
//! - [`predict`] learns what follows what (PPM-n/w) and predicts; [`store`] saves and restores it.
//! - [`rules`] decides what may be predicted at all, from headers and paths, and [`suggest`] which
//!   predictions are suggested.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod log;
pub mod predict;
pub mod rules;
pub mod store;
pub mod suggest;

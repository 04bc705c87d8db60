// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prefetching that costs nobody anything (TCP Nice, section 6.1): a reverse proxy predicts what a
//! client will ask for next, suggests it in `Link: <...>; rel=prefetch`, and answers the requests
//! that browsers make of it in the background, under `nn_nice`.
//!
//! - [`log`] reads access logs: combined, common, and the lab's CSV, plain or gzipped.
//! - [`predict`] learns what follows what (PPM-n/w) and predicts; [`store`] saves and restores it.
//! - [`evaluate`] says what predictions would have been worth, by a log.
//! - [`rules`] decides what may be predicted at all, from headers and paths, and [`suggest`] which
//!   predictions are suggested.
//! - [`line`] is a connection that is switched between foreground and background, [`reply`] an answer
//!   that waits for its turn on it, [`body`] a body that does not wait for ever.
//! - [`guard`] is a client's connection, on which each [`head`] is judged before hyper reads it;
//!   [`headers`] has what is done with lists of them, and [`trust`] whose are believed.
//! - [`proxy`] is what happens to a request, [`server`] the sockets around it, with [`tls`], and
//!   [`http3`] over QUIC; [`origin`] has those behind it, by [`config`]; it reports in [`accesslog`], [`metrics`] and on its [`page`].
//! - [`range`] says from what to what a user's numbers may be.
//! - [`replay`] is the paper's client, which replays a [`trace`].
#![deny(clippy::print_stderr, clippy::print_stdout)] // they panic: netnice-manners prints
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod accesslog;
pub mod body;
pub mod config;
pub mod evaluate;
pub mod files;
pub mod guard;
pub mod head;
pub mod headers;
pub mod http3;
pub mod line;
pub mod log;
pub mod metrics;
pub mod origin;
pub mod page;
pub mod predict;
pub mod proxy;
pub mod range;
pub mod replay;
pub mod reply;
pub mod rules;
pub mod server;
pub mod store;
pub mod suggest;
pub mod tls;
pub mod trace;
pub mod trust;

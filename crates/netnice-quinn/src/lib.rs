// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! QUIC connections of [quinn] that yield the network: any algorithm of netnice as a congestion
//! controller.
//!
//! ```
//! use std::sync::Arc;
//! use netnice_quinn::{Background, Class, Gaps};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let background = Background::of_class(Class::default());
//! let switch = background.switch();
//! let mut transport = quinn::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(background));
//! let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
//! let runtime = Gaps::over(quinn::default_runtime().ok_or("no runtime")?);
//! let endpoint = quinn::Endpoint::new(Default::default(), None, socket, Arc::new(runtime))?;
//! // connect with `transport`; then, while data flows:
//! switch.to_foreground(); // the user waits for it
//! switch.to_background(); // nobody does
//! # drop((endpoint, transport));
//! # Ok(()) }
//! ```
//!
//! A [`Background`] makes the controllers. Algorithm and parameters are those of the command line:
//!
//! ```
//! use netnice_quinn::{Algorithm, Background, Config, Group};
//!
//! # let name = Algorithm::all().find(|a| a.grouped()).expect("several are").name();
//! let mut config = Config::new(Algorithm::by_name(name)?);
//! config.set("share=2")?;
//! let group = Group::apart(false); // to different hosts; Group::new(false): all to one
//! let background = Background::new(config).in_group(&group);
//! # let _ = background;
//! # Ok::<(), netnice_quinn::Error>(())
//! ```
//!
//! Connections of one `Background`, or of several with the same group, share what the group may send.
//!
//! # Foreground
//!
//! In the foreground a connection has quinn's own CUBIC, or another controller
//! ([`Background::foreground`]). A [`Switch`] moves all connections of its `Background` at once. Each
//! change starts the other controller anew, as a new connection would. The window that is in flight
//! drains first. To move one connection alone, give it a `Background` of its own
//! (`Endpoint::connect_with`, `Incoming::accept_with`).
//!
//! # Gaps
//!
//! An algorithm may ask for less than two packets in a round trip, or for silence. That is a burst,
//! then a gap in time. quinn asks a controller for a window, and looks again only when an ACK comes or one
//! of quinn's timers ends: a controller has none. So somebody must look again at the end of a gap:
//!
//! - with quinn, [`Gaps`]: a runtime around that of tokio or another. It is the last argument of
//!   `quinn::Endpoint::new`, as above. It costs one timer for each connection in a gap;
//! - with quinn-proto, the program's own loop: [`gaps`] around `Connection::poll_transmit` says when.
//!
//! A gap ends after 10 s, whatever the algorithm says: no PING leaves in it, and the other end gives up a
//! connection that is silent for its idle timeout (30 s, if quinn's is left alone).
//!
//! Without either, a gap ends as soon as nothing is in flight. Then the least that a connection sends is
//! one burst, of one or two packets, in each round trip. It yields, but not below that. And whoever looks
//! at `Connection::stats` then asks for a window as quinn does, and may end a gap by it.
//!
//! # What differs from the kernel's TCP
//!
//! - quinn paces every window at 1.25 windows in a round trip, with bursts of 10 packets. Gaps come on
//!   top of that.
//! - quinn says of losses after the ACK that shows them. The window may grow by that ACK.
//! - quinn does not notice that a loss was none, so nothing is ever undone.
//! - A window that was not used is not cut after a rest: quinn paces it (RFC 9002, 7.8).
//! - A timer of tokio ends within 1 ms. Algorithms that space packets closer than that measure less.
//! - A receiver delays the ACK of a lone packet, by 25 ms as a rule. quinn does not tell a controller by
//!   how much, but its smoothed RTT leaves the delay out. So the controller learns the delay from
//!   that, and leaves it out too.
//! - Nothing is held in this host (`netnice hold`): no virtual queue is kept of what is sent over QUIC.
//! - The DSCP of a class ([`Class::dscp`]) is the program's to set on the socket.
//! - Connections of this process count as those of the host, if an algorithm divides by their number.

#![forbid(unsafe_code)]

mod background;
mod controller;
mod gaps;
mod runtime;

pub use background::Background;
pub use controller::{show, Controlled};
pub use gaps::gaps;
pub use netnice_core::{Algorithm, Class, Config, Error, Group, Param, Value};
pub use netnice_host::Switch;
pub use runtime::Gaps;

#[cfg(test)]
mod tests;

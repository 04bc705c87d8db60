// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! QUIC connections of [s2n-quic] that yield the network: any algorithm of netnice as a congestion
//! controller.
//!
//! ```
//! use netnice_s2n::{Background, Class};
//!
//! # fn with_congestion_controller(_: impl s2n_quic_core::recovery::congestion_controller::Endpoint) {}
//! let background = Background::of_class(Class::default());
//! let switch = background.switch();
//! // Client::builder().with_tls(..)?.with_io(..)?
//! with_congestion_controller(background);
//! // connect; then, while data flows:
//! switch.to_foreground(); // the user waits for it
//! switch.to_background(); // nobody does
//! ```
//!
//! A [`Background`] makes the controllers of a client or a server. Algorithm and parameters are those of the
//! command line:
//!
//! ```
//! use netnice_s2n::{Algorithm, Background, Config, Group};
//!
//! # let name = Algorithm::all().find(|a| a.grouped()).expect("several are").name();
//! let mut config = Config::new(Algorithm::by_name(name)?);
//! config.set("share=2")?;
//! let group = Group::apart(false); // to different hosts; Group::new(false): all to one
//! let background = Background::new(config).in_group(&group);
//! # let _ = background;
//! # Ok::<(), netnice_s2n::Error>(())
//! ```
//!
//! Connections of one `Background`, or of several with the same group, share what the group may send.
//!
//! # The feature of s2n-quic
//!
//! s2n-quic seals the trait of its controllers unless its feature `unstable-congestion-controller` is on. This
//! crate turns that on in `s2n-quic-core`, for the whole program. Its authors may change the trait in any
//! release. It is the same in s2n-quic 1.72 to 1.91, and cargo lets no other be used.
//!
//! # Foreground
//!
//! In the foreground a connection has s2n-quic's own CUBIC, or another controller
//! ([`Background::foreground`]). A [`Switch`] moves all connections of its `Background` at once. Each
//! change starts the other controller anew, as a new connection would. The window that is in flight
//! drains first.
//!
//! # Gaps
//!
//! An algorithm may ask for less than two packets in a round trip, or for silence. That is a burst, then a
//! gap in time. s2n-quic asks a controller when the next packet may leave, and waits until then by a timer. So
//! gaps need nothing else. But s2n-quic means by that every packet of a connection:
//!
//! - In a gap it sends no ACK and no probe either. So whoever sends to this end meanwhile waits, and repeats
//!   what was not acknowledged. Let data that comes have another connection than data that leaves in the
//!   background.
//! - A gap ends after 10 s, whatever the algorithm says, as the other end gives a silent connection up (after
//!   30 s, if s2n-quic's limits are left alone).
//! - A switch reaches a connection in a gap after 100 ms at most, as nothing wakes it sooner.
//!
//! # What differs from the kernel's TCP
//!
//! - A packet leaves up to 2 ms after the end of a gap, and never before it: s2n-quic's timers count
//!   milliseconds. Algorithms that space packets closer than that measure less.
//! - s2n-quic does not pace windows above two packets for this controller: ACKs clock them.
//! - s2n-quic tells an ACK's bytes, not its packets. So what was acknowledged is counted in full packets.
//! - s2n-quic does not notice that a loss was none, so nothing is ever undone.
//! - A window that was not used is not cut after a rest.
//! - A receiver delays ACKs by up to 25 ms as a rule; that of s2n-quic each that is for fewer than four packets.
//!   The smoothed RTT of s2n-quic leaves an eighth of the delay out, as it takes units of 8 us for microseconds.
//!   The controller takes the delay from that, and leaves all of it out. It does not know of another unit that the
//!   other end may have asked for.
//! - Nothing is held in this host (`netnice hold`): no virtual queue is kept of what is sent over QUIC.
//! - The DSCP of a class ([`Class::dscp`]) is the program's to set on the socket.
//! - Connections of this process count as those of the host, if an algorithm divides by their number.
//!
//! [s2n-quic]: https://docs.rs/s2n-quic

#![forbid(unsafe_code)]

mod background;
mod clock;
mod controller;
mod other;
mod packet;

pub use background::Background;
pub use controller::Controlled;
pub use netnice_core::{Algorithm, Class, Config, Error, Group, Param, Value};
pub use netnice_host::Switch;
pub use packet::Packet;

#[cfg(test)]
mod tests;

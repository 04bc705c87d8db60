// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Addresses as users write them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The port of the service that discards what it gets (RFC 863).
const DISCARD: u16 = 9;

/// A host by name or address, and a port.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub host: String,
    pub port: u16,
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
        if let Ok(address) = listening(text) {
            return Ok(Target { host: address.ip().to_string(), port: address.port() });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, port.parse().ok()),
            None => (text, Some(DISCARD)),
        };
        match port {
            Some(port) if port > 0 && !host.is_empty() => Ok(Target { host: host.into(), port }),
            _ => Err("write HOST, HOST:PORT, or [ADDRESS]:PORT for an address of IPv6".into()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// An address with or without a port.
pub fn listening(text: &str) -> Result<SocketAddr, String> {
    let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    text.parse().or_else(|_| bare.parse().map(|ip: IpAddr| SocketAddr::new(ip, DISCARD))).map_err(
        |_| "write an address of this host and a port: 0.0.0.0:5009, or [::]:5009".to_owned(),
    )
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whom the operator trusts to say for whom a request is: other proxies in front of this one.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use serde::Deserialize;

use crate::headers::{members, X_FORWARDED_FOR};

/// Addresses with the same first bits: `192.0.2.0/24`, `2001:db8::/32`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Prefix {
    base: u128,
    bits: u32,
}

/// IPv4 as its part of IPv6.
fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().into(),
        IpAddr::V6(v6) => v6.into(),
    }
}

impl std::str::FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no address, nor ADDRESS/BITS such as 10.0.0.0/8");
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most {
            return Err(wrong());
        }
        Ok(Self { base: number(address), bits: bits + 128 - most })
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl Prefix {
    fn contains(self, address: IpAddr) -> bool {
        (self.base ^ number(address)).checked_shr(128 - self.bits).unwrap_or(0) == 0
    }
}

/// Whether an address is trusted.
pub fn is_trusted(trust: &[Prefix], address: IpAddr) -> bool {
    trust.iter().any(|prefix| prefix.contains(address))
}

/// For whom a request is that a trusted peer passed on: the last of `X-Forwarded-For` who is not
/// trusted himself. What stands before him is what he says. `None`: the peer's own.
pub fn client(trust: &[Prefix], headers: &HeaderMap) -> Option<IpAddr> {
    let mut found = None;
    for member in members(headers, &X_FORWARDED_FOR).rev() {
        let port = || member.parse::<SocketAddr>().map(|at| at.ip());
        let Ok(address) = member.parse().or_else(|_| port()) else { break };
        found = Some(address.to_canonical());
        if !is_trusted(trust, address) {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn prefixes(list: &[&str]) -> Vec<Prefix> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_prefix_covers_the_addresses_that_begin_like_it() {
        for (prefix, inside, outside) in [
            ("192.0.2.0/24", "192.0.2.255", "192.0.3.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::"),
            ("::1", "::1", "::2"),
            ("0.0.0.0/0", "255.1.2.3", "2001:db8::1"),
        ] {
            let trust = prefixes(&[prefix]);
            assert!(is_trusted(&trust, inside.parse().unwrap()), "{prefix} {inside}");
            assert!(!is_trusted(&trust, outside.parse().unwrap()), "{prefix} {outside}");
        }
        assert!(is_trusted(&prefixes(&["::/0"]), "192.0.2.1".parse().unwrap()));
        for wrong in ["", "x", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8"]
        {
            assert!(wrong.parse::<Prefix>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn of_those_in_between_the_last_who_is_not_trusted_is_the_client() {
        let trust = prefixes(&["10.0.0.0/8"]);
        for (lines, client_is) in [
            (&[][..], None),
            (&["192.0.2.1"][..], Some("192.0.2.1")),
            // the first line is the client's lie
            (&["198.51.100.1", "192.0.2.1, 10.0.0.2"], Some("192.0.2.1")),
            (&["192.0.2.1:1234, [2001:db8::1]:80"], Some("2001:db8::1")),
            (&["192.0.2.1, unknown, 10.0.0.2"], Some("10.0.0.2")),
            (&["10.0.0.3, 10.0.0.2"], Some("10.0.0.3")),
            // what the client says is no text; what the proxy adds is
            (&["\u{e4}, 192.0.2.1"], Some("192.0.2.1")),
            (&["192.0.2.1, \u{e4}, 10.0.0.2"], Some("10.0.0.2")),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                let latin_1: Vec<u8> = line.chars().map(|c| c as u8).collect();
                headers.append(&X_FORWARDED_FOR, HeaderValue::from_bytes(&latin_1).unwrap());
            }
            let found = client(&trust, &headers).map(|address| address.to_string());
            assert_eq!(found.as_deref(), client_is, "{lines:?}");
        }
    }
}

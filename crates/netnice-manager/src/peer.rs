// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which peers a run or an attachment is for, and which direction.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use netnice_bpf::{only, LeftOut, Peer, Running, PEERS};
use serde::{Deserialize, Serialize};

use crate::error::refuse;
use crate::Error;

/// The addresses that begin alike, and perhaps a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peers {
    address: IpAddr,
    bits: u32,
    port: Option<u16>,
}

impl Peers {
    /// Whether a connection is meant: its peer has such an address, and one of its two ends this
    /// port. So a server's port is meant on either side of its connections.
    pub fn mean(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let port = |port| remote.port() == port || local.port() == port;
        let ip = remote.ip().to_canonical();
        let (ours, mask) = self.words();
        let theirs = words(ip);
        ip.is_ipv4() == self.address.is_ipv4()
            && (0..4).all(|w| (ours[w] ^ theirs[w]) & mask[w] == 0)
            && self.port.is_none_or(port)
    }

    /// As the kernel compares it.
    pub fn of_kernel(&self) -> Peer {
        let (address, mask) = self.words();
        let (port, v4) = (self.port.unwrap_or_default().into(), self.address.is_ipv4().into());
        Peer { address, mask, port, v4 }
    }

    /// The inverse of [`Peers::of_kernel`].
    fn from_kernel(peer: &Peer) -> Peers {
        let v6 = Ipv6Addr::from_bits(bits(peer.address));
        let (address, above) = match v6.to_ipv4_mapped().filter(|_| peer.v4 != 0) {
            Some(v4) => (v4.into(), 96),
            None => (v6.into(), 0),
        };
        let port = (peer.port != 0).then_some(peer.port as u16);
        Peers { address, bits: bits(peer.mask).count_ones() - above, port }
    }

    fn words(&self) -> ([u32; 4], [u32; 4]) {
        let bits = self.bits + if self.address.is_ipv4() { 96 } else { 0 };
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        (words(self.address), in_words(mask.to_be_bytes()))
    }
}

/// In network byte order; an address of IPv4 as ::ffff:a.b.c.d.
fn words(ip: IpAddr) -> [u32; 4] {
    in_words(match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    })
}

fn in_words(octets: [u8; 16]) -> [u32; 4] {
    let mut words = [0; 4];
    for (word, octets) in words.iter_mut().zip(octets.chunks_exact(4)) {
        *word = u32::from_ne_bytes(octets.try_into().expect("four"));
    }
    words
}

/// The inverse of [`in_words`], as a number.
fn bits(words: [u32; 4]) -> u128 {
    let number = |bits: u128, word: u32| bits << 32 | u128::from(u32::from_be(word));
    words.into_iter().fold(0, number)
}

const FORMS: &str = "write an address or a prefix, and a port if only one is meant: 192.0.2.1, \
                     192.0.2.0/24:5432, 2001:db8::/32, [2001:db8::/32]:5432";

impl FromStr for Peers {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Peers, &'static str> {
        let (prefix, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (prefix, port) = rest.split_once(']').ok_or(FORMS)?;
                (
                    prefix,
                    if port.is_empty() { None } else { Some(port.strip_prefix(':').ok_or(FORMS)?) },
                )
            }
            // of IPv6 without brackets: no port
            None if text.matches(':').count() > 1 => (text, None),
            None => match text.split_once(':') {
                Some((prefix, port)) => (prefix, Some(port)),
                None => (text, None),
            },
        };
        let (address, bits) = match prefix.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().map_err(|_| FORMS)?)),
            None => (prefix, None),
        };
        let address: IpAddr = address.parse().map_err(|_| FORMS)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        let port: Option<u16> = port.map(str::parse).transpose().map_err(|_| FORMS)?;
        match bits <= most && port != Some(0) {
            true => Ok(Peers { address, bits, port }),
            false => Err(FORMS),
        }
    }
}

impl fmt::Display for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = format!("{}/{}", self.address, self.bits);
        match (self.port, self.address) {
            (None, _) => f.write_str(&prefix),
            (Some(port), IpAddr::V4(_)) => write!(f, "{prefix}:{port}"),
            (Some(port), IpAddr::V6(_)) => write!(f, "[{prefix}]:{port}"),
        }
    }
}

/// One direction of connections, which alone is in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Only {
    /// What they send.
    Up,
    /// What they receive.
    Down,
}

impl Only {
    /// Both of them.
    pub const ALL: [Only; 2] = [Only::Up, Only::Down];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Only::Up => "up",
            Only::Down => "down",
        }
    }

    /// One line for people.
    pub fn summary(self) -> &'static str {
        match self {
            Only::Up => "What is sent yields, downloads come as ever",
            Only::Down => "Downloads yield where a device holds, what is sent stays as it is",
        }
    }

    /// As the kernel has it.
    pub(crate) fn of_kernel(only: u16) -> Option<Only> {
        Only::ALL.into_iter().find(|one| Only::to_kernel(Some(*one)) == only)
    }

    pub(crate) fn to_kernel(only: Option<Only>) -> u16 {
        match only {
            None => only::BOTH,
            Some(Only::Up) => only::UP,
            Some(Only::Down) => only::DOWN,
        }
    }
}

impl FromStr for Only {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Only, &'static str> {
        let found = Only::ALL.into_iter().find(|only| only.name() == text);
        found.ok_or("only is \"up\" or \"down\"")
    }
}

/// Which connections are meant, of all that there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Those with these peers; if there are none, with any.
    pub to: Vec<Peers>,
    /// Not those with these.
    pub except: Vec<Peers>,
    /// Those of sockets with this mark (`SO_MARK`).
    pub mark: Option<u32>,
    /// Of these connections, this direction alone.
    pub only: Option<Only>,
    /// Beside connections, what comes over UDP.
    pub udp_downloads: bool,
}

impl From<Vec<Peers>> for Selection {
    fn from(to: Vec<Peers>) -> Selection {
        Selection { to, ..Selection::default() }
    }
}

impl Selection {
    /// What a run is for, and what it leaves out.
    pub(crate) fn of_run(run: &Running, left_out: &LeftOut) -> Selection {
        let peers = |all: &[Peer]| all.iter().map(Peers::from_kernel).collect();
        Selection {
            to: peers(run.peers()),
            except: peers(left_out.peers()),
            mark: left_out.mark(),
            only: Only::of_kernel(run.only()),
            udp_downloads: run.pulls_datagrams(),
        }
    }

    /// Whether peers decide.
    pub fn of_peers(&self) -> bool {
        !self.to.is_empty() || !self.except.is_empty()
    }

    /// Whether a connection is meant by its ends.
    pub fn means(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let any = |all: &[Peers]| all.iter().any(|p| p.mean(local, remote));
        (self.to.is_empty() || any(&self.to)) && !any(&self.except)
    }

    /// Whether all that is accepted at this end is meant, whoever comes.
    pub fn means_all_at(&self, local: SocketAddr) -> bool {
        let all = |v4| {
            let mut to = self.to.iter().filter(|p| p.bits == 0 && p.address.is_ipv4() == v4);
            to.any(|p| p.port.is_none_or(|port| port == local.port()))
        };
        // at an address of IPv6 both may come
        self.except.is_empty()
            && (self.to.is_empty() || all(true) && (local.is_ipv4() || all(false)))
    }

    /// The peers that the kernel looks for. Where some are left out it has to know that not all are
    /// meant: then none is all of both families.
    pub(crate) fn of_kernel(&self) -> Result<Vec<Peer>, Error> {
        let mut to = self.to.clone();
        if to.is_empty() && !self.except.is_empty() {
            to = ["0.0.0.0/0", "::/0"].map(|all| all.parse().expect("a prefix")).into();
        }
        of_kernel(&to)
    }

    /// What the kernel leaves out of these.
    pub(crate) fn left_out(&self) -> Result<LeftOut, Error> {
        Ok(LeftOut::new(&of_kernel(&self.except)?, self.mark))
    }

    /// Whether there is something of [`Selection::left_out`].
    pub(crate) fn leaves_out(&self) -> bool {
        !self.except.is_empty() || self.mark.is_some()
    }
}

fn of_kernel(peers: &[Peers]) -> Result<Vec<Peer>, Error> {
    if peers.len() > PEERS {
        refuse!("a run can be for {PEERS} prefixes at most, not {}", peers.len());
    }
    Ok(peers.iter().map(Peers::of_kernel).collect())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn mean(text: &str, local: &str, remote: &str) -> bool {
        let peers: Peers = text.parse().expect(text);
        assert_eq!(peers.to_string().parse(), Ok(peers));
        let there_and_back = Peers::from_kernel(&peers.of_kernel());
        assert_eq!(there_and_back, peers);
        peers.mean(local.parse().expect(local), remote.parse().expect(remote))
    }

    #[test]
    fn a_connection_is_meant_by_its_peer_and_by_either_port() {
        let (ours, theirs) = ("10.0.0.1:40000", "192.0.2.130:5432");
        for text in
            ["192.0.2.130", "192.0.2.128/25", "192.0.2.0/24:5432", "0.0.0.0/0", "192.0.2.9/24"]
        {
            assert!(mean(text, ours, theirs), "{text}");
        }
        assert!(mean("192.0.2.0/24:40000", ours, theirs));
        for text in ["192.0.2.131", "192.0.2.0/25", "192.0.2.0/24:80", "10.0.0.1", "::/1"] {
            assert!(!mean(text, ours, theirs), "{text}");
        }
    }

    #[test]
    fn ipv6_and_ipv4_inside_of_it_are_meant_too() {
        let ours = "[2001:db8::1]:443";
        for text in ["2001:db8:7::/48", "[2001:db8:7::/48]:443", "[2001:db8:7::5]", "::/0"] {
            assert!(mean(text, ours, "[2001:db8:7::5]:50000"), "{text}");
        }
        assert!(!mean("2001:db8:8::/48", ours, "[2001:db8:7::5]:50000"));
        assert!(mean("192.0.2.0/24", "[::ffff:10.0.0.1]:80", "[::ffff:192.0.2.1]:50000"));
        assert!(!mean("0.0.0.0/0", ours, "[2001:db8:7::5]:50000"));
    }

    #[test]
    fn what_is_no_prefix_is_told_how_to_write_one() {
        for text in
            ["", "host", "10.0.0.0/33", "10.0.0.1:0", "10.0.0.1:x", "[::1", "[::1]80", "::/129"]
        {
            assert_eq!(text.parse::<Peers>(), Err(FORMS), "{text}");
        }
    }

    #[test]
    fn what_is_left_out_is_so_where_it_is_named_too() {
        let all = |text: &[&str]| text.iter().map(|t| t.parse().expect(t)).collect::<Vec<Peers>>();
        let means = |to: &[&str], except: &[&str], remote: &str| {
            let chosen = Selection { to: all(to), except: all(except), ..Selection::default() };
            chosen.means("10.0.0.1:40000".parse().expect("ours"), remote.parse().expect(remote))
        };
        assert!(means(&[], &["192.0.2.0/24:80"], "192.0.2.1:81"));
        assert!(!means(&[], &["192.0.2.0/24:80"], "192.0.2.1:80"));
        assert!(!means(&["192.0.0.0/8"], &["192.0.2.0/24"], "192.0.2.1:80"));
        assert!(means(&["192.0.0.0/8"], &["192.0.2.0/24"], "192.0.3.1:80"));
        assert!(!means(&["192.0.0.0/8"], &["192.0.2.0/24"], "10.0.0.2:80"));
    }

    #[test]
    fn a_kernel_that_leaves_some_out_is_told_that_not_all_are_meant() {
        let but = |except| Selection { except, ..Selection::default() }.of_kernel();
        assert_eq!(but(vec![]).expect("few").len(), 0);
        assert_eq!(but(vec!["::1".parse().expect("one")]).expect("few").len(), 2);
    }

    #[test]
    fn the_kernel_compares_in_network_byte_order() {
        let peer = "192.0.2.0/24:5432".parse::<Peers>().expect("a prefix").of_kernel();
        let bytes = |words: [u32; 4]| words.map(u32::to_ne_bytes).concat();
        let mapped = Ipv4Addr::new(192, 0, 2, 0).to_ipv6_mapped().octets();
        assert_eq!(bytes(peer.address), mapped);
        assert_eq!(bytes(peer.mask), [[255; 15].as_slice(), &[0]].concat());
        assert_eq!(peer.port, 5432);
    }
}

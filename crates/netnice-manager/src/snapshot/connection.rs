// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A background connection.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netnice_bpf::Record;
use netnice_core::{place, show, Config, ONE};
use serde::{Deserialize, Serialize};

use super::shown::{Available, Seen};
use crate::peer::Only;
use crate::process::Process;

const AF_INET: u32 = 2;

/// The most processes that are told of a connection.
pub(super) const OF_CONNECTION: usize = 8;

/// One background connection: windows and queues in packets, times times in microseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    pub control: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// The cgroup's id of the run; 0: chosen by a socket option or `netnice attach`.
    pub run: u64,
    /// The direction that alone is in the background; none: both are.
    pub only: Option<Only>,
    pub cwnd: f64,
    pub gap_us: u64,
    pub srtt_us: u32,
    /// What the algorithms show; of this connection, or not known.
    #[serde(flatten)]
    pub shown: Seen,
    pub slow_start: bool,
    pub yielding: bool,
    pub yielding_us: u64,
    pub bytes_acked: u64,
    /// Given to the kernel, and not acknowledged yet.
    pub bytes_unsent: u32,
    pub retransmits: u32,
    pub mss: u32,
    /// The member of its group that it is, plus 1.
    #[serde(skip)]
    pub(crate) place: Option<u32>,
    /// The algorithm's parameters, by name.
    pub parameters: BTreeMap<String, f64>,
    /// Those that hold its socket; so many as are told.
    pub processes: Vec<Process>,
    /// How many others do.
    #[serde(default)]
    pub processes_left_out: usize,
    #[serde(skip)]
    pub(super) holders: Holders,
    /// Its program closed it or has ended, and the kernel still has something to send or to await.
    pub orphaned: bool,
    /// Of its socket; 0: no process holds it. JSON does not have it.
    #[serde(skip, default = "unknown")]
    pub inode: u64,
}

fn unknown() -> u64 {
    1
}

impl Connection {
    /// A connection as people and scripts want to see it.
    pub fn of(r: &Record) -> Connection {
        let config = r.config();
        let shown = config.as_ref().map(|c| show(c, r.state())).unwrap_or_default();
        let packets = |q16: u64| q16 as f64 / ONE as f64;
        let ctl = &r.flow.ctl;
        let only = Only::of_kernel(r.flow.settings.only);
        let plain = f64::from(r.snd_cwnd);
        Connection {
            control: r.control(),
            local: address(r.family, r.saddr, r.sport),
            remote: address(r.family, r.daddr, r.dport),
            run: r.flow.settings.run,
            only,
            cwnd: if only == Some(Only::Down) { plain } else { packets(ctl.cwnd_q16) },
            gap_us: ctl.gap_us,
            srtt_us: r.srtt_us,
            shown: Seen::new(&shown, r.mss),
            slow_start: ctl.flags & netnice_core::sys::NN_CTL_SLOW_START != 0,
            yielding: ctl.flags & netnice_core::sys::NN_CTL_YIELDING != 0,
            yielding_us: r.flow.yielding_us,
            bytes_acked: r.bytes_acked,
            bytes_unsent: r.bytes_unsent,
            retransmits: r.retransmits,
            mss: r.mss,
            place: config.as_ref().and_then(|c| place(c.algorithm(), r.state())),
            parameters: config
                .iter()
                .flat_map(Config::named)
                .map(|(name, value)| (name.into(), value))
                .collect(),
            processes: Vec::new(),
            processes_left_out: 0,
            holders: Holders::default(),
            orphaned: r.orphaned != 0,
            inode: r.inode,
        }
    }
    /// What others leave of the path, if its algorithm measures that and has a result.
    pub fn available(&self) -> Option<Available> {
        self.shown.available()
    }

    /// All that hold it are processes of whom the status is for.
    pub fn is_his(&self) -> bool {
        !self.holders.pids.is_empty() && !self.holders.foreign
    }
}

/// Who holds a socket.
#[derive(Clone, Debug, Default)]
pub(super) struct Holders {
    /// Those that are told, in their order.
    pub(super) pids: Vec<i32>,
    /// Others of whom the status is for.
    pub(super) more: usize,
    /// Some whose it is not.
    foreign: bool,
}

impl Holders {
    pub(super) fn add(&mut self, pid: i32, is_his: bool) {
        if !is_his {
            self.foreign = true;
            return;
        }
        let at = self.pids.partition_point(|other| *other < pid);
        self.pids.insert(at, pid);
        if self.pids.len() > OF_CONNECTION {
            self.pids.pop();
            self.more += 1;
        }
    }
}

/// The kernel's words hold the address in network byte order.
fn address(family: u32, words: [u32; 4], port: u32) -> SocketAddr {
    let ip = match family {
        AF_INET => IpAddr::V4(Ipv4Addr::from(words[0].to_ne_bytes())),
        _ => ip(words),
    };
    SocketAddr::new(ip, port as u16)
}

/// An address of IPv6, or of IPv4 as ::ffff:a.b.c.d, from such words.
pub fn ip(words: [u32; 4]) -> IpAddr {
    let mut octets = [0u8; 16];
    for (to, word) in octets.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    IpAddr::V6(Ipv6Addr::from(octets)).to_canonical()
}

#[cfg(test)]
mod tests {
    use netnice_core::Shown;

    use super::*;

    #[test]
    fn what_an_algorithm_shows_has_a_key_of_its_own() {
        let text = serde_json::to_string(&Connection::of(&Record::default())).unwrap();
        for key in Shown::all().iter().map(Shown::key) {
            assert_eq!(text.matches(&format!("\"{key}\":")).count(), 1, "{key}: {text}");
        }
    }
}

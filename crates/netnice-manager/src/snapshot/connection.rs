// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A background connection.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use netnice_bpf::Record;
use netnice_core::{info, Config, Info, ONE};
use serde::Serialize;

const AF_INET: u32 = 2;

/// One background connection: windows and queues in packets, times in microseconds.
#[derive(Serialize)]
pub struct Connection {
    pub control: String,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// The cgroup's id of the run; 0: chosen by a socket option or `netnice attach`.
    pub run: u64,
    pub cwnd: f64,
    pub gap_us: u64,
    pub base_rtt_us: u32,
    pub max_rtt_us: u32,
    pub srtt_us: u32,
    pub queue: f64,
    /// What others leave of the path as last measured.
    pub available: Option<Available>,
    /// Share that the flow means to take of a TCP flow's throughput.
    pub weight: Option<f64>,
    /// That throughput as the flow estimates it, in Mbit/s of payload.
    pub tcp_mbit: Option<f64>,
    pub slow_start: bool,
    pub yielding: bool,
    pub yielding_us: u64,
    pub bytes_acked: u64,
    pub retransmits: u32,
    pub mss: u32,
    /// The member of its group that it is, plus 1.
    #[serde(skip)]
    pub(crate) place: Option<u32>,
    /// The algorithm's parameters, by name.
    pub parameters: BTreeMap<&'static str, f64>,
}

/// A measurement of the available bandwidth with its confidence interval, in Mbit/s of payload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Available {
    pub mbit: f64,
    pub low: f64,
    pub high: f64,
    /// Measurements that had a result, since the connection's start.
    pub results: u32,
}

impl Available {
    fn of(info: &Info, mss: u32) -> Option<Available> {
        let mbit = |pps: u32| f64::from(pps) * f64::from(mss) * 8e-6;
        (info.avail_results > 0).then(|| Available {
            mbit: mbit(info.avail_pps),
            low: mbit(info.avail_low_pps),
            high: mbit(info.avail_high_pps),
            results: info.avail_results,
        })
    }
}

impl Connection {
    /// A connection as people and scripts want to see it.
    pub fn of(r: &Record) -> Connection {
        let config = r.config();
        let info = config.as_ref().map(|c| info(c, r.state())).unwrap_or_default();
        let packets = |q16: u64| q16 as f64 / ONE as f64;
        let ctl = &r.flow.ctl;
        Connection {
            control: r.control(),
            local: address(r.family, r.saddr, r.sport),
            remote: address(r.family, r.daddr, r.dport),
            run: r.flow.settings.run,
            cwnd: packets(ctl.cwnd_q16),
            gap_us: ctl.gap_us,
            base_rtt_us: info.base_rtt_us,
            max_rtt_us: info.max_rtt_us,
            srtt_us: r.srtt_us,
            queue: packets(info.queue_q16),
            available: Available::of(&info, r.mss),
            weight: known(info.weight_q16.into()),
            tcp_mbit: known(info.tcp_mbit_q16),
            slow_start: ctl.flags & netnice_core::sys::NN_CTL_SLOW_START != 0,
            yielding: ctl.flags & netnice_core::sys::NN_CTL_YIELDING != 0,
            yielding_us: r.flow.yielding_us,
            bytes_acked: r.bytes_acked,
            retransmits: r.retransmits,
            mss: r.mss,
            place: (info.place > 0).then_some(info.place),
            parameters: config.iter().flat_map(Config::named).collect(),
        }
    }
}

/// A value in Q16 of which 0 means that it is not known.
fn known(q16: u64) -> Option<f64> {
    (q16 > 0).then_some(q16 as f64 / ONE as f64)
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

impl fmt::Display for Available {
    /// With its interval: 42.1 [38.0, 46.3].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} [{:.1}, {:.1}]", self.mbit, self.low, self.high))
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A group: its runs, and what their connections get of what they share.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use netnice_bpf::{Aggregate, Record};
use netnice_core::ONE;
use serde::{Deserialize, Serialize};

use super::connection::{ip, Connection};
use crate::error::refuse;
use crate::group::{owner, scope, share_of, some_members, Name};
use crate::system::System;
use crate::Result;

/// How the runs of a group divide what their connections are entitled to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupStatus {
    pub group: String,
    /// The uid of its user.
    pub owner: u32,
    pub scope: String,
    pub algorithm: String,
    /// How long the throughput was measured.
    pub seconds: f64,
    pub runs: Vec<Division>,
    pub aggregates: Vec<Shared>,
}

/// A run of the group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Division {
    /// The id of its cgroup.
    pub run: u64,
    pub share: f64,
}

/// Connections that divide the sum of their windows. Windows are in packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Shared {
    /// The remote address; with a scope other than host its first part.
    pub to: String,
    /// C, the sum of the windows of its connections.
    pub window: f64,
    pub mbit: f64,
    pub connections: Vec<Member>,
}

/// A connection of the group.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Member {
    pub run: u64,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    pub share: f64,
    /// Its part of all shares of connections that sent something while it was measured.
    pub target: Option<f64>,
    /// Its part of what they sent.
    pub achieved: Option<f64>,
    pub mbit: f64,
    /// `A_i`, what it may have in flight.
    pub cwnd: f64,
    /// `C_j`, the window that it brought; none where all share one.
    pub window: Option<f64>,
    pub bytes_acked: u64,
}

impl GroupStatus {
    /// Measures for `during` what the connections of a group of yours get.
    ///
    /// # Errors
    /// When you have no such group, or the kernel cannot be read.
    pub fn measure(name: &Name, during: Duration) -> Result<GroupStatus> {
        GroupStatus::measure_of(owner(), name, during)
    }

    /// The same for a group of a user.
    ///
    /// # Errors
    /// As [`GroupStatus::measure`].
    pub fn measure_of(user: u32, Name(name): &Name, during: Duration) -> Result<GroupStatus> {
        let runs = some_members(&System::look()?, name, user)?;
        let Some(wanted) = runs[0].group() else { refuse!("the group {name} has just ended") };
        let before: HashMap<_, _> = connections()?.map(|(_, c)| (key(&c), c.bytes_acked)).collect();
        thread::sleep(during);
        let mut now: BTreeMap<u32, Vec<(Record, Connection)>> = BTreeMap::new();
        for (record, connection) in connections()? {
            if let Some(slot) = record.slot() {
                now.entry(slot).or_default().push((record, connection));
            }
        }
        let aggregates = Aggregate::all()?
            .into_iter()
            .filter(|a| a.group().name == wanted.name && a.group().owner == wanted.owner)
            .map(|a| shared(&a, now.remove(&a.index).unwrap_or_default(), &before, during))
            .collect();
        let configs: Vec<_> = runs.iter().filter_map(|r| Some((r.id(), r.config()?))).collect();
        let algorithm = configs.first().map_or("", |(_, c)| c.algorithm().name());
        Ok(GroupStatus {
            group: wanted.name.clone(),
            owner: wanted.owner,
            scope: scope(wanted.bits).to_string(),
            algorithm: algorithm.into(),
            seconds: during.as_secs_f64(),
            runs: configs
                .iter()
                .map(|(run, c)| Division { run: *run, share: share_of(c) })
                .collect(),
            aggregates,
        })
    }
}

fn connections() -> Result<impl Iterator<Item = (Record, Connection)>> {
    Ok(netnice_bpf::flows()?.into_iter().map(|r| {
        let connection = Connection::of(&r);
        (r, connection)
    }))
}

/// What tells connections apart.
fn key(c: &Connection) -> (SocketAddr, SocketAddr) {
    (c.local, c.remote)
}

fn shared(
    aggregate: &Aggregate,
    members: Vec<(Record, Connection)>,
    before: &HashMap<(SocketAddr, SocketAddr), u64>,
    during: Duration,
) -> Shared {
    let mbit = |bytes: u64| bytes as f64 * 8e-6 / during.as_secs_f64();
    let packets = |q16: u64| q16 as f64 / ONE as f64;
    let sent = |c: &Connection| {
        c.bytes_acked.saturating_sub(before.get(&key(c)).copied().unwrap_or_default())
    };
    let share = |r: &Record| r.config().as_ref().map_or(0.0, share_of);
    let active = |c: &Connection| sent(c) > 0;
    let bytes: u64 = members.iter().map(|(_, c)| sent(c)).sum();
    let shares: f64 = members.iter().filter(|(_, c)| active(c)).map(|(r, _)| share(r)).sum();
    let mut connections: Vec<_> = members
        .iter()
        .map(|(r, c)| Member {
            run: r.flow.settings.run,
            local: c.local,
            remote: c.remote,
            share: share(r),
            target: active(c).then(|| share(r) / shares),
            achieved: active(c).then(|| sent(c) as f64 / bytes as f64),
            mbit: mbit(sent(c)),
            cwnd: c.cwnd,
            window: c.place.and_then(|p| aggregate.member_q16(p)).map(packets),
            bytes_acked: c.bytes_acked,
        })
        .collect();
    connections.sort_by_key(|m| (m.run, m.remote, m.local));
    let bits = aggregate.group().bits;
    let address = ip(aggregate.address());
    Shared {
        to: match bits {
            0 => "everywhere".into(),
            128 => address.to_string(),
            bits if address.is_ipv4() => format!("{address}/{}", bits - 96),
            bits => format!("{address}/{bits}"),
        },
        window: packets(aggregate.window_q16()),
        mbit: mbit(bytes),
        connections,
    }
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What one run measured, before any statistics.

use serde::Serialize;

use crate::packet::Nanos;

/// What one run measured. Rates count the measured window, `[warmup_s, warmup_s + measure_s)`.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The foreground's flows, in the order of their starts.
    pub fetches: Vec<Fetch>,
    /// The packets of all foreground flows.
    pub foreground: Packets,
    /// Round-trip times of the probes in nanoseconds, in the order sent; `None`: lost.
    pub probes: Vec<Option<Nanos>>,
    /// The background's flows, in the order of their starts.
    pub background: Vec<Bulk>,
    /// The other traffic, in the order of the scenario's `[[cross]]`.
    pub cross: Vec<Packets>,
    /// The queue of `[bottleneck]`, or the slowest on the foreground's path.
    pub queue: QueueOutcome,
    /// The hosts, in the order in which the scenario names them.
    pub hosts: Vec<HostOutcome>,
    /// Packets of data that left that queue, over the whole run; the measure of the simulator's speed.
    pub events: u64,
}

/// A host that sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostOutcome {
    /// As the scenario calls it; that of all traffic without a host has no name.
    pub name: String,
    /// What has left it.
    pub egress: Egress,
    /// The rate of the bottleneck in bytes/s that it believed in at the end, if it held packets.
    pub rate: u64,
}

/// What leaves a host, whatever becomes of it on its path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Egress {
    /// Packets, those of TCP without data too.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
    /// Of the bytes, the background's.
    pub background_bytes: u64,
}

/// One foreground flow.
#[derive(Debug, Clone, Copy)]
pub struct Fetch {
    /// When it started, in seconds.
    pub start_s: f64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether it started in the measured window.
    pub counted: bool,
    /// Flow completion time in seconds: from the start to the last byte's arrival. `None`: not finished.
    pub fct_s: Option<f64>,
}

/// One background flow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bulk {
    /// Bytes of payload that became readable, in order, in the measured window.
    pub window_bytes: u64,
    /// Bytes of payload that became readable in the whole run.
    pub bytes: u64,
    /// Packets sent again.
    pub retransmits: u64,
}

/// The packets of a class of traffic.
#[derive(Debug, Clone, Default)]
pub struct Packets {
    /// Round-trip times in microseconds of the packets first sent in the measured window: from then
    /// to the arrival of the first acknowledgement (TCP Nice, 4.1), retransmissions included. A UDP
    /// packet, which nobody acknowledges, counts its way there and an empty path back.
    pub rtt_us: Vec<u32>,
    /// Packets sent in the measured window.
    pub sent: u64,
    /// Packets of UDP sent in the measured window that never arrived; for TCP the packets sent again.
    pub lost: u64,
    /// Bytes of payload that became readable, in order, in the measured window.
    pub window_bytes: u64,
}

/// A queue over the whole run.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct QueueOutcome {
    /// Packets dropped, by the queue or at random on its link.
    pub drops: u64,
    /// Packets marked (ECN).
    pub marks: u64,
    /// Packets that left.
    pub sent_packets: u64,
    /// Bytes on the wire that left.
    pub sent_bytes: u64,
    /// Mean number of packets waiting, over time in the measured window.
    pub mean_packets: f64,
    /// Greatest number of packets waiting.
    pub max_packets: u32,
    /// Mean time that packets waited in the measured window, in milliseconds.
    pub mean_ms: f64,
}

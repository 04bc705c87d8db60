// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What travels: packets of TCP connections and of UDP sources.

/// Nanoseconds since the start of the run.
pub type Nanos = u64;

/// Packets of a flow, counted from 0: TCP sequence numbers in units of one full packet.
pub type Seq = u32;

/// One packet on the wire.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// Slot of the flow that it belongs to.
    pub flow: u32,
    /// Which of the flows that had this slot one after the other.
    pub generation: u32,
    /// Length on the wire in bytes, headers included.
    pub bytes: u32,
    /// Its path, as the event loop numbers them.
    pub path: u16,
    /// Links of its path that it has crossed.
    pub hop: u8,
    /// Whether it is of the background class, which strict priority serves last.
    pub low: bool,
    /// Whether its flow understands ECN (RFC 3168, ECT).
    pub ect: bool,
    /// Whether a queue has marked it (CE).
    pub ce: bool,
    /// When it entered the queue that it is in, or was in last; kept by the queue.
    pub enqueued_ns: Nanos,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Debug, Clone, Copy)]
pub enum Body {
    /// Opens a connection, from the client.
    Syn,
    /// Answers that.
    SynAck,
    /// What the client wants; the other side then sends.
    Request,
    /// Data of a TCP flow.
    Data {
        /// Number of the packet.
        seq: Seq,
        /// When this copy of it was sent (the time stamp of RFC 7323).
        sent_ns: Nanos,
        /// Whether the sender says that it has reduced its window (CWR).
        cwr: bool,
    },
    /// Acknowledges data of a TCP flow.
    Ack(Ack),
    /// The same, and up to which packet its sender may send.
    Windowed(Ack, Seq),
    /// Up to which packet the sender may send now: a window update.
    Window(Seq),
    /// Nothing: the server of a fetch acknowledges the request, ends, or acknowledges the client's
    /// end. It only takes its place in queues.
    Bare,
    /// Data of a UDP source, or a probe on its way out.
    Udp {
        /// When it was sent.
        sent_ns: Nanos,
    },
    /// A probe on its way back.
    Echo {
        /// When the probe was sent.
        sent_ns: Nanos,
    },
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// First packet not yet received.
    pub next: Seq,
    /// Time stamp of the data that caused it (RFC 7323, 4.3).
    pub echo_ns: Nanos,
    /// What the receiver's clock shows, in milliseconds as on Linux; 0: none.
    pub stamp: u32,
    /// Packets received beyond `next`, as half-open ranges, the latest first; empty ones unused.
    pub sacks: [(Seq, Seq); 3],
    /// Whether it echoes a mark (ECE).
    pub ece: bool,
    /// Whether the data that caused it had been received before (D-SACK, RFC 2883).
    pub duplicate: bool,
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections: whose they are, how far they are, and the places that they have one after the other.
//!
//! A connection has one event at a time for its timers, which is left standing when a timer moves
//! away, and scheduled anew when it comes.

use netnice_core::{Group, Value};

use crate::network::Paths;
use crate::outcome::Outcome;
use crate::packet::{Nanos, Seq};
use crate::tcp::{Profile, Receiver, Sender, MS};
use crate::trace;

/// How long a client waits for an answer to its first packet, doubled each time (RFC 6298, 2.1).
const FIRST_RETRY_NS: Nanos = 1000 * MS;

/// Whose a connection is, with its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Foreground(usize),
    Background(usize),
    /// And the flow's own number.
    Cross(usize, usize),
}

impl Class {
    /// As traces call it.
    pub(crate) fn traced(self) -> (trace::Class, u32) {
        match self {
            Self::Foreground(flow) => (trace::Class::Foreground, flow as u32),
            Self::Background(flow) => (trace::Class::Background, flow as u32),
            Self::Cross(_, flow) => (trace::Class::Cross, flow as u32),
        }
    }
}

/// A flow that is to start: a fetch, or a bulk flow of the background or of other traffic.
#[derive(Debug, Clone)]
pub(crate) struct FlowPlan {
    pub(crate) class: Class,
    pub(crate) host: usize,
    pub(crate) start: Nanos,
    pub(crate) stop: Option<Nanos>,
    /// 0: without end.
    pub(crate) bytes: u64,
    pub(crate) config: usize,
    pub(crate) group: Option<Group>,
    pub(crate) window: Option<u32>,
    pub(crate) paths: Paths,
    /// Whether its data waits in its host while the path is busy.
    pub(crate) hold: bool,
    /// Whether its receiver lets it yield.
    pub(crate) pull: bool,
}

/// How far a connection is.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The client has asked at that time, for the n-th time.
    Opening { since: Nanos, tries: u32 },
    /// The client of a fetch has been answered, and has sent its request.
    Requested { since: Nanos, tries: u32 },
    /// Data flows.
    Open,
}

/// A TCP connection, both ends.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) class: Class,
    /// Where its sender is.
    pub(crate) host: usize,
    pub(crate) phase: Phase,
    /// When the server of a fetch answered, and how often: its first RTT counts from there, unless
    /// it is ambiguous.
    pub(crate) answered: (Nanos, u32),
    pub(crate) sender: Option<Sender>,
    pub(crate) receiver: Receiver,
    pub(crate) config: usize,
    pub(crate) group: Option<Group>,
    pub(crate) paths: Paths,
    /// Whether its data waits in its host while the path is busy.
    pub(crate) hold: bool,
    /// Whether its receiver lets it yield.
    pub(crate) pull: bool,
    pub(crate) packets: Seq,
    /// Payload of the last packet in bytes.
    pub(crate) last_bytes: u32,
    pub(crate) window: Option<u32>,
    pub(crate) stop: Option<Nanos>,
    pub(crate) ect: bool,
    /// When its event in the heap comes; `Nanos::MAX`: it has none.
    pub(crate) wake: Nanos,
    /// What the algorithm shows, as it was traced last.
    pub(crate) shown: Vec<Value>,
}

impl Connection {
    /// The flow begins now; `mss` is the payload of a full packet in bytes.
    pub(crate) fn new(plan: FlowPlan, profile: &Profile, mss: u64, ect: bool, now: Nanos) -> Self {
        let (packets, last_bytes) = in_packets(plan.bytes, mss);
        Self {
            class: plan.class,
            host: plan.host,
            phase: Phase::Opening { since: now, tries: 0 },
            answered: (0, 0),
            sender: None,
            receiver: Receiver::new(profile),
            config: plan.config,
            group: plan.group,
            paths: plan.paths,
            hold: plan.hold,
            pull: plan.pull,
            packets,
            last_bytes,
            window: plan.window,
            stop: plan.stop,
            ect,
            wake: Nanos::MAX,
            shown: Vec::new(),
        }
    }

    /// The client of an idle connection fetches once more.
    pub(crate) fn reuse(&mut self, class: Class, bytes: u64, mss: u64, now: Nanos) {
        let (packets, last_bytes) = in_packets(bytes, mss);
        self.class = class;
        self.packets = self.packets.saturating_add(packets);
        self.last_bytes = last_bytes;
        self.phase = Phase::Requested { since: now, tries: 0 };
    }

    pub(crate) fn is_fetch(&self) -> bool {
        matches!(self.class, Class::Foreground(_))
    }

    pub(crate) fn low(&self) -> bool {
        matches!(self.class, Class::Background(_))
    }

    /// When it wants to be woken.
    pub(crate) fn due(&self) -> Nanos {
        let retry = match self.phase {
            Phase::Opening { since, tries } | Phase::Requested { since, tries } => {
                retry_at(since, tries)
            }
            Phase::Open => Nanos::MAX,
        };
        let sender = self.sender.as_ref().map_or(Nanos::MAX, Sender::wake_at);
        retry.min(sender).min(self.receiver.ack_at).min(self.stop.unwrap_or(Nanos::MAX))
    }

    /// Adds what it counted to the outcome.
    pub(crate) fn account(&self, outcome: &mut Outcome) {
        let Some(sender) = &self.sender else { return };
        match self.class {
            Class::Foreground(_) => {
                outcome.foreground.sent += sender.sent();
                outcome.foreground.lost += sender.retransmits();
            }
            Class::Background(index) => {
                outcome.background[index].retransmits += sender.retransmits();
            }
            Class::Cross(index, _) => {
                outcome.cross[index].sent += sender.sent();
                outcome.cross[index].lost += sender.retransmits();
            }
        }
    }
}

/// How many packets so many bytes are, and the payload of the last one; 0 bytes are without end.
fn in_packets(bytes: u64, mss: u64) -> (Seq, u32) {
    let packets = match bytes {
        0 => Seq::MAX,
        bytes => u32::try_from(bytes.div_ceil(mss)).unwrap_or(Seq::MAX),
    };
    (packets, (bytes - mss * bytes.saturating_sub(1).div_euclid(mss)) as u32)
}

/// When a client asks again that has asked at `since` for the n-th time.
pub(crate) fn retry_at(since: Nanos, tries: u32) -> Nanos {
    since + (FIRST_RETRY_NS << tries.min(6))
}

/// A place for a connection, and how many had it before.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

/// The open connections; a flow is the number of its place.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Slots {
    pub(crate) fn put(&mut self, connection: Connection) -> u32 {
        let flow = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[flow as usize].connection = Some(Box::new(connection));
        flow
    }

    pub(crate) fn take(&mut self, flow: u32) -> Option<Box<Connection>> {
        let slot = &mut self.slots[flow as usize];
        let connection = slot.connection.take()?;
        slot.generation += 1;
        self.free.push(flow);
        Some(connection)
    }

    #[inline]
    pub(crate) fn generation(&self, flow: u32) -> u32 {
        self.slots[flow as usize].generation
    }

    /// The connection of a flow whose generation was checked.
    #[inline]
    pub(crate) fn get(&mut self, flow: u32) -> &mut Connection {
        self.slots[flow as usize].connection.as_mut().expect("its generation was checked")
    }

    #[inline]
    pub(crate) fn find(&mut self, flow: u32) -> Option<&mut Connection> {
        self.slots[flow as usize].connection.as_deref_mut()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Connection> {
        self.slots.iter().filter_map(|slot| slot.connection.as_deref())
    }

    /// The flow of that class, if it is open.
    pub(crate) fn of(&self, class: Class) -> Option<u32> {
        let is_it = |slot: &Slot| slot.connection.as_ref().is_some_and(|c| c.class == class);
        self.slots.iter().position(is_it).map(|flow| flow as u32)
    }
}

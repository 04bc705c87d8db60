// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! K1 in virtual time: a bottleneck of 8 Mbit/s with 50 packets of drop-tail, 50 ms there and back.
//! Users fetch files by TCP of the simulator. Beside them are long transfers, by that TCP or by QUIC.

pub mod quic;
pub mod tcp;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use netnice_core::{Algorithm, Config};
use netnice_quinn::Background;
use netnice_scenario::pattern::mix;
use netnice_sim::packet::Ack;
use netnice_sim::tcp::Peers;

use quic::Quic;
use tcp::Tcp;

pub type Nanos = u64;

pub const MS: Nanos = 1_000_000;
pub const SECOND: Nanos = 1000 * MS;
const ONE_WAY: Nanos = 25 * MS;
/// 8 Mbit/s: a microsecond for each byte.
const BYTE: Nanos = 1000;
const LIMIT: usize = 50;

/// Users take half of the line: files of 30 kB on average, Pareto-distributed with the shape 1.5.
const LOAD: f64 = 0.5;
const MEAN_BYTES: f64 = 30_000.0;
const SHAPE: f64 = 1.5;

/// Bytes of headers: IP with TCP and its options, or with UDP.
const TCP_HEADERS: u32 = 52;
const UDP_HEADERS: u32 = 28;

/// The number of QUIC among those that are woken.
const QUIC: usize = usize::MAX;

/// When it is measured, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    from: u64,
    until: u64,
}

impl Span {
    /// The first half minute, but for the start.
    pub const FIRST: Span = Span { from: 3, until: 33 };
    /// Minutes two to six.
    pub const LATER: Span = Span { from: 63, until: 363 };

    fn measures(self, time: Nanos) -> bool {
        (self.from * SECOND..self.until * SECOND).contains(&time)
    }
}

/// What travels.
pub enum Packet {
    Data { flow: usize, seq: u32, sent: Nanos, cwr: bool },
    Ack { flow: usize, ack: Ack },
    Datagram { to_server: bool, bytes: Vec<u8> },
}

/// What happens at a time.
enum Happening {
    Arrives(Packet),
    /// The bottleneck has sent a packet.
    Sent,
    Wake(usize),
    Fetch,
}

/// The long transfers beside the users.
pub enum Beside {
    Nothing,
    Tcp(Config, usize),
    Quic(Background, usize),
    /// Where nobody waits for the ends of gaps.
    QuicWithoutGaps(Background, usize),
}

/// What was seen.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// Mean time of the fetches that began in the measured time, in seconds.
    pub fetch_s: f64,
    /// What the long transfers delivered in that time, in Mbit/s with headers.
    pub background_mbit: f64,
}

pub struct World {
    pub now: Nanos,
    span: Span,
    start: Instant,
    happenings: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// By their number.
    pending: Vec<Option<Happening>>,
    /// For when each is woken next: flows of TCP, and at the end QUIC.
    woken: BTreeMap<usize, Nanos>,
    queue: VecDeque<(u32, Packet)>,
    random: u64,
    /// The host's own, with which its long transfers are counted.
    peers: Peers,
    pub tcp: Vec<Tcp>,
    pub quic: Option<Quic>,
    fetches: Vec<(Nanos, Option<Nanos>)>,
    /// Bytes of long transfers that were delivered in the measured time.
    delivered: u64,
}

impl World {
    pub fn new(seed: u64, span: Span, beside: &Beside) -> World {
        let mut world = World {
            now: 0,
            span,
            start: Instant::now(),
            happenings: BinaryHeap::new(),
            pending: Vec::new(),
            woken: BTreeMap::new(),
            queue: VecDeque::new(),
            random: mix(seed),
            peers: Peers::default(),
            tcp: Vec::new(),
            quic: None,
            fetches: Vec::new(),
            delivered: 0,
        };
        match beside {
            Beside::Nothing => {}
            Beside::Tcp(config, flows) => {
                for flow in 0..*flows {
                    world.tcp.push(Tcp::long(config, &world.peers, flow as u64));
                    world.drive_tcp(flow);
                }
            }
            Beside::Quic(background, connections) => world.connect(background, *connections, true),
            Beside::QuicWithoutGaps(background, connections) => {
                world.connect(background, *connections, false);
            }
        }
        world
    }

    fn connect(&mut self, background: &Background, connections: usize, awaits: bool) {
        self.quic = Some(Quic::new(background, connections, awaits, self.start));
        self.drive_quic();
    }

    /// Fetches of users, from now on.
    pub fn users(&mut self) {
        self.next_fetch();
    }

    pub fn instant(&self) -> Instant {
        self.start + Duration::from_nanos(self.now)
    }

    fn uniform(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.random) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn at(&mut self, time: Nanos, happening: Happening) {
        self.pending.push(Some(happening));
        let number = self.pending.len() - 1;
        self.happenings.push(Reverse((time.max(self.now), number)));
    }

    /// Wakes somebody at that time, unless it is woken before.
    fn wake(&mut self, who: usize, time: Nanos) {
        let time = time.max(self.now);
        if time < Nanos::MAX && self.woken.get(&who).is_none_or(|at| time < *at) {
            self.woken.insert(who, time);
            self.at(time, Happening::Wake(who));
        }
    }

    fn woken(&mut self, who: usize) {
        if self.woken.get(&who) != Some(&self.now) {
            return; // it was woken earlier
        }
        self.woken.remove(&who);
        match who {
            QUIC => self.drive_quic(),
            flow => self.drive_tcp(flow),
        }
    }

    pub fn run_until(&mut self, end: Nanos) {
        while let Some(Reverse((time, number))) = self.happenings.peek().copied() {
            if time > end {
                break;
            }
            self.happenings.pop();
            self.now = time;
            match self.pending[number].take().expect("it happens once") {
                Happening::Arrives(packet) => self.arrives(packet),
                Happening::Sent => self.sent(),
                Happening::Wake(who) => self.woken(who),
                Happening::Fetch => self.fetch(),
            }
        }
        self.now = end;
    }

    fn next_fetch(&mut self) {
        let per_second = LOAD * 1e6 / MEAN_BYTES;
        let wait = -(1.0 - self.uniform()).ln() / per_second;
        self.at(self.now + (wait * 1e9) as Nanos, Happening::Fetch);
    }

    /// A fetch takes a handshake, in which the request comes along, then its packets.
    fn fetch(&mut self) {
        let least = MEAN_BYTES * (SHAPE - 1.0) / SHAPE;
        let bytes = (least / (1.0 - self.uniform()).powf(1.0 / SHAPE)).min(3e7);
        let fetch = self.fetches.len();
        self.fetches.push((self.now, None));
        let flow = self.tcp.len();
        let opens = self.now + 2 * (2 * ONE_WAY);
        self.tcp.push(Tcp::fetch(fetch, bytes, flow as u64, opens));
        self.wake(flow, opens);
        self.next_fetch();
    }

    /// A packet enters the bottleneck.
    fn enter(&mut self, bytes: u32, packet: Packet) {
        if self.queue.len() > LIMIT {
            return; // the first one is being sent
        }
        self.queue.push_back((bytes, packet));
        if self.queue.len() == 1 {
            self.at(self.now + Nanos::from(bytes) * BYTE, Happening::Sent);
        }
    }

    fn sent(&mut self) {
        let (bytes, packet) = self.queue.pop_front().expect("it was being sent");
        if self.span.measures(self.now) && self.is_background(&packet) {
            self.delivered += u64::from(bytes);
        }
        self.at(self.now + ONE_WAY, Happening::Arrives(packet));
        if let Some((bytes, _)) = self.queue.front() {
            self.at(self.now + Nanos::from(*bytes) * BYTE, Happening::Sent);
        }
    }

    fn is_background(&self, packet: &Packet) -> bool {
        match packet {
            Packet::Data { flow, .. } => self.tcp[*flow].fetch.is_none(),
            Packet::Datagram { to_server, .. } => *to_server,
            Packet::Ack { .. } => false,
        }
    }

    fn arrives(&mut self, packet: Packet) {
        match packet {
            Packet::Data { flow, seq, sent, cwr } => {
                let ack = self.tcp[flow].receive(seq, sent, cwr, self.now);
                let done = self.tcp[flow].fetch.filter(|_| self.tcp[flow].received_all());
                if let Some(fetch) = done {
                    self.fetches[fetch].1.get_or_insert(self.now);
                }
                self.acknowledge(flow, ack);
                self.wake(flow, self.tcp[flow].ack_at());
            }
            Packet::Ack { flow, ack } => {
                self.tcp[flow].acknowledged(&ack, self.now);
                self.drive_tcp(flow);
            }
            Packet::Datagram { to_server, bytes } => {
                let now = self.instant();
                let quic = self.quic.as_mut().expect("it has sent");
                quic.receive(to_server, &bytes, now);
                self.drive_quic();
            }
        }
    }

    fn acknowledge(&mut self, flow: usize, ack: Option<Ack>) {
        if let Some(ack) = ack {
            self.at(self.now + ONE_WAY, Happening::Arrives(Packet::Ack { flow, ack }));
        }
    }

    fn drive_tcp(&mut self, flow: usize) {
        let now = self.now;
        let late = self.tcp[flow].late_ack(now);
        self.acknowledge(flow, late);
        for step in self.tcp[flow].transmit(now) {
            let packet = Packet::Data { flow, seq: step.seq, sent: now, cwr: step.cwr };
            self.enter(self.tcp[flow].bytes() + TCP_HEADERS, packet);
        }
        self.wake(flow, self.tcp[flow].wake_at().min(self.tcp[flow].ack_at()));
    }

    pub fn drive_quic(&mut self) {
        let now = self.instant();
        let Some(quic) = &mut self.quic else { return };
        let (datagrams, again) = quic.drive(now);
        for (to_server, bytes) in datagrams {
            let length = bytes.len() as u32 + UDP_HEADERS;
            let packet = Packet::Datagram { to_server, bytes };
            if to_server {
                self.enter(length, packet);
            } else {
                self.at(self.now + ONE_WAY, Happening::Arrives(packet));
            }
        }
        if let Some(again) = again {
            let wait = again.saturating_duration_since(self.start).as_nanos() as Nanos;
            self.wake(QUIC, wait.max(self.now + 1));
        }
    }
}

/// K1 with that beside the users.
pub fn k1(seed: u64, span: Span, beside: &Beside) -> Seen {
    let mut world = World::new(seed, span, beside);
    world.users();
    world.run_until((span.until + 15) * SECOND);
    let measured = world.fetches.iter().filter(|(began, _)| span.measures(*began));
    let times: Vec<f64> =
        measured.map(|(began, ended)| (ended.unwrap_or(world.now) - began) as f64 / 1e9).collect();
    let seconds = (span.until - span.from) as f64;
    Seen {
        fetch_s: times.iter().sum::<f64>() / times.len() as f64,
        background_mbit: world.delivered as f64 * 8.0 / 1e6 / seconds,
    }
}

/// An algorithm of the list with its defaults.
pub fn config(name: &str) -> Config {
    Config::new(Algorithm::by_name(name).expect("of the list"))
}

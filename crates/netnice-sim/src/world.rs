// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The event loop: links, connections and UDP sources on one time line.
//!
//! Everything that happens is an event of a heap, ordered by time and then by the order in which it
//! was scheduled. A packet costs two events per link, however long the link: a link keeps what is
//! under way in order and schedules only the next arrival. A connection has one event at a time for
//! its timers, which is left standing when a timer moves away, and scheduled anew when it comes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use netnice_core::{Algorithm, Config, Group, Info, ONE};
use netnice_scenario::schedule;
use netnice_scenario::weblog::WebLog;
use netnice_scenario::{
    Background, Cross, CrossKind, Foreground, LinkChange, Parameter, Scenario, Variant,
};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::link::{nanos, Link, Schedule, Transmitter};
use crate::outcome::{Bulk, Fetch, Outcome, Packets, QueueOutcome};
use crate::packet::{Body, Nanos, Packet, Seq};
use crate::random::{self, Stream};
use crate::tcp::{Marks, Peers, Profile, Receiver, Sender, Step, MS};
use crate::trace::{self, Sink};
use crate::Error;

/// Bytes on the wire, beside `header_bytes`, of the packets that open a connection: TCP's options.
const OPEN_BYTES: u32 = 8;

/// Payload of the request of a fetch, and of a probe, in bytes; as `netnice-load` sends them.
const REQUEST_BYTES: u32 = 24;
const PROBE_BYTES: u32 = 64 + 42;

/// How long a client waits for an answer to its first packet, doubled each time (RFC 6298, 2.1).
const FIRST_RETRY_NS: Nanos = 1000 * MS;

/// Background flows that start together do so within this, as calls of a program do.
const START_SPREAD_NS: f64 = 1e6;

/// How long packets sent in the measured window may be under way after it.
const SETTLING_NS: Nanos = 1000 * MS;

/// `Packet::flow` of a probe; its number is in `Packet::generation`.
const PROBE: u32 = u32::MAX;

/// Runs a scenario with one of its variants.
///
/// `log` is used only if the foreground needs it. `trace` gets windows and queues over time.
///
/// # Errors
/// [`Error`] says what this simulator does not have.
///
/// # Panics
/// If the log is needed and not given.
pub fn run<'s>(
    scenario: &'s Scenario,
    variant: &'s Variant,
    seed: u64,
    log: Option<&WebLog>,
    trace: Option<&mut dyn Sink>,
) -> Result<Outcome, Error> {
    Ok(World::new(scenario, variant, seed, log, trace)?.run())
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Departure(usize),
    Arrival(usize),
    Wake { flow: u32, generation: u32 },
    Fetch(usize),
    Bulk(usize),
    Udp(usize),
    Probe(u32),
    Change { link: usize, index: usize },
    Shares { flow: usize, config: usize },
    Sample,
}

/// An event in the heap; the smallest comes first.
#[derive(Debug)]
struct Entry {
    key: (Nanos, u64),
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

/// What time it is, and what is to come.
#[derive(Debug, Default)]
struct Agenda {
    now: Nanos,
    scheduled: u64,
    heap: BinaryHeap<Reverse<Entry>>,
}

impl Agenda {
    fn at(&mut self, time: Nanos, event: Event) {
        self.scheduled += 1;
        self.heap.push(Reverse(Entry { key: (time, self.scheduled), event }));
    }

    fn link(&mut self, index: usize, schedule: Schedule) {
        if let Some(at) = schedule.departure {
            self.at(at, Event::Departure(index));
        }
        if let Some(at) = schedule.arrival {
            self.at(at, Event::Arrival(index));
        }
    }
}

/// Whose a connection is, with its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Foreground(usize),
    Background(usize),
    /// And the flow's own number.
    Cross(usize, usize),
}

impl Class {
    /// As traces call it.
    fn traced(self) -> (trace::Class, u32) {
        match self {
            Self::Foreground(flow) => (trace::Class::Foreground, flow as u32),
            Self::Background(flow) => (trace::Class::Background, flow as u32),
            Self::Cross(_, flow) => (trace::Class::Cross, flow as u32),
        }
    }
}

/// Bulk flows that start at set times: of the background, or of other traffic.
#[derive(Debug)]
struct BulkPlan {
    class: Class,
    start: Nanos,
    stop: Option<Nanos>,
    bytes: u64,
    config: usize,
    group: Option<Group>,
    window: Option<u32>,
    paths: Paths,
}

/// A UDP source.
#[derive(Debug)]
struct Source {
    cross: usize,
    bytes: u32,
    /// Time between packets; of a Poisson process the mean.
    gap: Nanos,
    poisson: bool,
    stop: Nanos,
    paths: Paths,
    /// Mean times on and off in nanoseconds, and the shape of both; `None`: always on.
    bursts: Option<(f64, f64, f64)>,
    /// End of this burst.
    until: Nanos,
    random: Pcg64,
}

/// The way of data and the way back, as indexes of `World::paths`.
#[derive(Debug, Clone, Copy)]
struct Paths {
    there: u16,
    back: u16,
}

/// How far a connection is.
#[derive(Debug)]
enum Phase {
    /// The client has asked at that time, for the n-th time.
    Opening { since: Nanos, tries: u32 },
    /// The client of a fetch has been answered, and has sent its request.
    Requested { since: Nanos, tries: u32 },
    /// Data flows.
    Open,
}

/// A TCP connection, both ends.
#[derive(Debug)]
struct Connection {
    class: Class,
    phase: Phase,
    /// When the server of a fetch answered, and how often: its first RTT counts from there, unless
    /// it is ambiguous.
    answered: (Nanos, u32),
    sender: Option<Sender>,
    receiver: Receiver,
    config: usize,
    group: Option<Group>,
    paths: Paths,
    packets: Seq,
    /// Payload of the last packet in bytes.
    last_bytes: u32,
    window: Option<u32>,
    stop: Option<Nanos>,
    ect: bool,
    /// When its event in the heap comes; `Nanos::MAX`: it has none.
    wake: Nanos,
    /// What the algorithm knows, as it was traced last.
    info: Info,
}

impl Connection {
    fn low(&self) -> bool {
        matches!(self.class, Class::Background(_))
    }

    /// When it wants to be woken.
    fn due(&self) -> Nanos {
        let retry = match self.phase {
            Phase::Opening { since, tries } | Phase::Requested { since, tries } => {
                since + (FIRST_RETRY_NS << tries.min(6))
            }
            Phase::Open => Nanos::MAX,
        };
        let sender = self.sender.as_ref().map_or(Nanos::MAX, Sender::wake_at);
        retry.min(sender).min(self.receiver.ack_at).min(self.stop.unwrap_or(Nanos::MAX))
    }
}

/// A place for a connection, and how many had it before.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    connection: Option<Box<Connection>>,
}

struct World<'s, 't> {
    scenario: &'s Scenario,
    profile: Profile,
    agenda: Agenda,
    links: Vec<Link>,
    /// Of the links that are traced: the first ones.
    names: Vec<String>,
    changes: Vec<Vec<LinkChange>>,
    paths: Vec<Vec<usize>>,
    /// Propagation of each path in nanoseconds, without queues.
    delays: Vec<Nanos>,
    ect: bool,
    slots: Vec<Slot>,
    free: Vec<u32>,
    configs: Vec<Config>,
    groups: BTreeMap<&'s str, Group>,
    /// The senders of each algorithm, all of which are one host's.
    peers: BTreeMap<&'static str, Peers>,
    bulks: Vec<BulkPlan>,
    sources: Vec<Source>,
    /// Parameters, the paths of each pair of hosts, the window that receivers offer.
    foreground: Option<(usize, Vec<Paths>, Option<u32>)>,
    mss: u32,
    header: u32,
    window: (Nanos, Nanos),
    /// For initial sequence numbers.
    random: Pcg64,
    /// For the hosts of fetches.
    hosts: Pcg64,
    /// Packets of a connection that leave; kept for its room.
    steps: Vec<Step>,
    trace: Option<&'t mut dyn Sink>,
    outcome: Outcome,
}

impl<'s, 't> World<'s, 't> {
    fn new(
        scenario: &'s Scenario,
        variant: &'s Variant,
        seed: u64,
        log: Option<&WebLog>,
        trace: Option<&'t mut dyn Sink>,
    ) -> Result<Self, Error> {
        let network = scenario.network();
        let (mss, header) = (scenario.mss_bytes(), scenario.header_bytes());
        let window = (seconds(scenario.warmup_s), seconds(scenario.arrivals_end_s()));
        let profile = Profile::of_scenario(scenario);
        // the lab shapes its bottleneck with a token bucket of two packets
        let transmitter = match scenario.bottleneck {
            Some(_) if profile.handshake => Transmitter::TokenBucket(2 * (mss + header)),
            _ => Transmitter::Serial,
        };
        let mut links = Vec::with_capacity(network.len());
        for (index, link) in network.iter().enumerate() {
            let made =
                Link::new(link, variant.queue, transmitter, mss + header, window, seed, index);
            links.push(made.map_err(|reason| Error::Queue {
                place: format!("{}, link \"{}\"", scenario.name, link.name),
                reason,
            })?);
        }
        let mut world = Self {
            scenario,
            profile,
            agenda: Agenda::default(),
            links,
            names: scenario.links().into_iter().map(|link| link.name).collect(),
            changes: network.iter().map(|link| link.change.clone()).collect(),
            paths: Vec::new(),
            delays: Vec::new(),
            ect: network.iter().any(|link| link.ecn),
            slots: Vec::new(),
            free: Vec::new(),
            configs: Vec::new(),
            groups: BTreeMap::new(),
            peers: BTreeMap::new(),
            bulks: Vec::new(),
            sources: Vec::new(),
            foreground: None,
            mss,
            header,
            window,
            random: random::stream(seed, Stream::Sequence),
            hosts: random::stream(seed, Stream::Hosts),
            steps: Vec::new(),
            trace,
            outcome: Outcome::default(),
        };
        if let Some(foreground) = &scenario.foreground {
            world.plan_foreground(foreground)?;
        }
        for (index, cross) in scenario.cross.iter().enumerate() {
            world.plan_cross(index, cross, seed)?;
        }
        if let Some(background) = &variant.background {
            world.plan_background(background, seed)?;
        }
        world.plan_events(log, seed);
        Ok(world)
    }

    /// The paths between two nodes, there and back.
    fn ways(&mut self, from: Option<&str>, to: Option<&str>) -> Result<Paths, Error> {
        let (from, to) = self.scenario.ends(from, to);
        let mut way = |from, to| -> Result<u16, Error> {
            let path = self.scenario.path(from, to)?;
            if let Some(known) = self.paths.iter().position(|p| *p == path) {
                return Ok(known as u16);
            }
            let network = self.scenario.network();
            self.delays.push(path.iter().map(|link| nanos(network[*link].delay_ms)).sum());
            self.paths.push(path);
            Ok(self.paths.len() as u16 - 1)
        };
        Ok(Paths { there: way(from, to)?, back: way(to, from)? })
    }

    fn config<'p>(
        &mut self,
        place: &str,
        control: &str,
        settings: impl Iterator<Item = (&'p String, &'p Parameter)>,
    ) -> Result<usize, Error> {
        let wrong =
            |reason| Error::Control { place: format!("{}, {place}", self.scenario.name), reason };
        let mut config = Config::new(Algorithm::by_name(control).map_err(wrong)?);
        for (name, value) in settings {
            let value = match value {
                Parameter::Integer(n) => n.to_string(),
                Parameter::Number(x) => x.to_string(),
                Parameter::Text(text) => text.clone(),
            };
            config.set(&format!("{name}={value}")).map_err(wrong)?;
        }
        self.configs.push(config);
        Ok(self.configs.len() - 1)
    }

    /// The parameters of each of some flows that may be in a group: numbers of `configs`.
    fn configs(
        &mut self,
        place: &str,
        control: &str,
        settings: &BTreeMap<String, Parameter>,
        shares: Option<&Vec<f64>>,
        flows: u32,
    ) -> Result<Vec<usize>, Error> {
        let Some(shares) = shares else {
            let config = self.config(place, control, settings.iter())?;
            return Ok(vec![config; flows as usize]);
        };
        let name = String::from("share");
        shares
            .iter()
            .map(|share| {
                let share = Parameter::Number(*share);
                self.config(place, control, settings.iter().chain([(&name, &share)]))
            })
            .collect()
    }

    /// The group of that name; its packets carry tags, if its algorithm wants them. `to`: where its
    /// members of this kind send.
    fn group(&mut self, name: Option<&'s String>, to: Option<&'s str>) -> Option<Group> {
        let name = name?;
        let of_group = |c: &&Cross| c.group.as_ref() == Some(name);
        let mut cross = self.scenario.cross.iter().filter(of_group);
        let apart = cross.any(|c| c.to.as_deref() != to);
        let made = || if apart { Group::apart(true) } else { Group::new(true) };
        Some(self.groups.entry(name).or_insert_with(made).clone())
    }

    fn plan_foreground(&mut self, foreground: &Foreground) -> Result<(), Error> {
        let config = self.config("[foreground]", &foreground.control, std::iter::empty())?;
        let network = self.scenario.network();
        let mut known = |path: Vec<usize>| {
            self.delays.push(path.iter().map(|link| nanos(network[*link].delay_ms)).sum());
            self.paths.push(path);
            self.paths.len() as u16 - 1
        };
        let pairs = self.scenario.foreground_paths()?.into_iter();
        let paths = pairs.map(|[there, back]| Paths { there: known(there), back: known(back) });
        self.foreground = Some((config, paths.collect(), foreground.window_packets));
        Ok(())
    }
    fn plan_background(&mut self, background: &'s Background, seed: u64) -> Result<(), Error> {
        let place = format!("background \"{}\"", background.name);
        let Background { control, set, flows, .. } = background;
        let configs = self.configs(&place, control, set, background.shares.as_ref(), *flows)?;
        let group = self.group(background.group.as_ref(), background.to.as_deref());
        for change in &background.change {
            let configs = self.configs(&place, control, set, Some(&change.shares), *flows)?;
            for (flow, config) in configs.into_iter().enumerate() {
                self.agenda.at(seconds(change.at_s), Event::Shares { flow, config });
            }
        }
        let paths = self.ways(background.from.as_deref(), background.to.as_deref())?;
        for (flow, config) in configs.into_iter().enumerate() {
            let spread =
                random::stream(seed, Stream::Start(flow)).random::<f64>() * START_SPREAD_NS;
            self.bulks.push(BulkPlan {
                class: Class::Background(flow),
                start: seconds(background.start_s + flow as f64 * background.stagger_s)
                    + spread as Nanos,
                stop: background.flow_stop_s(flow as u32).map(seconds),
                bytes: background.bytes,
                config,
                group: group.clone(),
                window: background.window_packets,
                paths,
            });
        }
        self.outcome.background = vec![Bulk::default(); background.flows as usize];
        Ok(())
    }

    fn plan_cross(&mut self, index: usize, cross: &'s Cross, seed: u64) -> Result<(), Error> {
        self.outcome.cross.push(Packets::default());
        let paths = self.ways(cross.from.as_deref(), cross.to.as_deref())?;
        let end = seconds(self.scenario.end_s());
        let configs = match cross.kind {
            CrossKind::Tcp => {
                let place = format!("cross \"{}\"", cross.name);
                let shares = cross.shares.as_ref();
                self.configs(&place, &cross.control, &cross.set, shares, cross.flows)?
            }
            _ => Vec::new(), // UDP has none
        };
        let group = self.group(cross.group.as_ref(), cross.to.as_deref());
        for flow in 0..cross.flows as usize {
            let start = seconds(cross.start_s + flow as f64 * cross.stagger_s);
            let mut random = random::stream(seed, Stream::Source(index << 20 | flow));
            let spread = (random.random::<f64>() * START_SPREAD_NS) as Nanos;
            let stop = cross.stop_s.map(seconds);
            if let Some(&config) = configs.get(flow) {
                self.bulks.push(BulkPlan {
                    class: Class::Cross(index, self.bulks.len()),
                    start: start + spread,
                    stop,
                    bytes: cross.bytes,
                    config,
                    group: group.clone(),
                    window: cross.window_packets,
                    paths,
                });
                continue;
            }
            let rate = cross.rate_mbit.unwrap_or(1.0);
            let bursts = (cross.kind == CrossKind::Onoff).then_some((
                cross.on_ms * 1e6,
                cross.off_ms * 1e6,
                cross.shape,
            ));
            let gap = (f64::from(cross.packet_bytes) * 8e3 / rate).round() as Nanos;
            // sources of one kind are out of step from the start
            let phase = match bursts {
                None => random.random::<f64>() * gap as f64,
                Some((on, off, _)) => random.random::<f64>() * (on + off),
            };
            self.sources.push(Source {
                cross: index,
                bytes: cross.packet_bytes,
                gap,
                poisson: cross.kind == CrossKind::Poisson,
                stop: stop.unwrap_or(end),
                paths,
                bursts,
                until: 0,
                random,
            });
            self.agenda.at(start + phase as Nanos, Event::Udp(self.sources.len() - 1));
        }
        Ok(())
    }

    fn plan_events(&mut self, log: Option<&WebLog>, seed: u64) {
        self.outcome.fetches = schedule(self.scenario, log, seed)
            .iter()
            .map(|f| Fetch { start_s: f.start_s, bytes: f.bytes, counted: f.counted, fct_s: None })
            .collect();
        // one at a time: the next fetch is scheduled by the one before it
        if let Some(first) = self.outcome.fetches.first() {
            self.agenda.at(seconds(first.start_s), Event::Fetch(0));
        }
        for (index, bulk) in self.bulks.iter().enumerate() {
            self.agenda.at(bulk.start, Event::Bulk(index));
        }
        for (link, changes) in self.changes.iter().enumerate() {
            for (index, change) in changes.iter().enumerate() {
                self.agenda.at(seconds(change.at_s), Event::Change { link, index });
            }
        }
        if self.scenario.foreground.as_ref().is_some_and(|f| f.probe_interval_ms.is_some()) {
            self.agenda.at(0, Event::Probe(0));
        }
    }

    fn run(mut self) -> Outcome {
        let end = seconds(self.scenario.end_s());
        // after the measured window nothing new starts; what counts may finish
        let mut counted = self.outcome.fetches.iter().filter(|f| f.counted).count();
        if self.trace.is_some() {
            self.agenda.at(0, Event::Sample);
        }
        while let Some(Reverse(Entry { key: (time, _), event })) = self.agenda.heap.pop() {
            if time > end || (counted == 0 && time >= self.window.1 + SETTLING_NS) {
                break;
            }
            self.agenda.now = time;
            match event {
                Event::Departure(link) => {
                    let schedule = self.links[link].depart(time);
                    self.agenda.link(link, schedule);
                }
                Event::Arrival(link) => {
                    let (packet, next) = self.links[link].arrive(time);
                    if let Some(at) = next {
                        self.agenda.at(at, Event::Arrival(link));
                    }
                    if let Some(packet) = packet {
                        counted -= usize::from(self.arrive(packet));
                    }
                }
                Event::Wake { flow, generation } => self.wake(flow, generation),
                Event::Fetch(index) => self.start_fetch(index),
                Event::Bulk(index) => self.start_bulk(index),
                Event::Udp(index) => self.send_udp(index),
                Event::Probe(number) => self.send_probe(number),
                Event::Change { link, index } => {
                    self.links[link].change(&self.changes[link][index]);
                }
                Event::Shares { flow, config } => self.share(flow, config),
                Event::Sample => {
                    self.agenda.at(time + trace::INTERVAL, Event::Sample);
                    self.sample();
                }
            }
        }
        self.agenda.now = self.agenda.now.max(self.window.1);
        self.finish()
    }

    fn finish(mut self) -> Outcome {
        let now = self.agenda.now;
        for slot in &self.slots {
            if let Some(connection) = &slot.connection {
                account(&mut self.outcome, connection);
            }
        }
        let measured = self.scenario.slowest_link().unwrap_or(0);
        let (stats, queue) = self.links[measured].stats(now);
        let window = (self.window.1 - self.window.0) as f64;
        self.outcome.queue = QueueOutcome {
            drops: queue.drops + stats.lost,
            marks: queue.marks,
            sent_packets: stats.packets,
            sent_bytes: stats.bytes,
            mean_packets: stats.area / window,
            max_packets: stats.most as u32,
            mean_ms: stats.waited.1 as f64 / 1e6 / stats.waited.0.max(1) as f64,
        };
        self.outcome.events = stats.data;
        self.outcome
    }

    fn sample(&mut self) {
        let now = self.agenda.now;
        let Some(sink) = &mut self.trace else { return };
        for (name, link) in self.names.iter().zip(&self.links) {
            sink.link(now, name, link.waiting(), link.left_bytes(), link.dropped());
        }
        for connection in self.slots.iter().filter_map(|slot| slot.connection.as_ref()) {
            let Some(sender) = &connection.sender else { continue };
            let (class, flow) = connection.class.traced();
            sink.window(now, class, flow, sender.window(), sender.inflight());
            sink.acked(now, class, flow, sender.acked());
        }
    }

    /// Puts a packet on the next link of its path.
    fn forward(&mut self, packet: Packet) {
        let link = self.paths[usize::from(packet.path)][usize::from(packet.hop)];
        let schedule = self.links[link].push(packet, self.agenda.now);
        self.agenda.link(link, schedule);
    }

    /// Sends a packet of a connection on its way.
    fn send(&mut self, flow: u32, path: u16, bytes: u32, body: Body) {
        let slot = &self.slots[flow as usize];
        let connection = slot.connection.as_ref().expect("only a connection sends");
        let packet = Packet {
            flow,
            generation: slot.generation,
            bytes,
            path,
            hop: 0,
            low: connection.low(),
            ect: connection.ect && matches!(body, Body::Data { .. }),
            ce: false,
            enqueued_ns: 0,
            body,
        };
        self.forward(packet);
    }

    /// A packet has crossed a link. Whether a counted fetch ended with it.
    fn arrive(&mut self, mut packet: Packet) -> bool {
        packet.hop += 1;
        if usize::from(packet.hop) < self.paths[usize::from(packet.path)].len() {
            self.forward(packet);
            return false;
        }
        match packet.body {
            Body::Udp { sent_ns } if packet.flow == PROBE => self.echo(packet, sent_ns),
            Body::Udp { sent_ns } => self.receive_udp(packet, sent_ns),
            Body::Bare => {}
            Body::Echo { sent_ns } => {
                let rtt = self.agenda.now - sent_ns;
                self.outcome.probes[packet.generation as usize] = Some(rtt);
            }
            _ if self.slots[packet.flow as usize].generation != packet.generation => {}
            Body::Syn => self.receive_syn(packet.flow),
            Body::SynAck => self.receive_syn_ack(packet.flow),
            Body::Request => self.receive_request(packet.flow),
            Body::Ack(_) => self.receive_ack(packet),
            Body::Data { .. } => return self.receive_data(packet),
        }
        false
    }

    fn start_fetch(&mut self, index: usize) {
        if let Some(next) = self.outcome.fetches.get(index + 1) {
            let at = seconds(next.start_s);
            self.agenda.at(at, Event::Fetch(index + 1));
        }
        let (config, pairs, window) = self.foreground.as_ref().expect("only a foreground fetches");
        let (config, window) = (*config, *window);
        let paths = match pairs[..] {
            [only] => only,
            _ => pairs[(self.hosts.random::<f64>() * pairs.len() as f64) as usize],
        };
        let bytes = self.outcome.fetches[index].bytes;
        let class = Class::Foreground(index);
        let start = self.agenda.now;
        let group = None;
        self.connect(BulkPlan { class, start, stop: None, bytes, config, group, window, paths });
    }

    fn start_bulk(&mut self, index: usize) {
        let plan = &self.bulks[index];
        self.connect(BulkPlan { group: plan.group.clone(), ..*plan });
    }

    /// A flow of the background has other parameters from now on.
    fn share(&mut self, flow: usize, config: usize) {
        let now = self.agenda.now;
        let class = Class::Background(flow);
        if let Some(plan) = self.bulks.iter_mut().find(|plan| plan.class == class) {
            plan.config = config;
        }
        let open = self.slots.iter_mut().zip(0..).find_map(|(slot, at)| {
            let connection = slot.connection.as_mut().filter(|c| c.class == class)?;
            connection.config = config;
            connection.sender.as_mut().map(|sender| (at, sender))
        });
        if let Some((at, sender)) = open {
            sender.configure(&self.configs[config], now);
            self.transmit(at);
        }
    }

    fn connect(&mut self, plan: BulkPlan) {
        let now = self.agenda.now;
        let mss = u64::from(self.mss);
        let packets = match plan.bytes {
            0 => Seq::MAX,
            bytes => u32::try_from(bytes.div_ceil(mss)).unwrap_or(Seq::MAX),
        };
        let connection = Box::new(Connection {
            class: plan.class,
            phase: Phase::Opening { since: now, tries: 0 },
            answered: (0, 0),
            sender: None,
            receiver: Receiver::new(&self.profile),
            config: plan.config,
            group: plan.group,
            paths: plan.paths,
            packets,
            last_bytes: (plan.bytes - mss * plan.bytes.saturating_sub(1).div_euclid(mss)) as u32,
            window: plan.window,
            stop: plan.stop,
            ect: self.ect,
            wake: Nanos::MAX,
            info: Info::default(),
        });
        let flow = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.slots[flow as usize].connection = Some(connection);
        if self.profile.handshake {
            self.open(flow);
            self.schedule(flow);
        } else {
            self.begin(flow, 0);
        }
    }

    /// The client's first packet: the receiver of a fetch asks, the sender of a bulk flow calls.
    fn open(&mut self, flow: u32) {
        let connection = self.connection(flow);
        let (class, paths) = (connection.class, connection.paths);
        let path = match class {
            Class::Foreground(_) => paths.back,
            _ => paths.there,
        };
        self.send(flow, path, self.header + OPEN_BYTES, Body::Syn);
    }

    fn receive_syn(&mut self, flow: u32) {
        let now = self.agenda.now;
        let connection = self.connection(flow);
        let paths = connection.paths;
        let path = match connection.class {
            Class::Foreground(_) => paths.there,
            _ => paths.back,
        };
        connection.answered = (now, connection.answered.1 + 1);
        self.send(flow, path, self.header + OPEN_BYTES, Body::SynAck);
    }

    fn receive_syn_ack(&mut self, flow: u32) {
        let now = self.agenda.now;
        let connection = self.connection(flow);
        let Phase::Opening { since, tries } = connection.phase else { return };
        if let Class::Foreground(_) = connection.class {
            connection.phase = Phase::Requested { since: now, tries: 0 };
            self.request(flow);
            self.schedule(flow);
        } else {
            self.begin(flow, if tries == 0 { now - since } else { 0 });
        }
    }

    fn request(&mut self, flow: u32) {
        let back = self.connection(flow).paths.back;
        self.send(flow, back, self.header + REQUEST_BYTES, Body::Request);
    }

    fn receive_request(&mut self, flow: u32) {
        let now = self.agenda.now;
        let connection = self.connection(flow);
        if connection.sender.is_some() {
            return;
        }
        let rtt = if connection.answered.1 == 1 { now - connection.answered.0 } else { 0 };
        let packets = connection.packets;
        self.bare(flow); // a connection begins with quick ACKs
        self.begin(flow, rtt);
        if packets <= self.profile.initial_window {
            // all was sent before the server ended: no packet is left to carry that
            self.bare(flow);
        }
    }

    /// A packet without data on the way of the data.
    fn bare(&mut self, flow: u32) {
        let there = self.connection(flow).paths.there;
        self.send(flow, there, self.header, Body::Bare);
    }

    /// Data flows from now on.
    fn begin(&mut self, flow: u32, rtt: Nanos) {
        let now = self.agenda.now;
        let profile = self.profile;
        let connection = self.slots[flow as usize].connection.as_mut().expect("it begins");
        let config = &self.configs[connection.config];
        let (packets, window) = (connection.packets, connection.window);
        let peers = self.peers.entry(config.algorithm().name()).or_default();
        let control = (config, connection.group.as_ref(), &*peers);
        let first = self.random.random();
        connection.sender = Some(Sender::new(&profile, control, packets, first, window, rtt, now));
        connection.receiver.opened(&profile, rtt);
        if !matches!(connection.class, Class::Foreground(_)) || !profile.handshake {
            connection.phase = Phase::Open;
        }
        self.transmit(flow);
    }

    fn receive_data(&mut self, packet: Packet) -> bool {
        let now = self.agenda.now;
        let profile = self.profile;
        let Body::Data { seq, sent_ns, cwr } = packet.body else { return false };
        let connection = self.slots[packet.flow as usize].connection.as_mut().expect("it is open");
        connection.phase = Phase::Open;
        let marks = Marks { ce: packet.ce, cwr };
        let last = seq + 1 == connection.packets;
        let reply = connection.receiver.data(&profile, seq, sent_ns, marks, last, now);
        let complete = connection.receiver.next() == connection.packets;
        let mut bytes = u64::from(reply.readable) * u64::from(self.mss);
        if complete && reply.readable > 0 {
            bytes -= u64::from(self.mss - connection.last_bytes);
        }
        let counts = (self.window.0..self.window.1).contains(&now);
        let mut ended = false;
        match connection.class {
            Class::Foreground(index) => {
                let fetch = &mut self.outcome.fetches[index];
                self.outcome.foreground.window_bytes += if counts { bytes } else { 0 };
                if complete && fetch.fct_s.is_none() {
                    fetch.fct_s = Some((now - seconds(fetch.start_s)) as f64 / 1e9);
                    ended = fetch.counted;
                }
            }
            Class::Background(index) => {
                let bulk = &mut self.outcome.background[index];
                bulk.bytes += bytes;
                bulk.window_bytes += if counts { bytes } else { 0 };
            }
            Class::Cross(index, _) => {
                self.outcome.cross[index].window_bytes += if counts { bytes } else { 0 };
            }
        }
        let back = connection.paths.back;
        match reply.ack {
            Some(ack) => self.send(packet.flow, back, self.header, Body::Ack(ack)),
            None => self.schedule(packet.flow),
        }
        ended
    }

    fn receive_ack(&mut self, packet: Packet) {
        let now = self.agenda.now;
        let Body::Ack(ack) = packet.body else { return };
        let slot = &mut self.slots[packet.flow as usize];
        let connection = slot.connection.as_mut().expect("it is open");
        let Some(sender) = &mut connection.sender else { return };
        let (from, to) = self.window;
        let packets = match connection.class {
            Class::Foreground(_) => Some(&mut self.outcome.foreground),
            Class::Cross(index, _) => Some(&mut self.outcome.cross[index]),
            Class::Background(_) => None,
        };
        match packets {
            Some(packets) => sender.ack(&self.profile, &ack, now, |first| {
                if (from..to).contains(&first) {
                    packets.rtt_us.push(((now - first) / 1000) as u32);
                }
            }),
            None => sender.ack(&self.profile, &ack, now, |_| {}),
        }
        if let Some(sink) = self.trace.as_mut() {
            let (class, flow) = connection.class.traced();
            if sender.measured_rtt() > 0 {
                sink.rtt(now, class, flow, sender.measured_rtt());
            }
            let info = sender.info();
            let known = std::mem::replace(&mut connection.info, info);
            if info.avail_results != known.avail_results {
                let packet_mbit = f64::from(self.mss + self.header) * 8.0 / 1e6;
                let pps = [info.avail_pps, info.avail_low_pps, info.avail_high_pps];
                sink.available(now, class, flow, pps.map(|n| f64::from(n) * packet_mbit));
            }
            let weight = |info: &Info| (info.weight_q16, info.tcp_mbit_q16);
            if weight(&info) != weight(&known) {
                let (share, tcp) = weight(&info);
                let one = ONE as f64;
                sink.weight(now, class, flow, f64::from(share) / one, tcp as f64 / one);
            }
        }
        if sender.done() {
            self.close(packet.flow);
        } else {
            self.transmit(packet.flow);
        }
    }

    fn transmit(&mut self, flow: u32) {
        let now = self.agenda.now;
        let slot = &mut self.slots[flow as usize];
        let connection = slot.connection.as_mut().expect("only a connection sends");
        let Some(sender) = &mut connection.sender else { return };
        let mut steps = std::mem::take(&mut self.steps);
        sender.transmit(&self.profile, now, &mut steps);
        let (there, packets, last) =
            (connection.paths.there, connection.packets, connection.last_bytes);
        for step in steps.drain(..) {
            let payload = if step.seq + 1 == packets { last } else { self.mss };
            let body = Body::Data { seq: step.seq, sent_ns: now, cwr: step.cwr };
            self.send(flow, there, payload + self.header, body);
        }
        self.steps = steps;
        self.schedule(flow);
    }

    /// Does what is due at a connection.
    fn wake(&mut self, flow: u32, generation: u32) {
        let now = self.agenda.now;
        let profile = self.profile;
        let slot = &mut self.slots[flow as usize];
        let Some(connection) = slot.connection.as_mut().filter(|_| slot.generation == generation)
        else {
            return;
        };
        if connection.wake != now {
            return; // a timer came nearer; its own event is in the heap
        }
        connection.wake = Nanos::MAX;
        if connection.stop.is_some_and(|stop| stop <= now) {
            connection.stop = None;
            match &mut connection.sender {
                Some(sender) => sender.stop(),
                None => return self.close(flow),
            }
        }
        let (mut reopen, mut request) = (false, false);
        let late = |since: Nanos, tries: u32| now >= since + (FIRST_RETRY_NS << tries.min(6));
        match &mut connection.phase {
            Phase::Opening { since, tries } if late(*since, *tries) => {
                (*since, *tries, reopen) = (now, *tries + 1, true);
            }
            Phase::Requested { since, tries } if late(*since, *tries) => {
                (*since, *tries, request) = (now, *tries + 1, true);
            }
            _ => {}
        }
        let ack = (connection.receiver.ack_at <= now)
            .then(|| (connection.receiver.acknowledge(false), connection.paths.back));
        let done = connection.sender.as_mut().is_some_and(|sender| {
            sender.wake(&profile, now);
            sender.done()
        });
        if reopen {
            self.open(flow);
        }
        if request {
            self.request(flow);
        }
        if let Some((ack, back)) = ack {
            self.send(flow, back, self.header, Body::Ack(ack));
        }
        if done {
            self.close(flow);
        } else {
            self.transmit(flow);
            self.schedule(flow);
        }
    }

    /// Sees to it that a connection is woken in time.
    fn schedule(&mut self, flow: u32) {
        let slot = &mut self.slots[flow as usize];
        let Some(connection) = &mut slot.connection else { return };
        let due = connection.due().max(self.agenda.now);
        if due < connection.wake {
            connection.wake = due;
            self.agenda.at(due, Event::Wake { flow, generation: slot.generation });
        }
    }

    fn close(&mut self, flow: u32) {
        if self.profile.handshake && matches!(self.connection(flow).class, Class::Foreground(_)) {
            self.bare(flow); // the client's end is acknowledged
        }
        let slot = &mut self.slots[flow as usize];
        if let Some(mut connection) = slot.connection.take() {
            if let Some(sender) = &mut connection.sender {
                sender.close(self.agenda.now);
            }
            slot.generation += 1;
            self.free.push(flow);
            account(&mut self.outcome, &connection);
        }
    }

    fn connection(&mut self, flow: u32) -> &mut Connection {
        self.slots[flow as usize].connection.as_mut().expect("its generation was checked")
    }

    fn send_udp(&mut self, index: usize) {
        let now = self.agenda.now;
        let source = &mut self.sources[index];
        if now >= source.stop {
            return;
        }
        if let Some((on, off, shape)) = source.bursts {
            if now >= source.until {
                // a burst begins; after it comes the time off
                let burst = random::pareto(&mut source.random, shape, on);
                source.until = now + burst as Nanos;
            }
            if now + source.gap >= source.until {
                let rest = random::pareto(&mut source.random, shape, off);
                self.agenda.at(source.until + rest as Nanos, Event::Udp(index));
                source.until = 0;
            } else {
                self.agenda.at(now + source.gap, Event::Udp(index));
            }
        } else {
            let gap = match source.poisson {
                true => random::exponential(&mut source.random, source.gap as f64) as Nanos,
                false => source.gap,
            };
            self.agenda.at(now + gap, Event::Udp(index));
        }
        let source = &self.sources[index];
        let packets = &mut self.outcome.cross[source.cross];
        if (self.window.0..self.window.1).contains(&now) {
            packets.sent += 1;
            packets.lost += 1; // until it arrives
        }
        let packet = Packet {
            flow: index as u32,
            generation: 0,
            bytes: source.bytes,
            path: source.paths.there,
            hop: 0,
            low: false,
            ect: false,
            ce: false,
            enqueued_ns: 0,
            body: Body::Udp { sent_ns: now },
        };
        self.forward(packet);
    }

    fn receive_udp(&mut self, packet: Packet, sent: Nanos) {
        let now = self.agenda.now;
        let source = &self.sources[packet.flow as usize];
        let packets = &mut self.outcome.cross[source.cross];
        if (self.window.0..self.window.1).contains(&sent) {
            packets.lost -= 1;
            let back = self.delays[usize::from(source.paths.back)];
            packets.rtt_us.push(((now - sent + back) / 1000) as u32);
        }
        if (self.window.0..self.window.1).contains(&now) {
            packets.window_bytes += u64::from(packet.bytes);
        }
    }

    fn send_probe(&mut self, number: u32) {
        let now = self.agenda.now;
        let foreground = self.scenario.foreground.as_ref().expect("only a foreground probes");
        let interval = nanos(foreground.probe_interval_ms.unwrap_or(100.0));
        if now + interval < self.window.1 {
            self.agenda.at(now + interval, Event::Probe(number + 1));
        }
        let paths = self.foreground.as_ref().expect("it was planned").1[0];
        self.outcome.probes.push(None);
        self.forward(Packet {
            flow: PROBE,
            generation: number,
            bytes: PROBE_BYTES,
            path: paths.back,
            hop: 0,
            low: false,
            ect: false,
            ce: false,
            enqueued_ns: 0,
            body: Body::Udp { sent_ns: now },
        });
    }

    fn echo(&mut self, packet: Packet, sent_ns: Nanos) {
        let paths = self.foreground.as_ref().expect("only a foreground probes").1[0];
        self.forward(Packet { path: paths.there, hop: 0, body: Body::Echo { sent_ns }, ..packet });
    }
}

/// Adds what a connection counted to the outcome.
fn account(outcome: &mut Outcome, connection: &Connection) {
    let Some(sender) = &connection.sender else { return };
    match connection.class {
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

/// Seconds as whole nanoseconds.
fn seconds(s: f64) -> Nanos {
    (s * 1e9).round() as Nanos
}

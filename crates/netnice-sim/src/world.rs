// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The event loop: links, connections and UDP sources on one time line.
//!
//! A packet costs two events per link, however long the link: a link keeps what is under way in
//! order and schedules only the next arrival. What a connection does is in `exchange`, what UDP
//! does in `datagrams`.

mod datagrams;
mod exchange;
mod held;
mod kept;
mod pulled;

use netnice_core::Config;
use netnice_scenario::weblog::WebLog;
use netnice_scenario::{Scenario, Variant};
use rand_pcg::Pcg64;

use crate::agenda::{seconds, Agenda, Event};
use crate::connection::{Class, FlowPlan, Slots};
use crate::host::Hosts;
use crate::link::Transmitter;
use crate::network::Network;
use crate::outcome::{Outcome, QueueOutcome};
use crate::packet::{Body, Nanos, Packet};
use crate::plan::{FetchPlan, Plan};
use crate::random::{self, Stream};
use crate::source::Source;
use crate::tcp::{Profile, Step, MS};
use crate::trace::{self, Sink};
use crate::Error;

/// How long packets sent in the measured window may be under way after it.
const SETTLING_NS: Nanos = 1000 * MS;

/// Runs a scenario with one of its variants.
///
/// `log` is used only if the foreground needs it. `trace` gets windows and queues over time.
///
/// # Errors
/// [`Error`] says what this simulator does not have.
///
/// # Panics
/// If the log is needed and not given.
pub fn run(
    scenario: &Scenario,
    variant: &Variant,
    seed: u64,
    log: Option<&WebLog>,
    trace: Option<&mut dyn Sink>,
) -> Result<Outcome, Error> {
    Ok(World::new(scenario, variant, seed, log, trace)?.run())
}

struct World<'s, 't> {
    scenario: &'s Scenario,
    profile: Profile,
    agenda: Agenda,
    network: Network,
    hosts: Hosts,
    slots: Slots,
    /// Connections that have delivered their fetch and wait for the next, the last one first.
    idle: Vec<u32>,
    configs: Vec<Config>,
    bulks: Vec<FlowPlan>,
    sources: Vec<Source>,
    fetches: Option<FetchPlan>,
    ect: bool,
    mss: u32,
    header: u32,
    window: (Nanos, Nanos),
    /// For initial sequence numbers.
    random: Pcg64,
    /// For the paths of fetches.
    choice: Pcg64,
    /// Packets of a connection that leave; kept for its room.
    steps: Vec<Step>,
    trace: Option<&'t mut dyn Sink>,
    outcome: Outcome,
}

impl<'s, 't> World<'s, 't> {
    fn new(
        scenario: &'s Scenario,
        variant: &Variant,
        seed: u64,
        log: Option<&WebLog>,
        trace: Option<&'t mut dyn Sink>,
    ) -> Result<Self, Error> {
        let (mss, header) = (scenario.mss_bytes(), scenario.header_bytes());
        let window = (seconds(scenario.warmup_s), seconds(scenario.arrivals_end_s()));
        let profile = Profile::of_scenario(scenario);
        // the lab shapes its bottleneck with a token bucket of two packets
        let transmitter = match scenario.bottleneck {
            Some(_) if profile.handshake => Transmitter::TokenBucket(2 * (mss + header)),
            _ => Transmitter::Serial,
        };
        let network = Network::new(scenario, variant, transmitter, window, seed)?;
        let plan = Plan::new(scenario, variant, network, log, seed)?;
        let Plan { agenda, network, hosts, configs, bulks, sources, fetches, outcome } = plan;
        Ok(Self {
            scenario,
            profile,
            agenda,
            ect: network.ecn,
            network,
            hosts,
            slots: Slots::default(),
            idle: Vec::new(),
            configs,
            bulks,
            sources,
            fetches,
            mss,
            header,
            window,
            random: random::stream(seed, Stream::Sequence),
            choice: random::stream(seed, Stream::Hosts),
            steps: Vec::new(),
            trace,
            outcome,
        })
    }

    fn run(mut self) -> Outcome {
        let end = seconds(self.scenario.end_s());
        // after the measured window nothing new starts; what counts may finish
        let mut counted = self.outcome.fetches.iter().filter(|f| f.counted).count();
        if self.trace.is_some() {
            self.agenda.at(0, Event::Sample);
        }
        while let Some((time, event)) = self.agenda.next() {
            if time > end || (counted == 0 && time >= self.window.1 + SETTLING_NS) {
                break;
            }
            self.agenda.now = time;
            match event {
                Event::Departure(link) => self.network.depart(link, &mut self.agenda),
                Event::Arrival(link) => {
                    if let Some(packet) = self.network.arrive(link, &mut self.agenda) {
                        counted -= usize::from(self.arrive(packet));
                    }
                }
                Event::Wake { flow, generation } => self.wake(flow, generation),
                Event::Fetch(index) => self.start_fetch(index),
                Event::Bulk(index) => self.connect(self.bulks[index].clone()),
                Event::Udp(index) => self.send_udp(index),
                Event::Probe(number) => self.send_probe(number),
                Event::Change { link, index } => self.network.change(link, index),
                Event::Shares { flow, config } => self.share(flow, config),
                Event::Gate { host } => self.open(host),
                Event::Turn { flow, generation } => self.turn(flow, generation),
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
        for connection in self.slots.all() {
            connection.account(&mut self.outcome);
        }
        let measured = self.scenario.slowest_link().unwrap_or(0);
        let (stats, queue) = self.network.links[measured].stats(now);
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
        self.outcome.hosts = self.hosts.outcome();
        self.outcome
    }

    fn sample(&mut self) {
        let now = self.agenda.now;
        let Some(sink) = &mut self.trace else { return };
        self.network.sample(now, *sink);
        for connection in self.slots.all() {
            let Some(sender) = &connection.sender else { continue };
            let (class, flow) = connection.class.traced();
            sink.window(now, class, flow, sender.window(), sender.inflight());
            sink.acked(now, class, flow, sender.acked());
        }
    }

    /// A packet has reached the end of its path. Whether a counted fetch ended with it.
    fn arrive(&mut self, packet: Packet) -> bool {
        match packet.body {
            Body::Udp { sent_ns } if packet.flow == datagrams::PROBE => self.echo(packet, sent_ns),
            Body::Udp { sent_ns } => self.receive_udp(packet, sent_ns),
            Body::Bare => {}
            Body::Echo { sent_ns } => {
                let rtt = self.agenda.now - sent_ns;
                self.outcome.probes[packet.generation as usize] = Some(rtt);
            }
            _ if self.slots.generation(packet.flow) != packet.generation => {}
            Body::Syn => self.receive_syn(packet.flow),
            Body::SynAck => self.receive_syn_ack(packet.flow),
            Body::Request => self.receive_request(packet.flow),
            Body::Ack(ack) => self.receive_ack(packet, ack),
            Body::Windowed(ack, edge) => {
                self.allow(packet.flow, edge);
                self.receive_ack(packet, ack);
            }
            Body::Window(edge) => {
                self.allow(packet.flow, edge);
                self.transmit(packet.flow);
            }
            Body::Data { .. } => return self.receive_data(packet),
        }
        false
    }

    fn start_fetch(&mut self, index: usize) {
        if let Some(next) = self.outcome.fetches.get(index + 1) {
            let at = seconds(next.start_s);
            self.agenda.at(at, Event::Fetch(index + 1));
        }
        let fetch = self.fetches.as_ref().expect("only a foreground fetches");
        let paths = *random::one_of(&fetch.pairs, &mut self.choice);
        let plan = FlowPlan {
            class: Class::Foreground(index),
            host: fetch.hosts[index % fetch.hosts.len()],
            start: self.agenda.now,
            stop: None,
            bytes: self.outcome.fetches[index].bytes,
            config: fetch.config,
            group: None,
            window: fetch.window,
            paths,
            hold: false,
            pull: false,
        };
        match self.idle_between(plan.host, plan.paths) {
            Some(flow) => self.fetch_again(flow, plan.class, plan.bytes),
            None => self.connect(plan),
        }
    }

    /// A flow of the background has other parameters from now on.
    fn share(&mut self, flow: usize, config: usize) {
        let now = self.agenda.now;
        let class = Class::Background(flow);
        if let Some(plan) = self.bulks.iter_mut().find(|plan| plan.class == class) {
            plan.config = config;
        }
        let Some(flow) = self.slots.of(class) else { return };
        let connection = self.slots.get(flow);
        connection.config = config;
        if let Some(sender) = &mut connection.sender {
            sender.configure(&self.configs[config], now);
            self.transmit(flow);
        }
    }
}

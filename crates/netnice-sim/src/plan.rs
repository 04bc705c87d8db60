// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a run of a scenario has: its network, hosts and traffic, and when the traffic starts.

use std::collections::BTreeMap;

use netnice_core::{Algorithm, Config, Group};
use netnice_scenario::weblog::WebLog;
use netnice_scenario::{
    schedule, Background, Cross, CrossKind, Foreground, Parameter, Scenario, Variant,
};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::agenda::{seconds, Agenda, Event};
use crate::connection::{Class, FlowPlan};
use crate::egress::told::{Knowing, Told};
use crate::egress::Line;
use crate::host::Hosts;
use crate::intake::Intake;
use crate::link::nanos;
use crate::network::{Network, Paths};
use crate::outcome::{Bulk, Fetch, Outcome, Packets};
use crate::packet::Nanos;
use crate::random::{self, Stream};
use crate::source::Source;
use crate::tcp::Profile;
use crate::Error;

/// Background flows that start together do so within this, as calls of a program do.
const START_SPREAD_NS: f64 = 1e6;

/// The host of all traffic that the scenario gives none.
const ANY_HOST: &str = "";

/// What all fetches have in common.
#[derive(Debug)]
pub(crate) struct FetchPlan {
    pub(crate) config: usize,
    /// They are dealt to these in turn.
    pub(crate) hosts: Vec<usize>,
    /// The paths of each pair of hosts.
    pub(crate) pairs: Vec<Paths>,
    /// The window that receivers offer.
    pub(crate) window: Option<u32>,
    /// They share connections, one after the other.
    pub(crate) keep_alive: bool,
}

/// A run before its start.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) agenda: Agenda,
    pub(crate) network: Network,
    pub(crate) hosts: Hosts,
    pub(crate) configs: Vec<Config>,
    pub(crate) bulks: Vec<FlowPlan>,
    pub(crate) sources: Vec<Source>,
    pub(crate) fetches: Option<FetchPlan>,
    pub(crate) outcome: Outcome,
}

impl Plan {
    /// Plans a run; `log` is used only if the foreground needs it.
    pub(crate) fn new(
        scenario: &Scenario,
        variant: &Variant,
        network: Network,
        log: Option<&WebLog>,
        seed: u64,
    ) -> Result<Self, Error> {
        let plan = Self {
            agenda: Agenda::default(),
            network,
            hosts: Hosts::default(),
            configs: Vec::new(),
            bulks: Vec::new(),
            sources: Vec::new(),
            fetches: None,
            outcome: Outcome::default(),
        };
        let profile = Profile::of_scenario(scenario);
        let mut planner = Planner { scenario, profile, seed, groups: BTreeMap::new(), plan };
        if let Some(foreground) = &scenario.foreground {
            planner.foreground(foreground)?;
        }
        for (index, cross) in scenario.cross.iter().enumerate() {
            planner.cross(index, cross)?;
        }
        if let Some(background) = &variant.background {
            planner.background(background)?;
        }
        planner.events(log);
        Ok(planner.plan)
    }
}

struct Planner<'s> {
    scenario: &'s Scenario,
    profile: Profile,
    seed: u64,
    groups: BTreeMap<&'s str, Group>,
    plan: Plan,
}

impl<'s> Planner<'s> {
    /// The paths of a flow, there and back: between two nodes, or hosts that are drawn.
    fn way(&mut self, ways: &[[Vec<usize>; 2]], random: &mut Pcg64) -> Paths {
        let [there, back] = random::one_of(ways, random).clone();
        let network = &mut self.plan.network;
        Paths { there: network.path(there), back: network.path(back) }
    }

    /// The host that each of some flows is on.
    fn hosts(&mut self, name: Option<&str>, senders: Option<u32>, flows: u32) -> Vec<usize> {
        let name = name.unwrap_or(ANY_HOST);
        let hosts = &mut self.plan.hosts;
        (0..flows)
            .map(|flow| match senders {
                None => hosts.number(name),
                Some(senders) => hosts.number(&format!("{name} {}", flow % senders + 1)),
            })
            .collect()
    }

    /// Refuses what is to flow over QUIC.
    fn over_tcp(&self, place: &str, quic: bool) -> Result<(), Error> {
        match quic {
            false => Ok(()),
            true => Err(Error::Quic { place: format!("{}, {place}", self.scenario.name) }),
        }
    }

    fn config<'p>(
        &mut self,
        place: &str,
        control: &str,
        settings: impl Iterator<Item = (&'p String, &'p Parameter)>,
    ) -> Result<usize, Error> {
        let wrong = |reason: netnice_core::Error| netnice_scenario::Error::Scenario {
            place: format!("{}, {place}", self.scenario.name),
            what: reason.to_string(),
        };
        let mut config = Config::new(Algorithm::by_name(control).map_err(wrong)?);
        for (name, value) in settings {
            config.set(&format!("{name}={value}")).map_err(wrong)?;
        }
        self.plan.configs.push(config);
        Ok(self.plan.configs.len() - 1)
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

    fn foreground(&mut self, foreground: &Foreground) -> Result<(), Error> {
        self.over_tcp("[foreground]", foreground.quic)?;
        let config = self.config("[foreground]", &foreground.control, std::iter::empty())?;
        let network = &mut self.plan.network;
        let mut known = |path| network.new_path(path);
        let pairs = self.scenario.paths(None, None)?.into_iter();
        let pairs = pairs.map(|[there, back]| Paths { there: known(there), back: known(back) });
        let pairs = pairs.collect();
        let Foreground { host, senders, .. } = foreground;
        let hosts = self.hosts(host.as_deref(), *senders, senders.unwrap_or(1));
        let window = foreground.window_packets;
        let keep_alive = foreground.keep_alive;
        self.plan.fetches = Some(FetchPlan { config, hosts, pairs, window, keep_alive });
        Ok(())
    }

    fn background(&mut self, background: &'s Background) -> Result<(), Error> {
        let place = format!("background \"{}\"", background.name);
        self.over_tcp(&place, background.quic)?;
        let Background { control, set, flows, .. } = background;
        let configs = self.configs(&place, control, set, background.shares.as_ref(), *flows)?;
        let group = self.group(background.group.as_ref(), background.to.as_deref());
        for change in &background.change {
            let configs = self.configs(&place, control, set, Some(&change.shares), *flows)?;
            for (flow, config) in configs.into_iter().enumerate() {
                self.plan.agenda.at(seconds(change.at_s), Event::Shares { flow, config });
            }
        }
        let ways = self.scenario.paths(background.from.as_deref(), background.to.as_deref())?;
        let hosts = self.hosts(background.host.as_deref(), background.senders, *flows);
        if background.hold {
            self.hold(background, &hosts, ways[0][0][0]);
        }
        if background.pull {
            self.pull(&hosts);
        }
        for (flow, (config, host)) in configs.into_iter().zip(hosts).enumerate() {
            let mut random = random::stream(self.seed, Stream::Start(flow));
            let spread = random.random::<f64>() * START_SPREAD_NS;
            let paths = self.way(&ways, &mut random);
            self.plan.bulks.push(FlowPlan {
                class: Class::Background(flow),
                host,
                start: seconds(background.start_s + flow as f64 * background.stagger_s)
                    + spread as Nanos,
                stop: background.flow_stop_s(flow as u32).map(seconds),
                bytes: background.bytes,
                config,
                group: group.clone(),
                window: background.window_packets,
                paths,
                hold: background.hold,
                pull: background.pull,
            });
        }
        self.plan.outcome.background = vec![Bulk::default(); background.flows as usize];
        Ok(())
    }

    /// Packets of the background wait in these hosts, before a link.
    fn hold(&mut self, background: &Background, hosts: &[usize], link: usize) {
        let (mss, header) = (self.scenario.mss_bytes(), self.scenario.header_bytes());
        for host in hosts {
            if self.plan.hosts.get(*host).line.is_some() {
                continue; // of another flow
            }
            let told = self.told(background, link);
            let line = Line::new(link, mss, header, told);
            self.plan.hosts.get(*host).line = Some(Box::new(line));
        }
    }

    /// These hosts let downloads yield: to other hosts by the algorithm of the first class.
    fn pull(&mut self, hosts: &[usize]) {
        let config = Config::new(netnice_core::Class::default().algorithm());
        for host in hosts {
            let random = random::stream(self.seed, Stream::Turns);
            let intake = || Box::new(Intake::new(&config, self.scenario.mss_bytes(), random));
            self.plan.hosts.get(*host).intake.get_or_insert_with(intake);
        }
    }

    /// What a host that holds is told of its path, if anything.
    fn told(&mut self, background: &Background, link: usize) -> Option<Told> {
        let full = self.scenario.mss_bytes() + self.scenario.header_bytes();
        let link = &mut self.plan.network.links[link];
        let burst = link.burst().max(2 * full); // as the shaper of the kernel lab
        if let Some(rate_mbit) = background.hold_rate_mbit {
            return Some(Told::new(rate_mbit, full, burst, None));
        }
        let (oracle, bottleneck) =
            (background.oracle.as_ref()?, self.scenario.bottleneck.as_ref()?);
        link.watch();
        let knowing = Knowing {
            late: nanos(oracle.late_ms.unwrap_or(bottleneck.rtt_ms)),
            rtt: nanos(bottleneck.rtt_ms),
            part: oracle.part,
            brings: oracle.brings,
            opening: if oracle.openings { self.profile.initial_window } else { 0 },
        };
        Some(Told::new(bottleneck.rate_mbit, full, link.burst(), Some(knowing)))
    }

    fn cross(&mut self, index: usize, cross: &'s Cross) -> Result<(), Error> {
        self.plan.outcome.cross.push(Packets::default());
        let ways = self.scenario.paths(cross.from.as_deref(), cross.to.as_deref())?;
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
        let hosts = self.hosts(cross.host.as_deref(), cross.senders, cross.flows);
        for (flow, host) in hosts.into_iter().enumerate() {
            let start = seconds(cross.start_s + flow as f64 * cross.stagger_s);
            let mut random = random::stream(self.seed, Stream::Source(index << 20 | flow));
            let spread = (random.random::<f64>() * START_SPREAD_NS) as Nanos;
            let paths = self.way(&ways, &mut random);
            let stop = cross.stop_s.map(seconds);
            let plan = &mut self.plan;
            if let Some(&config) = configs.get(flow) {
                plan.bulks.push(FlowPlan {
                    class: Class::Cross(index, plan.bulks.len()),
                    host,
                    start: start + spread,
                    stop,
                    bytes: cross.bytes,
                    config,
                    group: group.clone(),
                    window: cross.window_packets,
                    paths,
                    hold: false,
                    pull: false,
                });
            } else {
                let stop = stop.unwrap_or(end);
                let (source, phase) = Source::new((index, cross), (host, paths), stop, random);
                plan.sources.push(source);
                plan.agenda.at(start + phase, Event::Udp(plan.sources.len() - 1));
            }
        }
        Ok(())
    }

    fn events(&mut self, log: Option<&WebLog>) {
        let Plan { agenda, network, bulks, outcome, .. } = &mut self.plan;
        outcome.fetches = schedule(self.scenario, log, self.seed)
            .iter()
            .map(|f| Fetch { start_s: f.start_s, bytes: f.bytes, counted: f.counted, fct_s: None })
            .collect();
        // one at a time: the next fetch is scheduled by the one before it
        if let Some(first) = outcome.fetches.first() {
            agenda.at(seconds(first.start_s), Event::Fetch(0));
        }
        for (index, bulk) in bulks.iter().enumerate() {
            agenda.at(bulk.start, Event::Bulk(index));
        }
        for (at_s, change) in network.changes() {
            agenda.at(seconds(at_s), change);
        }
        if self.scenario.foreground.as_ref().is_some_and(|f| f.probe_interval_ms.is_some()) {
            agenda.at(0, Event::Probe(0));
        }
    }
}

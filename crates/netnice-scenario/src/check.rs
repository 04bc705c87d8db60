// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the types of a scenario do not say: ranges, and what must go together.

use std::collections::BTreeSet;

mod cross;
mod quic;
mod ranges;

use crate::scenario::{IDEAL, NONE};
use crate::{Arrivals, Background, Foreground, Hosts, Link, Queue, Scenario, Sizes};
use ranges::{Ranges, LONGEST_MS, LONGEST_S};

/// `TCP_CA_NAME_MAX` without its terminator.
const CONTROL_NAME_MAX: usize = 15;

/// In bytes; with a date and an ending it must stay a file's name.
const FILE_NAME_MAX: usize = 100;

/// Pairs of hosts, each of which is two paths of the simulator's 2^16.
const PAIRS_MAX: usize = 30_000;

impl Scenario {
    /// The first thing that is wrong, as a sentence.
    pub(crate) fn fault(&self) -> Option<String> {
        Ranges::of("")
            .seconds("warmup_s", self.warmup_s)
            .add("measure_s", self.measure_s, (0.001, LONGEST_S), "seconds")
            .seconds("drain_s", self.drain_s)
            .milliseconds("overhead_ms", self.overhead_ms)
            .add("mss_bytes", self.mss_bytes.map(f64::from), (1.0, 65_000.0), "bytes")
            .add("header_bytes", self.header_bytes.map(f64::from), (0.0, 1000.0), "bytes")
            .add("ideal.flows", f64::from(self.ideal.flows), (1.0, 1e5), "flows")
            .fault()
            .or_else(|| file_name_fault(&self.name))
            .or_else(|| control_fault("ideal.control", &self.ideal.control))
            .or_else(|| self.network_fault())
            .or_else(|| {
                let mut hosts = (1..).zip(&self.hosts);
                hosts.find_map(|(i, hosts)| hosts.fault(&format!("hosts[{i}].")))
            })
            .or_else(|| self.foreground.as_ref().and_then(Foreground::fault))
            .or_else(|| {
                let mut backgrounds = (1..).zip(&self.background);
                backgrounds.find_map(|(i, b)| b.fault(&format!("background[{i}].")))
            })
            .or_else(|| self.oracle_fault())
            .or_else(|| {
                let mut cross = (1..).zip(&self.cross);
                cross.find_map(|(i, c)| c.fault(&format!("cross[{i}].")))
            })
            .or_else(|| self.name_fault())
            .or_else(|| self.path_fault())
    }

    fn network_fault(&self) -> Option<String> {
        match (&self.bottleneck, self.link.as_slice()) {
            (None, []) => Some("a scenario needs a [bottleneck], or a [[link]] or more.".into()),
            (Some(_), [_, ..]) => Some(
                "a scenario has either [bottleneck] or [[link]]; remove one of them. \
                 As links, a [bottleneck] is one with a rate from \"a\" to \"b\", and one without \
                 back."
                    .into(),
            ),
            (Some(bottleneck), []) => {
                let network = self.network();
                let changes = (1..).zip(&bottleneck.change);
                Ranges::of("bottleneck.")
                    .milliseconds("rtt_ms", bottleneck.rtt_ms)
                    .fault()
                    .or_else(|| network[0].fault("bottleneck."))
                    .or_else(|| {
                        changes.into_iter().find_map(|(i, change)| {
                            let at = format!("bottleneck.change[{i}]");
                            change_fault(
                                &at,
                                change.at_s,
                                change.rate_mbit,
                                change.rtt_ms,
                                "rtt_ms",
                            )
                        })
                    })
            }
            (None, links) => (1..).zip(links).find_map(|(i, link)| {
                let at = format!("link[{i}].");
                Ranges::of(&at)
                    .milliseconds("delay_ms", link.delay_ms)
                    .fault()
                    .or_else(|| link.fault(&at))
                    .or_else(|| {
                        (1..).zip(&link.change).find_map(|(j, change)| {
                            let at = format!("{at}change[{j}]");
                            let delay_ms = change.delay_ms;
                            change_fault(&at, change.at_s, change.rate_mbit, delay_ms, "delay_ms")
                        })
                    })
            }),
        }
    }

    /// What an oracle is told is of one queue, right behind its host.
    fn oracle_fault(&self) -> Option<String> {
        let of_one_queue = self.bottleneck.as_ref().is_some_and(|b| b.trace.is_none());
        let mut told = (1..).zip(&self.background).filter(|(_, b)| b.oracle.is_some());
        let (i, _) = told.next().filter(|_| !of_one_queue)?;
        Some(format!(
            "`background[{i}].oracle` is told of a [bottleneck] without `trace`; give the network as \
             one, or remove the oracle."
        ))
    }

    fn name_fault(&self) -> Option<String> {
        let mut backgrounds = BTreeSet::from([NONE, IDEAL]);
        let mut cross = BTreeSet::new();
        let network = self.network();
        let mut links = BTreeSet::new();
        let nodes: BTreeSet<_> = self.links().into_iter().flat_map(|l| [l.from, l.to]).collect();
        if let Some(b) = self.background.iter().find(|b| !backgrounds.insert(&b.name)) {
            let name = &b.name;
            return Some(match [NONE, IDEAL].contains(&name.as_str()) {
                true => format!("the background name \"{name}\" is taken: every run has it already. Remove this variant or rename it."),
                false => format!("two backgrounds are called \"{name}\"; rename one, since tables show the name."),
            });
        }
        if let Some(c) = self.cross.iter().find(|c| !cross.insert(&c.name)) {
            return Some(format!("two [[cross]] are called \"{}\"; rename one.", c.name));
        }
        for (i, hosts) in self.hosts.iter().enumerate() {
            let name = &hosts.name;
            if nodes.contains(name) || self.hosts[..i].iter().any(|h| h.name == *name) {
                return Some(format!("the name \"{name}\" of [[hosts]] is taken; rename them."));
            }
            if !nodes.contains(&hosts.at) {
                return Some(format!(
                    "the [[hosts]] \"{name}\" are at \"{}\", which is no node; choose one that a \
                     link names.",
                    hosts.at
                ));
            }
        }
        let twice = network.iter().find(|link| !links.insert(&link.name))?;
        Some(format!(
            "two links are called \"{}\"; rename one (the second one of a duplex link has a prime).",
            twice.name
        ))
    }

    /// Whether all traffic, and what acknowledges it, has a path.
    fn path_fault(&self) -> Option<String> {
        let network = self.links();
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for (i, route) in self.route.iter().enumerate() {
            if let Err(what) = route.links(&network) {
                return Some(what);
            }
            if self.route[..i].iter().any(|r| (&r.from, &r.to) == (&route.from, &route.to)) {
                return Some(format!(
                    "two [[route]] lead from \"{}\" to \"{}\"; remove one.",
                    route.from, route.to
                ));
            }
        }
        if let Some(foreground) = &self.foreground {
            let missing = [("from", &foreground.from), ("to", &foreground.to)]
                .into_iter()
                .find(|(_, end)| end.is_none() && self.bottleneck.is_none());
            if let Some((key, _)) = missing {
                return Some(format!(
                    "`foreground.{key}` is missing; with [[link]] it must name a node."
                ));
            }
            pairs.push(self.ends(None, None));
        }
        pairs.extend(self.background.iter().map(|b| self.ends(b.from.as_deref(), b.to.as_deref())));
        pairs.extend(self.cross.iter().map(|c| self.ends(c.from.as_deref(), c.to.as_deref())));
        if let Some(what) = self.hosts_fault(&pairs) {
            return Some(what);
        }
        let missing = pairs
            .into_iter()
            .flat_map(|(from, to)| [(from, to), (to, from)])
            .find_map(|(from, to)| self.path_in(&network, from, to).err());
        missing.or_else(|| {
            let loaded = self.foreground.as_ref().is_some_and(|f| f.load > 0.0);
            (loaded && self.slowest_link().is_none()).then(|| {
                "`foreground.load` is a share of the slowest link's rate, but no link on the \
                 foreground's path has one; give a [[link]] `rate_mbit`, or set the load to 0."
                    .into()
            })
        })
    }
}

impl Scenario {
    /// Whether hosts are too many, at these ends of traffic, or of a kind that no hosts can have.
    fn hosts_fault(&self, ends: &[(&str, &str)]) -> Option<String> {
        let count =
            |name: &str| self.hosts.iter().find(|h| h.name == name).map_or(1, |h| h.count as usize);
        let mut sum = 0;
        for (from, to) in ends.iter().collect::<BTreeSet<_>>() {
            sum += count(from) * count(to);
            if sum > PAIRS_MAX {
                return Some(format!(
                    "[[hosts]] \"{from}\" and \"{to}\" are {sum} pairs, with those before them; \
                     there may be {PAIRS_MAX}. Lower a `count`."
                ));
            }
        }
        let held = self.background.iter().filter(|b| b.hold);
        held.map(|b| (b, self.ends(b.from.as_deref(), b.to.as_deref()).0))
            .find(|(_, from)| self.hosts.iter().any(|h| h.name == *from))
            .map(|(b, from)| {
                format!(
                    "the background \"{}\" holds, but \"{from}\" are many [[hosts]]; give `from` \
                     a node.",
                    b.name
                )
            })
    }
}

impl Hosts {
    fn fault(&self, at: &str) -> Option<String> {
        let ([slow, fast], [near, far]) = (self.rate_mbit, self.delay_ms);
        Ranges::of(at)
            .add("count", f64::from(self.count), (1.0, PAIRS_MAX as f64), "hosts")
            .add("rate_mbit[1]", slow, (0.001, 1e6), "Mbit/s")
            .add("rate_mbit[2]", fast, (slow, 1e6), "Mbit/s")
            .add("delay_ms[1]", near, (0.0, LONGEST_MS), "milliseconds")
            .add("delay_ms[2]", far, (near, LONGEST_MS), "milliseconds")
            .packets("limit_packets", Some(self.limit_packets))
            .fault()
    }
}

impl Link {
    /// What a bottleneck and a link have in common; `at` is what stands before the keys.
    fn fault(&self, at: &str) -> Option<String> {
        let probability = "as a probability";
        Ranges::of(at)
            .rate(self.rate_mbit)
            .packets("limit_packets", self.limit_packets)
            .add("limit_bytes", self.limit_bytes.map(|b| b as f64), (1.0, 1e12), "bytes")
            .add("loss", self.loss, (0.0, 0.99), probability)
            .add("reorder", self.reorder, (0.0, 0.99), probability)
            .milliseconds("jitter_ms", self.jitter_ms)
            .milliseconds("reorder_ms", self.reorder_ms)
            .fault()
            .or_else(|| {
                let limited = self.limit_packets.is_some() || self.limit_bytes.is_some();
                (self.rate_mbit.is_some() && !limited).then(|| {
                    format!(
                        "`{at}limit_packets` is missing; a queue needs room, in packets or in bytes \
                         (`limit_bytes`)."
                    )
                })
            })
            .or_else(|| {
                (self.ecn && !self.queue.marks()).then(|| {
                    format!(
                        "`{at}ecn` is true, but its queue never marks; choose `queue = \"red\"`, \
                         \"codel\", \"fq_codel\" or \"pie\"."
                    )
                })
            })
            .or_else(|| {
                (self.reorder > 0.0 && self.jitter_ms + self.reorder_ms == 0.0).then(|| {
                    format!(
                        "`{at}reorder` is {}, but no packet is delayed that others could overtake; \
                         give `reorder_ms` or `jitter_ms`.",
                        self.reorder
                    )
                })
            })
            .or_else(|| {
                let changes = self.change.iter().any(|change| change.rate_mbit.is_some());
                match (&self.trace, self.rate_mbit) {
                    (Some(_), None) => Some(format!(
                        "`{at}rate_mbit` is missing; beside a `trace` it is the nominal rate, which \
                         loads are shares of."
                    )),
                    (Some(_), _) if changes => Some(format!(
                        "`{at}change` sets a rate, but the `trace` does already; remove one of them."
                    )),
                    (None, None) if changes || self.queue != Queue::DropTail => Some(format!(
                        "`{at}rate_mbit` is missing; a link without a rate has no queue and no \
                         change of rate."
                    )),
                    _ => None,
                }
            })
    }
}

fn change_fault(
    at: &str,
    at_s: f64,
    rate_mbit: Option<f64>,
    delay_ms: Option<f64>,
    delay_key: &str,
) -> Option<String> {
    Ranges::of(&format!("{at}."))
        .seconds("at_s", at_s)
        .rate(rate_mbit)
        .milliseconds(delay_key, delay_ms)
        .fault()
        .or_else(|| {
            (rate_mbit.is_none() && delay_ms.is_none())
                .then(|| format!("`{at}` changes nothing; give `rate_mbit` or `{delay_key}`."))
        })
}

impl Foreground {
    fn fault(&self) -> Option<String> {
        Ranges::of("foreground.")
            .shape(self.shape)
            .add("mean_bytes", self.mean_bytes as f64, (1.0, 1e12), "bytes")
            .add("max_bytes", self.max_bytes as f64, (1.0, 1e12), "bytes")
            .add("load", self.load, (0.0, 10.0), "as a share of the bottleneck rate")
            .add("probe_interval_ms", self.probe_interval_ms, (1.0, LONGEST_MS), "milliseconds")
            .packets("window_packets", self.window_packets)
            .senders(self.senders)
            .fault()
            .or_else(|| control_fault("foreground.control", &self.control))
            .or_else(|| self.sizes_fault())
    }

    fn sizes_fault(&self) -> Option<String> {
        if self.arrivals == Arrivals::Log && self.sizes() != Sizes::Empirical {
            return Some(
                "`foreground.arrivals = \"log\"` replays the log's own sizes: remove \
                 `foreground.sizes`, or choose `arrivals = \"poisson\"`."
                    .into(),
            );
        }
        if !self.needs_log() && self.max_bytes < self.mean_bytes {
            return Some(format!(
                "`foreground.max_bytes` is {}, below `foreground.mean_bytes` of {}; raise it or leave it out.",
                self.max_bytes, self.mean_bytes
            ));
        }
        None
    }
}

impl Background {
    fn fault(&self, at: &str) -> Option<String> {
        let oracle = self.oracle.as_ref();
        Ranges::of(at)
            .flows(self.flows)
            .senders(self.senders)
            .seconds("start_s", self.start_s)
            .seconds("stagger_s", self.stagger_s)
            .seconds("stop_s", self.stop_s)
            .seconds("stop_stagger_s", self.stop_stagger_s)
            .packets("window_packets", self.window_packets)
            .add("hold_rate_mbit", self.hold_rate_mbit, (0.001, 1e6), "Mbit/s")
            .add("oracle.part", oracle.map(|o| o.part), (0.001, 1.0), "as a share of the rate")
            .milliseconds("oracle.late_ms", oracle.and_then(|o| o.late_ms))
            .add("oracle.brings", oracle.map(|o| f64::from(o.brings)), (0.0, 100.0), "packets")
            .fault()
            .or_else(|| control_fault(&format!("{at}control"), &self.control))
            .or_else(|| stop_fault(at, self.start_s, self.stop_s))
            .or_else(|| self.hold_fault(at))
            .or_else(|| self.pull_fault(at))
            .or_else(|| self.quic_fault(at))
            .or_else(|| shares_fault(at, self.flows, self.group.as_ref(), self.shares.as_ref()))
            .or_else(|| {
                (1..).zip(&self.change).find_map(|(i, change)| {
                    let at = format!("{at}change[{i}].");
                    Ranges::of(&at).seconds("at_s", change.at_s).fault().or_else(|| {
                        shares_fault(&at, self.flows, self.group.as_ref(), Some(&change.shares))
                    })
                })
            })
    }

    fn hold_fault(&self, at: &str) -> Option<String> {
        let key = match (self.hold_rate_mbit, &self.oracle) {
            (None, None) => return None,
            (Some(_), Some(_)) => {
                return Some(format!(
                    "`{at}hold_rate_mbit` and `{at}oracle` both say what the host knows of its \
                     path; remove one of them."
                ))
            }
            (Some(_), None) => "hold_rate_mbit",
            (None, Some(_)) => "oracle",
        };
        (!self.hold).then(|| format!("`{at}{key}` is of a host that holds; add `hold = true`."))
    }

    fn pull_fault(&self, at: &str) -> Option<String> {
        (self.pull && self.hold).then(|| {
            format!("`{at}pull` is of the host that receives, `{at}hold` of that which sends; remove one of them.")
        })
    }
}

fn stop_fault(at: &str, start_s: f64, stop_s: Option<f64>) -> Option<String> {
    let stop_s = stop_s.filter(|&stop_s| stop_s <= start_s)?;
    Some(format!("`{at}stop_s` is {stop_s}; it must be above `{at}start_s`, which is {start_s}."))
}

/// What shares are is for the algorithm to say; here, that each flow has one.
fn shares_fault(
    at: &str,
    flows: u32,
    group: Option<&String>,
    shares: Option<&Vec<f64>>,
) -> Option<String> {
    let given = shares?.len();
    if group.is_none() {
        return Some(format!("`{at}shares` are parts of what a group has; give `group` a name."));
    }
    (given != flows as usize)
        .then(|| format!("`{at}shares` are {given}, for {flows} flows; give one for each."))
}

/// Results go to files of that name.
fn file_name_fault(name: &str) -> Option<String> {
    let fits = (1..=FILE_NAME_MAX).contains(&name.len())
        && !name.starts_with('.')
        && !name.contains(|c: char| c == '/' || c.is_control());
    (!fits).then(|| {
        format!(
            "`name` is {name:?}; files are named by it, so it has 1 to {FILE_NAME_MAX} characters, \
             no \"/\", and does not begin with \".\"."
        )
    })
}

fn control_fault(key: &str, name: &str) -> Option<String> {
    let fits =
        (1..=CONTROL_NAME_MAX).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic());
    (!fits).then(|| {
        format!(
            "`{key}` is {name:?}; a congestion control's name has 1 to {CONTROL_NAME_MAX} visible \
             characters, such as \"cubic\"."
        )
    })
}

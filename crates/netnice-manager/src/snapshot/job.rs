// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Jobs: what a person started, with its figures between two moments.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use super::sample::Sample;
use super::why::{Facts, Others, Path, Shares, Why};
use super::{Connection, RunStatus, Status};
use crate::peer::Only;
use crate::process::Process;
use crate::tcp::Tcp;

/// What a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Of `netnice run`.
    Run,
    /// Of `netnice replicate`.
    Replicate,
    /// Chosen by `netnice attach`, by a program itself, or by a route.
    Attached,
    /// All runs of a group; those have rows of their own too.
    Group,
}

/// The queue that a job leaves at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queue {
    /// It stays under this, milliseconds.
    pub limit_ms: f64,
    /// It is so long now, milliseconds, as far as it is seen.
    pub now_ms: f64,
}

/// A job at one moment. Rates are in bits/s of payload, but for those of others.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// Names it while it lasts: `run ID`, `pid PID`, `group NAME`.
    pub id: String,
    pub kind: Kind,
    /// The id of the run's cgroup.
    pub run: Option<u64>,
    /// Its process, or the first of several.
    pub pid: Option<i32>,
    /// What it is, for people: the command, or the name of the group.
    pub name: String,
    /// The group that it is in.
    pub group: Option<String>,
    pub control: String,
    /// Open connections.
    pub connections: u64,
    /// None: it was only seen once.
    pub rate_bits: Option<f64>,
    /// The rates of the last looks, the newest last.
    pub history_bits: Vec<f64>,
    pub bytes_sent: u64,
    pub bytes_unsent: u64,
    pub retransmits: u64,
    /// For so long its window gave way, seconds; on average of its connections. What packets wait in
    /// this host is not counted.
    pub yielding_s: f64,
    pub others: Option<Others>,
    pub queue: Option<Queue>,
    pub why: Why,
    /// `why` in words.
    pub why_text: String,
}

/// What is added up to a job.
pub(super) struct Parts<'a> {
    id: String,
    kind: Kind,
    run: Option<u64>,
    process: Option<&'a Process>,
    name: String,
    group: Option<String>,
    control: String,
    connections: Vec<&'a Connection>,
    /// Those that have closed too.
    all: u64,
    sent: u64,
    unsent: u64,
    retransmits: u64,
    yielding_us: u64,
}

/// The jobs of a moment, before it is known how fast they are.
pub(super) fn parts(now: &Status) -> Vec<Parts<'_>> {
    let mut of_runs: HashMap<u64, Vec<&Connection>> = HashMap::new();
    let mut of_none: BTreeMap<String, Vec<&Connection>> = BTreeMap::new();
    for c in now.connections.iter().filter(|c| c.remote.port() != 0) {
        match (c.run, c.processes.first()) {
            (0, Some(process)) => of_none.entry(format!("pid {}", process.pid)).or_default(),
            (0, None) => of_none.entry("no process".into()).or_default(),
            (run, _) => of_runs.entry(run).or_default(),
        }
        .push(c);
    }
    let runs = now.runs.iter();
    let mut found: Vec<_> =
        runs.map(|run| of_run(run, of_runs.remove(&run.report.run).unwrap_or_default())).collect();
    found.extend(of_none.into_iter().map(|(id, connections)| attached(id, connections)));
    let mut groups: BTreeMap<&str, Vec<&Parts>> = BTreeMap::new();
    for part in &found {
        if let Some(group) = &part.group {
            groups.entry(group).or_default().push(part);
        }
    }
    let groups: Vec<_> = groups.into_iter().map(|(name, parts)| of_group(name, &parts)).collect();
    found.extend(groups);
    found
}

fn of_run<'a>(run: &'a RunStatus, connections: Vec<&'a Connection>) -> Parts<'a> {
    let report = &run.report;
    let process = run.processes.first();
    let began = run.began.filter(|pid| process.is_none_or(|p| p.pid != *pid));
    let replicates = began.and_then(Process::read).filter(|p| {
        p.name == "netnice" && p.command.split(' ').nth(1).is_some_and(|word| word == "replicate")
    });
    let (kind, name) = match (&run.cgroup, &replicates, process) {
        (Some(cgroup), ..) => (Kind::Attached, cgroup.clone()),
        (None, Some(replicates), _) => (Kind::Replicate, replicates.command.clone()),
        (None, None, Some(process)) => (Kind::Run, process.command.clone()),
        (None, None, None) => (Kind::Run, "no process".into()),
    };
    Parts {
        id: format!("run {}", report.run),
        kind,
        run: Some(report.run),
        process,
        name,
        group: run.group.clone(),
        control: report.control.clone(),
        connections,
        all: report.connections,
        sent: report.bytes_sent,
        unsent: report.bytes_unsent,
        retransmits: report.retransmits,
        yielding_us: report.yielding_us,
    }
}

fn attached(id: String, connections: Vec<&Connection>) -> Parts<'_> {
    let process = connections.first().and_then(|c| c.processes.first());
    let sum = |of: fn(&Connection) -> u64| connections.iter().map(|c| of(c)).sum();
    Parts {
        kind: Kind::Attached,
        run: None,
        process,
        name: process.map_or("connections of no process".into(), |p| p.command.clone()),
        group: None,
        control: connections.first().map(|c| c.control.clone()).unwrap_or_default(),
        all: connections.len() as u64,
        sent: sum(|c| c.bytes_acked),
        unsent: sum(|c| c.bytes_unsent.into()),
        retransmits: sum(|c| c.retransmits.into()),
        yielding_us: sum(|c| c.yielding_us),
        id,
        connections,
    }
}

fn of_group<'a>(name: &str, parts: &[&Parts<'a>]) -> Parts<'a> {
    let sum = |of: fn(&Parts) -> u64| parts.iter().map(|part| of(part)).sum();
    Parts {
        id: format!("group {name}"),
        kind: Kind::Group,
        run: None,
        process: parts.iter().find_map(|part| part.process),
        name: format!("group {name}"),
        group: None,
        control: parts.first().map(|part| part.control.clone()).unwrap_or_default(),
        connections: parts.iter().flat_map(|part| part.connections.iter().copied()).collect(),
        all: sum(|part| part.all),
        sent: sum(|part| part.sent),
        unsent: sum(|part| part.unsent),
        retransmits: sum(|part| part.retransmits),
        yielding_us: sum(|part| part.yielding_us),
    }
}

/// What happened to a connection between two moments.
struct Change<'a> {
    now: &'a Connection,
    sent: u64,
    yields: f64,
    tcp: Option<(Tcp, Tcp)>,
}

impl<'a> Parts<'a> {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it has sent by now, bytes.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// What is known of it since `before`, when it had sent `sent_before`.
    pub fn facts(&self, before: &Sample, now: &Sample, sent_before: u64) -> Facts {
        let seconds = now.since(before).as_secs_f64();
        let past = before.by_ends();
        let here = self.process.is_none_or(|process| now.is_here(process));
        let change = |c: &&'a Connection| {
            let ends = (c.local, c.remote);
            let was = past.get(&ends)?;
            let sent = c.bytes_acked.saturating_sub(was.bytes_acked);
            let counted = c.yielding_us.saturating_sub(was.yielding_us) as f64 * 1e-6 / seconds;
            // it is counted at the next ACK, for which a small window may wait for seconds
            let yields = if c.yielding && sent == 0 { 1.0 } else { counted.min(1.0) };
            let tcp = before.tcp.get(&ends).zip(now.tcp.get(&ends)).filter(|_| here);
            Some(Change { now: c, sent, yields, tcp: tcp.map(|(was, is)| (*was, *is)) })
        };
        let changes: Vec<_> = self.connections.iter().filter_map(change).collect();
        let active: Vec<_> =
            changes.iter().filter(|c| c.sent > 0 || c.now.bytes_unsent > 0).collect();
        let of_tcp: Vec<_> = active.iter().filter_map(|change| change.tcp).collect();
        let mean = |of: fn(&Tcp) -> u64| {
            let sum: u64 = of_tcp.iter().map(|(was, is)| of(is).saturating_sub(of(was))).sum();
            (sum as f64 * 1e-6 / seconds / of_tcp.len() as f64).min(1.0)
        };
        let shares = (!of_tcp.is_empty()).then(|| Shares {
            busy: mean(|tcp| tcp.busy_us),
            receiver: mean(|tcp| tcp.receiver_us),
            buffer: mean(|tcp| tcp.buffer_us),
        });
        let n = active.len().max(1) as f64;
        let sent = match self.run {
            None if self.kind == Kind::Attached => changes.iter().map(|c| c.sent).sum(),
            _ => self.sent.saturating_sub(sent_before),
        };
        let device = if here { now.device_of(&self.connections) } else { None };
        let path = device.as_ref().and_then(|device| path(before, now, device, seconds));
        let others = match (&path, device) {
            (Some((_, bits)), Some(device)) => Some(Others { bits: *bits, device, on_path: true }),
            (None, Some(device)) => beside(before, now, device, seconds),
            (_, None) => None,
        };
        let rtt = active.iter().map(|c| f64::from(c.now.srtt_us)).sum::<f64>() / n;
        Facts {
            seconds,
            sent,
            unsent: self.unsent,
            open: self.connections.len() as u64,
            only_down: self.connections.iter().all(|c| c.only == Some(Only::Down)),
            recovers: of_tcp.iter().filter(|(_, is)| is.recovers).count() as u64,
            shares,
            yields: active.iter().map(|c| c.yields).sum::<f64>() / n,
            others,
            path: path.map(|(path, _)| path),
            slow_start: !active.is_empty() && active.iter().all(|c| c.now.slow_start),
            window: (!active.is_empty())
                .then(|| (active.iter().map(|c| c.now.cwnd).sum(), rtt as u32)),
        }
    }

    /// The job, with what is known of it.
    pub fn job(&self, now: &Sample, facts: Option<&Facts>, why: Why, history: Vec<f64>) -> Job {
        Job {
            id: self.id.clone(),
            kind: self.kind,
            run: self.run,
            pid: self.process.map(|process| process.pid),
            name: self.name.clone(),
            group: self.group.clone(),
            control: self.control.clone(),
            connections: self.connections.len() as u64,
            rate_bits: facts.map(Facts::rate),
            history_bits: history,
            bytes_sent: self.sent,
            bytes_unsent: self.unsent,
            retransmits: self.retransmits,
            yielding_s: self.yielding_us as f64 * 1e-6 / self.all.max(1) as f64,
            others: facts.and_then(|facts| facts.others.clone()),
            queue: self.queue(now, facts.is_some_and(|facts| facts.path.is_some())),
            why_text: why.to_string(),
            why,
        }
    }

    /// Where packets wait in this host, the path's; else what its algorithm says of a connection.
    fn queue(&self, now: &Sample, held: bool) -> Option<Queue> {
        if held {
            let device = now.device_of(&self.connections)?;
            let (_, _, path) = now.paths().find(|(on, _, path)| *on == device && is_used(path))?;
            let ms = |bytes: u64| Some(bytes as f64 * 8000.0 / path.rate_bits? as f64);
            return Some(Queue {
                limit_ms: ms(path.queue_limit_bytes)?,
                now_ms: ms(path.queue_bytes)?,
            });
        }
        let c = self.connections.iter().max_by_key(|c| c.bytes_acked)?;
        let base = c.shown.time("base_rtt")?;
        let parameter = |name| c.parameters.get(name).copied();
        let limit_ms = match (parameter("threshold"), c.shown.time("max_rtt")) {
            (Some(threshold), Some(most)) => threshold * (most - base) / 1000.0,
            _ => parameter("target")?,
        };
        Some(Queue { limit_ms, now_ms: (f64::from(c.srtt_us) - base).max(0.0) / 1000.0 })
    }
}

/// Whether something is held there.
fn is_used(path: &crate::hold::HeldPath) -> bool {
    path.away_s.is_none() && path.background_bytes > 0
}

/// The path of a device that holds, and what of this host but for the background left there, bits/s;
/// none where several are in use, and it is not known which is whose.
fn path(before: &Sample, now: &Sample, device: &str, seconds: f64) -> Option<(Path, f64)> {
    let past: HashMap<_, _> =
        before.paths().map(|(on, n, p)| ((on, n), (p.sent_bytes, p.background_bytes))).collect();
    let mut used = now.paths().filter_map(|(on, n, path)| {
        let (sent, background) = *past.get(&(on, n))?;
        let bits = |bytes: u64| bytes as f64 * 8.0 / seconds;
        let background = path.background_bytes.saturating_sub(background);
        let others = path.sent_bytes.saturating_sub(sent).saturating_sub(background);
        let held = on == device && path.away_s.is_none() && (background > 0 || path.waiting > 0);
        let found = Path {
            rate_bits: path.rate_bits.map(|bits| bits as f64),
            background_bits: bits(background),
            part: path.part,
            waits: path.waiting > 0,
        };
        held.then_some((found, bits(others)))
    });
    let one = used.next();
    one.filter(|_| used.next().is_none())
}

/// What a device sent but for the background.
fn beside(before: &Sample, now: &Sample, device: String, seconds: f64) -> Option<Others> {
    let sent = now.sent(&device)?.saturating_sub(before.sent(&device)?);
    let others = sent.saturating_sub(now.background(before, &device)?);
    Some(Others { bits: others as f64 * 8.0 / seconds, device, on_path: false })
}

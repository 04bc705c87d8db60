// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The metrics, and how views add up to them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicU64;

use netnice_manager::snapshot::{Job, Kind, View, ViewedDownload, ViewedPath};
use prometheus_client::encoding::{prometheus_text, text, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// So many jobs have labels of their own at a time; all others are `other`.
pub const JOBS: usize = 50;
const OTHER: &str = "other";

/// How the text is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Format {
    OpenMetrics,
    /// Version 0.0.4 of Prometheus' text.
    Prometheus,
}

impl Format {
    /// What an HTTP response says of it.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfJob {
    job: String,
    kind: String,
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfReason {
    job: String,
    kind: String,
    name: String,
    reason: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPath {
    device: String,
    path: u64,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfDownload {
    device: String,
    path: u64,
    reason: String,
}

type Number<L> = Family<L, Gauge<f64, AtomicU64>>;
type Sum<L> = Family<L, Counter<f64, AtomicU64>>;

/// Turns views into text. Counters only grow, also where jobs come and go under one label.
#[derive(Default)]
pub struct Exporter {
    registry: Registry,
    jobs: Gauge,
    rate: Number<OfJob>,
    others: Number<OfJob>,
    connections: Number<OfJob>,
    queue: Number<OfJob>,
    limit: Number<OfJob>,
    reason: Number<OfReason>,
    sent: Sum<OfJob>,
    retransmits: Sum<OfJob>,
    yielded: Sum<OfJob>,
    path_rate: Number<OfPath>,
    path_waits: Number<OfPath>,
    path_part: Number<OfPath>,
    path_sent: Sum<OfPath>,
    path_background: Sum<OfPath>,
    download_rate: Number<OfPath>,
    download_others: Number<OfPath>,
    download_path: Number<OfPath>,
    download_connections: Number<OfPath>,
    download_reason: Number<OfDownload>,
    /// Jobs by their ids: their labels, and what was counted of them.
    past: HashMap<String, (OfJob, [f64; 3])>,
    past_paths: HashMap<OfPath, [f64; 2]>,
}

impl Exporter {
    pub fn new() -> Exporter {
        let e = Exporter { registry: Registry::with_prefix("netnice"), ..Exporter::default() };
        e.registered()
    }

    fn registered(mut self) -> Exporter {
        let r = &mut self.registry;
        let per_second = || Unit::Other("bytes_per_second".into());
        r.register("jobs", "Jobs in the background; runs of a group count each", self.jobs.clone());
        r.register_with_unit(
            "job_rate",
            "Payload that the job's receivers acknowledged, since the last scrape",
            per_second(),
            self.rate.clone(),
        );
        r.register_with_unit(
            "job_others",
            "What else this host sent on the job's way; none where that is not known",
            per_second(),
            self.others.clone(),
        );
        r.register("job_connections", "Open connections of the job", self.connections.clone());
        r.register_with_unit(
            "job_queue",
            "The queue that the job's packets meet, as far as it is seen",
            Unit::Seconds,
            self.queue.clone(),
        );
        r.register_with_unit(
            "job_queue_limit",
            "The queue that the job stays under",
            Unit::Seconds,
            self.limit.clone(),
        );
        r.register(
            "job_reason",
            "1 for the reason why the job is as slow as it is",
            self.reason.clone(),
        );
        r.register_with_unit(
            "job_sent",
            "Payload that the job's receivers acknowledged",
            Unit::Bytes,
            self.sent.clone(),
        );
        r.register(
            "job_retransmitted_packets",
            "Packets that the job sent again",
            self.retransmits.clone(),
        );
        r.register_with_unit(
            "job_yielded",
            "Time for which the job's window gave way, on average of its connections",
            Unit::Seconds,
            self.yielded.clone(),
        );
        r.register_with_unit(
            "path_rate",
            "Measured rate of a path at which packets wait in this host",
            per_second(),
            self.path_rate.clone(),
        );
        r.register("path_waiting_packets", "Packets that wait for it", self.path_waits.clone());
        r.register_with_unit(
            "path_part",
            "The part of its rate that this host has beside other hosts; 1 without them",
            Unit::Other("ratio".into()),
            self.path_part.clone(),
        );
        r.register_with_unit(
            "path_sent",
            "All that left on it",
            Unit::Bytes,
            self.path_sent.clone(),
        );
        r.register_with_unit(
            "path_background",
            "What of that was in the background",
            Unit::Bytes,
            self.path_background.clone(),
        );
        self.with_downloads()
    }

    fn with_downloads(mut self) -> Exporter {
        let r = &mut self.registry;
        for (name, what, of) in [
            ("download_rate", "Payload that the background downloaded", &self.download_rate),
            ("download_others", "What else came by its path", &self.download_others),
            ("download_path_rate", "Measured rate of that path", &self.download_path),
        ] {
            r.register_with_unit(name, what, Unit::Other("bytes_per_second".into()), of.clone());
        }
        r.register(
            "download_connections",
            "Open connections of the background by which something comes",
            self.download_connections.clone(),
        );
        r.register(
            "download_reason",
            "1 for the reason why downloads are as slow as they are",
            self.download_reason.clone(),
        );
        self
    }

    /// Adds what happened since the last view.
    pub fn add(&mut self, view: &View) {
        self.jobs.set(view.jobs.iter().filter(|job| counts(job)).count() as i64);
        self.forget(view);
        self.rate.clear();
        self.others.clear();
        self.connections.clear();
        self.queue.clear();
        self.limit.clear();
        self.reason.clear();
        for job in view.jobs.iter().filter(|job| counts(job)) {
            self.add_job(job);
        }
        self.path_rate.clear();
        self.path_waits.clear();
        self.path_part.clear();
        for (n, path) in view.paths.iter().enumerate() {
            let before = view.paths[..n].iter().filter(|other| other.device == path.device);
            self.add_path(before.count() as u64, path);
        }
        let rates = [&self.download_rate, &self.download_others, &self.download_path];
        rates.iter().for_each(|of| of.clear());
        self.download_connections.clear();
        self.download_reason.clear();
        for (n, seen) in view.downloads.iter().enumerate() {
            let before =
                view.downloads[..n].iter().filter(|other| other.at.device == seen.at.device);
            self.add_download(before.count() as u64, seen);
        }
    }

    /// What it adds up to by now.
    pub fn text(&self, format: Format) -> String {
        let mut text = String::new();
        let written = match format {
            Format::OpenMetrics => text::encode(&mut text, &self.registry),
            Format::Prometheus => prometheus_text::encode(&mut text, &self.registry),
        };
        written.map(|()| text).unwrap_or_default() // a string takes all
    }

    /// Labels of jobs that are there no more.
    fn forget(&mut self, view: &View) {
        let there: HashSet<_> = view.jobs.iter().filter(|job| counts(job)).map(|j| &j.id).collect();
        self.past.retain(|id, (labels, _)| {
            let stays = there.contains(id);
            if !stays && labels.job != OTHER {
                for sum in [&self.sent, &self.retransmits, &self.yielded] {
                    sum.remove(labels);
                }
            }
            stays
        });
    }

    fn add_job(&mut self, job: &Job) {
        let named = self.past.values().filter(|(labels, _)| labels.job != OTHER).count();
        let labels = || if named < JOBS { labels_of(job) } else { other() };
        let (labels, past) =
            self.past.entry(job.id.clone()).or_insert_with(|| (labels(), [0.0; 3]));
        let now = [job.bytes_sent as f64, job.retransmits as f64, job.yielding_s];
        for (n, sum) in [&self.sent, &self.retransmits, &self.yielded].iter().enumerate() {
            sum.get_or_create(labels).inc_by((now[n] - past[n]).max(0.0));
        }
        *past = now;
        let labels = labels.clone();
        self.connections.get_or_create(&labels).inc_by(job.connections as f64);
        if let Some(bits) = job.rate_bits {
            self.rate.get_or_create(&labels).inc_by(bits / 8.0);
        }
        if labels.job == OTHER {
            return; // what follows has no sum
        }
        if let Some(others) = &job.others {
            self.others.get_or_create(&labels).set(others.bits / 8.0);
        }
        if let Some(queue) = job.queue {
            self.queue.get_or_create(&labels).set(queue.now_ms / 1000.0);
            self.limit.get_or_create(&labels).set(queue.limit_ms / 1000.0);
        }
        let OfJob { job: id, kind, name } = labels;
        let reason = OfReason { job: id, kind, name, reason: job.why.name().into() };
        self.reason.get_or_create(&reason).set(1.0);
    }

    fn add_path(&mut self, n: u64, on: &ViewedPath) {
        let labels = OfPath { device: on.device.clone(), path: n };
        let path = &on.path;
        if let Some(bits) = path.rate_bits {
            self.path_rate.get_or_create(&labels).set(bits as f64 / 8.0);
        }
        self.path_waits.get_or_create(&labels).set(path.waiting as f64);
        self.path_part.get_or_create(&labels).set(path.part);
        let now = [path.sent_bytes as f64, path.background_bytes as f64];
        let past = self.past_paths.entry(labels.clone()).or_default();
        for (n, sum) in [&self.path_sent, &self.path_background].iter().enumerate() {
            sum.get_or_create(&labels).inc_by((now[n] - past[n]).max(0.0));
        }
        *past = now;
    }

    fn add_download(&self, n: u64, seen: &ViewedDownload) {
        let device = seen.at.device.clone();
        let labels = OfPath { device: device.clone(), path: n };
        let path = Some(seen.at.download.rate_bits as f64);
        for (of, bits) in [
            (&self.download_rate, seen.background_bits),
            (&self.download_others, seen.others_bits),
            (&self.download_path, path),
        ] {
            if let Some(bits) = bits {
                of.get_or_create(&labels).set(bits / 8.0);
            }
        }
        let connections = f64::from(seen.at.download.connections);
        self.download_connections.get_or_create(&labels).set(connections);
        let reason = OfDownload { device, path: n, reason: seen.why.name().into() };
        self.download_reason.get_or_create(&reason).set(1.0);
    }
}

/// A group is the sum of what has metrics of its own; one that ended has none.
fn counts(job: &Job) -> bool {
    job.kind != Kind::Group && job.why != netnice_manager::snapshot::Why::Ended
}

fn labels_of(job: &Job) -> OfJob {
    let kind = match job.kind {
        Kind::Run => "run",
        Kind::Replicate => "replicate",
        Kind::Attached => "attached",
        Kind::Group => "group",
    };
    // what follows the program's name may be a password
    let program = job.name.split(' ').next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    OfJob { job: job.id.clone(), kind: kind.into(), name: name.into() }
}

fn other() -> OfJob {
    OfJob { job: OTHER.into(), kind: OTHER.into(), name: OTHER.into() }
}

#[cfg(test)]
mod tests;

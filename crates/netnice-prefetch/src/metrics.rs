// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the proxy counts, for Prometheus and for its own page.

use std::sync::OnceLock;
use std::time::Duration;

use http::{StatusCode, Version};
use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

use crate::line::Mode;
use crate::predict::Size;

/// All metrics; names start with `netnice_prefetch_`.
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Registry,
    /// Answers, by `class` (`demand`, `prefetch`) and `status` (`2xx`, ...).
    pub answers: IntCounterVec,
    /// Bytes of content sent, by `class`.
    pub bytes: IntCounterVec,
    /// Bytes sent ahead that the client was then seen to use.
    pub used_bytes: IntCounter,
    /// Objects sent ahead that the client was then seen to use.
    pub used: IntCounter,
    /// Suggestions made.
    pub suggested: IntCounter,
    /// Prefetches refused because they could not go in the background.
    pub refused: IntCounter,
    /// Answers that taught nothing, because the request told who asked.
    pub personal: IntCounter,
    /// Lines that the access log could not take.
    pub lost_lines: IntCounter,
    /// Open connections.
    pub connections: IntGauge,
    /// Seconds to the end of a demand answer.
    pub demand_s: Histogram,
    /// Seconds to the end of a demand answer that is a page.
    pub page_s: Histogram,
    versions: IntCounterVec,
    mode: IntGaugeVec,
    model: IntGaugeVec,
    /// Of `answers`, by class and first digit of the status, and of `bytes`: found once.
    found: [([OnceLock<IntCounter>; 10], OnceLock<IntCounter>); 2],
    /// Of `versions`, by class and version.
    found_versions: [[OnceLock<IntCounter>; 4]; 2],
}

/// The label of demand or of prefetches.
fn class(prefetch: bool) -> &'static str {
    if prefetch {
        "prefetch"
    } else {
        "demand"
    }
}

impl Metrics {
    /// Everything at zero.
    ///
    /// # Panics
    /// Never: the names are valid and different.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self::registered().expect("metrics have valid names, registered once")
    }

    fn registered() -> prometheus::Result<Self> {
        let opts = |name: &str, help: &str| Opts::new(format!("netnice_prefetch_{name}"), help);
        let buckets = prometheus::exponential_buckets(0.001, 2.0, 16)?;
        let latency = |name: &str, help: &str| {
            Histogram::with_opts(HistogramOpts::from(opts(name, help)).buckets(buckets.clone()))
        };
        let new = Self {
            registry: Registry::new(),
            answers: IntCounterVec::new(opts("answers_total", "Answers"), &["class", "status"])?,
            bytes: IntCounterVec::new(opts("bytes_total", "Bytes of content sent"), &["class"])?,
            used_bytes: IntCounter::with_opts(opts(
                "used_bytes_total",
                "Bytes sent ahead that were then seen to be used",
            ))?,
            used: IntCounter::with_opts(opts(
                "used_total",
                "Objects sent ahead that were then seen to be used",
            ))?,
            suggested: IntCounter::with_opts(opts("suggested_total", "Suggestions made"))?,
            refused: IntCounter::with_opts(opts(
                "refused_total",
                "Prefetches refused because they could not go in the background",
            ))?,
            personal: IntCounter::with_opts(opts(
                "personal_total",
                "Answers that taught nothing: the request had a cookie or Authorization",
            ))?,
            lost_lines: IntCounter::with_opts(opts("lost_log_lines_total", "Log lines lost"))?,
            connections: IntGauge::with_opts(opts("connections", "Open connections"))?,
            demand_s: latency("demand_seconds", "Time to the end of a demand answer")?,
            page_s: latency("page_seconds", "Time to the end of a demand answer that is a page")?,
            versions: IntCounterVec::new(
                opts("versions_total", "Answers by version of HTTP"),
                &["class", "version"],
            )?,
            mode: IntGaugeVec::new(
                opts("mode", "Where prefetches go: 1 for the mode in force"),
                &["mode"],
            )?,
            model: IntGaugeVec::new(opts("model", "Size of what was learned"), &["part"])?,
            found: Default::default(),
            found_versions: Default::default(),
        };
        let all: [Box<dyn prometheus::core::Collector>; 14] = [
            Box::new(new.answers.clone()),
            Box::new(new.bytes.clone()),
            Box::new(new.used_bytes.clone()),
            Box::new(new.used.clone()),
            Box::new(new.suggested.clone()),
            Box::new(new.refused.clone()),
            Box::new(new.personal.clone()),
            Box::new(new.lost_lines.clone()),
            Box::new(new.connections.clone()),
            Box::new(new.demand_s.clone()),
            Box::new(new.page_s.clone()),
            Box::new(new.versions.clone()),
            Box::new(new.mode.clone()),
            Box::new(new.model.clone()),
        ];
        for metric in all {
            new.registry.register(metric)?;
        }
        Ok(new)
    }

    /// Counts an answer with so many bytes of content.
    pub fn answered(&self, prefetch: bool, status: StatusCode, bytes: u64, took: Duration) {
        let digit = status.as_u16() / 100; // 1 to 9
        let (answers, sent) = &self.found[usize::from(prefetch)];
        let labels = || [class(prefetch).to_owned(), format!("{digit}xx")];
        answers[usize::from(digit)].get_or_init(|| self.answers.with_label_values(&labels())).inc();
        sent.get_or_init(|| self.bytes.with_label_values(&[class(prefetch)])).inc_by(bytes);
        if !prefetch {
            self.demand_s.observe(took.as_secs_f64());
        }
    }

    /// Counts an answer to a request of that version.
    pub fn spoken(&self, prefetch: bool, version: Version) {
        let (place, name) = match version {
            Version::HTTP_3 => (3, "3"),
            Version::HTTP_2 => (2, "2"),
            Version::HTTP_11 => (1, "1.1"),
            _ => (0, "1.0"),
        };
        let counter = || self.versions.with_label_values(&[class(prefetch), name]);
        self.found_versions[usize::from(prefetch)][place].get_or_init(counter).inc();
    }

    /// Shows the mode in force.
    pub fn set_mode(&self, mode: Mode) {
        for name in ["connection", "port", "off"] {
            self.mode.with_label_values(&[name]).set((name == mode.name()).into());
        }
    }

    /// Shows the size of the model.
    pub fn set_model(&self, size: Size) {
        let parts = [
            ("objects", size.objects),
            ("contexts", size.contexts),
            ("clients", size.clients),
            ("bytes", size.bytes),
        ];
        for (part, number) in parts {
            self.model.with_label_values(&[part]).set(i64::try_from(number).unwrap_or(i64::MAX));
        }
    }

    /// The text that Prometheus scrapes.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        match TextEncoder::new().encode(&self.registry.gather(), &mut text) {
            Ok(()) => String::from_utf8(text).unwrap_or_default(),
            Err(error) => format!("# {error}\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_in_force_is_the_one_with_a_1() {
        let metrics = Metrics::new();
        metrics.set_mode(Mode::Connection);
        metrics.set_mode(Mode::Off);
        let text = metrics.text();
        assert!(text.contains("netnice_prefetch_mode{mode=\"off\"} 1"), "{text}");
        assert!(text.contains("netnice_prefetch_mode{mode=\"connection\"} 0"), "{text}");
    }
}

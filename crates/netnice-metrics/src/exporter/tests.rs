// SPDX-License-Identifier: MIT OR GPL-2.0-only

use netnice_manager::hold::{Download, HeldPath};
use netnice_manager::snapshot::{DownloadAt, Others, Queue, Unhurried, Why};

use super::*;

fn job(id: &str, sent: u64) -> Job {
    Job {
        id: id.into(),
        kind: Kind::Run,
        run: None,
        pid: None,
        name: "/usr/bin/rsync --password-file=x a:b".into(),
        group: None,
        control: "nn_ebb".into(),
        connections: 2,
        rate_bits: Some(8e6),
        history_bits: Vec::new(),
        bytes_sent: sent,
        bytes_unsent: 0,
        retransmits: 3,
        yielding_s: 1.5,
        others: Some(Others { bits: 4e6, device: "eth0".into(), on_path: true }),
        queue: Some(Queue { limit_ms: 2.0, now_ms: 1.0 }),
        why: Why::Idle,
        why_text: Why::Idle.to_string(),
    }
}

fn view(jobs: Vec<Job>) -> View {
    View {
        time: 1e9,
        seconds: Some(1.0),
        jobs,
        paths: Vec::new(),
        downloads: Vec::new(),
        left_out: None,
    }
}

/// The number of the one line that begins so.
fn number(text: &str, begins: &str) -> f64 {
    let lines: Vec<_> = text.lines().filter(|line| line.starts_with(begins)).collect();
    assert_eq!(lines.len(), 1, "{begins}: {text}");
    lines[0].rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn a_job_has_metrics_in_base_units_and_only_its_programs_name() {
    let mut exporter = Exporter::new();
    exporter.add(&view(vec![job("run 7", 1000)]));
    let text = exporter.text(Format::Prometheus);
    let of = "{job=\"run 7\",kind=\"run\",name=\"rsync\"}";
    for (metric, value) in [
        ("netnice_job_rate_bytes_per_second", 1e6),
        ("netnice_job_others_bytes_per_second", 5e5),
        ("netnice_job_connections", 2.0),
        ("netnice_job_queue_seconds", 0.001),
        ("netnice_job_queue_limit_seconds", 0.002),
        ("netnice_job_sent_bytes_total", 1000.0),
        ("netnice_job_retransmitted_packets_total", 3.0),
        ("netnice_job_yielded_seconds_total", 1.5),
    ] {
        assert_eq!(number(&text, &format!("{metric}{of}")), value, "{metric}");
    }
    assert_eq!(number(&text, "netnice_jobs "), 1.0);
    assert!(text.contains("reason=\"idle\"} 1"));
    assert!(!text.contains("password"));
}

#[test]
fn both_formats_name_a_counter_as_its_reader_wants_it() {
    let exporter = Exporter::new();
    let open = exporter.text(Format::OpenMetrics);
    assert!(open.contains("# TYPE netnice_jobs gauge") && open.ends_with("# EOF\n"), "{open}");
    assert!(!exporter.text(Format::Prometheus).contains("# EOF"));
}

#[test]
fn a_job_that_ended_has_no_labels_any_more() {
    let mut exporter = Exporter::new();
    exporter.add(&view(vec![job("run 7", 1000), job("run 8", 5)]));
    exporter.add(&view(vec![job("run 8", 25)]));
    let text = exporter.text(Format::Prometheus);
    assert!(!text.contains("run 7"));
    assert_eq!(number(&text, "netnice_job_sent_bytes_total{job=\"run 8\""), 25.0);
}

#[test]
fn beyond_so_many_jobs_all_are_one_whose_counters_never_fall() {
    let mut exporter = Exporter::new();
    let all =
        |sent| (0..JOBS + 10).map(move |n| job(&format!("run {n}"), sent)).collect::<Vec<_>>();
    exporter.add(&view(all(100)));
    let sent = |exporter: &Exporter| {
        let text = exporter.text(Format::Prometheus);
        let series = text.lines().filter(|l| l.starts_with("netnice_job_sent_bytes_total{"));
        assert_eq!(series.count(), JOBS + 1);
        number(&text, "netnice_job_sent_bytes_total{job=\"other\"")
    };
    assert_eq!(sent(&exporter), 10.0 * 100.0);
    // of those beyond, nine end, and one goes on
    exporter.add(&view(all(150)[..=JOBS].to_vec()));
    assert_eq!(sent(&exporter), 10.0 * 100.0 + 50.0);
}

#[test]
fn a_group_counts_by_its_runs_alone() {
    let mut exporter = Exporter::new();
    let group = Job { kind: Kind::Group, ..job("group nightly", 1000) };
    exporter.add(&view(vec![group, job("run 7", 1000)]));
    let text = exporter.text(Format::Prometheus);
    assert_eq!(number(&text, "netnice_jobs "), 1.0);
    assert!(!text.contains("nightly"));
}

/// A path at which packets wait.
fn path() -> ViewedPath {
    let path = HeldPath {
        rate_bits: Some(8_000_000),
        queue_bytes: 1000,
        queue_limit_bytes: 2271,
        part: 0.5,
        rtt_us: Some(20_000),
        jitter_us: 0,
        away_s: None,
        waiting: 16,
        held: 100,
        unheld: 0,
        dropped: 0,
        background_bytes: 4000,
        sent_bytes: 10_000,
    };
    ViewedPath { device: "eth0".into(), path }
}

#[test]
fn a_path_is_known_by_its_device_and_its_number_there() {
    let mut exporter = Exporter::new();
    let other = ViewedPath { device: "eth1".into(), ..path() };
    exporter.add(&View { paths: vec![path(), path(), other], ..view(Vec::new()) });
    let text = exporter.text(Format::Prometheus);
    for of in [
        "{device=\"eth0\",path=\"0\"}",
        "{device=\"eth0\",path=\"1\"}",
        "{device=\"eth1\",path=\"0\"}",
    ] {
        assert_eq!(number(&text, &format!("netnice_path_rate_bytes_per_second{of}")), 1e6);
        assert_eq!(number(&text, &format!("netnice_path_waiting_packets{of}")), 16.0);
        assert_eq!(number(&text, &format!("netnice_path_part_ratio{of}")), 0.5);
        assert_eq!(number(&text, &format!("netnice_path_sent_bytes_total{of}")), 10_000.0);
        assert_eq!(number(&text, &format!("netnice_path_background_bytes_total{of}")), 4000.0);
    }
}

/// What comes by a path, of which others have more.
fn download() -> ViewedDownload {
    let download = Download {
        rate_bits: 8_000_000,
        fastest_bits: 100_000_000,
        rtt_us: Some(50_000),
        window_packets: 10.0,
        connections: 3,
        background_bytes: 1000,
        received_bytes: 10_000,
        ..Download::default()
    };
    let why = Unhurried::YieldingToHost { bits: 4e6 };
    ViewedDownload {
        at: DownloadAt { device: "eth0".into(), download },
        background_bits: Some(8e5),
        others_bits: Some(4e6),
        why_text: why.to_string(),
        why,
    }
}

#[test]
fn downloads_have_their_rates_connections_and_the_reason() {
    let mut exporter = Exporter::new();
    exporter.add(&View { downloads: vec![download()], ..view(Vec::new()) });
    let text = exporter.text(Format::Prometheus);
    for (metric, value) in [
        ("rate_bytes_per_second", 1e5),
        ("others_bytes_per_second", 5e5),
        ("path_rate_bytes_per_second", 1e6),
        ("connections", 3.0),
        ("reason", 1.0),
    ] {
        let begins = format!("netnice_download_{metric}{{device=\"eth0\",path=\"0\"");
        assert_eq!(number(&text, &begins), value, "{metric}");
    }
    assert!(text.contains("reason=\"yielding_to_host\"} 1"));
    exporter.add(&view(Vec::new()));
    assert!(!exporter.text(Format::Prometheus).contains("eth0"));
}

/// The metrics that a text names.
fn names(text: &str) -> HashSet<String> {
    let is_part = |c: char| c == '_' || c.is_ascii_alphanumeric();
    let words = text.split(|c| !is_part(c)).filter(|word| word.starts_with("netnice_"));
    words.map(String::from).collect()
}

#[test]
fn the_dashboard_asks_for_each_metric_and_the_page_lists_them() {
    let mut exporter = Exporter::new();
    let downloads = vec![download()];
    exporter.add(&View { paths: vec![path()], downloads, ..view(vec![job("run 7", 1)]) });
    let offered = names(&exporter.text(Format::Prometheus));
    let dashboard = include_str!("../../../../packaging/examples/grafana.json");
    let read: serde_json::Value = serde_json::from_str(dashboard).expect("it is JSON");
    let panels = read["panels"].as_array().expect("panels");
    let asked = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let asked = asked.flat_map(|target| names(target["expr"].as_str().expect("a query")));
    assert_eq!(asked.collect::<HashSet<_>>(), offered);
    assert_eq!(names(include_str!("../../../../docs/top.md")), offered);
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The same over HTTP/3.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use netnice_load::transport::{self, Connector, QuicControl};
use netnice_quinn::{Algorithm, Class};
use netnice_scenario::pattern;
use tempfile::TempDir;

use crate::common::{json, load, run, said, scenario, SCENARIO};
use crate::listener::Listener;

/// A listening mode that speaks HTTP/3, and its certificate.
struct Server {
    listener: Listener,
    directory: TempDir,
}

impl Server {
    fn start(arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("server.der");
        let quic = ["--quic", file.to_str().unwrap()];
        let listener = Listener::start(&[arguments, &quic[..]].concat());
        Self { listener, directory }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("server.der")
    }

    fn send(&self, arguments: &[&str]) -> std::process::Command {
        let mut send = load();
        send.args(["send", &self.listener.address, "--json", "-", "--quic"]).arg(self.file());
        send.args(arguments);
        send
    }

    fn sent(&self, arguments: &[&str]) -> std::process::Output {
        self.send(arguments).output().unwrap()
    }
}

fn control() -> QuicControl {
    QuicControl::new(None, &[], false).unwrap()
}

/// Runs what is asynchronous, for half a minute at most.
fn wait_for<T>(what: impl std::future::Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(30), what).await.expect("in time")
    })
}

#[test]
fn bulk_flows_over_http3_arrive_whole_under_every_algorithm_and_class() {
    let algorithms = Algorithm::all().map(|a| (a.control(), a.control()));
    let classes = Class::all().map(|c| (c.name().into(), c.algorithm().control()));
    let quinns = netnice_scenario::CONTROL.to_owned();
    let controls: Vec<_> = algorithms.chain(classes).chain([(quinns.clone(), quinns)]).collect();
    for (asked, got) in &controls {
        let sink = Server::start(&["sink"]);
        let sent = sink.sent(&["--flows", "2", "--bytes", "300001", "--control", asked]);
        assert!(sent.status.success(), "{asked}: {}", said(&sent));
        let report = json(&sent);
        assert_eq!(report["confirmed"], 2, "{asked}");
        let (ended_well, received) = sink.listener.finish();
        assert!(ended_well, "{asked}");
        let peers: Vec<_> =
            received["flows"].as_array().unwrap().iter().map(|f| &f["peer"]).collect();
        for (flow, taken) in
            report["flows"].as_array().unwrap().iter().zip(received["flows"].as_array().unwrap())
        {
            assert_eq!(
                (&flow["control"], &flow["confirmed"]),
                (&(*got).clone().into(), &300_001.into())
            );
            assert_eq!((&taken["complete"], &taken["bytes"]), (&true.into(), &300_001.into()));
            assert!(peers.contains(&&flow["local"]), "{asked}");
        }
    }
}

#[test]
fn flows_of_a_group_with_a_share_arrive_whole_over_http3() {
    let sink = Server::start(&["sink"]);
    let grouped = Algorithm::all().find(|a| a.divides()).unwrap().control();
    let options = ["--flows", "4", "--bytes", "300000", "--group", "--set", "share=2"];
    let sent = sink.sent(&[&options[..], &["--control", &grouped]].concat());
    assert!(sent.status.success(), "{}", said(&sent));
    assert_eq!(json(&sent)["confirmed"], 4);
    assert!(sink.listener.finish().0);
}

#[test]
fn every_flow_of_the_schedule_is_fetched_over_http3_and_intact() {
    let (_directory, scenario) = scenario(SCENARIO);
    let server = Server::start(&["serve"]);
    let file = server.file();
    let from = ["--from", &server.listener.address, "--quic", file.to_str().unwrap()];
    let fetched = run(&[&["fetch", &scenario, "--seed", "3", "--json", "-"], &from[..]].concat());
    assert!(fetched.status.success(), "{}", said(&fetched));
    let report = json(&fetched);
    let flows = report["flows"].as_array().unwrap();
    assert!(flows.len() > 10);
    for flow in flows {
        assert_eq!(flow["received"], flow["bytes"]);
        assert!(flow["fct_s"].as_f64().unwrap() > 0.0 && flow["error"].is_null());
    }
    let (ended_well, served) = server.listener.finish();
    assert!(ended_well);
    assert_eq!((&served["answered"], &served["aborted"]), (&flows.len().into(), &0.into()));
}

#[test]
fn a_wrong_byte_of_a_bulk_flow_over_http3_is_detected_at_both_ends() {
    let sink = Server::start(&["sink"]);
    let to = sink.listener.address.parse().unwrap();
    let confirmed = wait_for(async {
        let connector = Connector::quic(to, &sink.file(), control(), None).unwrap();
        let mut stream = connector.connect().await.unwrap();
        let mut sent = vec![0; 16 + 100_000];
        sent[8..16].copy_from_slice(&100_000_u64.to_be_bytes());
        pattern::fill(0, 0, &mut sent[16..]);
        sent[16 + 70_000] ^= 1;
        stream.write(&sent).await.unwrap();
        stream.finish().await.unwrap();
        let confirmed = stream.read_u64().await.unwrap();
        stream.close(true).await;
        confirmed
    });
    assert_eq!(confirmed, 70_000);
    let (ended_well, received) = sink.listener.finish();
    assert!(!ended_well);
    assert_eq!(received["flows"][0]["error"], "byte 70000 is not what was sent");
}

#[test]
fn a_wrong_byte_of_an_answer_over_http3_is_detected() {
    let (_directory, scenario) = scenario(SCENARIO);
    let certificate = tempfile::NamedTempFile::new().unwrap();
    let file = certificate.path().to_owned();
    let (address, bound) = std::sync::mpsc::channel();
    thread::spawn(move || {
        wait_for(async {
            let any = "127.0.0.1:0".parse().unwrap();
            let mut listener = transport::Listener::quic(any, &file, control()).unwrap();
            address.send(listener.local_addr().unwrap()).unwrap();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let length = stream.read_u64().await.unwrap();
                let mut content = vec![0; length as usize];
                pattern::fill(stream.read_u64().await.unwrap(), 0, &mut content);
                content[999] ^= 4;
                // The client may hang up as soon as it has seen enough.
                let _ = stream.write(&content).await;
                let _ = stream.finish().await;
            }
        })
    });
    let server = bound.recv().unwrap().to_string();
    let quic = ["--from", &server, "--quic", certificate.path().to_str().unwrap()];
    let fetched = run(&[&["fetch", &scenario, "--seed", "3"], &quic[..]].concat());
    assert_eq!(fetched.status.code(), Some(1));
    assert!(said(&fetched).contains("byte 999 of"), "{}", said(&fetched));
}

#[test]
fn endless_flows_over_http3_end_at_the_duration_and_are_no_error_of_the_sink() {
    let sink = Server::start(&["sink"]);
    let sent = sink.sent(&["--flows", "3", "--duration", "1"]);
    assert!(sent.status.success(), "{}", said(&sent));
    let (ended_well, received) = sink.listener.finish();
    assert!(ended_well);
    assert_eq!((&received["errors"], &received["flows"][2]["announced"]), (&0.into(), &0.into()));
    assert!(received["bytes"].as_u64().unwrap() > 0);
}

#[test]
fn a_server_with_another_certificate_is_refused() {
    let (sink, other) = (Server::start(&["sink"]), Server::start(&["sink"]));
    let file = other.file();
    let quic = ["--quic", file.to_str().unwrap()];
    let sent = run(&[&["send", &sink.listener.address, "--bytes", "1"], &quic[..]].concat());
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("this server's certificate is not that in"), "{}", said(&sent));
    let (_, received) = sink.listener.finish();
    assert_eq!(received["flows"].as_array().unwrap().len(), 0);
}

#[test]
fn a_file_that_is_no_certificate_or_not_there_is_an_error_before_anything_is_sent() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (path, expected) in
        [(file.path().to_str().unwrap(), "is no certificate"), ("/no", "cannot be read")]
    {
        let sent = run(&["send", "127.0.0.1:9", "--quic", path]);
        assert_eq!(sent.status.code(), Some(1));
        let said = said(&sent);
        assert!(said.contains(expected) && said.contains("its own --quic"), "{said}");
    }
    let served = run(&["serve", "--listen", "127.0.0.1:0", "--quic", "/no/such/directory"]);
    assert_eq!(served.status.code(), Some(1));
    assert!(served.stdout.is_empty() && said(&served).contains("cannot be written"));
}

#[test]
fn a_control_that_quic_does_not_have_is_an_error_that_says_which_it_has() {
    let sink = Server::start(&["sink"]);
    let sent = sink.sent(&["--control", "nosuch"]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("netnice algorithms"), "{}", said(&sent));
    let sent = sink.sent(&["--set", "share=2"]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("it has no parameters"), "{}", said(&sent));
}

#[test]
fn a_server_that_is_not_there_is_an_error_at_the_limit() {
    let sink = Server::start(&["sink"]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let file = sink.file();
    let quic = ["--quic", file.to_str().unwrap(), "--connect-timeout", "0.5"];
    let sent = run(&[&["send", &address, "--bytes", "1"], &quic[..]].concat());
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("no connection within 0.5 s"), "{}", said(&sent));
}

/// A sender of endless flows that sends: it has worked for a tenth of a second.
fn sending(sink: &Server, options: &[&str]) -> Child {
    let mut send = sink.send(options);
    let sender = send.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while ticks(&sender) < 10 {
        thread::sleep(Duration::from_millis(10));
    }
    sender
}

/// Hundredths of a second that a process has worked.
fn ticks(process: &Child) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|n| n.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_sink_that_is_killed_is_an_error_of_the_sender_over_http3() {
    let sink = Server::start(&["sink"]);
    let sender = sending(&sink, &["--flows", "2", "--connect-timeout", "2"]);
    drop(sink); // with SIGKILL
    let sent = sender.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(1));
    let said = said(&sent);
    assert!(
        said.contains("2 of 2 flows failed") && said.contains("the other end is silent"),
        "{said}"
    );
}

#[test]
fn a_sink_that_ends_says_so_to_its_senders_over_http3() {
    let sink = Server::start(&["sink"]);
    let sender = sending(&sink, &[]);
    assert!(sink.listener.finish().0);
    let sent = sender.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("the other end closed the connection"), "{}", said(&sent));
}

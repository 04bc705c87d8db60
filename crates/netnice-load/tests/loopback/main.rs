// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The built command, on loopback.
#![forbid(unsafe_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;

use netnice_scenario::pattern;
use serde_json::Value;

#[path = "../common/mod.rs"]
mod common;
mod listener;
mod quic;
use common::{json, load, run, said, scenario, SCENARIO};
use listener::Listener;

fn unix_s() -> f64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

/// A relay to `to` that changes what the client sends, starting with the connection's first byte.
fn relay(to: &str, change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, to) = (listener.local_addr().unwrap(), to.to_owned());
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut sent = Vec::new();
        client.read_to_end(&mut sent).unwrap();
        let mut sink = TcpStream::connect(to).unwrap();
        sink.write_all(&change(sent)).unwrap();
        sink.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        sink.read_to_end(&mut answer).unwrap();
        client.write_all(&answer).unwrap();
    });
    address
}

/// A server that answers each request with the right content, changed.
fn wrong_server(change: impl Fn(Vec<u8>) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut request = [0; 16];
            client.read_exact(&mut request).unwrap();
            let (length, seed) = request.split_at(8);
            let length = u64::from_be_bytes(length.try_into().unwrap());
            let seed = u64::from_be_bytes(seed.try_into().unwrap());
            let mut content = vec![0; length as usize];
            pattern::fill(seed, 0, &mut content);
            // The client may hang up as soon as it has seen enough.
            let _ = client.write_all(&change(content));
        }
    });
    address
}

#[test]
fn every_flow_of_the_schedule_is_fetched_and_intact() {
    let (_directory, scenario) = scenario(SCENARIO);
    let server = Listener::start(&["serve"]);
    let plan = json(&run(&["schedule", &scenario, "--seed", "3", "--json", "-"]));
    let fetched =
        run(&["fetch", &scenario, "--seed", "3", "--from", &server.address, "--json", "-"]);
    assert!(fetched.status.success(), "{}", said(&fetched));
    let report = json(&fetched);
    let (flows, planned) = (&report["flows"], &plan["flows"]);
    let flows = flows.as_array().unwrap();
    assert!(flows.len() > 10);
    assert_eq!(flows.len(), planned.as_array().unwrap().len());
    for (flow, planned) in flows.iter().zip(planned.as_array().unwrap()) {
        for key in ["start_s", "bytes", "counted"] {
            assert_eq!(flow[key], planned[key]);
        }
        assert_eq!(flow["received"], flow["bytes"]);
        assert!(flow["fct_s"].as_f64().unwrap() > 0.0);
        assert!(flow["lag_s"].as_f64().unwrap() >= 0.0);
        assert!(flow["error"].is_null());
    }
    assert_eq!((&report["unfinished"], &report["errors"]), (&0.into(), &0.into()));
    let (ended_well, served) = server.finish();
    assert!(ended_well);
    assert_eq!(served["answered"], flows.len());
    assert_eq!(served["bytes"], plan["bytes"]);
}

#[test]
fn a_flipped_byte_of_an_answer_is_detected() {
    let (_directory, scenario) = scenario(SCENARIO);
    let server = wrong_server(|mut content| {
        content[999] ^= 4;
        content
    });
    let fetched =
        run(&["fetch", &scenario, "--seed", "3", "--from", &server.to_string(), "--json", "-"]);
    assert_eq!(fetched.status.code(), Some(1));
    assert!(said(&fetched).contains("byte 999 of"), "{}", said(&fetched));
    let report = json(&fetched);
    assert_eq!(report["errors"], report["flows"].as_array().unwrap().len());
    assert!(report["flows"][0]["fct_s"].is_null());
}

#[test]
fn a_short_and_a_long_answer_are_detected() {
    let (_directory, scenario) = scenario(SCENARIO);
    let short = wrong_server(|mut content| {
        content.pop();
        content
    });
    let long = wrong_server(|mut content| {
        content.push(0);
        content
    });
    for (server, expected) in [(short, "ended after"), (long, "byte")] {
        let fetched = run(&["fetch", &scenario, "--seed", "3", "--from", &server.to_string()]);
        assert_eq!(fetched.status.code(), Some(1));
        assert!(said(&fetched).contains(expected), "{}", said(&fetched));
    }
}

#[test]
fn a_flow_that_does_not_finish_in_time_is_reported_and_no_error() {
    let (_directory, scenario) = scenario(&SCENARIO.replace("drain_s = 20.0", "drain_s = 0.3"));
    // It accepts (the kernel does, into the backlog) and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = silent.local_addr().unwrap().to_string();
    let fetched = run(&["fetch", &scenario, "--seed", "3", "--from", &server, "--json", "-"]);
    assert!(fetched.status.success(), "{}", said(&fetched));
    let report = json(&fetched);
    assert!(number(&report["counted"]) > 0);
    assert_eq!(report["unfinished"], report["counted"]);
    let flow = &report["flows"][0];
    assert!(flow["fct_s"].is_null() && flow["error"].is_null());
    assert!(flow["elapsed_s"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_refused_fetch_is_an_error_that_says_so() {
    let (_directory, scenario) = scenario(SCENARIO);
    let server = {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        closed.local_addr().unwrap().to_string()
    };
    let fetched = run(&["fetch", &scenario, "--seed", "3", "--from", &server]);
    assert_eq!(fetched.status.code(), Some(1));
    assert!(said(&fetched).contains("Connection refused"), "{}", said(&fetched));
}

#[test]
fn many_bulk_flows_arrive_intact_with_the_control_asked_for() {
    let sink = Listener::start(&["sink"]);
    let sent = run(&[
        "send",
        &sink.address,
        "--flows",
        "64",
        "--bytes",
        "300001",
        "--control",
        "reno",
        "--stagger",
        "0.001",
        "--json",
        "-",
    ]);
    assert!(sent.status.success(), "{}", said(&sent));
    let report = json(&sent);
    assert_eq!(report["confirmed"], 64);
    let (ended_well, received) = sink.finish();
    assert!(ended_well);
    assert_eq!(received["bytes"], 64 * 300_001);
    let mut peers: Vec<&Value> = Vec::new();
    for flow in received["flows"].as_array().unwrap() {
        assert_eq!((&flow["complete"], &flow["bytes"]), (&true.into(), &300_001.into()));
        peers.push(&flow["peer"]);
    }
    for flow in report["flows"].as_array().unwrap() {
        assert_eq!((&flow["control"], &flow["confirmed"]), (&"reno".into(), &300_001.into()));
        assert!(peers.contains(&&flow["local"]));
    }
}

#[test]
fn a_corrupted_bulk_flow_is_detected_at_both_ends() {
    type Change = fn(Vec<u8>) -> Vec<u8>;
    let changes: [(Change, u64); 3] = [
        (
            |mut sent| {
                sent[16 + 70_000] ^= 1;
                sent
            },
            70_000,
        ),
        (
            |mut sent| {
                sent.truncate(16 + 80_000);
                sent
            },
            80_000,
        ),
        (
            |mut sent| {
                sent.drain(16 + 4096..16 + 8192);
                sent
            },
            4096,
        ),
    ];
    for (change, intact) in changes {
        let sink = Listener::start(&["sink"]);
        let through = relay(&sink.address, change).to_string();
        let sent = run(&["send", &through, "--bytes", "100000", "--json", "-"]);
        assert_eq!(sent.status.code(), Some(1));
        let expected = format!("confirmed only {intact} of 100000 bytes");
        assert!(said(&sent).contains(&expected), "{}", said(&sent));
        assert_eq!(json(&sent)["flows"][0]["confirmed"], intact);
        let (ended_well, received) = sink.finish();
        assert!(!ended_well);
        assert_eq!(received["errors"], 1);
        assert_eq!(received["flows"][0]["complete"], false);
    }
}

#[test]
fn endless_flows_end_at_the_duration() {
    let sink = Listener::start(&["sink"]);
    let sent = run(&["send", &sink.address, "--flows", "3", "--duration", "2", "--json", "-"]);
    assert!(sent.status.success(), "{}", said(&sent));
    let report = json(&sent);
    assert!(report["flows"][2]["confirmed"].is_null());
    let (ended_well, received) = sink.finish();
    assert!(ended_well);
    assert_eq!(received["flows"].as_array().unwrap().len(), 3);
    assert_eq!(received["flows"][2]["announced"], 0);
    let bytes = number(&received["bytes"]);
    assert!(0 < bytes && bytes <= number(&report["bytes"]));
}

#[test]
fn a_sink_counts_the_bytes_of_its_window_apart() {
    for (ahead_s, expected) in [(1000.0, 0), (-10.0, 1000), (-1000.0, 0)] {
        let epoch = (unix_s() + ahead_s).to_string();
        let sink = Listener::start(&["sink", "--epoch", &epoch, "--measure", "500"]);
        let sent = run(&["send", &sink.address, "--flows", "2", "--bytes", "500"]);
        assert!(sent.status.success(), "{}", said(&sent));
        let (_, received) = sink.finish();
        assert_eq!(received["bytes"], 1000);
        assert_eq!(received["window_bytes"], expected);
        assert_eq!(received["flows"][1]["window_bytes"], expected / 2);
        let mbit = received["window_mbit"].as_f64().unwrap();
        assert!((mbit - expected as f64 * 8e-6 / 500.0).abs() < 1e-12);
    }
}

#[test]
fn a_finite_flow_that_is_cut_off_is_incomplete_and_no_error() {
    let sink = Listener::start(&["sink"]);
    let mut cut_off = TcpStream::connect(&sink.address).unwrap();
    let mut sent = vec![0; 1016];
    pattern::fill(0, 0, &mut sent[16..]);
    sent[8..16].copy_from_slice(&1_000_000_u64.to_be_bytes());
    cut_off.write_all(&sent).unwrap();
    socket2::SockRef::from(&cut_off).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    drop(cut_off);
    // The sink accepts in order: once it has confirmed this one, it knows of the first.
    assert!(run(&["send", &sink.address, "--bytes", "1"]).status.success());
    let (ended_well, received) = sink.finish();
    assert!(ended_well);
    let flows = received["flows"].as_array().unwrap();
    assert_eq!((&flows[0]["complete"], &flows[1]["complete"]), (&false.into(), &true.into()));
    assert_eq!(received["errors"], 0);
}

#[test]
fn a_sink_that_is_gone_is_an_error_of_the_sender() {
    let sink = Listener::start(&["sink"]);
    let sender = load()
        .args(["send", &sink.address, "--flows", "2", "--json", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The sink has seen both flows as soon as its sockets are connected; wait for that.
    while established_to(&sink.address) < 2 {
        thread::yield_now();
    }
    drop(sink);
    let sent = sender.wait_with_output().unwrap();
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("2 of 2 flows failed"), "{}", said(&sent));
}

/// Number of established IPv4 connections to an address.
fn established_to(address: &str) -> usize {
    let address: SocketAddr = address.parse().unwrap();
    let remote = format!("0100007F:{:04X}", address.port());
    std::fs::read_to_string("/proc/net/tcp")
        .unwrap()
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields[2] == remote && fields[3] == "01")
        .count()
}

#[test]
fn a_thousand_flows_at_once_arrive_intact() {
    let sink = Listener::start(&["sink"]);
    let sent = run(&["send", &sink.address, "--flows", "1000", "--bytes", "20000", "--json", "-"]);
    assert!(sent.status.success(), "{}", said(&sent));
    assert_eq!(json(&sent)["confirmed"], 1000);
    assert!(sink.finish().0);
}

#[test]
fn probes_come_back_with_their_round_trip_times() {
    let echo = Listener::start(&["echo"]);
    let probed = run(&[
        "probe",
        &echo.address,
        "--interval-ms",
        "20",
        "--duration",
        "0.5",
        "--wait",
        "60",
        "--json",
        "-",
    ]);
    assert!(probed.status.success(), "{}", said(&probed));
    let report = json(&probed);
    assert_eq!((&report["sent"], &report["lost"]), (&25.into(), &0.into()));
    for probe in report["samples"].as_array().unwrap() {
        assert!(probe["rtt_ms"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(echo.finish().1["echoed"], 25);
}

#[test]
fn probes_without_an_echo_are_lost_and_an_error() {
    let closed = {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    let probed = run(&["probe", &closed, "--duration", "0.3", "--wait", "0.1", "--json", "-"]);
    assert_eq!(probed.status.code(), Some(1));
    assert!(said(&probed).contains("None of 3 probes"), "{}", said(&probed));
    assert_eq!(json(&probed)["lost"], 3);
}

#[test]
fn an_unavailable_control_is_an_error_before_anything_is_sent() {
    let sent = run(&["send", "127.0.0.1:9", "--control", "nosuch"]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("tcp_available_congestion_control"), "{}", said(&sent));
    let served = run(&["serve", "--listen", "127.0.0.1:0", "--control", "nosuch"]);
    assert_eq!(served.status.code(), Some(1));
    assert!(served.stdout.is_empty());
}

#[test]
fn what_would_start_late_does_not_start() {
    let sink = Listener::start(&["sink"]);
    let sent = run(&["send", &sink.address, "--epoch", &(unix_s() - 0.5).to_string()]);
    assert_eq!(sent.status.code(), Some(1));
    assert!(said(&sent).contains("Give a later --epoch"), "{}", said(&sent));
    assert!(sink.finish().0);
}

#[test]
fn separate_processes_agree_on_the_epoch() {
    let epoch = (unix_s() + 3.0).to_string();
    let sink = Listener::start(&["sink", "--epoch", &epoch, "--measure", "1000"]);
    let sent = run(&[
        "send",
        &sink.address,
        "--epoch",
        &epoch,
        "--start",
        "0.2",
        "--bytes",
        "1000",
        "--json",
        "-",
    ]);
    assert!(sent.status.success(), "{}", said(&sent));
    let done_s = json(&sent)["flows"][0]["done_s"].as_f64().unwrap();
    let (_, received) = sink.finish();
    let flow = &received["flows"][0];
    let accepted_s = flow["start_s"].as_f64().unwrap();
    let last_s = flow["last_s"].as_f64().unwrap();
    // The clocks are read one after the other, hence the tolerance.
    assert!(0.2 <= accepted_s + 0.01 && accepted_s <= last_s && last_s <= done_s + 0.01);
    assert_eq!(flow["window_bytes"], 1000);
}

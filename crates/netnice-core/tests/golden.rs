// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Golden traces in user space: C compiled by gcc and by clang, and Rust, give what is recorded.
//! (The kernel: crates/netnice-bpf/examples/golden.rs.)

use std::process::Command;

use netnice_core::sys::{nn_event as Event, nn_step as Step};
use netnice_core::sys::{NN_TRACE_FLOWS, NN_TRACE_LIFE};
use netnice_core::{Algorithm, Config, Flow, Group};

#[path = "../../../tests/golden/steps.rs"]
mod steps;

const EVENTS: [Event; 5] =
    [Event::NN_LOSS, Event::NN_ECN, Event::NN_TIMEOUT, Event::NN_UNDO, Event::NN_IDLE];

/// FNV-1a over words, as core/replay.h does it.
fn hash(hash: u64, flow: &Flow) -> u64 {
    let ctl = flow.ctl();
    [ctl.cwnd_q16, ctl.gap_us, u64::from(ctl.burst) << 32 | u64::from(ctl.flags)]
        .iter()
        .chain(flow.state())
        .fold(hash, |h, word| (h ^ word).wrapping_mul(0x100000001b3))
}

/// The hash and the final window.
fn trace(config: &Config, steps: &[Step]) -> (u64, u64) {
    let mut flow = Flow::new(config, &steps[0].ack, 10);
    let mut sum = hash(0xcbf29ce484222325, &flow);
    for step in &steps[1..] {
        match EVENTS.get(step.event as usize) {
            Some(event) => flow.event(*event, &step.ack),
            None => {
                flow.ack(&step.ack);
                flow.send(&step.ack)
            }
        };
        sum = hash(sum, &flow);
    }
    (sum, flow.ctl().cwnd_q16)
}

/// The same of a group of flows, as nn_trace_group_step() of core/replay.h deals them out.
fn group_trace(configs: [&Config; 2], steps: &[Step]) -> (u64, u64) {
    let group = Group::new(false);
    let mut flows: Vec<Flow> = Vec::new();
    let mut sum = 0xcbf29ce484222325;
    for (i, step) in steps.iter().enumerate() {
        let (turn, round) = (i % NN_TRACE_FLOWS as usize, i / NN_TRACE_FLOWS as usize);
        let join = || Flow::join(configs[turn % 2], &group, &step.ack, 10);
        match EVENTS.get(step.event as usize) {
            _ if round == 0 => flows.push(join()),
            _ if round % NN_TRACE_LIFE as usize == turn * 7 => {
                flows[turn].close(&step.ack);
                flows[turn] = join();
            }
            Some(event) => _ = flows[turn].event(*event, &step.ack),
            None => {
                flows[turn].ack(&step.ack);
                flows[turn].send(&step.ack);
            }
        }
        sum = hash(sum, &flows[turn]);
        for word in group.traced() {
            sum = (sum ^ word).wrapping_mul(0x100000001b3);
        }
    }
    (sum, flows[0].ctl().cwnd_q16)
}

fn rust_lines() -> Vec<String> {
    let steps = steps::steps();
    Algorithm::all()
        .flat_map(|a| {
            let [defaults, others] = steps::configs(a);
            let alone = [&defaults, &others].map(|(parameters, config)| {
                let (hash, cwnd) = trace(config, &steps);
                steps::line(a, parameters, hash, cwnd)
            });
            let (hash, cwnd) = group_trace([&defaults.1, &others.1], &steps);
            alone.into_iter().chain([steps::line(a, steps::GROUP, hash, cwnd)])
        })
        .collect()
}

fn c_lines(compiler: &str) -> Vec<String> {
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/run");
    let output = Command::new(run).arg(compiler).output().expect("tests/golden/run starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tests/golden/run {compiler} failed: {complaint}");
    String::from_utf8(output.stdout).expect("ASCII").lines().map(Into::into).collect()
}

#[test]
fn every_trace_in_rust_is_the_recorded_one() {
    let wrong: Vec<String> =
        rust_lines().iter().filter_map(|line| steps::check(line).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn traces_are_recorded_of_nothing_but_the_algorithms() {
    assert_eq!(steps::RECORDED.lines().count(), 3 * Algorithm::all().count());
}

#[test]
fn gcc_clang_and_rust_agree_bit_for_bit() {
    let rust = rust_lines();
    assert_eq!(c_lines("gcc"), rust, "gcc");
    assert_eq!(c_lines("clang"), rust, "clang");
}

#[test]
fn a_missing_and_a_changed_trace_name_the_command_that_records() {
    let missing = steps::check("toy defaults 0000000000000000 65536").unwrap_err();
    assert!(
        missing.contains("\"toy defaults\"") && missing.contains("tests/golden/record"),
        "{missing}"
    );
    let changed = steps::check("reno defaults 0000000000000000 65536").unwrap_err();
    assert!(
        changed.contains("recorded  reno") && changed.contains("tests/golden/record"),
        "{changed}"
    );
}

#[test]
fn the_traces_reach_what_they_are_meant_to_reach() {
    let steps = steps::steps();
    for a in Algorithm::all() {
        let mut config = Config::new(a);
        // a window bounded from above goes nowhere; the trace called "others" has a wider bound
        if let Some(bound) = a.params().find(|p| p.name() == "window") {
            config.set(&format!("window={}", bound.most())).expect("within the range");
        }
        let mut flow = Flow::new(&config, &steps[0].ack, 10);
        let (mut least, mut most, mut shrunk) = (u64::MAX, 0, 0);
        // the realistic part
        for step in &steps[1..15_000] {
            let before = flow.ctl().cwnd_q16;
            match EVENTS.get(step.event as usize) {
                Some(event) => flow.event(*event, &step.ack),
                None => flow.ack(&step.ack),
            };
            let now = flow.ctl().cwnd_q16;
            least = least.min(now);
            most = most.max(now);
            shrunk += u32::from(now < before);
        }
        assert!(shrunk > 10, "{a:?} shrank {shrunk} times");
        assert!(most >= 10 * netnice_core::ONE, "{a:?} grew to {most}");
        if let Some(i) = a.params().position(|p| p.name() == "least") {
            assert_eq!(least, u64::from(config.values()[i]), "{a:?}: its least window");
        }
    }
    assert!(steps.windows(2).any(|w| w[1].ack.una < w[0].ack.una), "sequence numbers wrap");
}

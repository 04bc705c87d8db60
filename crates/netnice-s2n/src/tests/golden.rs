// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The golden steps through a controller: what it tells, given to the core alone, gives its windows.

use netnice_core::sys::nn_step as Step;
use netnice_core::Flow;

use super::*;

#[path = "../../../../tests/golden/steps.rs"]
#[allow(dead_code)]
mod steps;

/// What s2n-quic would call at that step: ACKs of packets that were sent a round trip ago, or an event.
fn give(s: &mut Sender, step: &Step, start: Duration) {
    let ack = &step.ack;
    let at = start + Duration::from_micros(ack.now_us);
    s.wait(at.saturating_sub(s.time));
    let (events, timeout) = (Event::NN_EVENTS as u32, Event::NN_TIMEOUT as u32);
    let lost = ack.lost.max((step.event == Event::NN_LOSS as u32 || step.event == timeout).into());
    let sent = s.stamp() - Duration::from_micros(ack.rtt_us.max(50_000).into());
    let app_limited = ack.flags & sys::NN_ACK_APP_LIMITED > 0;
    while s.out.len() > ack.inflight as usize {
        s.out.pop_front();
        s.control.on_packet_discarded(MTU.into(), &mut Quiet);
    }
    let before = s.out.len();
    while s.out.len() < before.max(ack.inflight as usize) + (lost + ack.acked) as usize {
        s.send_one(sent, app_limited);
    }
    let mut over = s.out.split_off(s.out.len() - (lost + ack.acked) as usize);
    let acked: Vec<_> = over.drain(lost as usize..).collect();
    if lost > 0 {
        s.lost(&Vec::from(over), step.event == timeout);
    } else if step.event < events {
        s.control.on_rtt_update(sent, s.stamp(), &s.rtt, &mut Quiet);
        s.control.on_explicit_congestion(1, s.stamp(), &mut Quiet);
    }
    if ack.acked > 0 {
        s.acked(&acked, Duration::ZERO);
    }
}

#[test]
fn every_algorithm_answers_a_controller_as_it_answers_without_one() {
    let steps = steps::steps();
    for algorithm in Algorithm::all() {
        for (parameters, config) in steps::configs(algorithm) {
            let mut s = Sender::new(&Background::new(config.clone()));
            let start = s.time;
            let mut flow: Option<Flow> = None;
            let (mut shrunk, mut before) = (0, 0);
            for step in &steps[..15_000] {
                give(&mut s, step, start);
                s.control.earliest_departure_time();
                for (what, facts) in s.control.heard() {
                    match (what, &mut flow) {
                        (Heard::Start(window), _) => {
                            flow = Some(Flow::new(&config, &facts, window));
                        }
                        (Heard::Ack, Some(flow)) => _ = flow.ack(&facts),
                        (Heard::Event(event), Some(flow)) => _ = flow.event(event, &facts),
                        (Heard::Send, Some(flow)) => _ = flow.send(&facts),
                        (_, None) => panic!("{what:?} before the start"),
                    }
                }
                let direct = flow.as_ref().expect("started");
                let ctl = s.control.host(|host| {
                    assert_eq!(host.flow().state(), direct.state(), "{algorithm:?} {parameters}");
                    host.flow().ctl()
                });
                assert_eq!(ctl, direct.ctl(), "{algorithm:?} {parameters}");
                shrunk += u32::from(ctl.cwnd_q16 < before);
                before = ctl.cwnd_q16;
            }
            // a window bounded from above goes nowhere
            let bounded = algorithm.params().any(|p| p.name() == "window");
            assert!(bounded || shrunk > 10, "{algorithm:?} {parameters} shrank {shrunk} times");
        }
    }
}

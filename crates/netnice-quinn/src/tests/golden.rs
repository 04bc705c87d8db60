// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The golden steps through a controller: what it tells, given to the core alone, gives its windows.

use netnice_core::sys::nn_step as Step;
use netnice_core::Flow;

use super::*;

#[path = "../../../../tests/golden/steps.rs"]
#[allow(dead_code)]
mod steps;

/// What quinn would call at that step: ACKs of packets that were sent a round trip ago, or an event.
fn give(s: &mut Sender, step: &Step, start: Instant) {
    let ack = &step.ack;
    s.now = start + Duration::from_micros(ack.now_us);
    s.next += u64::from(ack.acked) + u64::from(ack.lost);
    s.control.on_sent(s.now, MTU.into(), s.next);
    if ack.lost > 0 || step.event < Event::NN_EVENTS as u32 {
        let bytes = u64::from(ack.lost) * u64::from(MTU);
        s.control.on_congestion_event(s.now, s.now - BASE, step.event == 2, bytes);
    }
    let sent = s.now - Duration::from_micros(ack.rtt_us.max(50_000).into());
    (0..ack.acked).for_each(|_| s.control.delivered(s.now, sent, BASE));
    let in_flight = u64::from(ack.inflight) * u64::from(MTU);
    s.control.on_end_acks(s.now, in_flight, ack.flags & 2 > 0, Some(s.next.saturating_sub(1)));
}

#[test]
fn every_algorithm_answers_a_controller_as_it_answers_without_one() {
    let steps = steps::steps();
    for algorithm in Algorithm::all() {
        for (parameters, config) in steps::configs(algorithm) {
            let mut s = Sender::new(&Background::new(config.clone()));
            let start = s.now;
            let mut flow: Option<Flow> = None;
            let (mut shrunk, mut before) = (0, 0);
            for step in &steps[..15_000] {
                give(&mut s, step, start);
                crate::gaps(s.now, || s.control.window());
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

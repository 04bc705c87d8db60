// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections that share what their group may send.

use super::*;
use crate::Group;

#[test]
fn connections_of_a_group_share_by_their_shares_and_leave_with_their_end() {
    let group = Group::new(false);
    let member =
        |share: &str| Sender::new(&Background::new(config("mpat", &[share])).in_group(&group));
    let mut members = [member("share=1"), member("share=3")];
    assert_eq!(group.members(), 2);
    let millisecond = Duration::from_millis(1);
    let run = |members: &mut [Sender; 2], ms: u32| {
        for _ in 0..ms {
            for s in members.iter_mut() {
                s.step();
                NOW.set(Some(now() - millisecond)); // the time of both
            }
            NOW.set(Some(now() + millisecond));
        }
    };
    run(&mut members, 300);
    members[0].lose(1, false); // out of slow start
    run(&mut members, 1000);
    let sum = group.sum_q16() as f64 / 65536.0;
    let [one, three] = members.each_ref().map(|s| f64::from(s.control.congestion_window()));
    // A_i = x_i C, in whole packets
    assert!((three / one - 3.0).abs() < 0.05, "{one} and {three} bytes");
    assert!(((one + three) / 1200.0 / sum - 1.0).abs() < 0.05, "{one} and {three} of {sum}");
    let [first, _second] = members;
    drop(first);
    assert_eq!(group.members(), 1);
}

#[test]
fn a_connection_in_the_foreground_is_no_member() {
    let group = Group::new(false);
    let background = Background::new(config("mpat", &[])).in_group(&group);
    let s = Sender::new(&background);
    background.switch().to_foreground();
    s.window();
    assert_eq!(group.members(), 0);
    background.switch().to_background();
    s.window();
    assert_eq!(group.members(), 1);
}

#[test]
fn connections_of_one_endpoint_have_one_clock() {
    let mut background = Background::new(config("reno", &[]));
    background.setting.listens = true;
    background.clock = Clock::over(now);
    let [mut a, mut b] = [(); 2].map(|()| Sender::of_endpoint(&mut background));
    a.send();
    a.wait(BASE);
    NOW.set(Some(now() + Duration::from_millis(7))); // it was read late
    b.time = a.time;
    let time = |s: &mut Sender| {
        s.send_one(s.stamp(), false);
        s.ack(1);
        s.control.heard().last().expect("the ACK").1.now_us
    };
    assert_eq!(time(&mut a), time(&mut b));
}

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
    for _ in 0..300 {
        members.iter_mut().for_each(|s| _ = s.step());
    }
    members[0].lose(1, false); // out of slow start
    for _ in 0..1000 {
        members.iter_mut().for_each(|s| _ = s.step());
    }
    let sum = group.sum_q16() as f64 / 65536.0;
    let [one, three] = members.each_ref().map(|s| s.control.metrics().congestion_window as f64);
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
    s.control.window();
    assert_eq!(group.members(), 0);
    background.switch().to_background();
    s.control.window();
    assert_eq!(group.members(), 1);
}

#[test]
fn an_algorithm_without_groups_stays_alone() {
    let alone = Algorithm::all().find(|a| !a.grouped()).expect("one of the list");
    let group = Group::new(false);
    let mut s = Sender::new(&Background::new(Config::new(alone)).in_group(&group));
    s.round();
    assert_eq!(group.members(), 0);
}

#[test]
fn connections_of_the_default_class_join_a_group() {
    let group = Group::new(false);
    let background = Background::of_class(crate::Class::default()).in_group(&group);
    let _members = [Sender::new(&background), Sender::new(&background)];
    assert_eq!(group.members(), 2);
}

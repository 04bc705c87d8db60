// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The delay of ACKs, from round-trip times alone, and what a class has in a group. What else is here is tested
//! through a transport's own controllers.

use std::time::Duration;

use netnice_core::{Class, Group};

use crate::delay::Delay;
use crate::setting::Setting;

#[test]
fn a_packet_that_is_not_alone_and_an_ack_that_was_not_delayed_measure_what_they_took() {
    let mut delay = Delay::default();
    let ms = Duration::from_millis;
    assert_eq!(delay.rtt(ms(333), ms(50), false), ms(50));
    assert_eq!(delay.rtt(ms(50), ms(75), true), ms(75));
    // the one before it was delayed by 25 ms: s' = (7 * 50 + 50)/8
    assert_eq!(delay.rtt(ms(50), ms(90), true), ms(65));
    // s' = (7 * 50 + 65)/8
    let smoothed = (ms(50) * 7 + ms(65)) / 8;
    assert_eq!(delay.rtt(smoothed, ms(90), false), ms(90));
    assert_eq!(delay.rtt(smoothed, ms(60), true), ms(60), "35 ms would be less than ever before");
}

#[test]
fn a_delay_is_no_queue_though_it_varies_and_though_the_transport_does_not_leave_it_out() {
    let mut delay = Delay::default();
    let us = Duration::from_micros;
    delay.rtt(us(333_000), us(50_000), false);
    delay.rtt(us(50_000), us(75_010), true);
    // delayed by 25,010 us that time, and by 10 us less this time: not less than the path takes
    assert_eq!(delay.rtt(us(50_000), us(75_000), true), us(50_000));
    // the transport left nothing out, as 75,000 is less than its least RTT and the delay: s' = (7 * 50 + 75)/8
    let smoothed = (us(50_000) * 7 + us(75_000)) / 8;
    assert_eq!(delay.rtt(smoothed, us(75_015), true), us(50_005));
    // it left nothing out of 100 ms either, where it could: the receiver delays no more
    let after = (smoothed * 7 + us(75_015)) / 8;
    assert_eq!(delay.rtt(after, us(100_000), true), us(74_990));
    let last = (after * 7 + us(100_000)) / 8;
    assert_eq!(delay.rtt(last, us(100_000), true), us(100_000));
}

#[test]
fn connections_of_a_class_have_its_algorithm_for_groups_once_they_join_one() {
    let mut setting = Setting::of_class(Class::default());
    assert_eq!(setting.config.algorithm(), Class::default().algorithm());
    setting.join(&Group::new(false));
    assert_eq!(setting.config.algorithm(), Class::default().algorithm_of_groups());
}

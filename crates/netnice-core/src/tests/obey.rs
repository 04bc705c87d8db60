// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What hosts do with an answer, for any answer within the ranges of core/interface.h.

use proptest::prelude::*;

use super::*;

/// Greatest burst, packets: NN_BURST_MAX.
const BURST_MAX: u32 = sys::NN_BURST_MAX;

fn answer() -> impl Strategy<Value = Ctl> {
    let gap = prop_oneof![Just(0), 1..=GAP_MAX];
    (1..=CWND_MAX, gap, 1..=BURST_MAX, 0..4u32).prop_map(|(cwnd_q16, gap_us, burst, flags)| Ctl {
        cwnd_q16,
        gap_us,
        burst,
        flags,
    })
}

proptest! {
    #[test]
    fn a_window_clocked_by_acks_is_rounded_down_but_not_to_nothing(ctl in answer()) {
        let ctl = Ctl { gap_us: 0, ..ctl };
        let window = u64::from(ctl.window());
        prop_assert!(window >= 1);
        prop_assert!(window * ONE <= ctl.cwnd_q16.max(ONE));
        prop_assert!((window + 1) * ONE > ctl.cwnd_q16);
    }

    #[test]
    fn with_a_gap_two_bursts_fit_into_the_window(ctl in answer()) {
        prop_assume!(ctl.gap_us > 0);
        let least = 2 * ctl.burst;
        prop_assert_eq!(ctl.window(), least.max((ctl.cwnd_q16 / ONE) as u32));
    }

    #[test]
    fn a_timeout_never_leaves_more_than_the_window(ctl in answer()) {
        let left = ctl.window_in_loss();
        prop_assert!(left >= 1 && left <= ctl.window());
        prop_assert_eq!(left < ctl.window(), ctl.gap_us > 0);
    }

    #[test]
    fn ssthresh_is_never_raised_and_stays_in_slow_start(
        ctl in answer(), cwnd in 1..2000u32, before in 2..2000u32,
    ) {
        let after = ctl.ssthresh(cwnd, before);
        if ctl.flags & SLOW_START != 0 {
            prop_assert_eq!(after, before);
        } else {
            // two packets at least (RFC 5681, 3.1)
            prop_assert_eq!(after, before.min(cwnd.max(2)));
        }
        prop_assert!(ctl.target() >= 2);
    }

    #[test]
    fn a_sender_that_used_its_window_up_is_not_application_limited(
        ctl in answer(), cwnd in 1..2000u32, out in 0..2000u32, waits: bool, limited: bool,
    ) {
        let app_limited = ctl.app_limited(waits, cwnd, out, limited);
        if ctl.gap_us > 0 {
            prop_assert_eq!(app_limited, !waits); // what is in flight says nothing of it
        } else {
            prop_assert!(!(limited && app_limited));
            prop_assert!(!(ctl.flags & SLOW_START != 0 && 2 * out > cwnd && app_limited));
        }
    }
}

#[test]
fn a_burst_outside_its_range_is_taken_as_the_nearest_in_it() {
    let asked = |burst| Ctl { gap_us: 1, burst, ..Default::default() }.window();
    assert_eq!(asked(0), 2);
    assert_eq!(asked(u32::MAX), 2 * BURST_MAX);
}

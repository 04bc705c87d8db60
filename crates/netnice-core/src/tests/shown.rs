// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What flows show.

use std::collections::BTreeSet;

use super::*;

#[test]
fn lines_of_one_name_say_the_same_whatever_the_algorithm() {
    for algorithm in Algorithm::all() {
        let names: BTreeSet<_> = algorithm.shown().map(|s| s.name()).collect();
        assert_eq!(names.len(), algorithm.shown().len(), "{algorithm:?}: each once");
        for shown in algorithm.shown() {
            let first = Shown::all().into_iter().find(|s| *s == shown).expect("all are there");
            assert_eq!((shown.unit(), shown.help()), (first.unit(), first.help()), "{algorithm:?}");
        }
    }
}

#[test]
fn no_two_lines_have_a_name_for_scripts_in_common() {
    let keys: Vec<_> = Shown::all().iter().flat_map(Shown::keys).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{keys:?}");
}

#[test]
fn a_flow_shows_what_its_algorithm_lists() {
    for algorithm in Algorithm::all() {
        let flow = Flow::new(&Config::new(algorithm), &Ack::default(), 10);
        let names: Vec<_> = flow.show().iter().map(|v| v.shown).collect();
        assert_eq!(names, algorithm.shown().collect::<Vec<_>>(), "{algorithm:?}");
    }
}

#[test]
fn an_algorithm_shows_the_values_of_the_part_that_it_is_made_of() {
    // nice.h holds vegas.h, and knows the RTT of a full queue besides
    let keys: Vec<_> = algorithm("nice").shown().map(|s| s.key()).collect();
    assert_eq!(keys, ["base_rtt_us", "queue", "max_rtt_us"]);
}

#[test]
fn a_measured_rate_is_given_with_its_interval_for_packets_of_that_size() {
    let shown = algorithm("imtcp").shown().next().expect("it shows what it measures");
    assert_eq!(shown.keys(), ["available_mbit", "available_low_mbit", "available_high_mbit"]);
    let raw = sys::nn_value { value: 1000, low: 800, high: 1300, results: 1 };
    // packets of 10^4 bits
    assert_eq!(Value { shown, raw }.numbers(MSS), [10.0, 8.0, 13.0]);
    let nothing = sys::nn_value { results: 0, ..raw };
    assert!(!Value { shown, raw: nothing }.is_known());
}

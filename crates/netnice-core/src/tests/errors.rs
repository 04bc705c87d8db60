// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What refuses names and settings.

use super::*;

fn refusal(algorithm: &str, setting: &str) -> String {
    Config::new(super::algorithm(algorithm)).set(setting).expect_err("refused").to_string()
}

#[test]
fn an_unknown_algorithm_names_the_nearest_one() {
    for (name, nearest) in [("ncie", "nice"), ("vega", "vegas"), ("nn_ren", "reno")] {
        assert_eq!(
            Algorithm::by_name(name).unwrap_err().to_string(),
            format!(
                "there is no algorithm {name:?}; did you mean {nearest:?}? \
                 The list: netnice algorithms"
            )
        );
    }
}

#[test]
fn an_unknown_parameter_names_the_nearest_one() {
    assert_eq!(
        refusal("nice", "treshold=0.1"),
        "nice has no parameter \"treshold\"; did you mean \"threshold\"? \
         The list: netnice algorithms nice"
    );
    assert_eq!(
        refusal("reno", "alpha=1"),
        "reno has no parameter \"alpha\"; did you mean \"share\"? \
         The list: netnice algorithms reno"
    );
}

#[test]
fn a_value_out_of_range_names_the_range_and_its_unit() {
    assert_eq!(
        refusal("nice", "threshold=1.5"),
        "threshold=1.5 is out of range; threshold is from 0 to 1 share of the buffer"
    );
    assert_eq!(
        refusal("vegas", "alpha=-1"),
        "alpha=-1 is out of range; alpha is from 0 to 1000 packets"
    );
}

#[test]
fn a_choice_is_taken_by_its_name_or_number_and_refused_with_the_names() {
    let mut config = Config::new(algorithm("fairbat1"));
    let index = config.algorithm().params().position(|p| p.name() == "mode").expect("a choice");
    for (setting, value) in [("mode=tau", 1), ("mode=0", 0), ("mode = 1", 1), ("mode=alpha", 0)] {
        config.set(setting).expect("a choice");
        assert_eq!(config.values()[index], value * ONE as u32, "{setting}");
    }
    assert_eq!(
        refusal("fairbat1", "mode=beta"),
        "mode cannot be \"beta\"; choose one of alpha, tau"
    );
}

#[test]
fn what_is_no_setting_is_answered_with_an_example() {
    for text in ["", "alpha", "alpha=", "alpha=two", "alpha=1,5", "alpha:1"] {
        assert_eq!(
            refusal("vegas", text),
            format!("{text:?} is not a setting; write NAME=NUMBER, for example alpha=1")
        );
    }
}

#[test]
fn values_from_another_build_are_refused_when_too_few() {
    let vegas = algorithm("vegas");
    assert_eq!(Config::from_values(vegas, &[1, 2]), None);
    let config = Config::from_values(vegas, &[1, 2, 3, 4, 5, 6]).expect("enough");
    assert_eq!(config.values(), [1, 2, 3, 4, 5]);
}

#[test]
fn the_defaults_are_those_of_the_paper() {
    // alpha 1, beta 3, gamma 1; threshold 0.2, decrease 0.5, least 1/48.
    // Ours are fraction 1/3, quiet 0.05, shrink 0.05, early 1, together 0.5 packets, spread 0.8 and age
    // 600 s; a share of 1 in a group
    let nice = Config::new(algorithm("nice"));
    let papers = [65_536, 196_608, 65_536, 13_107, 21_845, 32_768, 1365];
    assert_eq!(
        nice.values(),
        [&papers[..], &[3277, 3277, 65_536, 32_768, 52_429, 600 << 16, 65_536]].concat()
    );
}

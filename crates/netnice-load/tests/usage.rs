// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the built command says of its options and of scenario files.
#![forbid(unsafe_code)]

use std::io::Write;
use std::process::Stdio;

mod common;
use common::{json, load, run, said, scenario, SCENARIO};

#[test]
fn wrong_usage_has_the_exit_status_2() {
    for arguments in [
        &["send"][..],
        &["send", "nowhere"],
        &["probe", "127.0.0.1:1", "--duration", "-1"],
        &["sink", "--listen", "127.0.0.1:0", "--warmup", "1"],
        &["send", "127.0.0.1:1", "--set", "share=2"],
        &["send", "127.0.0.1:1", "--group"],
        &["send", "127.0.0.1:1", "--flows", "1000001"],
        &["serve", "--listen", "127.0.0.1:0", "--quic"],
    ] {
        assert_eq!(run(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn a_scenario_from_standard_input_is_described_as_json() {
    let mut load = load()
        .args(["scenario", "-", "--set", "measure_s=7", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the command starts");
    load.stdin.take().unwrap().write_all(SCENARIO.as_bytes()).unwrap();
    let described = json(&load.wait_with_output().unwrap());
    assert_eq!(described["scenario"]["measure_s"], 7.0);
    assert_eq!(described["variants"][0]["name"], "none");
    assert_eq!(described["dumbbell"]["bottleneck"], described["scenario"]["bottleneck"]);
}

#[test]
fn many_scenarios_are_described_at_once() {
    let (_directory, file) = scenario(SCENARIO);
    let one = json(&run(&["scenario", &file, "--json", "-"]));
    let array = serde_json::json!([one["scenario"], one["scenario"]]).to_string();
    let (_directory, file) = scenario(&array);
    let many = json(&run(&["scenario", &file, "--many", "--json", "-"]));
    assert_eq!(many["scenarios"][1]["scenario"], one["scenario"]);
    assert_eq!(many["scenarios"][1]["variants"], one["variants"]);
}

#[test]
fn a_control_of_the_core_is_checked_with_what_is_set_of_it() {
    let background = "[[background]]\nname = \"x\"\ncontrol = \"nn_nice\"\n";
    let (_directory, file) = scenario(&format!("{SCENARIO}{background}"));
    for (setting, expected) in [
        ("background.control=nn_nices", "background \"x\": there is no algorithm \"nn_nices\""),
        ("background.set.treshold=0.2", "nice has no parameter \"treshold\""),
        ("background.set.threshold=9", "threshold=9 is out of range"),
        ("foreground.control=nn_x", "[foreground]: there is no algorithm \"nn_x\""),
    ] {
        let refused = run(&["scenario", &file, "--set", setting]);
        assert_eq!(refused.status.code(), Some(2), "{setting}");
        assert!(said(&refused).contains(expected), "{}", said(&refused));
    }
    for setting in ["background.set.threshold=0.2", "background.control=of_this_kernel"] {
        assert!(run(&["scenario", &file, "--set", setting]).status.success(), "{setting}");
    }
    let kept = json(&run(&["scenario", &file, "--json", "-"]))["scenario"].to_string();
    let (_directory, file) = scenario(&format!("[{}]", kept.replace("nn_nice", "nn_gone")));
    assert!(run(&["scenario", &file, "--many"]).status.success(), "what was measured stays");
}

#[test]
fn a_report_never_overwrites_the_scenario() {
    let (_directory, scenario) = scenario(SCENARIO);
    let refused = run(&["scenario", &scenario, "--json", &scenario]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(said(&refused).contains("would be overwritten"));
    assert_eq!(std::fs::read_to_string(&scenario).unwrap(), SCENARIO);
}

#[test]
fn a_report_never_overwrites_the_rate_trace_of_a_scenario() {
    let (directory, file) = scenario(SCENARIO);
    let trace = directory.path().join("cell.down");
    std::fs::write(&trace, "1\n").unwrap();
    let cell = ["--set", "bottleneck.trace=cell.down", "--json", trace.to_str().unwrap()];
    for arguments in [&["scenario", &file][..], &["schedule", &file, "--seed", "1"]] {
        let refused = run(&[arguments, &cell].concat());
        assert_eq!(refused.status.code(), Some(1));
        assert!(said(&refused).contains("would be overwritten"));
    }
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "1\n");
}

#[test]
fn every_mode_has_help_with_an_example() {
    for mode in ["serve", "fetch", "sink", "send", "echo", "probe", "schedule", "scenario"] {
        let help = run(&[mode, "--help"]);
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(help.status.success() && text.contains(&format!("netnice-load {mode} ")));
        assert!(text.contains("Example"), "{text}");
    }
}

#[test]
fn a_missing_log_is_an_error_that_says_once_how_to_give_it() {
    let (_directory, scenario) = scenario(&format!("{SCENARIO}arrivals = \"log\"\n"));
    let plan = run(&["schedule", &scenario, "--seed", "1", "--data", "nowhere"]);
    assert_eq!(plan.status.code(), Some(1));
    let said = said(&plan);
    assert!(said.contains("give it with --data") && said.contains("Cannot read nowhere"), "{said}");
    assert_eq!(said.matches("No such file").count(), 1, "{said}");
}

#[test]
fn a_scenario_with_an_unknown_key_is_refused_with_the_nearest() {
    let (_directory, scenario) = scenario(&format!("{SCENARIO}laod = 0.5\n"));
    let plan = run(&["schedule", &scenario, "--seed", "1"]);
    assert_eq!(plan.status.code(), Some(2));
    let said = said(&plan);
    assert!(
        said.contains("line 11: unknown key `laod`. The nearest known key is `load`"),
        "{said}"
    );
}

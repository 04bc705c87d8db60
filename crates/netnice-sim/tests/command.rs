// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command as its users meet it.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

const SMALL: &str = r#"
name = "small"
title = "A few seconds"
warmup_s = 1
measure_s = 4
drain_s = 5
[bottleneck]
rate_mbit = 8
rtt_ms = 50
limit_packets = 50
[foreground]
probe_interval_ms = 100
[[background]]
name = "nice x2"
control = "nice"
flows = 2
[[background]]
name = "reno x2"
control = "reno"
flows = 2
[ideal]
flows = 2
"#;

/// A directory with a scenario file.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new(text: &str) -> Place {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("small.toml"), text).unwrap();
        Place { directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn start(&self, mode: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_netnice-sim"));
        command.current_dir(&self.directory).args([mode, "small.toml"]).args(arguments);
        command
    }

    /// Standard output of a command that succeeds.
    fn out(&self, mode: &str, arguments: &[&str]) -> String {
        good(self.start(mode, arguments).output().unwrap())
    }

    fn json(&self, mode: &str, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.out(mode, &[arguments, &["--json"]].concat())).unwrap()
    }

    /// Standard error of a command that fails.
    fn refused(&self, mode: &str, arguments: &[&str]) -> String {
        self.ended(1, mode, arguments)
    }

    /// The same of one that is used in a wrong way.
    fn misused(&self, mode: &str, arguments: &[&str]) -> String {
        self.ended(2, mode, arguments)
    }

    fn ended(&self, status: i32, mode: &str, arguments: &[&str]) -> String {
        let output = self.start(mode, arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

fn good(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn assert_holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_cores() {
    let place = Place::new(SMALL);
    let arguments = ["--seeds", "2", "--json"];
    let first = place.out("run", &arguments);
    for cores in ["1", "3"] {
        let mut command = place.start("run", &arguments);
        command.env("RAYON_NUM_THREADS", cores);
        assert!(first == good(command.output().unwrap()));
    }
}

#[test]
fn another_seed_gives_another_run() {
    let place = Place::new(SMALL);
    let [one, two] = ["1", "2"].map(|seed| place.json("run", &["--seed", seed]));
    assert_ne!(one["runs"][0]["foreground"]["fct_s"], two["runs"][0]["foreground"]["fct_s"]);
}

#[test]
fn a_run_has_an_entry_for_each_seed_and_background() {
    let document = Place::new(SMALL).json("run", &["--seeds", "2", "--only", "nice x2"]);
    let runs: Vec<(u64, &str)> = document["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["seed"].as_u64().unwrap(), r["background"].as_str().unwrap()))
        .collect();
    assert_eq!(
        runs,
        [1, 2].map(|s| [(s, "none"), (s, "strict priority"), (s, "nice x2")]).concat()
    );
    assert_eq!(document["scenario"]["name"], "small");
    assert_eq!(document["engine"], "sim");
    let strict_priority = &document["summary"][1];
    assert_eq!(strict_priority["share"]["mean"], 1.0);
    // Half of 8 Mbit/s is offered: strict priority finds some of the rest, and no more than all.
    let mbit = strict_priority["background_goodput_mbit"].as_f64().unwrap();
    assert!((1.0..8.0).contains(&mbit), "{mbit}");
}

#[test]
fn the_table_has_harm_and_share_together() {
    let table = Place::new(SMALL).out("run", &["--seeds", "2"]);
    assert_holds(&table, &["small: A few seconds", "FCT ratio", "share", "95 % confidence"]);
    let row = table.lines().find(|line| line.contains("strict priority")).unwrap();
    assert!(row.ends_with("100 [100, 100]"), "{row}");
    let row = table.lines().find(|line| line.starts_with(" none")).unwrap();
    assert!(row.ends_with(" 0.00        0 [0, 0]"), "{row}");
}

#[test]
fn a_setting_replaces_a_key_of_the_file() {
    let settings = ["--set", "bottleneck.queue=pie", "--set", "background[2].flows=3"];
    let document = Place::new(SMALL).json("run", &settings);
    assert_eq!(document["scenario"]["bottleneck"]["queue"], "pie");
    let flows: Vec<_> =
        document["runs"].as_array().unwrap().iter().map(|r| r["flows"].clone()).collect();
    assert_eq!(flows, [0, 2, 2, 3]);
}

#[test]
fn a_sweep_tries_every_combination() {
    let place = Place::new(SMALL);
    let vary = ["--vary", "foreground.load=0.2,0.6", "--vary", "bottleneck.queue=red,codel"];
    let document = place.json("sweep", &[&vary[..], &["--only", "nice x2"]].concat());
    let settings: Vec<String> =
        document["results"].as_array().unwrap().iter().map(|r| r["settings"].to_string()).collect();
    assert_eq!(
        settings,
        [("0.2", "red"), ("0.2", "codel"), ("0.6", "red"), ("0.6", "codel")]
            .map(|(l, q)| format!(r#"{{"bottleneck.queue":"{q}","foreground.load":"{l}"}}"#))
    );
    let spare_mbit = |point: usize| {
        document["results"][point]["summary"][1]["background_goodput_mbit"].as_f64().unwrap()
    };
    assert!(spare_mbit(0) > spare_mbit(2), "a greater load leaves less");
    // A point is what the run with its settings is.
    let settings = ["--set", "foreground.load=0.6", "--set", "bottleneck.queue=codel"];
    let run = place.json("run", &[&settings[..], &["--only", "nice x2"]].concat());
    assert_eq!(document["results"][3]["summary"], run["summary"]);

    let table = place.out("sweep", &[&vary[..], &["--only", "nice x2"]].concat());
    assert_holds(&table, &["bottleneck.queue", "foreground.load", "share", "codel"]);
}

#[test]
fn a_name_that_is_not_utf_8_is_read_and_told_of_as_well_as_it_can_be() {
    let place = Place::new(SMALL);
    let name = std::ffi::OsStr::from_bytes(b"\xfe.toml");
    std::fs::rename(place.file("small.toml"), place.directory.path().join(name)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_netnice-sim"));
    command.arg("run").arg(name).args(["--only", "none", "--json"]).current_dir(&place.directory);
    let document: Value = serde_json::from_str(&good(command.output().unwrap())).unwrap();
    assert_eq!(document["command"][2], "\u{fffd}.toml");
}

#[test]
fn a_sweep_reads_standard_input_once() {
    let place = Place::new(SMALL);
    let arguments = ["--vary", "foreground.load=0.2,0.6", "--only", "none", "--json"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_netnice-sim"));
    command.args(["sweep", "-"]).args(arguments).current_dir(&place.directory);
    command.stdin(std::fs::File::open(place.file("small.toml")).unwrap());
    let document: Value = serde_json::from_str(&good(command.output().unwrap())).unwrap();
    let of_the_file = place.json("sweep", &arguments[..4]);
    assert_eq!(document["results"], of_the_file["results"]);
}

#[test]
fn a_trace_holds_windows_queues_and_rtts_of_the_one_background() {
    let place = Place::new(SMALL);
    let arguments = ["--only", "reno x2", "--trace", "t.csv", "--json"];
    let traced = place.out("run", &arguments);
    let text = std::fs::read_to_string(place.file("t.csv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("time_s,kind,name,value,inflight_packets"));
    let of = |kind: &str, name: &str| {
        let start = format!(",{kind},{name},");
        text.lines().filter(|l| l.contains(&start)).count()
    };
    // 10 s of simulated time at most, sampled every 10 ms; 5 s at least.
    assert!((500..=1001).contains(&of("queue_packets", "bottleneck")));
    assert!((400..=1001).contains(&of("window_packets", "background 1")));
    assert!(of("rtt_ms", "background 0") > 100);
    assert!(of("window_packets", "foreground 0") > 0);

    // Watching changes nothing.
    let watched: Value = serde_json::from_str(&traced).unwrap();
    let unwatched = place.json("run", &["--only", "reno x2"]);
    assert_eq!(watched["runs"], unwatched["runs"]);
}

#[test]
fn a_trace_of_several_runs_is_refused() {
    let place = Place::new(SMALL);
    let refused = place.misused("run", &["--trace", "t.csv"]);
    assert_holds(&refused, &["2 backgrounds", "--only NAME"]);
    let several = ["--trace", "t.csv", "--only", "nice x2", "--seeds", "2"];
    assert_holds(&place.misused("run", &several), &["2 seeds", "--seed 1"]);
    assert!(!place.file("t.csv").exists());
    let refused = place.refused("run", &["--trace", "no/t.csv", "--only", "nice x2"]);
    assert_holds(&refused, &["no/t.csv", "No such file"]);
}

#[test]
fn a_trace_never_overwrites_what_the_command_reads() {
    let place = Place::new(SMALL);
    for name in ["small.toml", "./small.toml"] {
        let refused = place.refused("run", &["--trace", name, "--only", "nice x2"]);
        assert_holds(&refused, &[name, "would be overwritten"]);
    }
    assert_eq!(std::fs::read_to_string(place.file("small.toml")).unwrap(), SMALL);
    std::fs::write(place.file("cell.down"), "1\n").unwrap();
    let cell = ["--set", "bottleneck.trace=cell.down", "--trace", "cell.down", "--only", "none"];
    assert_holds(&place.refused("run", &cell), &["cell.down", "would be overwritten"]);
    assert_eq!(std::fs::read_to_string(place.file("cell.down")).unwrap(), "1\n");
}

#[test]
fn absurd_options_are_wrong_usage() {
    let place = Place::new(SMALL);
    for (arguments, word) in [
        (&["--seeds", "18446744073709551615"][..], "100000"),
        (&["--seeds", "0"], "100000"),
        (&["--trace", "t.csv", "--trace-kind", "nosuch"], "queue_packets"),
    ] {
        let output = place.start("run", arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_holds(&String::from_utf8(output.stderr).unwrap(), &[word]);
    }
    assert!(!place.file("t.csv").exists());
}

#[test]
fn a_bad_scenario_gets_a_message_with_file_key_and_range() {
    let place = Place::new(SMALL);
    for (setting, words) in [
        ("bottleneck.rate_mbit=-3", &["`bottleneck.rate_mbit` is -3", "from 0.001 to"][..]),
        ("bottleneck.limit_packets=0", &["`bottleneck.limit_packets` is 0", "from 1 to"]),
        ("bottleneck.rat_mbit=3", &["unknown key `rat_mbit`", "`rate_mbit`"]),
        ("bottleneck.queue=fifo", &["unknown value `fifo`", "drop-tail"]),
        ("name=../evil", &["`name` is \"../evil\"", "no \"/\""]),
        ("background.to=c", &["no route from \"a\" to \"c\"", "[[route]]"]),
    ] {
        let refused = place.misused("run", &["--set", setting]);
        assert_holds(&refused, words);
        assert_holds(&refused, &["small.toml"]);
    }
    assert_holds(&Place::new("name = 3").misused("run", &[]), &["small.toml, line 1", "string"]);
}

#[test]
fn quic_is_refused_with_the_engine_that_has_it_and_never_simulated_as_tcp() {
    let place = Place::new(SMALL);
    for (setting, whose) in [
        ("foreground.quic=true", "[foreground]"),
        ("background.quic=true", "background \"nice x2\""),
    ] {
        let refused = place.refused("run", &["--set", setting, "--json"]);
        assert_holds(&refused, &[whose, "the simulator has no QUIC", "--engine kernel"]);
    }
    place.out("run", &["--set", "background.quic=true", "--only", "none"]);
}

#[test]
fn what_the_simulator_does_not_have_is_named_with_what_it_has() {
    let place = Place::new(SMALL);
    let cake = place.refused("run", &["--set", "bottleneck.queue=cake"]);
    assert_holds(&cake, &["small.toml", "cake", "fq_codel", "--engine kernel"]);
    for (setting, words) in [
        ("background.control=nices", &["no algorithm \"nices\"", "\"nice\""][..]),
        ("background.set={alpah=3}", &["no parameter \"alpah\"", "\"alpha\""]),
        ("background[1].set.threshold=9", &["threshold=9 is out of range"]),
    ] {
        for more in [&[][..], &["--only", "nice x2", "--trace", "t.csv"]] {
            let misused = place.misused("run", &[&["--set", setting][..], more].concat());
            assert_holds(&misused, words);
            assert_holds(&misused, &["small.toml"]);
        }
    }
    assert_holds(&place.misused("run", &["--only", "nobody"]), &["nobody", "\"reno x2\""]);
    let twice = ["--vary", "ideal.flows=1", "--vary", "ideal.flows=2"];
    assert_holds(&place.misused("sweep", &twice), &["--vary names ideal.flows twice"]);
}

#[test]
fn the_speed_is_a_number_alone_on_its_line() {
    let one = SMALL.split("[[background]]\nname = \"reno").next().unwrap();
    let line = Place::new(one).out("bench", &["--runs", "1"]);
    let number = line.strip_prefix("sim_packets_per_s ").unwrap();
    let number = number.strip_suffix(" packets/s\n").unwrap();
    assert!(number.parse::<u64>().unwrap() > 1000, "{line}");
}

#[test]
fn ten_thousand_flows_share_a_gigabit() {
    let text = "name = \"small\"\nwarmup_s = 0.5\nmeasure_s = 0.5\ndrain_s = 0\n[bottleneck]\n\
        rate_mbit = 1000\nrtt_ms = 40\nlimit_packets = 3000\n[[background]]\n\
        name = \"nice x10000\"\ncontrol = \"nice\"\nflows = 10000\n[ideal]\nflows = 1\n";
    let document = Place::new(text).json("run", &[]);
    let run = &document["runs"][2];
    let rates: Vec<f64> = run["background_flow_mbit"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rate| rate.as_f64().unwrap())
        .collect();
    assert_eq!(rates.len(), 10_000);
    let total = run["background_goodput_mbit"].as_f64().unwrap();
    assert!((rates.iter().sum::<f64>() - total).abs() < 1e-6);
    // 1448 of 1514 bytes are payload: 956 Mbit/s, and up to 1 % that had arrived before the window
    // and became readable in it.
    assert!((500.0..966.0).contains(&total), "{total}");
}

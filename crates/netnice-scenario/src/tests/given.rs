// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Scenarios that are given otherwise than as a file of TOML: with settings, and in JSON.

use std::io::Write;

use super::MINIMAL;
use crate::*;

/// The minimal scenario and two backgrounds, with settings.
fn set(settings: &[&str]) -> Result<Scenario, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(
        file,
        "{MINIMAL}[[background]]\nname = \"x\"\ncontrol = \"reno\"\n\
         [[background]]\nname = \"y\"\ncontrol = \"reno\"\n"
    )
    .unwrap();
    let settings: Vec<String> = settings.iter().map(|s| (*s).into()).collect();
    Scenario::read_with(file.path(), &settings).map_err(|e| e.to_string())
}

#[test]
fn keys_can_be_set_from_outside_in_sections_and_in_elements_of_arrays() {
    let s = set(&[
        "warmup_s=1",
        "foreground.load=0.3",
        "bottleneck.queue=fq_codel",
        "background.flows=7",
        "background[2].set.alpha=0.5",
    ])
    .unwrap();
    assert_eq!((s.warmup_s, s.foreground.unwrap().load), (1.0, 0.3));
    assert_eq!(s.bottleneck.unwrap().queue, Queue::FqCodel);
    assert_eq!(s.background.iter().map(|b| b.flows).collect::<Vec<_>>(), [7, 7]);
    assert!(s.background[0].set.is_empty());
    assert_eq!(s.background[1].set["alpha"], Parameter::Number(0.5));
}

#[test]
fn a_setting_without_value_or_place_is_refused() {
    for (setting, expected) in [
        ("warmup_s", "--set warmup_s: it has no value"),
        ("warmup.s.x=1", "unknown key `warmup`. The nearest known key is `warmup_s`"),
        ("name.x=1", "`name` is not a section"),
        ("background[3].flows=1", "there are 2 [[background]], so no number 3"),
        ("background[0].flows=1", "[0] is not a number from 1 on"),
        ("bottleneck[1].loss=0", "`bottleneck` is one section"),
        ("bottleneck.loss=2", "`bottleneck.loss` is 2; it must be from 0 to 0.99"),
    ] {
        let said = set(&[setting]).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_key_of_absurdly_many_parts_is_refused_and_overflows_no_stack() {
    let deep = |first: &str| format!("{first}{}=1", ".a".repeat(20_000));
    let said = set(&[&deep("a")]).unwrap_err();
    assert!(said.contains("it has 20001 parts; a key has at most 8"), "{said}");
    assert!(set(&[&format!("a={{ {} }}", deep("a"))]).is_err());
    assert!(Scenario::parse(&deep("a"), "m.toml").is_err());
    assert!(Scenario::parse(&format!("[{}]", deep("a").replace("=1", "")), "m.toml").is_err());
}

#[test]
fn a_scenario_written_with_its_defaults_is_read_as_the_same() {
    let text = format!("{MINIMAL}[foreground]\n[[background]]\nname = \"x\"\ncontrol = \"reno\"\n");
    let s = Scenario::parse(&text, "m.toml").unwrap();
    let written = toml::to_string(&s).unwrap();
    assert!(written.contains("measure_s = 30.0"), "{written}");
    assert_eq!(Scenario::parse(&written, "again").unwrap(), s);
}

#[test]
fn a_scenario_in_json_is_read_as_the_same() {
    let text = format!("{MINIMAL}[foreground]\n[[background]]\nname = \"x\"\ncontrol = \"reno\"\n");
    let s = Scenario::parse(&text, "m.toml").unwrap();
    let json = serde_json::to_string(&s).unwrap();
    assert_eq!(Scenario::parse(&json, "m.json").unwrap(), s);
    let said = Scenario::parse("{", "m.json").unwrap_err().to_string();
    assert!(said.starts_with("m.json: this is not valid JSON: EOF"), "{said}");
}

#[test]
fn a_key_that_json_gives_twice_is_refused_as_toml_refuses_it() {
    let link = r#""bottleneck": {"rate_mbit": 8, "rtt_ms": 50, "limit_packets": 50}"#;
    let background =
        r#""background": [{"name": "x", "control": "nn_nice", "set": {"a": 1, "a": 1}}]"#;
    for (json, key) in [
        (format!(r#"{{"name": "m", {link}, "measure_s": 3, "measure_s": 1}}"#), "measure_s"),
        (format!(r#"{{"name": "m", {link}, "measure_s": null, "measure_s": 1}}"#), "measure_s"),
        (format!(r#"{{"name": "m", {link}, {background}}}"#), "a"),
    ] {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{json}").unwrap();
        let mut many = tempfile::NamedTempFile::new().unwrap();
        write!(many, "[{json}]").unwrap();
        for read in [
            Scenario::read(file.path()),
            Scenario::read_with(file.path(), &["foreground.load=0.3".into()]),
            Scenario::read_all(many.path()).map(|mut all| all.remove(0)),
        ] {
            let said = read.unwrap_err().to_string();
            assert!(said.contains(&format!("the key `{key}` is given twice at line 1")), "{said}");
        }
    }
}

#[test]
fn keys_of_a_scenario_in_json_are_set_as_those_of_one_in_toml() {
    let settings = ["foreground.load=0.3".into(), "background.set.alpha=0.5".into()];
    let text = format!("{MINIMAL}[foreground]\n[[background]]\nname = \"x\"\ncontrol = \"reno\"\n");
    let json = serde_json::to_string(&Scenario::parse(&text, "m.toml").unwrap()).unwrap();
    assert!(json.contains("null"), "{json}");
    let [toml, json] = [text, format!("\n {json}")].map(|text| {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        write!(file, "{text}").unwrap();
        assert!(Scenario::read(file.path()).is_ok());
        Scenario::read_with(file.path(), &settings).unwrap()
    });
    assert_eq!(json.foreground.as_ref().unwrap().load, 0.3);
    assert_eq!(json, toml);
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "{{\"name\": }}").unwrap();
    let said = Scenario::read_with(file.path(), &settings).unwrap_err().to_string();
    assert!(said.contains("this is not valid JSON: expected value"), "{said}");
}

#[test]
fn of_many_scenarios_the_wrong_one_is_called_by_its_name() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let link = r#""bottleneck": {"rate_mbit": 8, "rtt_ms": 50, "limit_packets": 50}"#;
    write!(file, r#"[{{"name": "x", {link}}}, {{"name": "y", {link}, "measure_s": "long"}}]"#)
        .unwrap();
    let said = Scenario::read_all(file.path()).unwrap_err().to_string();
    assert_eq!(said, "y, `measure_s`: this is string \"long\"; it must be a number.");
}

#[test]
fn what_has_no_lines_is_refused_with_its_key() {
    for (setting, expected) in [
        ("foreground.load=half", "`foreground.load`: this is string \"half\"; it must be a number."),
        ("background[2].flows=1.5", "`background[2].flows`: this is floating point `1.5`; it must be a whole number, 0 or more."),
        ("bottleneck.ecn=1", "`bottleneck.ecn`: this is integer `1`; it must be true or false."),
        ("ideal=1", "`ideal`: this is integer `1`; it must be a section with keys."),
        ("cross=1", "`cross`: this is integer `1`; it must be an array."),
        ("ideal.flow=1", "`ideal.flow`: unknown key `flow`. The nearest known key is `flows`."),
    ] {
        let said = set(&[setting]).unwrap_err();
        assert!(said.contains(&format!(", {expected}")), "{said}");
    }
}

#[test]
fn what_a_host_is_told_of_its_path_is_of_one_that_holds_before_a_bottleneck() {
    let oracle = "[[background]]\nname = \"x\"\ncontrol = \"reno\"\nhold = true\n\
                  oracle = { part = 0.5 }\n";
    let read = |text: &str| Scenario::parse(text, "m.toml").map_err(|e| e.to_string());
    let told = read(&format!("{MINIMAL}{oracle}")).unwrap().background[0].oracle.clone();
    let defaults = Oracle { part: 0.5, late_ms: None, brings: 2, openings: false };
    assert_eq!(told, Some(defaults));
    for (change, expected) in [
        (("true", "false"), "`background[1].oracle` is of a host that holds; add `hold = true`"),
        (("part = 0.5", "part = 1.5"), "`background[1].oracle.part` is 1.5; it must be from 0.001"),
        (("part = 0.5", "late_ms = -1"), "`background[1].oracle.late_ms` is -1"),
        (("part = 0.5", "parts = 0.5"), "unknown key `parts`. The nearest known key is `part`"),
        (("oracle =", "hold_rate_mbit = 7\noracle ="), "both say what the host knows"),
        (("oracle = { part = 0.5 }", "hold_rate_mbit = 0"), "`background[1].hold_rate_mbit` is 0"),
    ] {
        let said = read(&format!("{MINIMAL}{}", oracle.replace(change.0, change.1))).unwrap_err();
        assert!(said.contains(expected), "{said}");
    }
    let link = "name = \"m\"\n[[link]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\n\
                duplex = true\n[foreground]\nfrom = \"a\"\nto = \"b\"\nload = 0\n";
    let said = read(&format!("{link}{oracle}")).unwrap_err();
    assert!(said.contains("`background[1].oracle` is told of a [bottleneck]"), "{said}");
}

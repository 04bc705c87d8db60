// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a configuration may say, and what is told of mistakes.

use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Config, String> {
    let config: Config = toml::from_str(text).map_err(|e| e.to_string())?;
    config.check().map(|()| config).map_err(|e| e.to_string())
}

#[test]
fn every_key_of_the_documentation_is_read() {
    let doc = include_str!("../../../../docs/prefetch.md");
    let example = doc.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let config = parse(example).unwrap();
    // the example shows the defaults, but for what has none
    let told = Config {
        listen: config.listen.clone(),
        admin: config.admin,
        model: config.model.clone(),
        access_log: config.access_log.clone(),
        tls: config.tls.clone(),
        ..Config::default()
    };
    assert!(config.tls.is_some() && config.admin.is_some() && config.model.is_some());
    assert_eq!(config, told);
}

#[test]
fn mistakes_are_named() {
    for (text, word) in [
        ("listen = ['127.0.0.1:0']\norigin = 'https://x'", "origin"),
        ("listen = ['127.0.0.1:0']\norigin = 'http://x/path'", "origin"),
        ("listen = ['127.0.0.1:0']\nnever = ['/a', 'pg/secret']", "`pg/secret` is no beginning"),
        ("listen = ['127.0.0.1:0']\nnever = ['/caf\u{e9}']", "percent-encoded"),
        ("listen = ['127.0.0.1:0']\nnever = ['']", "never: `` is"),
        ("origin = 'http://x'", "listen"),
        ("listen = ['127.0.0.1:0']\nlisen = 1", "lisen"),
        ("listen = ['127.0.0.1:0']\n[learning]\nn = 9", "learning"),
        ("listen = ['127.0.0.1:0']\n[suggestions]\nthreshold = 2.0", "threshold"),
        ("listen = ['127.0.0.1:0']\n[background]\nmode = 'port'", "port"),
        ("listen = ['127.0.0.1:0']\n[background]\nport = 0", "port is 0, not 1 to 65535"),
        (
            "listen = ['127.0.0.1:0']\n[tls]\ncert = 'c'\nkey = 'k'\nhttp3 = true\n\
             [background]\ncontrol = 'x'",
            "control `x` is not of netnice",
        ),
        ("listen = ['127.0.0.1:0']\nsave_every_s = 0", "save_every_s is 0, not 1 to 604800"),
    ] {
        let said = parse(text).unwrap_err();
        assert!(said.contains(word), "{text}: {said}");
    }
}

#[test]
fn an_origin_has_a_port_that_can_be_reached_and_no_user() {
    let origin = |text: &str| Config { origin: text.into(), ..Config::default() }.origin();
    for good in ["http://x", "http://x/", "http://x:1", "http://[::1]:65535", "http://192.0.2.1"] {
        assert!(origin(good).is_ok(), "{good}");
    }
    for bad in
        ["http://x:99999", "http://x:0", "http://x:", "http://u:p@x", "http://u@x:80", "http://:80"]
    {
        assert!(origin(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_number_has_a_range_and_both_sides_of_it_are_named() {
    for (section, key) in [
        ("timeouts", "connect_s"),
        ("timeouts", "answer_s"),
        ("timeouts", "body_s"),
        ("timeouts", "idle_s"),
        ("timeouts", "shutdown_s"),
        ("bounds", "connections"),
        ("bounds", "origin_connections"),
        ("bounds", "header_bytes"),
        ("bounds", "headers"),
        ("learning", "n"),
        ("learning", "w"),
        ("learning", "memory_bytes"),
        ("learning", "clients"),
        ("learning", "expiry_s"),
        ("suggestions", "max_object_bytes"),
        ("suggestions", "max_objects"),
        ("suggestions", "max_bytes"),
        ("suggestions", "per_reply"),
    ] {
        let text = |n| format!("listen = ['127.0.0.1:0']\n[{section}]\n{key} = {n}");
        // the largest number of TOML
        let said = parse(&text(i64::MAX)).unwrap_err();
        let told = format!("{section}: {key} is {}, not ", i64::MAX);
        assert!(said.starts_with(&told) && said.contains(" to "), "{said}");
        assert!(parse(&text(-1)).is_err(), "{key}");
    }
    for (section, key, bad) in [
        ("bounds", "streams", "100001"),
        ("bounds", "streams", "0"),
        ("learning", "addresses", "0"),
        ("suggestions", "threshold", "nan"),
        ("suggestions", "threshold", "-0.1"),
    ] {
        let said = parse(&format!("listen = ['127.0.0.1:0']\n[{section}]\n{key} = {bad}"));
        assert!(said.unwrap_err().contains(&format!("{key} is ")), "{key}");
    }
}

#[test]
fn a_mistake_in_a_file_is_one_line_that_names_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    std::fs::write(&path, "save_every_s = 1\n[timeouts]\nidle_s = 'long'\n").unwrap();
    let said = Config::read(&path).unwrap_err().to_string();
    let told = format!("{}: line 3: invalid type: string \"long\", expected u64", path.display());
    assert_eq!(said, told);
}

#[test]
fn a_port_alone_means_all_addresses() {
    let config = parse("listen = [':8443', '127.0.0.1:80', '[::1]:81']").unwrap();
    let told: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["[::]:8443", "127.0.0.1:80", "[::1]:81"]);
    for bad in [":", ":65536", "::1", "8443", "localhost:80", "127.0.0.1"] {
        let said = parse(&format!("listen = ['{bad}']")).unwrap_err();
        assert!(said.contains(&format!("`{bad}` is neither IP:PORT nor :PORT")), "{said}");
    }
}

#[test]
fn what_needs_a_restart_stays_and_is_named() {
    let tls = "\n[tls]\ncert = 'c'\nkey = 'k'";
    let text = &format!("listen = ['127.0.0.1:80']\n[background]\nport = 81{tls}\nhttp3 = true");
    let old = parse(text).unwrap();
    let mut same = old.clone();
    assert!(same.keep_started(&old).is_empty());
    let more = "origin = 'http://x'\nmodel = 'm'\naccess_log = '-'\nadmin = '127.0.0.1:1'\n\
                listen = [':80']\n[bounds]\nconnections = 1\nstreams = 1\n\
                [learning]\nn = 1\nw = 1\nlesson = 1";
    let mut new = parse(&format!("{more}{tls}")).unwrap();
    let kept = [
        "listen",
        "admin",
        "access_log",
        "bounds.connections",
        "learning.n",
        "learning.w",
        "background.port",
        "tls.http3",
    ];
    assert_eq!(new.keep_started(&old), kept);
    assert!(new.keep_started(&old).is_empty());
    let easy = "origin = 'http://x'\nmodel = 'm'\nlisten = ['127.0.0.1:80']\n\
                [bounds]\nstreams = 1\n[learning]\nlesson = 1\n[background]\nport = 81";
    let easy = format!("{easy}{tls}\nhttp3 = true");
    assert_eq!(new, parse(&easy).unwrap(), "all else is taken on");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn no_origin_makes_the_check_panic(origin in ".{0,60}") {
        let _ = Config { origin, ..Config::default() }.origin();
    }
}

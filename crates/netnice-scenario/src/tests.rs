// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What scenario files are accepted, and how errors read.

use std::io::Write;

use crate::*;

mod given;

const MINIMAL: &str =
    "name = \"m\"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\nlimit_packets = 50\n";

fn fault(addition: &str) -> String {
    Scenario::parse(&format!("{MINIMAL}{addition}"), "m.toml")
        .expect_err("this scenario is not valid")
        .to_string()
}

#[test]
fn a_minimal_scenario_gets_the_documented_defaults() {
    let text = format!("{MINIMAL}[foreground]\n");
    let s = Scenario::parse(&text, "m.toml").unwrap();
    assert_eq!((s.warmup_s, s.measure_s, s.drain_s), (3.0, 30.0, 30.0));
    assert_eq!(s.bottleneck.as_ref().unwrap().queue, Queue::DropTail);
    assert_eq!((s.ideal.control.as_str(), s.ideal.flows), ("cubic", 16));
    let f = s.foreground.unwrap();
    assert_eq!((f.control.as_str(), f.sizes()), ("cubic", Sizes::Pareto));
    assert_eq!((f.shape, f.mean_bytes, f.max_bytes), (1.5, 30_000, 10_000_000));
    assert_eq!((f.load, f.probe_interval_ms), (0.5, None));
}

#[test]
fn a_background_takes_numbers_and_words_as_parameters() {
    let text = format!(
        "{MINIMAL}[[background]]\nname = \"n\"\ncontrol = \"nn_nice\"\n\
         set = {{ threshold = 0.1, floor = 48, mode = \"fast\" }}\nqueue = \"priority\"\n"
    );
    let background = &Scenario::parse(&text, "m.toml").unwrap().background[0];
    assert_eq!(background.set["threshold"], Parameter::Number(0.1));
    assert_eq!(background.set["floor"], Parameter::Integer(48));
    assert_eq!(background.set["mode"], Parameter::Text("fast".into()));
    assert_eq!(background.queue, Some(Queue::Priority));
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_known_key() {
    let said = fault("[foreground]\nmean_byte = 4\n");
    assert!(said.starts_with("m.toml, line 7: unknown key `mean_byte`."), "{said}");
    assert!(said.contains("nearest known key is `mean_bytes`"), "{said}");
}

#[test]
fn an_unknown_value_names_the_nearest_known_value() {
    let said = fault("queue = \"fq-codel\"\n");
    assert!(
        said.contains("line 6: unknown value `fq-codel`. The nearest known value is `fq_codel`"),
        "{said}"
    );
}

#[test]
fn a_missing_key_is_named() {
    for (text, missing) in [
        ("name = \"m\"\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 1\n", "`bottleneck.limit_packets`"),
        ("name = \"m\"\n[bottleneck]\nrtt_ms = 1\n", "the key `rate_mbit` is missing"),
        ("name = \"m\"\n", "needs a [bottleneck], or a [[link]]"),
    ] {
        let said = Scenario::parse(text, "m.toml").unwrap_err().to_string();
        assert!(said.starts_with("m.toml") && said.contains(missing), "{said}");
    }
}

#[test]
fn a_value_out_of_range_names_the_range() {
    for (addition, expected) in [
        ("loss = 1.5", "`bottleneck.loss` is 1.5; it must be from 0 to 0.99"),
        ("loss = nan", "`bottleneck.loss` is NaN"),
        ("[foreground]\nshape = 1", "`foreground.shape` is 1; it must be from 1.01"),
        ("[foreground]\nload = -1", "`foreground.load` is -1"),
        ("[foreground]\nmax_bytes = 100", "below `foreground.mean_bytes`"),
        ("[foreground]\ncontrol = \"\"", "`foreground.control` is \"\""),
        ("[foreground]\narrivals = \"log\"\nsizes = \"fixed\"", "replays the log's own sizes"),
        (
            "[[background]]\nname = \"a\"\ncontrol = \"reno\"\nflows = 0",
            "`background[1].flows` is 0",
        ),
        ("[[background]]\nname = \"none\"\ncontrol = \"reno\"", "every run has it already"),
        ("limit_bytes = 0", "`bottleneck.limit_bytes` is 0; it must be from 1 to"),
        ("reorder = -0.1", "`bottleneck.reorder` is -0.1; it must be from 0 to 0.99"),
        ("jitter_ms = -1", "`bottleneck.jitter_ms` is -1; it must be from 0 to 60000 milliseconds"),
        ("reorder = 0.1", "no packet is delayed that others could overtake; give `reorder_ms`"),
        ("ecn = true", "its queue never marks; choose `queue = \"red\"`"),
        ("[[bottleneck.change]]\nat_s = 1", "`bottleneck.change[1]` changes nothing"),
        (
            "[[bottleneck.change]]\nat_s = 1\nrate_mbit = -1",
            "`bottleneck.change[1].rate_mbit` is -1; it must be from 0.001 to 1000000 Mbit/s",
        ),
        ("[foreground]\nwindow_packets = 0", "`foreground.window_packets` is 0"),
        ("[foreground]\nto = \"c\"", "no route from \"a\" to \"c\": add a [[link]] or a [[route]]"),
        (
            "[[background]]\nname = \"x\"\ncontrol = \"reno\"\nstart_s = 5\nstop_s = 5",
            "`background[1].stop_s` is 5; it must be above `background[1].start_s`, which is 5",
        ),
        (
            "[[background]]\nname = \"x\"\ncontrol = \"reno\"\nquic = true\nhold = true",
            "`background[1].hold` is of TCP, not of QUIC; remove it, or `background[1].quic`.",
        ),
        (
            "[[background]]\nname = \"x\"\ncontrol = \"mpat\"\nquic = true\ngroup = \"g\"\n\
             shares = [1]",
            "`background[1].shares` is of TCP, not of QUIC",
        ),
        ("[[cross]]\nname = \"u\"\nkind = \"cbr\"", "`cross[1].rate_mbit` is missing"),
        (
            "[[cross]]\nname = \"u\"\nkind = \"tcp\"\nrate_mbit = 1",
            "`cross[1].rate_mbit` is of no use to TCP",
        ),
        (
            "[[cross]]\nname = \"u\"\nkind = \"cbr\"\nrate_mbit = 1\nbytes = 9",
            "`cross[1].bytes` and `cross[1].window_packets` are of no use to UDP",
        ),
        (
            "[[cross]]\nname = \"u\"\nkind = \"cbr\"\nrate_mbit = 1000000\npacket_bytes = 28",
            "`cross[1].packet_bytes` is 28, which at `cross[1].rate_mbit` leave every 0.2 ns",
        ),
        (
            "[[cross]]\nname = \"u\"\nkind = \"tcp\"\n[[cross]]\nname = \"u\"\nkind = \"tcp\"",
            "two [[cross]] are called \"u\"",
        ),
        ("[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"", "either [bottleneck] or [[link]]"),
    ] {
        let said = fault(&format!("{addition}\n"));
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn traffic_is_over_tcp_unless_the_scenario_says_quic() {
    let text = |quic: &str| {
        format!(
            "{MINIMAL}[foreground]\n{quic}[[background]]\nname = \"x\"\ncontrol = \"reno\"\n{quic}"
        )
    };
    for (said, expected) in [("", false), ("quic = true\n", true)] {
        let s = Scenario::parse(&text(said), "m.toml").unwrap();
        let foreground = s.foreground.as_ref().unwrap();
        assert_eq!((foreground.quic, s.background[0].quic), (expected, expected));
        // whatever the backgrounds are, that which they are measured by is TCP's
        assert!(!s.variants()[1].background.as_ref().unwrap().quic);
    }
}

#[test]
fn a_wrong_type_says_what_was_expected() {
    let said = fault("[foreground]\nmean_bytes = \"many\"\n");
    let expected = "m.toml, line 7: this is string \"many\"; it must be a whole number, 0 or more.";
    assert_eq!(said, expected);
}

#[test]
fn a_queue_without_room_and_a_negative_rate_are_refused_with_the_range() {
    for (bottleneck, expected) in [
        (
            "rate_mbit = 8\nrtt_ms = 50\nlimit_packets = 0",
            "m.toml: `bottleneck.limit_packets` is 0; it must be from 1 to 1000000 packets.",
        ),
        (
            "rate_mbit = -8\nrtt_ms = 50\nlimit_packets = 50",
            "m.toml: `bottleneck.rate_mbit` is -8; it must be from 0.001 to 1000000 Mbit/s.",
        ),
    ] {
        let text = format!("name = \"m\"\n[bottleneck]\n{bottleneck}\n");
        assert_eq!(Scenario::parse(&text, "m.toml").unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_bottleneck_is_a_link_with_the_queue_and_one_back_with_the_delay() {
    let text = format!(
        "{MINIMAL}loss = 0.1\njitter_ms = 3\n\
         [[bottleneck.change]]\nat_s = 5\nrate_mbit = 4\n\
         [[bottleneck.change]]\nat_s = 6\nrtt_ms = 80\n"
    );
    let s = Scenario::parse(&text, "m.toml").unwrap();
    let [there, back] = &s.network()[..] else { panic!("two links") };
    assert_eq!(
        (there.name.as_str(), there.rate_mbit, there.delay_ms),
        ("bottleneck", Some(8.0), 0.0)
    );
    assert_eq!((there.limit_packets, there.loss, there.jitter_ms), (Some(50), 0.1, 3.0));
    assert_eq!((back.name.as_str(), back.rate_mbit, back.delay_ms), ("back", None, 50.0));
    assert_eq!((back.loss, back.jitter_ms), (0.0, 0.0));
    let change = |at_s, rate_mbit, delay_ms| LinkChange { at_s, rate_mbit, delay_ms };
    assert_eq!(there.change, [change(5.0, Some(4.0), None)]);
    assert_eq!(back.change, [change(6.0, None, Some(80.0))]);
    assert_eq!(s.path("a", "b").unwrap(), [0]);
    assert_eq!(s.path("b", "a").unwrap(), [1]);
    // 8 Mbit/s are 1 MB/s.
    assert_eq!((s.slowest_link(), s.rate_bytes()), (Some(0), 1e6));
}

/// A ring a - b - c - a of duplex links, with a slow one from c to d.
const RING: &str = "name = \"m\"\n\
    [[link]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\nduplex = true\nrate_mbit = 10\nlimit_packets = 9\n\
    [[link]]\nname = \"bc\"\nfrom = \"b\"\nto = \"c\"\nduplex = true\n\
    [[link]]\nname = \"ac\"\nfrom = \"a\"\nto = \"c\"\nduplex = true\n\
    [[link]]\nname = \"cd\"\nfrom = \"c\"\nto = \"d\"\nduplex = true\nrate_mbit = 4\nlimit_bytes = 9000\n";

fn names(s: &Scenario, from: &str, to: &str) -> Vec<String> {
    let network = s.network();
    s.path(from, to).unwrap().into_iter().map(|index| network[index].name.clone()).collect()
}

#[test]
fn a_path_has_the_fewest_links_unless_a_route_says_otherwise() {
    let s = Scenario::parse(RING, "m.toml").unwrap();
    assert_eq!(s.network().len(), 8);
    assert_eq!(names(&s, "a", "d"), ["ac", "cd"]);
    assert_eq!(names(&s, "d", "a"), ["cd'", "ac'"]);
    let routed = format!(
        "{RING}[[route]]\nfrom = \"a\"\nto = \"d\"\nvia = [\"ab\", \"bc\", \"cd\"]\n\
         [foreground]\nfrom = \"a\"\nto = \"d\"\n"
    );
    let s = Scenario::parse(&routed, "m.toml").unwrap();
    assert_eq!(names(&s, "a", "d"), ["ab", "bc", "cd"]);
    assert_eq!(names(&s, "d", "a"), ["cd'", "ac'"]);
    // The slowest of 10 and 4 Mbit/s; links in the order ab ab' bc bc' ac ac' cd cd'.
    assert_eq!((s.slowest_link(), s.rate_bytes()), (Some(6), 5e5));
}

/// 3 servers at a, 2 clients at d of the ring.
const HOSTS: &str = "[[hosts]]\nname = \"servers\"\nat = \"a\"\ncount = 3\nrate_mbit = [1, 2]\ndelay_ms = [10, 100]\n\
    [[hosts]]\nname = \"clients\"\nat = \"d\"\ncount = 2\nrate_mbit = [1, 2]\ndelay_ms = [5, 5]\nlimit_packets = 7\n\
    [foreground]\nfrom = \"servers\"\nto = \"clients\"\n";

#[test]
fn each_host_has_a_link_of_its_own_there_and_back() {
    let s = Scenario::parse(&format!("{RING}{HOSTS}"), "m.toml").unwrap();
    // 8 links of the ring, then 2 of each of 5 hosts.
    let network = s.network();
    assert_eq!((s.links().len(), network.len()), (8, 18));
    for pair in network[8..].chunks(2) {
        let [there, back] = pair else { panic!("two links") };
        assert_eq!((&there.from, &there.to), (&back.to, &back.from));
        assert_eq!((there.rate_mbit, there.delay_ms), (back.rate_mbit, back.delay_ms));
        assert!((1.0..2.0).contains(&there.rate_mbit.unwrap()), "{there:?}");
    }
    assert!(network[8..14].iter().all(|l| (10.0..100.0).contains(&l.delay_ms) && l.from != "d"));
    assert!(network[14..].iter().all(|l| l.delay_ms == 5.0 && l.limit_packets == Some(7)));
    let drawn = network.iter().skip(8).step_by(2).map(|l| l.rate_mbit.unwrap().to_bits());
    assert_eq!(drawn.collect::<std::collections::BTreeSet<_>>().len(), 5, "five different rates");
    assert_eq!(network, s.network(), "drawn once and for all");
    // From the second server to the second client: its link back, ac, cd, the client's.
    let name = |path: &[usize]| {
        path.iter().map(|&link| network[link].name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let paths = s.paths(None, None).unwrap();
    assert_eq!(paths.len(), 6);
    assert_eq!(name(&paths[3][0]), "servers 2', ac, cd, clients 2");
    assert_eq!(name(&paths[3][1]), "clients 2', cd', ac', servers 2");
    // Other traffic is between hosts where it names them, or names no end of its own.
    assert_eq!(s.ends(None, Some("b")), ("servers", "b"));
    let paths = s.paths(None, Some("b")).unwrap();
    assert_eq!(paths.len(), 3);
    assert_eq!(name(&paths[2][0]), "servers 3', ab");
    assert_eq!(s.paths(Some("a"), Some("b")).unwrap().len(), 1);
    assert_eq!(names(&s, "servers", "b"), ["ab"], "their node's links");
    // The slowest link between the two nodes, 4 Mbit/s, though all hosts' are slower.
    assert_eq!((s.slowest_link(), s.rate_bytes()), (Some(6), 5e5));
}

#[test]
fn hosts_that_do_not_fit_into_the_network_are_refused() {
    for (key, value, expected) in [
        ("at = \"a\"", "at = \"z\"", "are at \"z\", which is no node"),
        ("name = \"clients\"", "name = \"b\"", "the name \"b\" of [[hosts]] is taken"),
        ("name = \"clients\"", "name = \"servers\"", "the name \"servers\" of [[hosts]] is taken"),
        ("count = 3", "count = 0", "`hosts[1].count` is 0; it must be from 1"),
        ("count = 3", "count = 20000", "are 40000 pairs, with those before"),
        ("[10, 100]", "[10, 9]", "`hosts[1].delay_ms[2]` is 9; it must be from 10"),
        ("to = \"clients\"", "to = \"client\"", "no route from \"a\" to \"client\""),
        (
            "to = \"clients\"\n",
            "to = \"clients\"\n[[background]]\nname = \"h\"\ncontrol = \"reno\"\nhold = true\n",
            "the background \"h\" holds, but \"servers\" are many [[hosts]]; give `from` a node",
        ),
    ] {
        let text = format!("{RING}{}", HOSTS.replacen(key, value, 1));
        let said = Scenario::parse(&text, "m.toml").unwrap_err().to_string();
        assert!(said.contains(expected), "{value}: {said}");
    }
}

#[test]
fn the_path_that_is_named_first_wins_among_equals() {
    let text = "name = \"m\"\n\
        [[link]]\nname = \"1\"\nfrom = \"a\"\nto = \"y\"\n\
        [[link]]\nname = \"2\"\nfrom = \"a\"\nto = \"x\"\n\
        [[link]]\nname = \"3\"\nfrom = \"x\"\nto = \"b\"\n\
        [[link]]\nname = \"4\"\nfrom = \"y\"\nto = \"b\"\n";
    let s = Scenario::parse(text, "m.toml").unwrap();
    assert_eq!(names(&s, "a", "b"), ["1", "4"]);
    let said = s.path("b", "a").unwrap_err().to_string();
    assert!(said.contains("no route from \"b\" to \"a\": add a [[link]] or a [[route]]"), "{said}");
    assert!(said.contains("among the nodes a, y, x, b"), "{said}");
}

#[test]
fn a_network_that_does_not_fit_together_is_refused() {
    for (addition, expected) in [
        ("[foreground]\nto = \"d\"", "`foreground.from` is missing"),
        ("[foreground]\nfrom = \"a\"\nto = \"e\"", "no route from \"a\" to \"e\""),
        ("[foreground]\nfrom = \"a\"\nto = \"c\"", "no link on the foreground's path has one"),
        (
            "[[route]]\nfrom = \"a\"\nto = \"d\"\nvia = [\"ab\", \"cd\"]",
            "the [[route]] from \"a\" to \"d\" breaks off at \"b\"",
        ),
        (
            "[[route]]\nfrom = \"a\"\nto = \"d\"\nvia = [\"ad\"]",
            "goes via \"ad\", which is no link; there are ab, ab', bc,",
        ),
        ("[[link]]\nname = \"ab'\"\nfrom = \"a\"\nto = \"b\"", "two links are called \"ab'\""),
        (
            "[[link]]\nname = \"x\"\nfrom = \"a\"\nto = \"b\"\nrate_mbit = 1",
            "`link[5].limit_packets` is missing",
        ),
        (
            "[[link]]\nname = \"x\"\nfrom = \"a\"\nto = \"b\"\nqueue = \"red\"",
            "`link[5].rate_mbit` is missing",
        ),
    ] {
        let said =
            Scenario::parse(&format!("{RING}{addition}\n"), "m.toml").unwrap_err().to_string();
        assert!(said.starts_with("m.toml: ") && said.contains(expected), "{said}");
    }
}

#[test]
fn what_is_run_is_no_background_then_strict_priority_then_each_background() {
    let text = format!(
        "{MINIMAL}[[background]]\nname = \"x\"\ncontrol = \"reno\"\nqueue = \"red\"\n\
         [ideal]\nflows = 4\n"
    );
    let variants = Scenario::parse(&text, "m.toml").unwrap().variants();
    let seen: Vec<_> = variants
        .iter()
        .map(|v| (v.name.as_str(), v.background.as_ref().map(|b| b.flows), v.queue))
        .collect();
    assert_eq!(
        seen,
        [
            ("none", None, None),
            ("strict priority", Some(4), Some(Queue::Priority)),
            ("x", Some(1), Some(Queue::Red)),
        ]
    );
}

#[test]
fn the_profile_decides_the_length_of_packets_unless_it_is_given() {
    let lengths = |addition: &str| {
        let s = Scenario::parse(&format!("{addition}{MINIMAL}"), "m.toml").unwrap();
        (s.mss_bytes(), s.header_bytes())
    };
    assert_eq!(lengths(""), (1448, 66));
    assert_eq!(lengths("profile = \"ns2\"\n"), (1024, 40));
    assert_eq!(lengths("profile = \"ns2\"\nmss_bytes = 500\nheader_bytes = 28\n"), (500, 28));
}

/// The message about a scenario whose trace holds `text`, or the trace's times.
fn traced(text: &str) -> Result<Vec<u64>, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::File::create(directory.path().join("up.trace"))
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .unwrap();
    let path = directory.path().join("m.toml");
    std::fs::write(&path, format!("{MINIMAL}trace = \"up.trace\"\n")).unwrap();
    match Scenario::read(&path) {
        Ok(s) => Ok(s.network()[0].trace.as_ref().unwrap().opportunities_ms().to_vec()),
        Err(e) => Err(e.to_string()),
    }
}

#[test]
fn a_trace_is_loaded_from_beside_the_scenario() {
    assert_eq!(traced("0\n5\n5\n12\n"), Ok(vec![0, 5, 5, 12]));
}

#[test]
fn a_bad_trace_is_refused_with_its_file_and_line() {
    for (text, line, expected) in [
        ("", 1, "the trace is empty"),
        ("0\n", 1, "the last time is the length of the trace, so it must be above 0"),
        ("1\n9999999999999999\n", 2, "9999999999999999 is more than a day, which is 86400000"),
        ("3\n2\n", 2, "2 follows 3; times in a trace must not decrease"),
        ("1\n2.5\n", 2, "\"2.5\" is not a whole number of milliseconds"),
        ("1\n-2\n", 2, "\"-2\" is not a whole number of milliseconds"),
    ] {
        let said = traced(text).unwrap_err();
        assert!(said.contains(&format!("up.trace, line {line}: {expected}")), "{said}");
    }
    let said = fault("trace = \"/dev/zero\"\n");
    assert!(said.contains("Cannot read the trace /dev/zero: it has more than 64 MiB"), "{said}");
    let said = fault("trace = \"nowhere\"\n");
    assert!(
        said.contains("Cannot read the trace nowhere") && said.contains("relative to"),
        "{said}"
    );
}

#[test]
fn a_name_names_no_path() {
    for name in ["", "../x", "a/b", ".", ".hidden", "a\nb", &"x".repeat(101)] {
        let text = MINIMAL.replace("\"m\"", &format!("{name:?}"));
        let said = Scenario::parse(&text, "m.toml").unwrap_err().to_string();
        assert!(said.starts_with("m.toml: `name` is ") && said.contains("no \"/\""), "{said}");
    }
    for name in ["k1", "k1 x16, 8 Mbit/s".replace('/', " per ").as_str(), "a..b"] {
        assert!(Scenario::parse(&MINIMAL.replace("\"m\"", &format!("{name:?}")), "m").is_ok());
    }
}

#[test]
fn a_scenario_described_has_every_default_and_what_follows_from_it() {
    let text = format!("{MINIMAL}[[background]]\nname = \"n\"\ncontrol = \"nn_nice\"\n");
    let described = Described::new(Scenario::parse(&text, "m.toml").unwrap());
    let json = serde_json::to_value(&described).unwrap();
    assert_eq!(json["end_s"], 63.0); // 3 + 30 + 30
    assert_eq!((&json["mss_bytes"], &json["header_bytes"]), (&1448.into(), &66.into()));
    let names: Vec<_> = described.variants.iter().map(|v| v.name.as_str()).collect();
    assert_eq!(names, [NONE, IDEAL, "n"]);
    assert_eq!(
        json["variants"][0],
        serde_json::json!({ "name": "none", "background": null, "queue": null })
    );
    assert_eq!(json["variants"][1]["background"]["queue"], "priority");
    assert_eq!(json["variants"][2]["background"], json["scenario"]["background"][0]);
    assert_eq!(json["dumbbell"]["duplex"], false);
    assert_eq!(json["dumbbell"]["bottleneck"], json["scenario"]["bottleneck"]);
    // as text it is the scenario again
    assert_eq!(Scenario::parse(&described.to_string(), "m").unwrap(), described.scenario);
}

#[test]
fn one_plain_duplex_link_between_a_and_b_is_a_dumbbell() {
    let link = "name = \"x\"\n[[link]]\nname = \"l\"\nfrom = \"a\"\nto = \"b\"\nrate_mbit = 8\n\
                delay_ms = 20\nlimit_packets = 50\nqueue = \"red\"\n";
    let dumbbell = |more: &str| Scenario::parse(&format!("{link}{more}"), "x").unwrap().dumbbell();
    let found = dumbbell("duplex = true\n").unwrap();
    assert!(found.duplex);
    assert_eq!((found.bottleneck.rate_mbit, found.bottleneck.rtt_ms), (8.0, 40.0)); // 2 x 20
    assert_eq!((found.bottleneck.queue, found.bottleneck.limit_packets), (Queue::Red, Some(50)));
    assert_eq!(dumbbell(""), None, "the way back has no link");
    assert_eq!(dumbbell("duplex = true\nloss = 0.1\n"), None, "packets get lost on it");
    let second = "duplex = true\n[[link]]\nname = \"m\"\nfrom = \"b\"\nto = \"c\"\n";
    assert_eq!(dumbbell(second), None, "there is another link");
}

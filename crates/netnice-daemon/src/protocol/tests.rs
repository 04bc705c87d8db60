// SPDX-License-Identifier: MIT OR GPL-2.0-only
use netnice_manager::hold::{Download, HeldPath};
use netnice_manager::snapshot::{
    DownloadAt, Job, Kind, LeftOut, Others, Queue, Unhurried, ViewedDownload, ViewedPath, Why,
};
use proptest::prelude::*;

use super::*;

fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(".{0,20}", 0..4)
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let text = || prop::option::of(".{0,12}");
    (text(), text(), words(), text(), any::<bool>()).prop_map(
        |(class, algorithm, set, dscp, no_hold)| Wanted { class, algorithm, set, dscp, no_hold },
    )
}

fn meant() -> impl Strategy<Value = Meant> {
    (words(), words(), prop::option::of(any::<u32>()), prop::option::of(".{0,5}"), any::<bool>())
        .prop_map(|(to, except, mark, only, udp_downloads)| Meant {
            to,
            except,
            mark,
            only,
            udp_downloads,
        })
}

fn requests() -> impl Strategy<Value = Request> {
    let group = (".{0,12}", prop::option::of(".{0,5}"), prop::option::of(".{0,9}"))
        .prop_map(|(name, share, scope)| InGroup { name, share, scope });
    let pids = || prop::collection::vec(any::<i32>(), 0..5);
    prop_oneof![
        Just(Request::Hello {}),
        (wanted(), meant(), prop::option::of(group))
            .prop_map(|(choice, meant, group)| Request::Run { choice, meant, group }),
        any::<u64>().prop_map(|run| Request::Report { run }),
        (pids(), wanted(), meant()).prop_map(|(pids, choice, meant)| Request::Attach {
            pids,
            choice,
            meant
        }),
        pids().prop_map(|pids| Request::Detach { pids }),
        Just(Request::Status {}),
        Just(Request::Look {}),
        // quarters: what is written in a few digits is read to the bit
        (".{0,12}", any::<u32>()).prop_map(|(group, quarters)| Request::Group {
            group,
            seconds: f64::from(quarters) / 4.0
        }),
        (".{0,12}", any::<u64>(), ".{0,5}").prop_map(|(group, run, share)| Request::Share {
            group,
            run,
            share
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_said_is_understood(request in requests()) {
        let line = line(&request);
        prop_assert_eq!(line.matches('\n').count(), 1);
        prop_assert_eq!(parse::<Request>(line.trim_end().as_bytes()), Ok(request));
    }

    #[test]
    fn whatever_comes_is_understood_or_refused_in_a_short_sentence(said in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Err(why) = parse::<Request>(&said) {
            prop_assert!(why.len() < 1000 && !why.contains('\n'));
        }
    }

    #[test]
    fn a_message_with_a_mistake_is_understood_or_refused(
        request in requests(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut said = line(&request).into_bytes();
        let at = at.index(said.len());
        said[at] = byte;
        let _ = parse::<Request>(&said);
    }
}

/// A view with these numbers in it, and each kind of reason that has some.
fn view(numbers: [u32; 4]) -> View {
    let [a, b, c, d] = numbers.map(|n| f64::from(n) / 4.0); // quarters, as above
    let why = [
        Why::YieldingToHost { bits: a, device: Some("eth0".into()) },
        Why::YieldingToHosts { part: b, path_bits: c },
        Why::Starving { seconds: a, others_bits: None },
        Why::Window { packets: d, rtt_us: numbers[0] },
        Why::RecoveringLoss { connections: numbers[1].into(), of: numbers[2].into() },
        Why::NotYetKnown,
    ];
    let job = |why: Why| Job {
        id: "run 7".into(),
        kind: Kind::Replicate,
        run: Some(u64::MAX - u64::from(numbers[3])),
        pid: None,
        name: "rsync \n\"ä".into(),
        group: Some("nightly".into()),
        control: "a control".into(),
        connections: 1,
        rate_bits: Some(a),
        history_bits: vec![a, b, c, d],
        bytes_sent: numbers[0].into(),
        bytes_unsent: 0,
        retransmits: 0,
        yielding_s: b,
        others: Some(Others { bits: c, device: "eth0".into(), on_path: true }),
        queue: Some(Queue { limit_ms: a, now_ms: d }),
        why_text: why.to_string(),
        why,
    };
    let path = HeldPath {
        rate_bits: Some(numbers[0].into()),
        queue_bytes: 1,
        queue_limit_bytes: 2,
        part: 0.5,
        rtt_us: None,
        jitter_us: 3,
        away_s: None,
        waiting: 4,
        held: 5,
        unheld: 6,
        dropped: 8,
        background_bytes: 7,
        sent_bytes: numbers[1].into(),
    };
    let download =
        Download { rate_bits: numbers[2].into(), window_packets: d, ..Download::default() };
    View {
        time: a,
        seconds: Some(b),
        jobs: why.into_iter().map(job).collect(),
        paths: vec![ViewedPath { device: "eth0".into(), path }],
        downloads: vec![ViewedDownload {
            at: DownloadAt { device: "eth0".into(), download },
            background_bits: None,
            others_bits: Some(c),
            why_text: String::new(),
            why: Unhurried::Window { packets: d, rtt_us: Some(1) },
        }],
        left_out: Some(LeftOut { runs: 1, connections: 2, jobs: 3 }),
    }
}

proptest! {
    #[test]
    fn a_view_is_told_in_one_line_and_read_as_it_was(numbers in any::<[u32; 4]>()) {
        let told = line(&Answer::View { view: Box::new(view(numbers)) });
        prop_assert_eq!(told.matches('\n').count(), 1);
        let read = parse::<Answer>(told.trim_end().as_bytes()).expect("it is understood");
        prop_assert_eq!(line(&read), told);
    }

    #[test]
    fn a_view_with_a_mistake_is_read_or_refused(
        numbers in any::<[u32; 4]>(), at in any::<prop::sample::Index>(), byte in any::<u8>()
    ) {
        let mut told = line(&Answer::View { view: Box::new(view(numbers)) }).into_bytes();
        let at = at.index(told.len());
        told[at] = byte;
        let _ = parse::<Answer>(&told);
    }
}

fn refusal(said: &str) -> String {
    parse::<Request>(said.as_bytes()).expect_err(said)
}

#[test]
fn the_shortest_request_of_a_run_leaves_all_to_netnice() {
    let run = parse::<Request>(br#"{"v":1,"do":"run"}"#);
    let all = Request::Run { choice: Wanted::default(), meant: Meant::default(), group: None };
    assert_eq!(run, Ok(all));
}

#[test]
fn another_version_is_refused_with_what_to_do() {
    let why = refusal(r#"{"v":2,"do":"hello"}"#);
    assert!(why.contains("speaks version 1 of the protocol, not 2; after an update"), "{why}");
    assert!(refusal(r#"{"do":"hello"}"#).contains(r#"{"v":1, ...}"#));
}

#[test]
fn what_is_not_in_the_protocol_is_refused_by_its_name() {
    assert!(refusal(r#"{"v":1,"do":"raise"}"#).contains("`raise`"));
    assert!(refusal(r#"{"v":1,"do":"hello","uid":0}"#).contains("`uid`"));
    assert!(refusal(r#"{"v":1,"do":"run","choice":{"clas":"idle"}}"#).contains("`clas`"));
    assert!(refusal(r#"{"v":1,"do":"report","run":-1}"#).contains("not understood"));
    assert!(refusal("[]").contains("one object of JSON"));
    let deep = "[".repeat(LONGEST);
    assert!(refusal(&deep).contains("one object of JSON"));
}

// SPDX-License-Identifier: MIT OR GPL-2.0-only
use proptest::prelude::*;

use super::*;

fn predictor(n: usize, w: usize) -> Predictor {
    Predictor::new(Settings { n, w, ..Settings::default() })
}

/// One client of its own address requests paths in a row; those with an ending are no pages.
fn browse(p: &mut Predictor, address: &str, paths: &[&str]) -> Client {
    let client = p.client(address, b"agent");
    for path in paths {
        p.visit(client, 0, path, rules::looks_like_page(path));
    }
    client
}

fn after(p: &Predictor, pages: &[&str]) -> Vec<(String, f64)> {
    let ids: Vec<Id> = pages.iter().map(|path| p.find(path).unwrap()).collect();
    p.predict(&ids).into_iter().map(|p| (p.path.to_string(), p.probability)).collect()
}

fn expected(list: &[(&str, f64)]) -> Vec<(String, f64)> {
    list.iter().map(|(path, probability)| (path.to_string(), *probability)).collect()
}

#[test]
fn an_object_counts_once_in_each_window_that_it_falls_into() {
    let mut p = predictor(2, 2);
    browse(&mut p, "a", &["/A", "/x.png", "/x.png", "/B", "/C", "/y.png", "/D"]);
    // w = 2: the window of A ends after C, so it holds x, B, C, but neither y (after C) nor D.
    // Seen once in one window: (1 + 0) / (1 + 1).
    assert_eq!(after(&p, &["/A"]), expected(&[("/B", 0.5), ("/C", 0.5), ("/x.png", 0.5)]));
    // the window of B holds C, y, D; after A, B both orders know them: (1 + 1/2) / (1 + 1)
    assert_eq!(after(&p, &["/B"]), expected(&[("/C", 0.5), ("/D", 0.5), ("/y.png", 0.5)]));
    let both = expected(&[("/C", 0.75), ("/D", 0.75), ("/y.png", 0.75)]);
    assert_eq!(after(&p, &["/A", "/B"]), both);
}

#[test]
fn orders_are_blended_by_the_escape_of_method_a() {
    let mut p = predictor(2, 1);
    for _ in 0..3 {
        browse(&mut p, "a", &["/A", "/B", "/C"]);
        p.clients.clear();
    }
    browse(&mut p, "b", &["/Z", "/B", "/D"]);
    // B: C followed 3 of 4 times, D 1 of 4: 3/5 and 1/5
    assert_eq!(after(&p, &["/B"]), expected(&[("/C", 0.6), ("/D", 0.2)]));
    // A, B: C 3 of 3: (3 + 3/5) / 4 = 0.9; D 0 of 3: (0 + 1/5) / 4 = 0.05
    assert_eq!(after(&p, &["/A", "/B"]), expected(&[("/C", 0.9), ("/D", 0.05)]));
    // Z, B: D 1 of 1: (1 + 1/5) / 2 = 0.6; C 0 of 1: (0 + 3/5) / 2 = 0.3
    assert_eq!(after(&p, &["/Z", "/B"]), expected(&[("/D", 0.6), ("/C", 0.3)]));
    // an unknown pair falls back to its last page
    assert_eq!(after(&p, &["/C", "/B"]), after(&p, &["/B"]));
    assert_eq!(after(&p, &["/C"]), []);
}

#[test]
fn a_reload_is_no_new_page_and_a_page_does_not_predict_itself() {
    let mut p = predictor(1, 3);
    browse(&mut p, "a", &["/A", "/A", "/A", "/B", "/A"]);
    // pages A, B, A: the window of the first A holds B, and A itself is not counted
    // A occurred twice, once followed by B: 1/3
    assert_eq!(after(&p, &["/A"]), expected(&[("/B", 1.0 / 3.0)]));
}

#[test]
fn clients_are_told_apart_by_address_and_agent() {
    let mut p = predictor(1, 1);
    let (one, two) = (p.client("a", b"x"), p.client("a", b"y"));
    p.visit(one, 0, "/A", true);
    p.visit(two, 0, "/B", true);
    assert_eq!(after(&p, &["/A"]), []);
    assert_ne!(one, two);
    assert_ne!(p.client("b", b"x"), one);
}

#[test]
fn a_history_ends_when_its_client_was_idle() {
    let mut p = predictor(1, 1);
    let client = p.client("a", b"");
    p.visit(client, 0, "/A", true);
    p.visit(client, 1800, "/B", true);
    assert_eq!(after(&p, &["/A"]).len(), 1, "1800 s is not more than expiry_s");
    p.visit(client, 3601, "/C", true);
    assert_eq!(after(&p, &["/B"]), [], "1801 s is");
}

#[test]
fn the_client_idle_longest_goes_first() {
    let mut p = Predictor::new(Settings { n: 1, w: 1, clients: 2, ..Settings::default() });
    browse(&mut p, "a", &["/A"]);
    browse(&mut p, "b", &["/B"]);
    browse(&mut p, "c", &["/C"]); // pushes a out
    assert_eq!(p.size().clients, 2);
    browse(&mut p, "a", &["/X"]); // pushes b out
    browse(&mut p, "c", &["/Y"]);
    assert_eq!((after(&p, &["/A"]).len(), after(&p, &["/C"]).len()), (0, 1));
}

#[test]
fn one_client_teaches_a_bounded_number_of_pages() {
    let mut p = Predictor::new(Settings { n: 1, w: 1, lesson: 3, ..Settings::default() });
    browse(&mut p, "a", &["/A", "/B", "/C", "/D", "/E", "/F"]);
    // pages 1 to 4 open windows or close those of pages 1 to 3; after that nothing is learned
    assert_eq!(after(&p, &["/C"]), expected(&[("/D", 0.5)]));
    assert_eq!(after(&p, &["/D"]), []);
    assert_eq!(after(&p, &["/E"]), []);
}

#[test]
fn a_step_is_shared_once_as_many_addresses_made_it_as_are_asked_for() {
    let mut p = predictor(1, 1);
    p.set_bounds(Settings { addresses: 3, ..p.settings() });
    let shared = |p: &Predictor| p.predict(&[p.find("/A").unwrap()])[0].shared;
    browse(&mut p, "a", &["/A", "/B"]);
    p.clients.clear();
    browse(&mut p, "a", &["/A", "/B"]);
    assert!(!shared(&p), "the same address again");
    let other_agent = p.client("a", b"another agent");
    p.visit(other_agent, 0, "/A", true);
    p.visit(other_agent, 0, "/B", true);
    assert!(!shared(&p), "another agent is still the same address");
    for privacy in ["2001:db8::1", "2001:db8::2:3:4", "2001:db8:0:0:ffff::"] {
        browse(&mut p, privacy, &["/A", "/B"]);
        assert!(!shared(&p), "one host may have all addresses of a /64");
    }
    browse(&mut p, "2001:db8:0:1::1", &["/A", "/B"]);
    assert!(shared(&p));
}

#[test]
fn ipv4_within_ipv6_is_told_apart_by_all_of_it() {
    let p = predictor(1, 1);
    let client = |address| p.client(address, b"");
    assert_ne!(client("::ffff:192.0.2.1"), client("::ffff:192.0.2.2"));
    assert_eq!(client("2001:db8::1"), client("2001:db8::2"));
    assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
}

#[test]
fn who_is_followed_apart_gets_predictions_and_leaves_no_trace_in_the_model() {
    let mut p = predictor(1, 1);
    browse(&mut p, "a", &["/A", "/B"]);
    let before = p.model().clone();
    let person = p.client("b", b"").apart();
    for path in ["/secret", "/A", "/secret", "/B", "/A"] {
        p.visit(person, 0, path, true);
    }
    assert_eq!(p.model(), &before);
    let next: Vec<_> = p.predict_for(person, 0.0).iter().map(|p| p.path.to_string()).collect();
    assert_eq!(next, Vec::<String>::new(), "it has /B already");
    let other = p.client("c", b"").apart();
    p.visit(other, 0, "/A", true);
    assert_eq!(&*p.predict_for(other, 0.0)[0].path, "/B");
    // nor does what it did before count for what the same address does without telling who it is
    let same = p.client("b", b"");
    p.visit(same, 0, "/C", true);
    assert_eq!(after(&p, &["/A"]), expected(&[("/B", 0.5)]));
}

#[test]
fn the_busiest_pages_show_only_what_enough_addresses_did() {
    let mut p = predictor(1, 1);
    p.set_bounds(Settings { addresses: 2, ..p.settings() });
    browse(&mut p, "a", &["/A", "/secret"]);
    assert!(p.busiest(9, |_| true).is_empty());
    browse(&mut p, "b", &["/A", "/B"]);
    browse(&mut p, "a", &["/C", "/A", "/B"]);
    let shown: Vec<_> = p
        .busiest(9, |_| true)
        .iter()
        .map(|(page, _, next)| format!("{page} {}", next.path))
        .collect();
    assert_eq!(shown, ["/A /B"]);
}

#[test]
fn what_the_client_has_is_not_predicted_for_it() {
    let mut p = predictor(1, 2);
    browse(&mut p, "a", &["/A", "/s.css", "/B", "/t.css"]);
    let client = browse(&mut p, "b", &["/s.css", "/A"]);
    let paths: Vec<_> = p.predict_for(client, 0.0).iter().map(|p| p.path.to_string()).collect();
    assert_eq!(paths, ["/B", "/t.css"]);
    p.sent_ahead(client, "/B", 7);
    let paths: Vec<_> = p.predict_for(client, 0.0).iter().map(|p| p.path.to_string()).collect();
    assert_eq!(paths, ["/t.css"]);
    assert_eq!(p.used_ahead(client, "/B"), Some(7));
    assert_eq!(p.used_ahead(client, "/B"), None, "a use counts once");
    // s.css was requested longer ago than the window of 2 pages, but the client still has it
    for path in ["/X", "/Y", "/Z", "/A"] {
        p.visit(client, 0, path, true);
    }
    let paths: Vec<_> = p.predict_for(client, 0.0).iter().map(|p| p.path.to_string()).collect();
    assert!(!paths.contains(&"/s.css".into()), "{paths:?}");
}

#[test]
fn suggestions_are_handed_out_in_parts_and_replaced_by_a_new_list() {
    let mut p = predictor(1, 1);
    let client = browse(&mut p, "a", &["/A", "/B", "/C", "/D"]);
    let ids: Vec<Id> = ["/A", "/B", "/C"].iter().map(|path| p.find(path).unwrap()).collect();
    p.set_waiting(client, ids.clone());
    let take =
        |p: &mut Predictor| p.take_waiting(client, 2).iter().map(|s| s.to_string()).collect();
    let (first, second): (Vec<String>, Vec<String>) = (take(&mut p), take(&mut p));
    assert_eq!((first, second), (vec!["/A".into(), "/B".into()], vec!["/C".into()]));
    p.set_waiting(client, ids);
    p.set_waiting(client, []);
    let none: Vec<String> = take(&mut p);
    assert!(none.is_empty());
}

#[test]
fn memory_stays_within_its_bound_and_the_frequent_stays_known() {
    let memory_bytes = 1 << 17;
    let mut p = Predictor::new(Settings { memory_bytes, ..Settings::default() });
    let mut most = 0;
    for round in 0..2000 {
        let once = format!("/once/{round}");
        browse(&mut p, &round.to_string(), &["/A", "/B", &once, "/x.png"]);
        most = most.max(p.size().bytes);
    }
    assert!(p.size().halved > 0);
    // at most one request's additions above the bound: few contexts, edges and one object
    assert!(most < memory_bytes + 4096, "{most}");
    assert_eq!(p.bytes, p.measure(), "the running estimate is the sum");
    let frequent = after(&p, &["/A"]);
    assert!(frequent[..2].iter().any(|(path, p)| path == "/B" && *p > 0.9), "{frequent:?}");
    assert!(p.find("/once/0").is_none() && p.size().objects < 2000);
}

#[test]
fn logged_requests_are_learned_if_somebody_saw_an_answer() {
    let mut p = predictor(1, 1);
    let entry = |path, method, status| Entry {
        time_s: 0,
        client: "a",
        agent: "",
        referer: "",
        method,
        path,
        status,
        bytes: 10,
        prefetch: false,
        personal: false,
    };
    assert!(p.learn(&entry("/A", "GET", 200)));
    for (path, method, status) in [
        ("/A", "POST", 200),
        ("/A", "GET", 404),
        ("//evil.example/", "GET", 200),
        ("x", "GET", 200),
    ] {
        assert!(!p.learn(&entry(path, method, status)), "{method} {path} {status}");
    }
    assert!(p.learn(&entry("/B", "GET", 304)));
    assert_eq!(p.predict(&[p.find("/A").unwrap()])[0].served, Served::No);
    p.served("/B", Served::Reusable(5));
    let found = &p.predict(&[p.find("/A").unwrap()])[0];
    assert_eq!((found.served, found.bytes), (Served::Reusable(5), 5));
}

#[test]
fn what_named_the_page_as_referer_is_a_part_of_that_page_only() {
    let mut p = predictor(2, 5);
    for path in ["/A", "/style.css", "/next.png", "/B", "/style.css"] {
        let referer = if path.ends_with("css") { "/A" } else { "" };
        let entry = Entry {
            time_s: 0,
            client: "a",
            agent: "",
            referer,
            method: "GET",
            path,
            status: 200,
            bytes: 1,
            prefetch: false,
            personal: false,
        };
        p.learn(&entry);
    }
    let parts = |pages: &[&str]| -> Vec<String> {
        let ids: Vec<Id> = pages.iter().map(|page| p.find(page).unwrap()).collect();
        let found = p.predict(&ids);
        found.iter().filter(|f| f.part).map(|f| f.path.to_string()).collect()
    };
    assert_eq!(parts(&["/A"]), ["/style.css"]);
    assert!(parts(&["/B"]).is_empty());
}

/// What the definition says, computed from whole histories: the oracle of the property below.
fn counted(history: &[(u8, bool)], context: &[u8], object: u8, w: usize) -> (u32, u32) {
    let mut pages: Vec<(usize, u8)> = Vec::new(); // place in the history, page
    for (at, (name, page)) in history.iter().enumerate() {
        if *page && pages.last().map(|p| p.1) != Some(*name) {
            pages.push((at, *name));
        }
    }
    let (mut occurred, mut followed) = (0, 0);
    for t in context.len() - 1..pages.len() {
        let tail: Vec<u8> = pages[t + 1 - context.len()..=t].iter().map(|p| p.1).collect();
        if tail != context {
            continue;
        }
        occurred += 1;
        let end = pages.get(t + w).map_or(history.len() - 1, |p| p.0);
        let within = history[pages[t].0 + 1..=end].iter();
        followed += u32::from(within.into_iter().any(|(name, _)| *name == object));
    }
    (followed, occurred)
}

proptest! {
    #[test]
    fn counts_are_those_of_the_definition(
        names in proptest::collection::vec(0u8..6, 1..40), w in 1usize..5
    ) {
        // names 0 to 3 are pages, 4 and 5 are not
        let history: Vec<(u8, bool)> = names.iter().map(|n| (*n, *n < 4)).collect();
        let mut p = predictor(2, w);
        let paths: Vec<String> = history
            .iter()
            .map(|(name, page)| if *page { format!("/{name}") } else { format!("/{name}.png") })
            .collect();
        browse(&mut p, "a", &paths.iter().map(String::as_str).collect::<Vec<_>>());
        for context in (0u8..4).flat_map(|a| [vec![a], vec![a, 0], vec![a, 1], vec![a, 2]]) {
            let ids: Option<Vec<Id>> = context.iter().map(|c| p.find(&format!("/{c}"))).collect();
            let Some(ids) = ids else { continue };
            for prediction in p.predict(&ids) {
                let name = prediction.path.as_bytes()[1] - b'0';
                if context.contains(&name) { continue }
                for (m, seen) in p.counts(&ids, prediction.id).iter().enumerate() {
                    let tail = &context[context.len() - 1 - m..];
                    prop_assert_eq!(*seen, counted(&history, tail, name, w), "{:?} {}", tail, name);
                }
                prop_assert!(prediction.probability > 0.0 && prediction.probability < 1.0);
            }
        }
    }
}

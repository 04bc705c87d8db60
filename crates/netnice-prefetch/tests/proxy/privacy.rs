// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What one person does is told to nobody else.

use super::*;

/// Asks as somebody behind a trusted proxy.
async fn ask(at: SocketAddr, client: &str, path: &str, more: &str) -> String {
    get(at, path, "x", &format!("x-forwarded-for: {client}\r\n{more}")).await
}

/// A proxy that believes the tests who they are, with so many addresses asked for.
async fn believing(origin: SocketAddr, change: impl Fn(&mut Config)) -> common::Running {
    let mut config = config(origin);
    config.trust = vec!["127.0.0.1".parse().unwrap()];
    config.learning.addresses = Config::default().learning.addresses;
    change(&mut config);
    start(config).await
}

/// Addresses of different bits, as far as it matters here.
const CROWD: [&str; 8] = [
    "192.0.2.1",
    "192.0.2.2",
    "192.0.2.3",
    "192.0.2.4",
    "192.0.2.5",
    "192.0.2.6",
    "192.0.2.7",
    "192.0.2.8",
];

#[tokio::test]
async fn what_a_person_opens_from_a_phone_at_home_and_at_work_is_not_suggested_to_strangers() {
    let (origin, _) = origin().await;
    let proxy = believing(origin, |_| {}).await;
    for address in ["192.0.2.1", "198.51.100.1", "203.0.113.1"] {
        for path in ["/a", "/secret"] {
            ask(proxy.at, address, path, "").await;
        }
    }
    // one host's privacy addresses of IPv6 are one address
    for n in 0..20 {
        for path in ["/a", "/secret"] {
            ask(proxy.at, &format!("2001:db8::{n:x}:1"), path, "").await;
        }
    }
    let answer = ask(proxy.at, "192.0.2.99", "/a", "").await;
    assert_eq!(link(&answer), None);
}

#[tokio::test]
async fn who_tells_who_he_is_teaches_nothing_unless_the_answer_is_public_or_cookies_mean_nothing() {
    for (line, cookies_identify, page, suggested) in [
        ("cookie: a=b\r\n", true, "/b", false),
        ("authorization: Basic eA==\r\n", true, "/b", false),
        ("authorization: Basic eA==\r\n", false, "/b", false),
        ("cookie: a=b\r\n", true, "/public", true),
        ("cookie: a=b\r\n", false, "/b", true),
        ("", true, "/b", true),
    ] {
        let (origin, _) = origin().await;
        let proxy = believing(origin, |c| c.cookies_identify = cookies_identify).await;
        for address in CROWD {
            // the way there was without a cookie
            ask(proxy.at, address, "/a", "").await;
            ask(proxy.at, address, page, line).await;
        }
        let expected = suggested.then(|| format!("<{page}>; rel=prefetch"));
        let answer = ask(proxy.at, "192.0.2.99", "/a", "").await;
        let found = link(&answer).map(str::to_owned);
        match line.contains("cookie") && page == "/public" {
            // the two are steps of one history, as both taught
            true => assert_eq!(found, expected, "{line} {page}"),
            false => assert_eq!(found, expected, "{line} {cookies_identify}"),
        }
        let untold = proxy.server.proxy.metrics.personal.get();
        assert_eq!(untold, if suggested { 0 } else { CROWD.len() as u64 }, "{line}");
        assert_eq!(proxy.server.proxy.predictor().find(page).is_some(), suggested);
    }
}

#[tokio::test]
async fn who_teaches_nothing_is_still_served_suggestions_of_what_others_taught() {
    let (origin, _) = origin().await;
    let proxy = believing(origin, |_| {}).await;
    for address in CROWD {
        for path in ["/a", "/b"] {
            ask(proxy.at, address, path, "").await;
        }
    }
    let answer = ask(proxy.at, "192.0.2.99", "/a", "cookie: me=1\r\n").await;
    assert_eq!(link(&answer), Some("</b>; rel=prefetch"));
}

#[tokio::test]
async fn what_the_operator_names_is_never_learned() {
    let (origin, _) = origin().await;
    let proxy = believing(origin, |c| c.never = vec!["/share/".into()]).await;
    for address in CROWD {
        for path in ["/a", "/share/x"] {
            ask(proxy.at, address, path, "").await;
        }
    }
    assert_eq!(link(&ask(proxy.at, "192.0.2.99", "/a", "").await), None);
    assert_eq!(proxy.server.proxy.predictor().find("/share/x"), None);
}

#[tokio::test]
async fn what_the_operator_names_later_is_told_to_nobody_any_more() {
    let (origin, _) = origin().await;
    let proxy = believing(origin, |c| c.suggestions.per_reply = 1).await;
    for address in CROWD {
        for path in ["/a", "/b", "/share/x"] {
            ask(proxy.at, address, path, "").await;
        }
    }
    let ahead = "sec-purpose: prefetch\r\n";
    let waits = ask(proxy.at, "192.0.2.98", "/a", "").await;
    assert_eq!(link(&waits), Some("</b>; rel=prefetch"));
    assert!(get(proxy.at, "/_netnice/", "x", "").await.contains("/share/x"));

    let mut named = proxy.server.proxy.setup().config.clone();
    named.never = vec!["/share/".into()];
    proxy.server.reload(named).unwrap();
    let next = ask(proxy.at, "192.0.2.98", "/b", ahead).await;
    assert_eq!(link(&next), None, "it was chosen before");
    let page = ask(proxy.at, "192.0.2.99", "/a", "").await;
    assert_eq!(link(&page), Some("</b>; rel=prefetch"));
    assert_eq!(link(&ask(proxy.at, "192.0.2.99", "/b", ahead).await), None);
    assert!(!get(proxy.at, "/_netnice/", "x", "").await.contains("/share/"));
}

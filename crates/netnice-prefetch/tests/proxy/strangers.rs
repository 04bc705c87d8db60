// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What strangers write into logs and heads.

use super::*;

#[tokio::test]
async fn a_poisoned_log_or_client_makes_others_fetch_nothing_foreign_huge_or_never_served() {
    let (origin, asked) = origin().await;
    let mut config = config(origin);
    config.learning.addresses = 2;
    config.suggestions.max_objects = 2;
    config.suggestions.per_reply = 100;
    let wishes = [
        "/a",
        "//evil.example/x",
        "http://evil.example/y",
        "/never-served",
        "/e>;rel=preload,<//evil.example/z",
        "/large", // 3 MB
        "/b",
        "/c",
        "/d",
    ];
    let mut poison = String::new();
    for client in 1..=200 {
        for path in wishes {
            let line = r#" - - [10/Oct/2000:13:55:36 +0000] "GET PATH HTTP/1.1" 200 5 "-" "x""#;
            poison += &format!("192.0.2.{client}{}\n", line.replace("PATH", path));
        }
    }
    let mut predictor = Predictor::new(config.learning);
    let count = log::read_from(poison.as_bytes(), |entry| {
        predictor.learn(&entry);
    })
    .unwrap();
    assert_eq!(count.bad, 0);
    let proxy = start_with(config, predictor).await;
    assert_eq!(link(&get(proxy.at, "/a", "first", "").await), None, "a log alone is not believed");
    // the same client asks for all of it, with hosts of its own, and for what only it knows
    let served = wishes.iter().skip(1).filter(|path| **path != "/never-served");
    for path in served.chain(&["/its-secret"]) {
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: evil.example\r\nuser-agent: first\r\n\
             x-forwarded-host: evil.example\r\nreferer: http://evil.example/a\r\n\
             connection: close\r\n\r\n"
        );
        exchange(proxy.at, head.as_bytes()).await;
    }
    let answer = get(proxy.at, "/a", "second", "").await;
    let suggested =
        netnice_prefetch::suggest::paths(link(&answer).expect("something is suggested"));
    assert_eq!(suggested.len(), 2, "{answer}");
    assert!(suggested.iter().all(|path| ["/b", "/c", "/d"].contains(path)), "{answer}");
    assert!(!answer.contains("evil") && !answer.contains("secret"), "{answer}");
    // a prefetch goes to the origin as any request does, whatever host it names
    let before = asked.lock().unwrap().len();
    get(proxy.at, "http://evil.example/b", "second", "sec-purpose: prefetch\r\n").await;
    assert_eq!(asked.lock().unwrap().len(), before + 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_heads_say_each_is_one_request_or_refused_and_the_next_client_is_served(
        heads in proptest::collection::vec(
            proptest::collection::vec(
                prop_oneof![
                    "(host|connection|te|content-length|transfer-encoding|expect|upgrade|referer|priority\
                      |sec-purpose|cache-control|save-data|x-forwarded-for|range): ?[ -~]{0,40}\r\n"
                        .prop_map(String::into_bytes),
                    "[!-~]{1,20}:[ -~]{0,40}\r\n".prop_map(String::into_bytes),
                    proptest::collection::vec(any::<u8>(), 0..60),
                ],
                0..6,
            ),
            1..4,
        ),
        path in "[ -~]{0,30}",
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (origin, asked) = origin().await;
            let mut config = config(origin);
            config.timeouts.idle_s = 1;
            config.timeouts.body_s = 1;
            let proxy = start(config).await;
            for lines in heads {
                asked.lock().unwrap().clear();
                let mut request = format!("GET /{path} HTTP/1.1\r\nhost: site\r\n").into_bytes();
                request.extend(lines.concat());
                request.extend(b"connection: close\r\n\r\n");
                let mut socket = TcpStream::connect(proxy.at).await.unwrap();
                let _ = socket.write_all(&request).await;
                let _ = socket.shutdown().await; // a body that was announced does not come
                let mut got = Vec::new();
                let ended = timeout(PATIENCE, socket.read_to_end(&mut got)).await;
                assert!(ended.is_ok(), "{}", String::from_utf8_lossy(&request));
                let blank = request.windows(4).filter(|w| w == b"\r\n\r\n").count()
                    + request.windows(2).filter(|w| w == b"\n\n").count();
                assert!(asked.lock().unwrap().len() <= blank.max(1));
            }
            assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
        });
    }

    #[test]
    fn whatever_a_log_says_only_paths_of_this_site_that_were_served_are_suggested(
        rows in proptest::collection::vec(("[ -~]{0,40}", 0usize..3, any::<u32>()), 1..40),
        served in "/[a-z]{0,8}",
    ) {
        let mut learning = Config::default().learning;
        learning.addresses = 1;
        let mut predictor = Predictor::new(learning);
        let mut text = String::new();
        for (path, client, bytes) in &rows {
            for path in [path, &served] {
                text += &format!(
                    "192.0.2.{client} - - [10/Oct/2000:13:55:36 +0000] \"GET {path} HTTP/1.1\" 200 {bytes}\n"
                );
            }
        }
        log::read_from(text.as_bytes(), |entry| {
            predictor.learn(&entry);
        }).unwrap();
        predictor.served(&served, netnice_prefetch::predict::Served::Reusable(1));
        let limits = Config::default().suggestions;
        for (path, _, _) in &rows {
            let pages: Vec<_> = predictor.find(path).into_iter().collect();
            let predictions = predictor.predict(&pages);
            let verdicts = netnice_prefetch::suggest::judge(&predictions, &limits, &[]);
            for (prediction, verdict) in predictions.iter().zip(verdicts) {
                if verdict == netnice_prefetch::suggest::Verdict::Suggested {
                    prop_assert_eq!(&*prediction.path, served.as_str());
                }
            }
        }
    }
}

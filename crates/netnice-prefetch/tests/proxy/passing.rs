// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a request and its answer become on their way, held against RFC 9110 and 9112.

use tokio::io::AsyncBufReadExt;
use tokio::io::BufReader;

use netnice_prefetch::server::Listener;

use super::*;

/// Sends lines of a head that asks for `/a`, and returns what the origin saw and what came back.
async fn pass(config: Config, asked: &Arc<Mutex<Vec<String>>>, lines: &str) -> (String, String) {
    let proxy = start(config).await;
    let answer = get(proxy.at, "/a", "x", lines).await;
    (asked.lock().unwrap().pop().unwrap_or_default(), answer)
}

#[tokio::test]
async fn the_clients_address_is_appended_to_all_lines_that_came_before() {
    let (origin, asked) = origin().await;
    let lines = "x-forwarded-for: 198.51.100.1\r\nx-forwarded-for: 192.0.2.1, 192.0.2.2\r\n";
    let (seen, _) = pass(config(origin), &asked, lines).await;
    let all = "\"x-forwarded-for\": \"198.51.100.1, 192.0.2.1, 192.0.2.2, 127.0.0.1\"";
    assert!(seen.contains(all), "{seen}");
}

#[tokio::test]
async fn the_scheme_is_believed_of_a_trusted_peer_alone() {
    let (origin, asked) = origin().await;
    let mut trusting = config(origin);
    trusting.trust = vec!["127.0.0.0/8".parse().unwrap()];
    for (config, lines, scheme) in [
        (&config(origin), "x-forwarded-proto: https\r\n", "http"),
        (&trusting, "x-forwarded-proto: https\r\n", "https"),
        (&trusting, "", "http"),
        (&trusting, "x-forwarded-proto: gopher\r\n", "http"),
        (&trusting, "x-forwarded-proto: https\r\nx-forwarded-proto: http\r\n", "http"),
    ] {
        let (seen, _) = pass(config.clone(), &asked, lines).await;
        let told = format!("\"x-forwarded-proto\": \"{scheme}\"");
        assert!(seen.contains(&told) && seen.matches("-proto").count() == 1, "{lines}: {seen}");
    }
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_log_names_its_client_and_not_the_clients_lie() {
    let (origin, _) = origin().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let lie = "x-forwarded-for: 198.51.100.1\r\nx-forwarded-for: 192.0.2.1\r\n";
    for (trust, name) in [(&[][..], "127.0.0.1 "), (&["127.0.0.1"], "192.0.2.1 ")] {
        let mut config = config(origin);
        config.access_log = Some(path.clone());
        config.trust = trust.iter().map(|text| text.parse().unwrap()).collect();
        let proxy = start(config).await;
        get(proxy.at, "/a", "x", lie).await;
        let logged = logged(&proxy, &path, 1).await;
        assert!(logged.last().unwrap().starts_with(name), "{logged:?}");
        fs::remove_file(&path).unwrap();
    }
}

/// The lines of a log once there are so many.
async fn logged(proxy: &common::Running, path: &std::path::Path, count: usize) -> Vec<String> {
    let wait = async {
        loop {
            proxy.server.proxy.flush();
            let text = fs::read_to_string(path).unwrap_or_default();
            if text.lines().count() >= count {
                return text.lines().map(str::to_owned).collect();
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, wait).await.expect("the log's lines")
}

#[tokio::test]
async fn an_odd_target_reaches_the_origin_as_a_browser_would_have_sent_it() {
    let (origin, asked) = origin().await;
    let proxy = start(config(origin)).await;
    for (target, sent) in [
        (&b"/a?q=\"x\"&<b>"[..], "/a?q=%22x%22&%3Cb%3E"),
        (b"/caf\xe9", "/caf%E9"),
        (b"/\xc3\xa4", "/%C3%A4"),
        (b"/a|b{c}", "/a|b{c}"),
    ] {
        let lines = b" HTTP/1.1\r\nhost: site\r\nconnection: close\r\n\r\n";
        let answer = exchange(proxy.at, &[b"GET ", target, lines].concat()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let seen = asked.lock().unwrap().pop().unwrap();
        assert!(seen.contains(&format!("uri: {sent},")), "{sent}: {seen}");
    }
}

#[tokio::test]
async fn every_refused_request_has_a_line_in_the_log_and_a_sentence() {
    let (origin, asked) = origin().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let mut config = config(origin);
    config.access_log = Some(path.clone());
    let proxy = start(config).await;
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(40_000));
    let many = format!("GET /m HTTP/1.1\r\nhost: x\r\n{}\r\n", "x: 1\r\n".repeat(101));
    let refused = [
        ("GET /no-host HTTP/1.1\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nhost: x y\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nhost: x/../evil\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nhost:\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nhost: a@b\r\n\r\n", "400"),
        ("POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", "400"),
        ("POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n", "501"),
        ("GET /a HTTP/3.0\r\nhost: x\r\n\r\n", "505"),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n", "400"),
        ("GET /two words HTTP/1.1\r\nhost: x\r\n\r\n", "400"),
        ("GET /a HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n", "400"),
        (&many, "431"),
        (&long, "414"),
    ];
    for (number, (request, status)) in refused.iter().enumerate() {
        let answer = exchange(proxy.at, request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:.80}: {answer}");
        let (head, sentence) = answer.split_once("\r\n\r\n").unwrap();
        assert!(sentence.ends_with(".\n") && sentence.lines().count() == 1, "{answer}");
        assert!(head.contains("connection: close"), "{answer}");
        let line = logged(&proxy, &path, number + 1).await.pop().unwrap();
        let first = log::escape(request.split("\r\n").next().unwrap().as_bytes());
        let first = &first[..first.len().min(40)];
        let told = format!(" {status} {} ", sentence.len());
        assert!(line.contains(first) && line.contains(&told), "{request:.80}: {line}");
    }
    assert!(asked.lock().unwrap().is_empty());
    // what came before on the connection is answered first
    let two = "GET /good HTTP/1.1\r\nhost: x\r\n\r\nHEAD /bad HTTP/1.1\r\n\r\nGET /never HTTP/1.1\r\nhost: x\r\n\r\n";
    let answer = exchange(proxy.at, two.as_bytes()).await;
    let statuses: Vec<_> =
        answer.match_indices("HTTP/1.1 ").map(|(at, _)| &answer[at + 9..at + 12]).collect();
    assert_eq!(statuses, ["200", "400"], "{answer}");
    assert!(answer.ends_with("\r\n\r\n"), "an answer to HEAD has no body: {answer}");
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_client_that_has_said_all_and_still_listens_gets_its_answer() {
    let (origin, gate, _) = held_origin().await;
    let proxy = start(config(origin)).await;
    let mut socket = TcpStream::connect(proxy.at).await.unwrap();
    socket.write_all(b"GET /a HTTP/1.1\r\nhost: site\r\n\r\n").await.unwrap();
    socket.shutdown().await.unwrap();
    sleep(Duration::from_millis(100)).await; // for the end to arrive first
    gate.add_permits(1);
    let mut got = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut got)).await.unwrap().unwrap();
    assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("ok"), "{got}");
}

#[tokio::test]
async fn a_body_that_is_not_what_its_head_says_is_the_clients_fault() {
    let (origin, _) = origin().await;
    let mut config = config(origin);
    config.timeouts.body_s = 1;
    let proxy = start(config).await;
    let head = "POST /p HTTP/1.1\r\nhost: site\r\ntransfer-encoding: chunked\r\n\r\n";
    let bad = exchange(proxy.at, format!("{head}zz\r\nabc\r\n").as_bytes()).await;
    assert!(bad.starts_with("HTTP/1.1 400"), "{bad}");
    let slow = exchange(proxy.at, format!("{head}5\r\nabc").as_bytes()).await;
    assert!(slow.starts_with("HTTP/1.1 408"), "{slow}");
}

#[tokio::test]
async fn answers_may_have_256_header_lines_of_64_kb_and_switch_to_no_protocol() {
    let line = |n: usize| format!("x-{n}: {}\r\n", "a".repeat(230));
    let lines: String = (0..254).map(line).collect();
    let answer = format!("HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\nok");
    assert!(answer.len() > 60_000);
    let large = start(config(rude_origin(answer.leak().as_bytes()).await)).await;
    let got = get(large.at, "/", "x", "").await;
    assert!(got.starts_with("HTTP/1.1 200") && got.contains("x-253: a"), "{got:.200}");
    let switching =
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n";
    let proxy = start(config(rude_origin(switching).await)).await;
    for lines in ["", "upgrade: x\r\nconnection: upgrade\r\n"] {
        let got = get(proxy.at, "/", "x", lines).await;
        assert!(got.starts_with("HTTP/1.1 502") && got.ends_with(".\n"), "{got}");
    }
}

#[tokio::test]
async fn an_origin_that_is_the_proxy_itself_is_said_to_be_so() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    let mut itself = config(at);
    itself.listen = vec![at];
    let predictor = Predictor::new(itself.learning);
    let (setup, tls) = netnice_prefetch::server::prepare(itself).unwrap();
    let proxy = netnice_prefetch::proxy::Proxy::new(setup, predictor).unwrap();
    let server = netnice_prefetch::server::Server::new(proxy, tls);
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let listener = TcpListener::bind(at).await.unwrap();
    let listener = Listener { tcp: listener, udp: None, second_port: false };
    tokio::spawn(server.run(vec![listener], stopped));
    let answer = get(at, "/a", "x", "").await;
    assert!(answer.starts_with("HTTP/1.1 508") && answer.contains("`origin`"), "{answer}");
}

#[tokio::test]
async fn the_origin_is_told_who_passes_a_request_on() {
    let (origin, asked) = origin().await;
    let (seen, _) = pass(config(origin), &asked, "via: 1.0 a, 1.1 b\r\nvia: 1.1 c\r\n").await;
    assert!(seen.contains("\"via\": \"1.0 a, 1.1 b, 1.1 c, 1.1 netnice-"), "{seen}");
}

/// An origin that answers the first request of its first connection, and ends that connection, or all,
/// when the second comes; it tells the request lines that it heard.
async fn leaving_origin(always: bool) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let all = heard.clone();
    tokio::spawn(async move {
        for connection in 0.. {
            let (socket, _) = listener.accept().await.unwrap();
            let heard = all.clone();
            tokio::spawn(async move {
                let mut lines = BufReader::new(socket).lines();
                for request in 0.. {
                    let Ok(Some(first)) = lines.next_line().await else { return };
                    heard.lock().unwrap().push(first);
                    while lines.next_line().await.is_ok_and(|l| l.is_some_and(|l| !l.is_empty())) {}
                    if (connection == 0 && request > 0) || (always && connection > 0) {
                        return;
                    }
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    lines.get_mut().write_all(answer).await.unwrap();
                }
            });
        }
    });
    (at, heard)
}

#[tokio::test]
async fn a_request_that_meets_a_closing_connection_is_sent_once_more_if_that_does_no_harm() {
    for (method, lines, always, status) in [
        ("GET", "", false, "200"),
        ("HEAD", "", false, "200"),
        ("DELETE", "", false, "200"),
        ("GET", "", true, "502"),
        ("POST", "content-length: 0\r\n", false, "502"),
        ("PATCH", "", false, "502"),
    ] {
        let (origin, heard) = leaving_origin(always).await;
        let proxy = start(config(origin)).await;
        assert!(get(proxy.at, "/first", "x", "").await.ends_with("ok"));
        let head =
            format!("{method} /second HTTP/1.1\r\nhost: site\r\nconnection: close\r\n{lines}\r\n");
        let answer = exchange(proxy.at, head.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method}: {answer}");
        let sent = heard.lock().unwrap().iter().filter(|line| line.contains("/second")).count();
        let again = !matches!(method, "POST" | "PATCH");
        assert_eq!(sent, 1 + usize::from(again), "{method}");
    }
    // a body cannot be sent again: it is gone
    let (origin, heard) = leaving_origin(false).await;
    let proxy = start(config(origin)).await;
    get(proxy.at, "/first", "x", "").await;
    let put =
        b"PUT /second HTTP/1.1\r\nhost: site\r\nconnection: close\r\ncontent-length: 2\r\n\r\nab";
    let answer = exchange(proxy.at, put).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer}");
    assert_eq!(heard.lock().unwrap().iter().filter(|l| l.contains("/second")).count(), 1);
}

#[tokio::test]
async fn an_idle_connection_is_given_up_before_its_server_does_so() {
    let answer = |more: &str| format!("HTTP/1.1 200 OK\r\n{more}content-length: 2\r\n\r\nok");
    for (told, waits, connections) in [
        ("Keep-Alive: max=9, timeout=2\r\n", 1500, 2), // kept 1 s
        ("keep-alive: timeout=60\r\n", 1500, 1),
        ("", 1500, 1),
        ("", 4500, 2), // 4 s are over
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let (counted, answer) = (count.clone(), answer(told));
        tokio::spawn(async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, SeqCst);
                let answer = answer.clone();
                tokio::spawn(async move {
                    let mut head = [0; 4096];
                    while socket.read(&mut head).await.is_ok_and(|n| n > 0) {
                        socket.write_all(answer.as_bytes()).await.unwrap();
                    }
                });
            }
        });
        let proxy = start(config(at)).await;
        get(proxy.at, "/", "x", "").await;
        sleep(Duration::from_millis(waits)).await;
        assert!(get(proxy.at, "/", "x", "").await.ends_with("ok"));
        assert_eq!(count.load(SeqCst), connections, "{told:?} after {waits} ms");
    }
}

#[tokio::test]
async fn what_came_of_an_answer_before_it_broke_off_is_passed() {
    for sent in [0, 10_000, 300_000] {
        let answer =
            format!("HTTP/1.1 200 OK\r\ncontent-length: 400000\r\n\r\n{}", "x".repeat(sent));
        let proxy = start(config(rude_origin(answer.leak().as_bytes()).await)).await;
        let got = get(proxy.at, "/", "x", "").await;
        let (head, body) = got.split_once("\r\n\r\n").expect("the head");
        assert!(head.starts_with("HTTP/1.1 200") && body.len() == sent, "{sent}: {}", body.len());
    }
}

#[tokio::test]
async fn the_length_of_an_answer_is_one_line_and_that_of_none_is_no_line() {
    for (answer, status, lengths) in [
        (&b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc"[..], "200", 1),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3, 3\r\n\r\nabc", "200", 1),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 3, 4\r\n\r\nabc", "502", 1),
        (b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n", "204", 0),
    ] {
        let proxy = start(config(rude_origin(answer).await)).await;
        let got = get(proxy.at, "/", "x", "").await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status}")), "{got}");
        assert_eq!(got.matches("content-length: ").count(), lengths, "{got}");
        assert!(!got.contains("3, "), "{got}");
    }
}

#[tokio::test]
async fn an_upload_under_way_has_the_time_that_it_takes() {
    let (origin, asked) = origin().await;
    let mut config = config(origin);
    config.timeouts.answer_s = 1;
    let proxy = start(config).await;
    let mut socket = TcpStream::connect(proxy.at).await.unwrap();
    let head = b"POST /p HTTP/1.1\r\nhost: site\r\nconnection: close\r\ncontent-length: 12\r\n\r\n";
    socket.write_all(head).await.unwrap();
    for _ in 0..12 {
        socket.write_all(b"x").await.unwrap();
        sleep(Duration::from_millis(150)).await;
    }
    let mut got = String::new();
    timeout(PATIENCE, socket.read_to_string(&mut got)).await.unwrap().unwrap();
    assert!(got.starts_with("HTTP/1.1 200"), "{got}");
    assert!(asked.lock().unwrap()[0].contains(&"x".repeat(12)));
}

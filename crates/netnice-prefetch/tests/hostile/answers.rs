// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Origins that lie, and break off.

use super::*;

/// Whether an answer came with all of the body that its head announces.
fn is_whole(answer: &str) -> bool {
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
    match length {
        Some(length) => body.len() == length.parse::<usize>().unwrap(),
        None => head.contains("transfer-encoding: chunked") && body.ends_with("0\r\n\r\n"),
    }
}

/// An origin that answers the first request with a lie on a connection that it keeps, or closes, and
/// all others with `fine`; what comes later follows the lie, between two meetings with the test.
async fn lying_origin(
    lie: String,
    closes: bool,
    later: Option<(String, Arc<Barrier>)>,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let first = Arc::new(AtomicBool::new(true));
    tokio::spawn(async move {
        loop {
            let mut socket = BufReader::new(listener.accept().await.unwrap().0);
            let (first, lie, later) = (first.clone(), lie.clone(), later.clone());
            tokio::spawn(async move {
                let heard = Mutex::default();
                while let Ok(Some(_)) = hear(&mut socket, &heard).await {
                    if !first.swap(false, SeqCst) {
                        let fine = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine";
                        let _ = socket.write_all(fine).await;
                        continue;
                    }
                    let _ = socket.write_all(lie.as_bytes()).await;
                    if let Some((excess, meeting)) = &later {
                        meeting.wait().await;
                        let _ = socket.write_all(excess.as_bytes()).await;
                        meeting.wait().await;
                    }
                    if closes {
                        break;
                    }
                }
            });
        }
    });
    at
}

const POISON: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_an_answer_never_becomes_the_answer_to_the_next_request() {
    let mut asking = JoinSet::new();
    for (method, lie) in [
        ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        ("GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        ("GET", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        (
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 90\r\n\r\n0\r\n\r\n",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\ncontent-length: 4\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n"),
        ("HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n"),
    ] {
        for excess in [POISON, "x", "\r\n\r\n", "HTTP/1.1 200 OK\r\n"] {
            // in one packet with the answer, or when the client has got that and the connection rests
            for waits in [false, true] {
                asking.spawn(async move {
                    let (lie, later) = match waits {
                        false => (format!("{lie}{excess}"), None),
                        true => {
                            (lie.to_owned(), Some((excess.to_owned(), Arc::new(Barrier::new(2)))))
                        }
                    };
                    let meeting = later.as_ref().map(|(_, meeting)| meeting.clone());
                    let proxy = start(hasty(lying_origin(lie.clone(), false, later).await)).await;
                    let head =
                        format!("{method} /a HTTP/1.1\r\nhost: site\r\nconnection: close\r\n\r\n");
                    let answer = exchange(proxy.at, head.as_bytes()).await;
                    assert!(
                        answer.starts_with("HTTP/1.1 ") && !answer.contains("poison"),
                        "{lie:?}: {answer}"
                    );
                    if let Some(meeting) = meeting {
                        meeting.wait().await; // the connection rests
                        meeting.wait().await; // the excess is on its way
                    }
                    let next = get(proxy.at, "/b", "x", "").await;
                    assert!(next.ends_with("fine"), "after {lie:?}, {excess:?}: {next}");
                    ends(proxy).await;
                });
            }
        }
    }
    asking.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_breaks_off_or_makes_no_sense_is_never_whole_for_the_client() {
    let mut asking = JoinSet::new();
    for lie in [
        "content-length: 100\r\n\r\nten bytes.",
        "content-length: 100\r\ncontent-length: 10\r\n\r\nten bytes.",
        "content-length: -10\r\n\r\nten bytes.",
        "content-length: +10\r\n\r\nten bytes.",
        "content-length: 99999999999999999999\r\n\r\nten bytes.",
        "content-length: 18446744073709551615\r\n\r\nten bytes.",
        "transfer-encoding: chunked\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\na\r\nten byt",
        "transfer-encoding: chunked\r\n\r\na\r\nten bytes.",
        "transfer-encoding: chunked\r\n\r\na\r\nten bytes.\r\n",
        "transfer-encoding: chunked\r\n\r\na\r\nten bytes.XX0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nzz\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n-1\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked\r\n\r\n0\r\nno trailer",
        "transfer-encoding: chunked\r\ncontent-length: 10\r\n\r\n5\r\nten b",
        "transfer-encoding: gzip, chunked\r\n\r\na\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: chunked, chunked\r\n\r\na\r\nten bytes.\r\n0\r\n\r\n",
        "transfer-encoding: gzip\r\n\r\nten bytes.",
        " folded: 1\r\ncontent-length: 100\r\n\r\nten bytes.",
    ] {
        for closes in [false, true] {
            asking.spawn(async move {
                let lie = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n{lie}");
                let mut config = hasty(lying_origin(lie.clone(), closes, None).await);
                config.timeouts.answer_s = 1;
                let proxy = start(config).await;
                let answer = get(proxy.at, "/a", "x", "").await;
                // its end is the body's timeout, if the origin does not end it
                let refused = answer.starts_with("HTTP/1.1 50");
                assert!(refused || !is_whole(&answer), "closes: {closes}, {lie:?}: {answer:?}");
                let next = get(proxy.at, "/b", "x", "").await;
                assert!(next.ends_with("fine"), "after {lie:?}: {next}");
                ends(proxy).await;
            });
        }
    }
    asking.join_all().await;
}

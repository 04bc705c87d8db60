// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Clients against servers that do what they should not.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// Answers the first `answered` requests of each of its connections, and closes at the next.
async fn server(listener: TcpListener, answered: &[usize]) {
    for &answered in answered {
        let (mut socket, _) = listener.accept().await.unwrap();
        for request in 0..=answered {
            let mut head = [0; 1024];
            assert_ne!(socket.read(&mut head).await.unwrap(), 0);
            if request < answered {
                socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            }
        }
    }
}

/// What becomes of two requests to such a server.
async fn two_requests(answered: &'static [usize]) -> [io::Result<u64>; 2] {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    tokio::spawn(server(listener, answered));
    let mut connection = Connection { to, agent: "test".into(), host: "site".into(), sender: None };
    let first = connection.get("/", "", false).await;
    [first, connection.get("/", "", false).await].map(|got| got.map(|got| got.bytes))
}

#[test]
fn a_summary_of_no_requests_has_no_times_and_no_minus() {
    let none = summary(&[]);
    let times = [none.mean_s, none.view_mean_s, none.hit_share, none.quantiles_s[0]];
    assert_eq!(times.map(|t| format!("{t:.3}")), ["0.000"; 4]);
}

#[test]
fn the_perfect_predictor_knows_the_rest_of_this_view_and_the_next_ones() {
    let view = |page: &str, objects: &[&str]| View {
        at_ms: 0,
        page: page.into(),
        objects: objects.iter().map(|o| Arc::from(*o)).collect(),
    };
    let visits =
        [view("/a", &["/1", "/2"]), view("/b", &["/3", "/4"]), view("/c", &[]), view("/d", &[])];
    let listed = |visits: &[View], w| -> Vec<String> {
        perfect(visits, w).iter().map(ToString::to_string).collect()
    };
    assert_eq!(listed(&visits, 2), ["/2", "/1", "/b", "/3", "/4", "/c"]);
    assert_eq!(listed(&visits[3..], 2), [""; 0]);
}

/// A server that takes a while for each of any number of requests and connections.
async fn slow_server(listener: TcpListener) {
    while let Ok((mut socket, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut head = [0; 1024];
            while socket.read(&mut head).await.unwrap_or(0) > 0 {
                sleep(Duration::from_millis(10)).await;
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
                if socket.write_all(answer).await.is_err() {
                    return;
                }
            }
        });
    }
}

#[tokio::test]
async fn perfect_prediction_also_fetches_objects_of_the_page_that_is_loading() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    tokio::spawn(slow_server(listener));
    let objects: Vec<Arc<str>> = (0..8).map(|i| format!("/{i}.png").into()).collect();
    let sizes = objects.iter().cloned().chain(["/p".into()]).map(|p| (p, 2)).collect();
    let setup = Setup {
        demand: to,
        prefetch: to,
        host: "site".into(),
        hints: Hints::Perfect(10),
        threshold: 0.0,
        pause: Duration::ZERO,
        sizes: Arc::new(sizes),
        end: Duration::from_secs(10),
    };
    let visits = vec![View { at_ms: 0, page: "/p".into(), objects }];
    let report = client(setup, 1, visits, Instant::now()).await;
    assert_eq!(report.answers.len(), 9);
    // two connections share the eight, and at most one is fetched by both
    let hits = report.answers.iter().filter(|a| a.prefetched).count();
    assert!((2..=6).contains(&hits), "{hits}");
}

#[tokio::test]
async fn a_request_that_met_the_end_of_an_idle_connection_is_asked_again() {
    let [first, second] = two_requests(&[1, 1]).await;
    assert_eq!((first.unwrap(), second.unwrap()), (2, 2));
}

#[tokio::test]
async fn a_request_that_a_new_connection_does_not_answer_has_failed() {
    let [first, second] = two_requests(&[1, 0, 1]).await;
    assert_eq!(first.unwrap(), 2);
    assert!(closed_unanswered(&second.unwrap_err()));
}

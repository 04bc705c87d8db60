// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Ten thousand connections at once.

use super::*;

/// Connections that are opened at once.
const FLOOD: usize = 10_000;
/// For all of a flood: no measure of speed, only no hanging.
const FLOOD_PATIENCE: Duration = Duration::from_secs(240);

/// `netnice-prefetch serve` as a process of its own, so that what it takes can be told.
struct Served {
    process: Child,
    at: SocketAddr,
}

impl Served {
    fn start(origin: SocketAddr, connections: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        // nothing is closed for being idle
        let text = format!(
            "origin = 'http://{origin}'\nlisten = ['127.0.0.1:0']\n\
             [bounds]\nconnections = {connections}\n[timeouts]\nidle_s = 900\n"
        );
        fs::write(&file, text).unwrap();
        let mut process = Command::new(env!("CARGO_BIN_EXE_netnice-prefetch"))
            .args(["serve", "--config"])
            .arg(&file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let out = process.stdout.take().unwrap();
        std::io::BufReader::new(out).read_line(&mut line).unwrap();
        let at = line.trim().strip_prefix("listening ").unwrap().parse().unwrap();
        Self { process, at }
    }

    fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process.id())).unwrap().count()
    }

    /// Bytes of memory.
    fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    async fn until_files(&self, fit: impl Fn(usize) -> bool) {
        while !fit(self.files()) {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Sends the rest of a request; true if it is answered whole, false if it is refused: the
/// connection is closed or reset without a byte.
async fn asks(socket: &mut TcpStream, rest: &str) -> bool {
    if socket.write_all(rest.as_bytes()).await.is_err() {
        return false;
    }
    let mut got = Vec::new();
    while !got.ends_with(b"..........") {
        if !matches!(socket.read_buf(&mut got).await, Ok(1..)) {
            assert!(got.is_empty(), "half an answer: {}", String::from_utf8_lossy(&got));
            return false;
        }
    }
    assert!(got.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&got));
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_connections_at_once_are_served_and_so_is_one_more() {
    let needed = FLOOD as u64 + 2000;
    let allowed = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(allowed >= needed, "{needed} open files are needed, {allowed} allowed: ulimit -Hn");
    const HEAD: &str = "GET /a HTTP/1.1\r\n";
    const REST: &str = "host: site\r\n\r\n";
    const AT_ONCE: usize = 500; // requests, so that the origin's side of this test has files too
    const OTHERS: usize = 100; // files that are no connections
    let (origin, _) = origin().await;

    let flood = async {
        let proxy = Served::start(origin, FLOOD);
        assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
        let memory = proxy.memory();
        let mut opening = JoinSet::new();
        for i in 0..FLOOD {
            let at = proxy.at;
            opening.spawn(async move {
                let mut socket = TcpStream::connect(at).await.unwrap();
                // each begins a request and lets the proxy wait: bytes are sent again until they are
                // taken, while a silent connection may be lost when too many begin at once
                let begun = if i % 2 == 0 { HEAD.len() } else { 1 };
                socket.write_all(&HEAD.as_bytes()[..begun]).await.unwrap();
                (socket, begun)
            });
        }
        let opened = opening.join_all().await;
        proxy.until_files(|n| n >= FLOOD).await;
        let answer = get(proxy.at, "/a", "x", "").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "one more is served: {answer}");
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut asking = JoinSet::new();
        for (mut socket, begun) in opened {
            let room = room.clone();
            asking.spawn(async move {
                let _place = room.acquire().await.unwrap();
                let rest = format!("{}{REST}", &HEAD[begun..]);
                (asks(&mut socket, &rest).await, socket)
            });
        }
        let asked = asking.join_all().await;
        let refused = asked.iter().filter(|(served, _)| !served).count();
        // none if one of them was yet to be accepted when the further one came
        assert!(refused <= 1, "one at most makes room, not {refused}");
        assert!(proxy.files() <= FLOOD + AT_ONCE + OTHERS, "{} files", proxy.files());
        let each = proxy.memory().saturating_sub(memory) / FLOOD;
        assert!(each < 64 << 10, "{each} bytes of memory for each connection");
        drop(asked);
        proxy.until_files(|n| n <= AT_ONCE + OTHERS).await;
        assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
    };
    timeout(FLOOD_PATIENCE, flood).await.expect("nothing hangs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_for_few_places_is_served_or_refused_and_never_left_waiting() {
    const PLACES: usize = 500;
    let needed = FLOOD as u64 + 2000;
    let allowed = rlimit::increase_nofile_limit(u64::MAX).unwrap();
    assert!(allowed >= needed, "{needed} open files are needed, {allowed} allowed: ulimit -Hn");
    let (origin, _) = origin().await;
    let proxy = Served::start(origin, PLACES);
    let mut crowd = JoinSet::new();
    for _ in 0..FLOOD {
        let at = proxy.at;
        crowd.spawn(async move {
            let mut socket = TcpStream::connect(at).await.unwrap();
            let served = asks(&mut socket, "GET /a HTTP/1.1\r\nhost: site\r\n\r\n").await;
            // it would stay, if others did not need its place
            assert!(matches!(socket.read(&mut [0]).await, Ok(0) | Err(_)));
            served
        });
    }
    let mut served = Vec::new();
    let each = async {
        // the last have nobody behind them to make room for
        while served.len() + PLACES < FLOOD {
            served.push(crowd.join_next().await.unwrap().unwrap());
        }
    };
    let ended = timeout(FLOOD_PATIENCE, each).await;
    assert!(ended.is_ok(), "{} of {FLOOD} were answered or refused", served.len());
    let served = served.into_iter().filter(|served| *served).count();
    assert!(served > FLOOD / 2, "{served} were served");
    crowd.abort_all();
    proxy.until_files(|n| n < PLACES).await;
    assert!(get(proxy.at, "/a", "x", "").await.starts_with("HTTP/1.1 200"));
}

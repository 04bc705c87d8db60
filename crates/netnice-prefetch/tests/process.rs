// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-prefetch serve` as a process: signals, metrics, and its page.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use netnice_prefetch::store;

/// For whatever must happen: no measure of speed, only no hanging.
const PATIENCE: Duration = Duration::from_secs(60);
const PROGRAM: &str = env!("CARGO_BIN_EXE_netnice-prefetch");
/// What a page takes its origin, at least.
const PAGE_TAKES: Duration = Duration::from_millis(20);

fn until(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// An origin whose answers are its name; `/held` is answered when the gate opens.
struct Origin {
    at: SocketAddr,
    held: Arc<AtomicUsize>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Origin {
    fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let (held, gate) =
            (Arc::<AtomicUsize>::default(), Arc::<(Mutex<bool>, Condvar)>::default());
        let new = Self { at, held: held.clone(), gate: gate.clone() };
        thread::spawn(move || loop {
            let (socket, _) = listener.accept().unwrap();
            let (held, gate) = (held.clone(), gate.clone());
            thread::spawn(move || answer(&socket, name, &held, &gate));
        });
        new
    }

    fn open(&self) {
        *self.gate.0.lock().unwrap() = true;
        self.gate.1.notify_all();
    }
}

fn answer(mut socket: &TcpStream, name: &str, held: &AtomicUsize, gate: &(Mutex<bool>, Condvar)) {
    let mut lines = BufReader::new(socket).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default();
    lines.find(String::is_empty); // the end of the head
    if path == "/held" {
        held.fetch_add(1, SeqCst);
        drop(gate.1.wait_while(gate.0.lock().unwrap(), |open| !*open).unwrap());
    }
    let kind = if path.ends_with(".png") { "image/png" } else { "text/html" };
    if kind == "text/html" {
        thread::sleep(PAGE_TAKES);
    }
    let length = name.len();
    // whoever asked may have gone
    let _ = write!(
        socket,
        "HTTP/1.1 200 OK\r\nconnection: close\r\netag: \"1\"\r\ncontent-type: {kind}\r\n\
         content-length: {length}\r\n\r\n{name}"
    );
}

fn get(at: SocketAddr, path: &str, more: &str) -> String {
    let mut socket = ask(at, path, more);
    let mut got = String::new();
    socket.read_to_string(&mut got).unwrap();
    got
}

fn ask(at: SocketAddr, path: &str, more: &str) -> TcpStream {
    let mut socket = TcpStream::connect(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: site\r\nconnection: close\r\n{more}\r\n");
    socket.write_all(head.as_bytes()).unwrap();
    socket
}

/// `netnice-prefetch serve --config FILE`.
struct Served {
    process: Child,
    /// Where it listens, in the order of its words.
    at: Vec<SocketAddr>,
    file: PathBuf,
    said: Arc<Mutex<String>>,
    _folder: tempfile::TempDir,
}

impl Served {
    /// With `listeners` of them in all.
    fn start(config: impl Fn(&Path) -> String, listeners: usize) -> Self {
        Self::run(Command::new(PROGRAM), config, listeners)
    }

    /// By a command that ends in the program.
    fn run(mut command: Command, config: impl Fn(&Path) -> String, listeners: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.toml");
        fs::write(&file, config(folder.path())).unwrap();
        let mut process = command
            .args(["serve", "--config"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(process.stdout.take().unwrap());
        let lines = out.lines().take(listeners).map(Result::unwrap);
        let at = lines.map(|l| l.strip_prefix("listening ").unwrap().parse().unwrap()).collect();
        let said = Arc::new(Mutex::new(String::new()));
        let (heard, errors) = (said.clone(), BufReader::new(process.stderr.take().unwrap()));
        thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                *heard.lock().unwrap() += &format!("{line}\n");
            }
        });
        Self { process, at, file, said, _folder: folder }
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.process.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    fn until_it_says(&self, words: &str) {
        until(words, || self.said.lock().unwrap().contains(words));
    }

    fn end(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end", || {
            status = self.process.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn off(origin: &Origin, more: &str) -> String {
    format!(
        "origin = 'http://{}'\nlisten = ['127.0.0.1:0']\nadmin = '127.0.0.1:0'\n{more}\n\
         [background]\nmode = 'off'\n",
        origin.at
    )
}

#[test]
fn hangup_takes_on_a_changed_file_and_says_what_needs_a_restart() {
    let (old, new) = (Origin::start("the old"), Origin::start("the new"));
    let proxy = Served::start(|_| off(&old, ""), 2);
    assert!(get(proxy.at[0], "/a", "").ends_with("the old"));

    fs::write(&proxy.file, off(&new, "lisen = 1")).unwrap();
    proxy.signal("HUP");
    proxy.until_it_says("the old configuration stays in force");
    assert!(get(proxy.at[0], "/a", "").ends_with("the old"));

    fs::write(&proxy.file, off(&new, "access_log = '-'") + "port = 1\n").unwrap();
    proxy.signal("HUP");
    proxy.until_it_says("configuration read again");
    assert!(get(proxy.at[0], "/a", "").ends_with("the new"));
    let said = proxy.said.lock().unwrap().clone();
    for key in ["access_log", "background.port"] {
        let line = format!("{key} is as it was: a change needs a restart");
        assert!(said.contains(&line), "{line}: {said}");
    }
    assert!(!said.contains("listen is as it was"), "{said}");
}

#[test]
fn a_mistake_in_the_configuration_is_one_sentence_and_ends_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    for (text, told) in [
        ("[timeouts]\nidle_s = -1", "line 2: "),
        ("[timeouts]\nidle_s = 18446744073709551615", "idle_s is 18446744073709551615, not 1 to"),
        (
            "[timeouts]\nidle_s = 9223372036854775807",
            "idle_s is 9223372036854775807, not 1 to 86400",
        ),
        ("[bounds]\nconnections = 9223372036854775807", "connections is"),
        ("[learning]\nn = 5", "n is 5, not 1 to 4"),
        ("trust = ['10.0.0.0/99']", "`10.0.0.0/99` is no address"),
        ("origin = 'http://x/y'", "without a path"),
    ] {
        fs::write(&file, text).unwrap();
        let done = Command::new(PROGRAM)
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), said.lines().count()), (Some(2), 1), "{text}: {said}");
        assert!(said.contains(told), "{text}: {said}");
    }
    for arguments in [
        &["learn", "--memory", "99999999999999999999", "x"][..],
        &["learn", "-n", "9", "x"],
        &["explain", "--threshold", "nan", "/"],
        &["evaluate", "--threshold", "2", "x"],
        &["replay", "--to", "127.0.0.1:1", "--duration", "18446744073709551615", "x"],
        &["replay", "--to", "127.0.0.1:1", "--clients", "0", "x"],
    ] {
        let done = Command::new(PROGRAM).args(arguments).output();
        let done = done.unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_second_port_that_came_later_is_not_suggested() {
    let origin = Origin::start("origin");
    let config = |port: &str| {
        format!(
            "origin = 'http://{}'\nlisten = ['127.0.0.1:0']\n[learning]\naddresses = 1\n\
             [background]\ncontrol = 'nn_unknown'\n{port}",
            origin.at
        )
    };
    let proxy = Served::start(|_| config(""), 1);
    fs::write(&proxy.file, config("port = 1\n")).unwrap();
    proxy.signal("HUP");
    proxy.until_it_says("configuration read again");
    for agent in ["first", "second"] {
        for path in ["/a", "/b"] {
            let answer = get(proxy.at[0], path, &format!("user-agent: {agent}\r\n"));
            assert!(answer.ends_with("origin") && !answer.contains("link:"), "{answer}");
        }
    }
}

#[test]
fn termination_finishes_what_is_under_way_and_saves_the_model() {
    let origin = Origin::start("origin");
    let mut model = PathBuf::new();
    let config = |folder: &Path| {
        let more = format!("model = '{}'", folder.join("model").display());
        off(&origin, &more)
    };
    let mut proxy = Served::start(config, 2);
    model.push(proxy.file.with_file_name("model"));
    get(proxy.at[0], "/a", "");
    let mut under_way = ask(proxy.at[0], "/held", "");
    until("the request at the origin", || origin.held.load(SeqCst) == 1);
    proxy.signal("TERM");
    until("nobody is let in", || TcpStream::connect(proxy.at[0]).is_err());
    assert!(proxy.process.try_wait().unwrap().is_none(), "it waits for the answer");
    origin.open();
    let mut got = String::new();
    under_way.read_to_string(&mut got).unwrap();
    assert!(got.ends_with("origin"), "{got}");
    assert_eq!(proxy.end().code(), Some(0));
    assert_eq!(store::load(&model).unwrap().size().learned, 2);
}

#[test]
fn an_end_that_loses_the_model_is_no_success() {
    let origin = Origin::start("origin");
    let config = |folder: &Path| {
        fs::create_dir(folder.join("models")).unwrap();
        off(&origin, &format!("model = '{}'", folder.join("models/model").display()))
    };
    let mut proxy = Served::start(config, 2);
    fs::remove_dir_all(proxy.file.with_file_name("models")).unwrap();
    proxy.signal("TERM");
    assert_eq!(proxy.end().code(), Some(1));
    proxy.until_it_says("Cannot write the model");
}

#[test]
fn metrics_are_told_over_http() {
    let origin = Origin::start("origin");
    let proxy = Served::start(|_| off(&origin, ""), 2);
    get(proxy.at[0], "/a", "");
    let refused = get(proxy.at[0], "/a", "sec-purpose: prefetch\r\n");
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    let lines = [
        "netnice_prefetch_mode{mode=\"off\"} 1",
        "netnice_prefetch_answers_total{class=\"demand\",status=\"2xx\"} 1",
        "netnice_prefetch_refused_total 1",
        "netnice_prefetch_page_seconds_count 1",
    ];
    // an answer is counted when it has ended here, which may be after its client had it
    until("the counts", || {
        let told = get(proxy.at[1], "/metrics", "");
        told.starts_with("HTTP/1.1 200") && lines.iter().all(|line| told.contains(line))
    });
    assert!(get(proxy.at[1], "/healthz", "").ends_with("ok\n"));
    assert!(get(proxy.at[1], "/", "").starts_with("HTTP/1.1 404"));
}

#[test]
fn a_port_alone_listens_on_all_addresses() {
    let origin = Origin::start("origin");
    let config = |_: &Path| off(&origin, "").replace("listen = ['127.0.0.1:0']", "listen = [':0']");
    let proxy = Served::start(config, 2);
    let port = proxy.at[0].port();
    assert!(proxy.at[0].ip().is_unspecified());
    assert!(get(([127, 0, 0, 1], port).into(), "/a", "").ends_with("origin"));
    if proxy.at[0].is_ipv6() && TcpListener::bind("[::1]:0").is_ok() {
        let at: SocketAddr = format!("[::1]:{port}").parse().unwrap();
        assert!(get(at, "/a", "").ends_with("origin"));
    }
}

/// A control that is not the system's default, for the background: any will do here.
fn background_control() -> String {
    let read = |name| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap();
    let default = read("tcp_congestion_control");
    let allowed = read("tcp_allowed_congestion_control");
    let other = allowed.split_whitespace().find(|c| *c != default.trim());
    other.expect("a second congestion control to switch to, such as reno").to_owned()
}

/// The number behind these words.
fn number(text: &str, words: &str) -> f64 {
    let behind = text.split_once(words).unwrap_or_else(|| panic!("{words}: {text}")).1;
    behind.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn the_page_tells_hits_and_latency_with_and_without() {
    let origin = Origin::start("ten bytes.");
    let config = |_: &Path| {
        format!(
            "origin = 'http://{}'\nlisten = ['127.0.0.1:0']\n[learning]\naddresses = 1\n\
             [background]\nmode = 'connection'\ncontrol = '{}'\n",
            origin.at,
            background_control()
        )
    };
    let proxy = Served::start(config, 1);
    let page = || get(proxy.at[0], "/_netnice/", "");
    let empty = page();
    assert!(empty.contains("at least 0 of 0 pages<") && !empty.contains("NaN"), "{empty}");

    let told = |words: &str| until(words, || page().contains(words));
    for path in ["/a", "/b", "/c"] {
        get(proxy.at[0], path, "user-agent: first\r\n");
    }
    told("at least 0 of 3 pages (0.0 %)"); // ended, so they can be suggested
    let answer = get(proxy.at[0], "/a", "user-agent: second\r\n");
    assert!(answer.contains("link: </b>; rel=prefetch, </c>; rel=prefetch"), "{answer}");
    let ahead = "user-agent: second\r\nsec-purpose: prefetch\r\n";
    assert!(get(proxy.at[0], "/b", ahead).starts_with("HTTP/1.1 200"));
    told("Sent ahead: 1 of 2 suggested (50.0 %)");
    // the browser shows /b from its cache, which loads an image
    get(proxy.at[0], "/b.png", "user-agent: second\r\nreferer: http://site/b\r\n");
    told("Used: at least 1 of 1 sent ahead (100.0 %)");
    told("Shown from what was sent ahead: at least 1 of 5 pages (20.0 %)");
    let page = page();
    assert!(page.contains("the mean of 4 asked for"), "{page}");
    assert!(page.contains("the mean of these and 1 of 0 ms"), "{page}");
    let without_ms = number(&page, "Without prefetching: ");
    let with_ms = number(&page, "With: ");
    assert!(without_ms >= PAGE_TAKES.as_millis() as f64, "{page}");
    assert!((with_ms - 0.8 * without_ms).abs() < 0.11, "four fifths, but for rounding: {page}");
}

fn pipe(at: &Path) {
    assert!(Command::new("mkfifo").arg(at).status().unwrap().success());
}

#[test]
fn what_is_no_small_file_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (fifo, large) = (folder.path().join("pipe"), folder.path().join("large"));
    pipe(&fifo);
    fs::write(&large, "#".repeat(2 << 20)).unwrap();
    let (fifo, large) = (fifo.to_str().unwrap(), large.to_str().unwrap());
    for (arguments, told) in [
        (&["--config", fifo][..], "it is no file"),
        (&["--config", "/dev/zero"], "it is no file"),
        (&["--config", large], "it is larger than 1 MB"),
        (
            &["--cert", "/dev/zero", "--key", fifo],
            "no certificate in PEM can be read: it is no file",
        ),
        (&["--access-log", fifo], "start its reader first"),
    ] {
        let done = Command::new("timeout")
            .args(["60", PROGRAM, "serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(matches!(done.status.code(), Some(1 | 2)), "{arguments:?}: {said}");
        assert!(said.contains(told) && !said.contains("listening"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_configuration_that_has_become_a_pipe_keeps_no_signal_waiting() {
    let origin = Origin::start("origin");
    let mut proxy = Served::start(|_| off(&origin, ""), 2);
    fs::remove_file(&proxy.file).unwrap();
    pipe(&proxy.file);
    proxy.signal("HUP");
    proxy.until_it_says("it is no file; the old configuration stays in force");
    proxy.signal("TERM");
    assert_eq!(proxy.end().code(), Some(0));
}

#[test]
fn a_model_in_use_is_nobody_elses() {
    let origin = Origin::start("origin");
    let config = |folder: &Path| off(&origin, &format!("model = '{}'", folder.join("m").display()));
    let mut proxy = Served::start(config, 2);
    let model = proxy.file.with_file_name("m");
    let log = proxy.file.with_file_name("log");
    let line = "192.0.2.1 - - [10/Oct/2000:13:55:36 +0000] \"GET /a HTTP/1.1\" 200 5\n";
    fs::write(&log, line).unwrap();
    let learn = || Command::new(PROGRAM).arg("learn").arg("--model").args([&model, &log]).output();
    let serve = || {
        let mut second = Command::new("timeout");
        second.args(["60", PROGRAM, "serve", "--listen", "127.0.0.1:0", "--model"]);
        second.arg(&model).output()
    };
    for done in [learn().unwrap(), serve().unwrap()] {
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(said.contains("in use by another netnice-prefetch"), "{said}");
    }
    // a reload lets the old one go
    let text = fs::read_to_string(&proxy.file).unwrap();
    fs::write(&proxy.file, text.replace("/m'", "/n'")).unwrap();
    proxy.signal("HUP");
    proxy.until_it_says("configuration read again");
    assert!(learn().unwrap().status.success());
    assert_eq!(store::load(&model).unwrap().size().learned, 1);
    proxy.signal("TERM");
    assert_eq!(proxy.end().code(), Some(0));
    let left = fs::read_dir(log.parent().unwrap()).unwrap();
    assert_eq!(left.count(), 4, "no lock is left beside configuration, log, and two models");
}

#[test]
fn idle_clients_leave_descriptors_to_those_who_ask() {
    let origin = Origin::start("origin");
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\"", PROGRAM]);
    let proxy = Served::run(limited, |_| off(&origin, ""), 2);
    let mut idle: Vec<_> = (0..70).map(|_| TcpStream::connect(proxy.at[0]).unwrap()).collect();
    assert!(get(proxy.at[0], "/a", "").ends_with("origin"));
    let mut last = idle.pop().unwrap();
    last.write_all(b"GET /a HTTP/1.1\r\nhost: site\r\nconnection: close\r\n\r\n").unwrap();
    let mut got = String::new();
    last.read_to_string(&mut got).unwrap();
    assert!(got.ends_with("origin"), "{got}");
}

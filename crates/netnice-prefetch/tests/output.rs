// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the commands say. The proxy stands between others' clients and their server: no log line
//! is worth its end.

use std::fs;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// For whatever must happen: no measure of speed, only no hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where it listens, from its next line.
fn listens(out: &mut impl BufRead) -> SocketAddr {
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    line.trim_end().strip_prefix("listening ").expect(&line).parse().unwrap()
}

fn signal(process: &Child, name: &str) {
    let kill = format!("kill -{name} {}", process.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

fn end(process: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            process.kill().unwrap();
            panic!("it did not end");
        }
        thread::sleep(Duration::from_millis(20));
    }
}

fn get(at: SocketAddr, path: &str, agent: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\nUser-Agent: {agent}\r\n");
    stream.write_all((head + "Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn it_obeys_signals_though_nobody_reads_its_access_log() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_netnice-prefetch"))
        .args(["serve", "--listen", "127.0.0.1:0", "--origin", "http://127.0.0.1:9"])
        .args(["--access-log", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    let at = listens(&mut out);
    let agent = "x".repeat(8000);
    for _ in 0..20 {
        let answer = get(at, "/", &agent); // 160 kB, of which a pipe takes 64
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    }
    signal(&server, "HUP");
    signal(&server, "TERM");
    assert!(end(&mut server).success());
    let mut said = String::new();
    server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("its last lines are lost"), "{said}");
    drop(out);
}

#[test]
fn without_descriptors_it_says_so_once_rests_and_serves_again() {
    let serve = format!(
        "ulimit -n 40; exec {} serve --listen 127.0.0.1:0 --admin 127.0.0.1:0",
        env!("CARGO_BIN_EXE_netnice-prefetch")
    );
    let mut server = Command::new("sh")
        .args(["-c", &serve])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(server.stdout.take().unwrap());
    let (_, admin) = (listens(&mut out), listens(&mut out));
    let crowd: Vec<_> = (0..60).map(|_| TcpStream::connect(admin).unwrap()).collect();
    thread::sleep(Duration::from_millis(500));
    let ticks = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", server.id())).unwrap();
        let words: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        words[11].parse::<u64>().unwrap() + words[12].parse::<u64>().unwrap() // of 10 ms
    };
    let before = ticks();
    thread::sleep(Duration::from_secs(2));
    let spent = ticks() - before;
    assert!(spent < 10, "{spent} ticks of 200"); // 20 attempts take hardly one
    drop(crowd);
    assert!(get(admin, "/healthz", "a").ends_with("ok\n"));
    signal(&server, "TERM");
    assert!(end(&mut server).success());
    let mut said = String::new();
    server.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said.matches("accepting a connection failed").count(), 1, "{said}");
}

#[test]
fn it_serves_on_with_standard_error_full_and_nobody_at_standard_output() {
    let free = || TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (listen, origin) = (free(), free()); // nobody answers at the origin: each request is an error
    let mut server = Command::new(env!("CARGO_BIN_EXE_netnice-prefetch"))
        .args(["serve", "--listen", &listen.to_string(), "--origin", &format!("http://{origin}")])
        .stdout(Stdio::piped())
        .stderr(File::options().write(true).open("/dev/full").unwrap())
        .spawn()
        .unwrap();
    drop(server.stdout.take());
    let connect = || loop {
        match TcpStream::connect(listen) {
            Ok(stream) => return stream,
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    };
    for _ in 0..2 {
        let mut stream = connect();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    }
    assert_eq!(server.try_wait().unwrap(), None, "it is still there");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_trace_with_nothing_to_replay_is_refused_with_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, root) = (dir.path().join("trace.csv"), dir.path().join("site"));
    let head = "time_s,client,method,path,status,bytes,referer_path,bot\n";
    // nothing, no rows, a robot's alone, and what is larger than asked for
    let rows = [
        "",
        head,
        &format!("{head}0,a,GET,/x.css,200,9,,1\n"),
        &format!("{head}0,a,GET,/x.css,200,9999999,,0\n"),
    ];
    for text in rows {
        std::fs::write(&trace, text).unwrap();
        for command in
            ["replay --to 127.0.0.1:9".to_string(), format!("site --root {}", root.display())]
        {
            let done = Command::new(env!("CARGO_BIN_EXE_netnice-prefetch"))
                .args(command.split(' '))
                .arg(&trace)
                .output()
                .unwrap();
            let said = String::from_utf8(done.stderr).unwrap();
            assert_eq!(done.status.code(), Some(2), "{text:?}: {said}");
            assert!(said.contains("it has no person's request for a static object"), "{said}");
            assert_eq!((said.lines().count(), done.stdout.len()), (1, 0), "{said}");
            assert!(!root.exists());
        }
    }
}

/// The exit status and what is said where standard output goes to `redirection`.
fn told(words: &str, redirection: &str) -> (ExitStatus, String) {
    let script = format!("exec {} {words} {redirection}", env!("CARGO_BIN_EXE_netnice-prefetch"));
    let done = Command::new("bash").args(["-c", &script]).output().unwrap();
    (done.status, String::from_utf8(done.stderr).unwrap())
}

#[test]
fn what_cannot_be_written_is_a_failure_with_one_sentence_but_for_a_reader_that_left() {
    let dir = tempfile::tempdir().unwrap();
    let (log, model) = (dir.path().join("log"), dir.path().join("model"));
    let mut lines = String::new();
    for minute in 0..60 {
        let path = if minute % 2 == 0 { "/a" } else { "/b" };
        let at = format!("[10/Oct/2025:10:{minute:02}:00 +0000]");
        lines += &format!("192.0.2.1 - - {at} \"GET {path} HTTP/1.1\" 200 9 \"-\" \"a\"\n");
    }
    fs::write(&log, lines).unwrap();
    let (log, model) = (log.display(), model.display());
    let learn = format!("learn --model {model} {log}");
    let (status, said) = told(&learn, ">/dev/null");
    assert!(status.success(), "{said}");
    let explain = format!("explain --model {model} /a");
    let evaluate = format!("evaluate {log}");
    let json = format!("{explain} --json");
    for words in ["--help", "--version", "serve --help", &learn, &explain, &json, &evaluate] {
        for (redirection, why) in [(">/dev/full", "No space left"), (">&-", "Bad file descriptor")]
        {
            let (status, said) = told(words, redirection);
            assert_eq!(status.code(), Some(1), "{words}: {said}");
            assert_eq!(said.lines().count(), 1, "{words}: {said}");
            assert!(
                said.starts_with("netnice-prefetch: cannot write to standard output: "),
                "{said}"
            );
            assert!(said.contains(why), "{words}: {said}");
        }
        let (ours, theirs) = std::io::pipe().unwrap();
        drop(ours);
        let words: Vec<_> = words.split(' ').collect();
        let done = Command::new(env!("CARGO_BIN_EXE_netnice-prefetch"))
            .args(&words)
            .stdout(theirs)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(done.status.signal(), Some(13), "{words:?}: {done:?}");
        assert!(done.stderr.is_empty(), "{words:?}: {done:?}");
    }
}

/// Runs `serve` and returns its exit status and what it said.
fn serve(words: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_netnice-prefetch"))
        .args(["serve", "--origin", "http://127.0.0.1:9", "--http3", "--listen"])
        .args(words)
        .output()
        .unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn without_certificate_or_port_http_3_is_refused_with_the_next_step() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (cert, key, none) = (file("cert.pem"), file("key.pem"), file("none.pem"));
    let made = rcgen::generate_simple_self_signed(["site".to_owned()]).unwrap();
    fs::write(&cert, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();

    let (status, said) = serve(&["127.0.0.1:0"]);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("--http3 needs a certificate: give --cert and --key"), "{said}");

    for (cert, key, told) in [
        (&none, &key, "no certificate in PEM can be read"),
        (&key, &key, "certificate and key cannot be used"),
        (&cert, &cert, "no private key in PEM can be read"),
    ] {
        let (status, said) = serve(&["127.0.0.1:0", "--cert", cert, "--key", key]);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(told) && said.lines().count() == 1, "{said}");
    }

    let taken = UdpSocket::bind("127.83.0.1:0").unwrap(); // whose ports of TCP nobody else takes
    let at = taken.local_addr().unwrap().to_string();
    let (status, said) = serve(&[&at, "--cert", &cert, "--key", &key]);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(&format!("cannot receive datagrams on {at}")), "{said}");
    assert!(said.contains("ss -lunp"), "{said}");
}

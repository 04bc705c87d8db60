// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the commands say. The proxy stands between others' clients and their server: no log line
//! is worth its end.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

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

// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is said to a runtime, byte for byte, and how its answers are read.

use std::thread::JoinHandle;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response};
use tempfile::TempDir;

use super::*;

/// A runtime that is asked once, and answers with these bytes and that status of gRPC.
fn runtime(
    answer: Vec<u8>,
    status: &'static str,
) -> (TempDir, Runtime, JoinHandle<(String, Bytes)>) {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().join("runtime.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    listener.set_nonblocking(true).expect("not blocking");
    let serves = std::thread::spawn(move || {
        let runs = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runs.expect("a runtime").block_on(async {
            let listener = tokio::net::UnixListener::from_std(listener).expect("a listener");
            let (stream, _) = listener.accept().await.expect("a client");
            let mut connection = h2::server::handshake(stream).await.expect("HTTP/2");
            let (request, mut respond) =
                connection.accept().await.expect("a request").expect("it is whole");
            let path = request.uri().path().to_string();
            let reads = async {
                let (mut body, mut said) = (request.into_body(), BytesMut::new());
                while let Some(part) = body.data().await {
                    said.extend_from_slice(&part.expect("a part"));
                }
                let head = Response::builder().header("content-type", "application/grpc");
                let mut send =
                    respond.send_response(head.body(()).expect("a head"), false).expect("sent");
                send.send_data(framed(&answer), false).expect("sent");
                let mut trailers = HeaderMap::new();
                trailers.insert("grpc-status", status.parse().expect("a number"));
                trailers.insert("grpc-message", "why".parse().expect("a text"));
                send.send_trailers(trailers).expect("sent");
                said.freeze()
            };
            // until the client closes the connection
            let (said, _) =
                tokio::join!(reads, async { while connection.accept().await.is_some() {} });
            (path, said)
        })
    });
    (dir, Runtime::at(socket), serves)
}

/// A message in the frame of gRPC: not compressed, its length in four bytes.
fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
    [&[0], length.as_slice(), message].concat().into()
}

/// A field of bytes, as protobuf has it: its number and kind 2, the length, the bytes.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let (mut head, mut length) = (vec![number << 3 | 2], content.len());
    while length >= 0x80 {
        head.push(length as u8 | 0x80);
        length >>= 7;
    }
    head.push(length as u8);
    [&head, content].concat()
}

fn sandbox(id: &str, namespace: &str, name: &str, uid: &str) -> Vec<u8> {
    annotated(id, namespace, name, uid, "")
}

fn annotated(id: &str, namespace: &str, name: &str, uid: &str, annotation: &str) -> Vec<u8> {
    let attempt = [4 << 3, 7];
    let metadata = [
        field(1, name.as_bytes()),
        field(2, uid.as_bytes()),
        field(3, namespace.as_bytes()),
        attempt.to_vec(),
    ];
    let label = [field(1, b"a"), field(2, b"b")].concat();
    let created_at = [4 << 3, 1];
    let sandbox = [
        field(1, id.as_bytes()),
        field(2, &metadata.concat()),
        created_at.to_vec(),
        field(5, &label),
        field(6, &[field(1, b"a"), field(2, annotation.as_bytes())].concat()),
        field(7, b"runc"),
    ];
    field(1, &sandbox.concat())
}

fn label() -> Label {
    "a=b".parse().expect("a label")
}

#[test]
fn it_is_asked_for_ready_sandboxes_with_the_label_and_tells_pods() {
    let answer = [
        sandbox("s1", "shop", "web", "u-2"),
        sandbox("s2", "shop", "cache", "u-1"),
        sandbox("s3", "shop", "web", "u-2"), // made anew
    ];
    let (_dir, runtime, serves) = runtime(answer.concat(), "0");
    let found = runtime.pods(&label()).expect("pods");
    let pod = |name: &str, uid: &str| Pod {
        namespace: "shop".into(),
        name: name.into(),
        uid: uid.into(),
    };
    assert_eq!(found, [pod("cache", "u-1"), pod("web", "u-2")]);
    let (path, said) = serves.join().expect("it served");
    assert_eq!(path, "/runtime.v1.RuntimeService/ListPodSandbox");
    // filter (1) with a state (2) whose value is that of none said, 0: ready; and a pair (3) of the map
    let pair = [field(1, b"a"), field(2, b"b")].concat();
    let filter = field(1, &[field(2, b""), field(3, &pair)].concat());
    assert_eq!(said, framed(&filter));
}

#[test]
fn a_node_full_of_pods_with_all_the_annotations_that_they_may_have_is_told() {
    let fat = "x".repeat(256 << 10);
    let pod =
        |n: u32| annotated(&format!("s{n}"), "shop", &format!("p{n}"), &format!("u{n}"), &fat);
    let (_dir, runtime, _serves) = runtime((0..110).flat_map(pod).collect(), "0");
    assert_eq!(runtime.pods(&label()).expect("pods").len(), 110);
}

#[test]
fn no_pod_with_the_label_is_an_empty_list() {
    let (_dir, runtime, _serves) = runtime(Vec::new(), "0");
    assert_eq!(runtime.pods(&label()).expect("no pods"), []);
}

#[test]
fn what_it_refuses_is_said_with_its_reason() {
    let (dir, runtime, _serves) = runtime(Vec::new(), "12"); // unimplemented: a runtime without version 1
    let said = runtime.pods(&label()).expect_err("it refuses").to_string();
    let socket = dir.path().join("runtime.sock");
    assert_eq!(said, format!("cannot ask the container runtime at {}: why", socket.display()));
}

#[test]
fn what_cannot_be_asked_is_said_with_its_socket_and_the_reason() {
    let error = Runtime::at("/no/such.sock".into()).pods(&label());
    let said = error.expect_err("nobody listens").to_string();
    assert_eq!(
        said,
        "cannot ask the container runtime at /no/such.sock: No such file or directory (os error 2)"
    );
}

#[test]
fn a_label_is_a_key_and_a_value() {
    let label: Label = "netnice/class=idle".parse().expect("a label");
    assert_eq!((label.key.as_str(), label.value.as_str()), ("netnice/class", "idle"));
    assert_eq!(label.to_string(), "netnice/class=idle");
    assert!("app=".parse::<Label>().is_ok(), "a label may have no value");
    for text in ["", "idle", "=idle", "a=b=c"] {
        assert!(text.parse::<Label>().is_err(), "{text}");
    }
}

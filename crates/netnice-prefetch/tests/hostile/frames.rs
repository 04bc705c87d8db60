// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! HTTP/2 frame by frame.

use super::*;

/// HTTP/2 frame by frame, so that nothing is too wrong to be sent.
pub(super) struct Frames {
    stream: TlsStream<TcpStream>,
}

/// Kinds and flags of frames.
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const ACK: u8 = 1;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields as HPACK has them without tables and without compression.
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            // RFC 7541, section 5.1
            match text.len().checked_sub(127) {
                None => block.push(u8::try_from(text.len()).unwrap()),
                Some(mut rest) => {
                    block.push(127);
                    while rest >= 128 {
                        block.push((rest % 128) as u8 | 128);
                        rest /= 128;
                    }
                    block.push(rest as u8);
                }
            }
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

pub(super) fn ask_for(path: &str) -> Vec<u8> {
    block(&[(":method", "GET"), (":scheme", "https"), (":authority", "site"), (":path", path)])
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The first byte of the answer's head: 0x88 is status 200, 0x8c is 400.
    Answered(u8),
    /// The stream was reset.
    Reset,
    /// The connection was closed.
    Gone,
}

pub(super) const FINE: Fate = Fate::Answered(0x88);

impl Frames {
    pub(super) async fn open(at: SocketAddr, connector: &TlsConnector) -> Self {
        let socket = TcpStream::connect(at).await.unwrap();
        let mut stream = connector.connect("site".try_into().unwrap(), socket).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        Self { stream }
    }

    /// False if the connection has ended.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok() && self.stream.flush().await.is_ok()
    }

    /// Kind, flags, stream and payload of the next frame; `None` at the end. Pings are answered.
    pub(super) async fn next(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes(head[5..].try_into().unwrap());
            match (head[3], head[4]) {
                (PING, 0) => {
                    self.send(&frame(PING, ACK, 0, &payload)).await;
                }
                (kind, flags) => return Some((kind, flags, stream, payload)),
            }
        }
    }

    pub(super) async fn fate(&mut self, of: u32) -> Fate {
        let fate = async {
            while let Some((kind, _, stream, payload)) = self.next().await {
                match kind {
                    HEADERS if stream == of => return Fate::Answered(payload[0]),
                    RST_STREAM if stream == of => return Fate::Reset,
                    GOAWAY if payload[4..8] != [0; 4] => return Fate::Gone,
                    _ => {}
                }
            }
            Fate::Gone
        };
        timeout(PATIENCE, fate).await.expect("an answer or an end")
    }

    /// Until the proxy ends the connection.
    pub(super) async fn end(&mut self) {
        let end = async { while self.next().await.is_some() {} };
        timeout(PATIENCE, end).await.expect("the proxy closes");
    }
}

/// Asks once by HTTP/2, on a connection of its own.
pub(super) async fn ask(at: SocketAddr, connector: &TlsConnector, path: &str) -> Fate {
    let mut frames = Frames::open(at, connector).await;
    let request = frame(HEADERS, END_STREAM | END_HEADERS, 1, &ask_for(path));
    frames.send(&request).await;
    frames.fate(1).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_http_2_can_carry_and_http_1_cannot_is_refused() {
    let four = "four";
    let mut asking = JoinSet::new();
    for (changed, body) in [
        (("x", "1\r\ntransfer-encoding: chunked"), four),
        (("x", "1\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: site\r\n\r\n"), four),
        (("x", "1\ny: 2"), four),
        (("x", "1\ry: 2"), four),
        (("x", "a\0b"), four),
        (("x: 1\r\ntransfer-encoding", "chunked"), four),
        (("x\r\n\r\nGET /smuggled HTTP/1.1\r\nhost", "site"), four),
        (("x y", "1"), four),
        (("x:y", "1"), four),
        (("", "1"), four),
        (("X-Upper", "1"), four),
        (("transfer-encoding", "chunked"), four),
        (("transfer-encoding", "identity"), four),
        (("connection", "close"), four),
        (("keep-alive", "1"), four),
        (("upgrade", "h2c"), four),
        (("te", "gzip"), four),
        ((":path", "/p HTTP/1.1\r\nhost: site\r\n\r\nGET /smuggled"), four),
        ((":path", "/p HTTP/1.1"), four),
        ((":path", "p"), four),
        ((":path", ""), four),
        ((":method", "GET /smuggled HTTP/1.1\r\nhost: site\r\n\r\nPOST"), four),
        ((":method", "CONNECT"), four),
        ((":authority", "site\r\nx: y"), four),
        ((":authority", "site/smuggled"), four),
        ((":status", "200"), four),
        ((":unknown", "1"), four),
        (("content-length", "3"), four),
        (("content-length", "0"), four),
        (("content-length", "5"), four),
        (("content-length", "+4"), four),
        (("content-length", "4, 4"), four),
        (("content-length", "99999999999999999999"), four),
        // whoever framed this by its own words would find a request in it
        (("content-length", "0"), SMUGGLED),
    ] {
        asking.spawn(async move {
            let (origin, heard) = strict_origin().await;
            let mut config = hasty(origin);
            let (_files, connector) = secure(&mut config);
            let proxy = start(config).await;
            let mut fields = vec![
                (":method", "POST"),
                (":scheme", "https"),
                (":authority", "site"),
                (":path", "/p"),
            ];
            match fields.iter_mut().find(|(name, _)| *name == changed.0) {
                Some(field) => *field = changed,
                None => fields.push(changed),
            }
            let mut frames = Frames::open(proxy.at, &connector).await;
            let request = [
                frame(HEADERS, END_HEADERS, 1, &block(&fields)),
                frame(DATA, END_STREAM, 1, body.as_bytes()),
            ];
            frames.send(&request.concat()).await;
            let fate = frames.fate(1).await;
            assert_ne!(fate, FINE, "{changed:?} {body:?}");
            assert_eq!(ask(proxy.at, &connector, "/next").await, FINE, "after {changed:?}");
            let heard = heard.lock().unwrap().clone();
            let told = format!("{changed:?} {body:?}: {fate:?} {heard:?}");
            assert!(heard.faults.is_empty(), "{told}");
            assert!(heard.bodies.iter().all(String::is_empty) && heard.bodies.len() <= 2, "{told}");
            let expected = ["POST /p HTTP/1.1", "GET /next HTTP/1.1"];
            assert!(heard.lines.iter().all(|line| expected.contains(&line.as_str())), "{told}");
            drop(frames);
            ends(proxy).await;
        });
    }
    asking.join_all().await;
}

#[tokio::test]
async fn what_http_2_splits_or_says_twice_is_one_for_the_origin() {
    let (origin, heard) = strict_origin().await;
    let mut config = hasty(origin);
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    let mut frames = Frames::open(proxy.at, &connector).await;
    let mut request = ask_for("/crumbs");
    request.extend(block(&[("cookie", "a=1"), ("cookie", "b=2"), ("host", "evil.example")]));
    frames.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &request)).await;
    assert_eq!(frames.fate(1).await, FINE);
    let mut request = ask_for("/lengths");
    request.extend(block(&[("content-length", "4"), ("content-length", "4")]));
    let request = [frame(HEADERS, END_HEADERS, 3, &request), frame(DATA, END_STREAM, 3, b"four")];
    frames.send(&request.concat()).await;
    assert_eq!(frames.fate(3).await, FINE);
    let heard = heard.lock().unwrap().clone();
    assert_eq!((heard.lines.len(), heard.faults.len()), (2, 0), "{heard:?}");
    drop(frames);
    ends(proxy).await;
}

#[tokio::test]
async fn a_request_of_http_2_names_its_host_and_has_a_bounded_number_of_lines() {
    let (origin, heard) = strict_origin().await;
    let mut config = hasty(origin);
    let (_files, connector) = secure(&mut config);
    let proxy = start(config).await;
    let nobodys = block(&[(":method", "GET"), (":scheme", "https"), (":path", "/nobody")]);
    let many = [ask_for("/many"), block(&[("x", "1"); 101])].concat();
    let mut frames = Frames::open(proxy.at, &connector).await;
    for (stream, request) in [(1, nobodys), (3, many)] {
        frames.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &request)).await;
        let fate = frames.fate(stream).await;
        assert!(matches!(fate, Fate::Answered(_)) && fate != FINE, "{stream}: {fate:?}");
    }
    let most =
        [ask_for("/most"), block(&[("x", "1"); 99]), block(&[("cookie", "a=b"); 9])].concat();
    frames.send(&frame(HEADERS, END_STREAM | END_HEADERS, 5, &most)).await;
    assert_eq!(frames.fate(5).await, FINE);
    assert_eq!(heard.lock().unwrap().lines, ["GET /most HTTP/1.1"]);
    drop(frames);
    ends(proxy).await;
}

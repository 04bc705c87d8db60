// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Heads of requests, and where their bodies end.

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { bytes: 8192, headers: 4 };

fn read_text(text: &str) -> Read {
    read(text.as_bytes(), LIMITS)
}

#[test]
fn a_head_is_read_with_the_framing_of_its_body() {
    for (lines, framing) in [
        ("", Framing::Sized(0)),
        ("content-length: 5\r\n", Framing::Sized(5)),
        ("Content-Length: 5\r\ncontent-length: 5\r\n", Framing::Sized(5)),
        ("Transfer-Encoding:\tCHUNKED \r\n", Framing::Chunked),
    ] {
        let head = format!("POST /a HTTP/1.1\r\nhost: x\r\n{lines}\r\n");
        assert_eq!(read_text(&format!("{head}five.GET")), Read::Head(head.len(), framing));
        for cut in 0..head.len() {
            assert_eq!(read_text(&head[..cut]), Read::Partial, "{head:?} cut to {cut}");
        }
    }
}

#[test]
fn what_two_servers_could_read_differently_is_refused_with_its_status() {
    for (lines, status) in [
        ("content-length: 4\r\ncontent-length: 5\r\n", 400),
        ("content-length: +4\r\n", 400),
        ("content-length:\r\n", 400),
        ("content-length: 4, 4\r\n", 400),
        ("content-length: 18446744073709551616\r\n", 400),
        ("content-length: 4\r\ntransfer-encoding: chunked\r\n", 400),
        ("transfer-encoding: chunked\r\ncontent-length: 4\r\n", 400),
        ("transfer-encoding: gzip, chunked\r\n", 501),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n", 501),
        ("content-length : 4\r\n", 400),
        (" folded: 1\r\n", 400),
        ("a: 1\r\nb: 1\r\nc: 1\r\nd: 1\r\ne: 1\r\n", 431),
    ] {
        let Read::Bad(told, sentence) = read_text(&format!("POST / HTTP/1.1\r\n{lines}\r\n"))
        else {
            panic!("{lines:?} was taken");
        };
        assert_eq!(told.as_u16(), status, "{lines:?}: {sentence}");
        assert!(sentence.ends_with('.'), "{sentence}");
    }
    for (line, status) in [
        ("GET / HTTP/2.0", 505),
        ("GET /", 400),
        ("GET /a b HTTP/1.1", 400),
        ("GET foo: HTTP/1.1", 400),
        ("GET foo HTTP/1.1", 400),
        ("\u{16}\u{3}\u{1}", 400),
    ] {
        let Read::Bad(told, _) = read_text(&format!("{line}\r\n\r\n")) else {
            panic!("{line:?} was taken");
        };
        assert_eq!(told.as_u16(), status, "{line:?}");
    }
    let old = "POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n";
    assert!(matches!(read_text(old), Read::Bad(StatusCode::BAD_REQUEST, _)));
    let long = format!("GET /{}", "a".repeat(LIMITS.bytes));
    assert!(matches!(read_text(&long), Read::Bad(StatusCode::URI_TOO_LONG, _)));
}

#[test]
fn every_byte_that_may_stand_in_a_target_is_taken_as_it_is_or_encoded() {
    for byte in 0x21..=0xff_u8 {
        for place in [&b"/"[..], b"/?q="] {
            let target = [place, &[byte]].concat();
            let mut head = [b"GET ", &target[..], b" HTTP/1.1\r\n\r\n"].concat();
            let encoded = read(&head, LIMITS) == Read::Odd;
            if encoded {
                encode(&mut head);
            }
            let taken = read(&head, LIMITS);
            match byte {
                0x7f => assert!(matches!(taken, Read::Bad(..)), "{byte:#x}: {taken:?}"),
                _ => assert_eq!(taken, Read::Head(head.len(), Framing::Sized(0)), "{byte:#x}"),
            }
            let sent = std::str::from_utf8(&head[4..head.len() - 13]);
            if byte != 0x7f {
                http::uri::PathAndQuery::try_from(sent.unwrap()).expect("hyper takes it");
            }
            assert_eq!(encoded, is_odd(byte), "{byte:#x}");
        }
    }
    let mut head = b"\r\nGET /a?<\xff>\"` HTTP/1.1\r\nx: <\r\n\r\n".to_vec();
    encode(&mut head);
    assert_eq!(head, b"\r\nGET /a?%3C%FF%3E%22%60 HTTP/1.1\r\nx: <\r\n\r\n");
}

#[test]
fn the_end_of_chunks_is_found_behind_extensions_and_trailers() {
    for body in [
        "0\r\n\r\n",
        "4\r\nabcd\r\n0\r\n\r\n",
        "a;x=y\r\n0\r\n\r\n01234\r\n00\r\nx: y\r\nz: 1\r\n\r\n",
        "4  \r\nabcd\r\n0\r\n\r\n",
        // no line ends with a bare line feed
        "0\r\nx: y\n\nz: 1\r\n\r\n",
        "0\r\n\nz: 1\n\r\n\r\n",
    ] {
        for cut in 0..body.len() {
            let mut chunks = Chunks::Size(None);
            assert_eq!(chunks.pass(&body.as_bytes()[..cut]), cut);
            assert_ne!(chunks, Chunks::Over);
            let rest = format!("{}GET /", &body[cut..]);
            assert_eq!(chunks.pass(rest.as_bytes()), body.len() - cut, "{body:?} from {cut}");
            assert_eq!(chunks, Chunks::Over);
        }
    }
    for senseless in ["x", "\r\n", "-4\r\n", "11111111111111111\r\n", "0\r\n\rx", "0\r\nx\r\r\n"] {
        let mut chunks = Chunks::Size(None);
        assert_eq!(chunks.pass(senseless.as_bytes()), senseless.len());
        assert_eq!(chunks, Chunks::Senseless, "{senseless:?}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic_and_what_is_encoded_is_no_longer_odd(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
        line in prop::bool::ANY,
    ) {
        if line {
            bytes.splice(0..0, *b"GET /");
            bytes.extend(b" HTTP/1.1\r\n\r\n");
        }
        if read(&bytes, LIMITS) == Read::Odd {
            encode(&mut bytes);
            prop_assert_ne!(read(&bytes, LIMITS), Read::Odd);
        }
        let mut chunks = Chunks::Size(None);
        prop_assert!(chunks.pass(&bytes) <= bytes.len());
    }
}

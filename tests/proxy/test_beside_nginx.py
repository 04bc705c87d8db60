# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The proxy does what nginx does before the same origin; where it does not, the table says why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from beside import OK, Origin, Seen, exchange, netnice, nginx

END = b"Connection: close\r\n\r\n"


@dataclass(frozen=True)
class Case:
    """What a client sends, and the first digits of the statuses that it gets from us."""

    name: str
    sends: bytes | tuple[bytes, ...]
    status: str
    answer: bytes = OK
    half_closes: bool = False
    differs: str = ""  # why nginx's statuses, or what its origin saw, are others
    brings: bytes = b""  # a pattern of all that both bring the client
    target: str = ""  # as the origin gets it of ours


def get(target: bytes, *lines: bytes) -> bytes:
    """Return a request that ends its connection."""
    return b"GET " + target + b" HTTP/1.1\r\nHost: site\r\n" + b"".join(lines) + END


def post(*lines: bytes, body: bytes = b"") -> bytes:
    """Return an upload that ends its connection."""
    return b"POST /p HTTP/1.1\r\nHost: site\r\n" + b"".join(lines) + END + body


ANSWER = rb"HTTP/1\.1 200 OK\r\n(?:[^\r\n]+\r\n)+\r\n"
INSIDE = b"GET /inside HTTP/1.1\r\nHost: site\r\n\r\n"
FIRST = b"GET /first HTTP/1.1\r\nHost: site\r\n\r\n"
ENCODED = "a target that is no URI is sent on as a browser would have sent it: percent-encoded"
STRICT = "RFC 9112 calls it malformed"
BOUNDED = "header lines are bounded by number, too"
PATHS = "paths are the origin's to judge: nothing is read from files here"

CASES = [
    Case("a plain request passes", get(b"/a?b=c"), "2"),
    Case("the answer to HEAD has no body",
         b"HEAD /a HTTP/1.1\r\nHost: site\r\n" + END, "2", brings=ANSWER),
    Case("a body of a length passes", post(b"Content-Length: 4\r\n", body=b"four"), "2"),
    Case(
        "a body in chunks passes",
        post(b"Transfer-Encoding: chunked\r\n", body=b"2;x=y\r\nfo\r\n2\r\nur\r\n0\r\n\r\n"),
        "2",
    ),
    Case(
        "a request within a body stays in it",
        post(b"Content-Length: %d\r\n" % len(INSIDE), body=INSIDE),
        "2",
    ),
    Case(
        "requests that come at once are answered in order",
        FIRST + FIRST.replace(b"first", b"second") + get(b"/third"),
        "222",
        brings=ANSWER + b"/first" + ANSWER + b"/second" + ANSWER + b"/third",
    ),
    Case("a head may come in pieces", (b"GET /a HT", b"TP/1.1\r\nHo", b"st: site\r\n" + END), "2"),
    Case("lines may end without CR", b"GET /a HTTP/1.1\nHost: site\nConnection: close\n\n", "2"),
    Case("HTTP/1.0 is answered", b"GET /a HTTP/1.0\r\nHost: site\r\n\r\n", "2"),
    Case("a client may wait until it is told to continue",
         (post(b"Expect: 100-continue\r\n", b"Content-Length: 4\r\n"), b"four"), "12"),
    # lists
    Case(
        "all lines of X-Forwarded-For are passed, and the client appended",
        get(b"/", b"X-Forwarded-For: 192.0.2.1\r\n", b"X-Forwarded-For: 192.0.2.2\r\n"),
        "2",
    ),
    Case("the scheme is not the client's to say", get(b"/", b"X-Forwarded-Proto: https\r\n"), "2"),
    Case(
        "what belongs to one hop ends here",
        get(b"/", b"TE: trailers\r\n", b"Keep-Alive: 1\r\n"),
        "2",
    ),
    Case(
        "what Connection names ends here",
        get(b"/", b"Connection: X-Mine\r\n", b"X-Mine: 1\r\n"),
        "2",
        differs="RFC 9110, section 7.6.1, which nginx leaves to its configuration",
    ),
    Case(
        "headers with odd names pass",
        get(b"/", b"x_under: 1\r\n"),
        "2",
        differs="an underscore is allowed in a name",
    ),
    # targets
    Case("quotes and brackets in a query pass", get(b'/?q="<b>'), "2", differs=ENCODED,
         target="/?q=%22%3Cb%3E"),
    Case("bytes that are no UTF-8 pass", get(b"/caf\xe9"), "2", differs=ENCODED,
         target="/caf%E9"),
    Case("UTF-8 passes", get("/ä".encode()), "2", differs=ENCODED, target="/%C3%A4"),
    Case("braces, bars and brackets pass as they are", get(b"/a|b{c}[d]\\e^f'"), "2",
         target="/a|b{c}[d]\\e^f'"),
    Case("slashes are not made fewer", get(b"//a//b/"), "2", target="//a//b/"),
    Case("dots within the site pass as they are", get(b"/a/../b/./c"), "2", target="/a/../b/./c"),
    Case("dots that lead above it do too", get(b"/../b"), "2", differs=PATHS, target="/../b"),
    Case("an encoded zero passes", get(b"/%00"), "2", differs=PATHS, target="/%00"),
    Case(
        "an absolute target is taken apart",
        b"GET http://site/a HTTP/1.1\r\nHost: x\r\n" + END,
        "2",
    ),
    Case("a target without a slash is refused", get(b"a"), "4"),
    Case("two words are no target", get(b"/a b"), "4"),
    Case("a character that erases is no target", get(b"/a\x7fb"), "4"),
    Case("an endless target is refused", get(b"/" + b"a" * 40_000), "4"),
    Case("this is no forward proxy", b"CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n" + END, "4"),
    # host
    Case("a request names its host", b"GET / HTTP/1.1\r\n" + END, "4"),
    Case("it names one", get(b"/", b"Host: site\r\n"), "4"),
    Case("that has a name", b"GET / HTTP/1.1\r\nHost:\r\n" + END, "4"),
    Case("a host has no blank", b"GET / HTTP/1.1\r\nHost: a b\r\n" + END, "4"),
    Case("a host has no path", b"GET / HTTP/1.1\r\nHost: a/b\r\n" + END, "4"),
    Case("a host has no quote", b'GET / HTTP/1.1\r\nHost: a"b\r\n' + END, "4", differs=STRICT),
    Case("a host has no user", b"GET / HTTP/1.1\r\nHost: a@b\r\n" + END, "4", differs=STRICT),
    # smuggling
    Case(
        "a length and chunks are one framing too many",
        post(b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", body=b"0\r\n\r\n" + INSIDE),
        "4",
    ),
    Case("a coding but chunked is refused", post(b"Transfer-Encoding: gzip, chunked\r\n"), "5"),
    Case("two lengths are refused", post(b"Content-Length: 4\r\nContent-Length: 5\r\n"), "4"),
    Case(
        "one length twice is one",
        post(b"Content-Length: 4\r\nContent-Length: 4\r\n", body=b"four"),
        "2",
        differs="RFC 9110, section 8.6, lets it be; every server reads it in one way",
    ),
    Case("a length has no sign", post(b"Content-Length: +4\r\n", body=b"four"), "4"),
    Case("a length has no digits too many", post(b"Content-Length: 99999999999999999999\r\n"), "4"),
    Case("no blank stands before a colon", post(b"Content-Length : 4\r\n", body=b"four"), "4"),
    Case("a header line has a colon", get(b"/", b"nothing\r\n"), "4", differs=STRICT),
    Case("a header is one line", get(b"/", b"X: 1\r\n", b" folded: 2\r\n"), "4"),
    Case("a header has no zero", get(b"/", b"X: \0\r\n"), "4"),
    Case(
        "a chunk that is none is the client's fault",
        post(b"Transfer-Encoding: chunked\r\n", body=b"zz\r\nabc\r\n"),
        "4",
    ),
    Case("HTTP/1.0 has no chunks",
         b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "4"),
    Case("another version is not spoken", b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", "5"),
    Case("TLS is not spoken here", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", "4"),
    Case("a header of 40 kB is refused", get(b"/", b"X: " + b"a" * 40_000 + b"\r\n"), "4"),
    Case("200 header lines are refused", get(b"/", b"X: 1\r\n" * 200), "4", differs=BOUNDED),
    # the end of a connection
    Case(
        "a client that has said all still gets its answer",
        b"GET /slow HTTP/1.1\r\nHost: site\r\n\r\n",
        "2",
        half_closes=True,
        differs="it may do so (RFC 9112, section 9.6); nginx takes it for gone",
    ),
    Case(
        "an answer that is none is told",
        get(b"/a"),
        "5",
        answer=b"SSH-2.0-x\r\n\r\n",
        differs="nginx takes it for one of HTTP/0.9",
    ),
    Case("no answer is told", get(b"/a"), "5", answer=b""),
    Case(
        "200 header lines of an answer pass",
        get(b"/a"),
        "2",
        answer=b"HTTP/1.1 200 OK\r\n" + b"X-Line: 1\r\n" * 200 + b"Content-Length: 2\r\n\r\nok",
    ),
    Case(
        "a switch of protocols that nobody asked for is told",
        get(b"/a"),
        "5",
        answer=b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        differs="nginx passes it on to a client that has not asked",
    ),
    Case(
        "a request that meets the end of a kept connection is sent again, and then given up",
        (FIRST, get(b"/a")),
        "25",
        answer=b"",
    ),
    Case(
        "an upload that meets it is not",
        (FIRST, post(b"Content-Length: 4\r\n", body=b"four")),
        "25",
        answer=b"",
    ),
]  # fmt: skip


def statuses(answers: bytes) -> str:
    """Return the first digit of each status in what a connection brought."""
    return "".join(match.decode() for match in re.findall(rb"HTTP/1\.[01] (\d)", answers))


@pytest.fixture(scope="module")
def origin() -> Origin:
    return Origin()


@pytest.fixture(scope="module")
def ports(origin: Origin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    with (
        netnice(origin, tmp_path_factory.mktemp("netnice")) as ours,
        nginx(origin, tmp_path_factory.mktemp("nginx")) as theirs,
    ):
        yield ours, theirs


def told(origin: Origin, port: int, case: Case) -> tuple[str, list[Seen]]:
    """Return the statuses that a proxy brings, and what the origin saw."""
    origin.seen.clear()
    origin.answer = case.answer
    sends = case.sends if isinstance(case.sends, tuple) else (case.sends,)
    answers = exchange(port, *sends, half_closes=case.half_closes)
    assert not case.brings or re.fullmatch(case.brings, answers), answers
    return statuses(answers), list(origin.seen)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name.replace(" ", "_"))
def test_beside_nginx(case: Case, origin: Origin, ports: tuple[int, int]) -> None:
    ours, theirs = (told(origin, port, case) for port in ports)
    assert ours[0] == case.status, ours
    if case.target:
        assert [seen.line.split(" ")[1] for seen in ours[1]] == [case.target]
    if case.differs:
        assert ours != theirs, f"no longer true: {case.differs}"
    else:
        assert ours == theirs

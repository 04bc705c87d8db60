# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""A connection that was in the background is in the foreground again what it was before.

Where time is virtual.
"""

from __future__ import annotations

import json
import re
import socket
import time
from dataclasses import dataclass

import pytest
from classes import ALGORITHM, DEFAULT
from support import (
    PYTHON,
    RECEIVER,
    ROOT,
    SENDER,
    TCP_CONGESTION,
    Enabled,
    Link,
    Process,
    call,
    wait_until,
)

PORT = 5201

ORIGIN = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = bytes(int(self.path.split("-")[1]))
        self.send_response(200)
        self.send_header("Content-Type", "image/png")
        self.send_header("Cache-Control", "max-age=3600")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
server = ThreadingHTTPServer(("127.0.0.1", 8080), Origin)
print("listening", flush=True)
server.serve_forever()
"""

# Arguments: address, headers of what is asked for between. Prints the mean seconds of the first
# answer of a connection, which the handshake is not counted for, and of the last.
CLIENT = """
import http.client, json, sys, time
host, headers, rounds, length = sys.argv[1], json.loads(sys.argv[2]), 6, 20000
took = {"first": 0, "between": 0, "last": 0}
for i in range(rounds):
    connection = http.client.HTTPConnection(host, 80)
    connection.connect()
    for name in took:
        begin = time.monotonic()
        asked = headers if name == "between" else {}
        connection.request("GET", f"/{name}{i}-{length}", headers=asked)
        answer = connection.getresponse()
        body = answer.read()
        assert (answer.status, len(body)) == (200, length), (name, i, answer.status, body[:200])
        took[name] += (time.monotonic() - begin) / rounds
    connection.close()
print(json.dumps(took))
"""


FIRST = """
import http.client, sys
connection = http.client.HTTPConnection(sys.argv[1], 80)
connection.request("GET", "/ready-1")
print(connection.getresponse().status, end="")
"""


@pytest.fixture
def proxy(enabled: Enabled) -> Link:
    """Start `netnice-prefetch` in front of an origin, at a bottleneck of a cable modem."""
    link = enabled(ALGORITHM).limit(1.5, 40).delay(30)
    assert link.sender.start(PYTHON, "-S", "-E", "-c", ORIGIN).line() == "listening"
    program = str(ROOT / "target" / "release" / "netnice-prefetch")
    serve = (program, "serve", "--origin", "http://127.0.0.1:8080", "--listen", f"{SENDER}:80")
    process = link.sender.start(*serve)
    assert "listening" in process.line()
    said = "prefetches go in the background of each connection"
    wait_until(f"the proxy says that {said}", lambda: said in process.errors)
    # an emulated processor that is short of time reads programs in for longer than a proxy waits
    client = (PYTHON, "-S", "-E", "-c", FIRST, SENDER)
    wait_until("a first answer", lambda: link.receiver.call(*client) == "200")
    return link


def means(link: Link, **headers: str) -> dict[str, float]:
    """Return the mean seconds of the answers; `headers` are those of the one between."""
    client = (PYTHON, "-S", "-E", "-c", CLIENT, SENDER, json.dumps(headers))
    took: dict[str, float] = json.loads(link.receiver.call(*client))
    print({name: round(seconds, 3) for name, seconds in took.items()}, headers)
    return took


def test_an_answer_after_a_prefetch_is_as_fast_as_after_a_demand_where_nobody_else_is(
    proxy: Link,
) -> None:
    demand, ahead = means(proxy), means(proxy, Purpose="prefetch")
    # 20 kB are 14 packets, two round trips from an initial window of 10
    assert ahead["last"] <= 1.05 * demand["last"]


@pytest.mark.soak
def test_an_answer_after_a_prefetch_takes_no_longer_than_on_a_new_connection_beside_others(
    proxy: Link,
) -> None:
    proxy.send(proxy.sink(), "--control", "cubic")
    ahead = means(proxy, Purpose="prefetch")
    means(proxy)  # for docs/prefetch.md
    # by chance more or less: both lose packets. A gap that went on would be four round trips more
    assert ahead["last"] <= 1.5 * ahead["first"]


# A client that sends as it is told and can choose another control.
SENDS = """
import socket, sys
sock = socket.create_connection((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
for line in sys.stdin:
    word, value = line.split()
    if word == "control":
        sock.setsockopt(socket.IPPROTO_TCP, 13, value.encode())
    else:
        sock.sendall(bytes(int(value)))
    print("done", flush=True)
"""
assert TCP_CONGESTION == 13


@dataclass
class Turning:
    """A connection that is told what to send, and under which control."""

    link: Link
    client: Process
    accepted: socket.socket

    def order(self, text: str) -> None:
        """Have it done: `send BYTES` or `control NAME`."""
        self.client.tell(text)
        assert self.client.line() == "done"

    def shown(self) -> str:
        """Return what `ss` tells of it."""
        (line,) = self.link.sender.call(
            "ss", "-tinOH", "state", "established", f"dport = :{PORT}"
        ).splitlines()
        return line

    def drained(self) -> bool:
        """Read what came, and tell whether all that was sent is acknowledged."""
        try:
            while self.accepted.recv(1 << 16):
                pass
        except BlockingIOError:
            pass
        shown = self.shown()
        return "unacked:" not in shown and "notsent:" not in shown

    def number(self, name: str) -> int | None:
        """Return a number that `ss` tells, None if it does not tell it."""
        match = re.search(rf"\b{name}:(\d+)", self.shown())
        return int(match[1]) if match else None


@pytest.fixture
def turning(enabled: Enabled) -> Turning:
    """Return a connection of CUBIC over a path of 40 ms."""
    link = enabled(ALGORITHM).without_offloads().delay(40)
    listener = link.receiver.listen(RECEIVER, PORT)
    client = link.sender.start(PYTHON, "-S", "-E", "-c", SENDS, RECEIVER, str(PORT))
    accepted, _ = listener.accept()
    link.receiver.sockets.append(accepted)
    accepted.setblocking(False)
    assert client.line() == "connected"
    return Turning(link, client, accepted)


@pytest.mark.soak
def test_a_new_connection_that_was_in_the_background_leaves_it_like_a_new_one(
    turning: Turning,
) -> None:
    # Nice with a threshold of 0 on a path that gets longer: the window falls to its least
    settings = ("threshold=0", "fraction=0", "together=0", "least=0.125")
    pid = str(turning.client.pid)
    call("netnice", "attach", *(w for s in settings for w in ("--set", s)), pid)
    turning.order("send 20000")
    wait_until("the least RTT is known", turning.drained)
    turning.link.delay(50)
    turning.order("send 40000")
    wait_until("it is through, at the least window", turning.drained)
    before = turning.shown()
    assert turning.number("ssthresh") is not None
    turning.order("control cubic")
    after = turning.shown()
    print(f"in the background: {before}\nback: {after}")
    assert DEFAULT in before
    assert re.search(r"\bcubic\b", after)
    # a window for a start, and slow start: ss shows no infinite threshold
    assert turning.number("cwnd") == 10
    assert turning.number("ssthresh") is None
    capture = turning.link.capture()
    turning.order("send 14000")
    packets = capture.packets()
    times = [p.time_s for p in (next(packets) for _ in range(10)) if p.payload]
    # all ten at once, not two for each round trip or less
    assert times[-1] - times[0] < 0.02
    turning.client.popen.terminate()
    turning.client.status()


def test_a_connection_comes_back_from_the_background_with_what_it_knew_of_the_path(
    turning: Turning,
) -> None:
    turning.link.limit(1.5, 20)
    turning.order("send 400000")  # 276 packets, where 10 to 15 fill the path and 20 wait
    wait_until("it is through, with losses", turning.drained)
    cwnd, ssthresh = turning.number("cwnd"), turning.number("ssthresh")
    assert cwnd is not None and ssthresh is not None
    turning.order(f"control {DEFAULT}")
    turning.order("control cubic")  # no time has passed: the window is as it was
    print(f"left with {cwnd}, {ssthresh}; back: {turning.shown()}")
    assert turning.number("cwnd") == max(cwnd, 10)
    kept = max(ssthresh, cwnd // 4 * 3)
    assert turning.number("ssthresh") == kept
    turning.order(f"control {DEFAULT}")
    turning.order("send 20000")
    wait_until("it is through, in the background", turning.drained)
    time.sleep(2)
    turning.order("send 1000")  # the time that passed is that of the last packet
    wait_until("this is through, too", turning.drained)
    turning.order("control cubic")
    print(f"back after two seconds: {turning.shown()}")
    # of a window below 200 packets a second leaves no more than an initial one: 200 / 2^5 < 10
    assert turning.number("cwnd") == 10
    assert turning.number("ssthresh") == kept

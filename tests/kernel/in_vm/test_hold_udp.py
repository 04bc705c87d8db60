# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""UDP of the background waits in its host as TCP does, while TCP shows the rate.

Where fq is (Debian's kernels), and time is virtual.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator

import pytest
from support import PYTHON, RECEIVER, Json, Link, Process, wait_until

RATE_MBIT, RTT_MS, ROOM = 8.0, 50.0, 50
RUN = ("netnice", "run", "--verbose", "--")
PORT = 4433
TOO_MUCH = 1.5
"""Of the rate: it has no congestion control, and loses what is too much, somewhere."""

# as much as that for some seconds, two packets at once, of 1200 bytes with their headers
SENDS = f"""
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
at, end = time.monotonic(), time.monotonic() + float(sys.argv[1])
while at < end:
    for _ in range(2):
        s.sendto(bytes(1158), ({RECEIVER!r}, {PORT}))
    at += 2 * 1200 * 8 / {TOO_MUCH * RATE_MBIT * 1e6}
    time.sleep(max(0, at - time.monotonic()))
"""
COUNTS = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(({RECEIVER!r}, {PORT}))
print("counts", flush=True)
n = 0
s.recv(2000)
s.settimeout(2)
try:
    while s.recv(2000):
        n += 1
except TimeoutError:
    print(n)
"""


@pytest.fixture
def held(link: Link) -> Iterator[Link]:
    """Return a link whose sender holds."""
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    link.sender.call("netnice", "hold", "eth")
    yield link
    link.sender.clear()
    link.sender.call("netnice", "hold", "--off", "eth")


def path_of(link: Link) -> Json:
    """Return what the hold knows of the only path that the background takes; None: nothing yet."""
    (hold,) = json.loads(link.sender.call("netnice", "hold", "--json"))
    paths: list[Json] = hold["paths"]
    return paths[0] if paths else None


def counting(link: Link) -> Process:
    """Count the datagrams that come, in the receiver, until none comes for two seconds."""
    counts = link.receiver.start(PYTHON, "-S", "-E", "-c", COUNTS)
    assert counts.line() == "counts"
    return counts


def pings(link: Link) -> list[float]:
    """Return round trips of the foreground in four seconds, in milliseconds."""
    said = link.sender.call("ping", "-n", "-i", "0.1", "-c", "40", RECEIVER)
    return sorted(map(float, re.findall(r"time=([\d.]+)", said)))


def test_udp_of_a_run_waits_beside_tcp_of_the_background_and_what_is_too_much_is_dropped(
    held: Link,
) -> None:
    sink = held.sink()
    held.send(sink, under=RUN)
    wait_until("a rate", lambda: (path_of(held) or {}).get("rate_bits"))
    time.sleep(3)
    counts, before = counting(held), path_of(held)
    began = time.monotonic()
    udp = held.sender.start(*RUN, PYTHON, "-S", "-E", "-c", SENDS, "8")
    time.sleep(2)
    waits = pings(held)
    assert udp.status() == 0, udp.errors
    after, seconds = path_of(held), time.monotonic() - began
    came = int(counts.line())
    sent = int(8 * TOO_MUCH * RATE_MBIT * 1e6 / 8 / 1200)
    print(before, after, came, sent, waits, udp.errors)
    # The queue of 50 packets is 75 ms. What waits in front of a ping is a packet and a half at
    # most, and what a probe of the rate adds.
    assert len(waits) == 40
    assert waits[20] < RTT_MS + 4
    assert waits[37] < RTT_MS + 12
    # both have a part of what the line carries
    assert 0.1 * RATE_MBIT < came * 1200 * 8e-6 / 8 < 0.9 * RATE_MBIT
    assert after["dropped"] > 0
    background = after["background_bytes"] - before["background_bytes"]
    assert background * 8e-6 / seconds == pytest.approx(RATE_MBIT, rel=0.1)
    assert "over UDP" not in udp.errors
    assert "no TCP connection" not in udp.errors


def test_udp_alone_shows_no_rate_and_is_sent_as_before_and_the_run_says_so(held: Link) -> None:
    counts = counting(held)
    udp = held.sender.start(*RUN, PYTHON, "-S", "-E", "-c", SENDS, "8")
    time.sleep(2)
    waits = pings(held)
    assert udp.status() == 0, udp.errors
    print(waits, udp.errors)
    # the queue is full: 50 packets of 1200 bytes are 60 ms
    assert len(waits) < 40 or waits[20] > RTT_MS + 40
    assert int(counts.line()) * 1200 * 8e-6 / 8 > 0.9 * RATE_MBIT
    assert "went out over UDP and did not wait" in udp.errors

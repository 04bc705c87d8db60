# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is in the background waits in its host until the path has room.

Where fq is (Debian's kernels), and time is virtual.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from itertools import groupby, islice
from statistics import mean

import pytest
from classes import DEFAULT
from support import (
    PYTHON,
    RECEIVER,
    RECEIVER6,
    Capture,
    Json,
    Link,
    Process,
    flows,
    wait_until,
)

RATE_MBIT, RTT_MS, ROOM = 8.0, 50.0, 50
RUN = ("netnice", "run", "--")
ANSWERS = """
import asyncio, sys
async def serve(reader, writer):
    while word := await reader.readline():
        writer.write(word)

async def main():
    server = await asyncio.start_server(serve, *sys.argv[1:])
    print("serves", flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
# the longest time, in seconds, that any of 24 connections waited for one of its answers
ASKS = """
import asyncio, sys, time
async def ask():
    reader, writer = await asyncio.open_connection(*sys.argv[1:])
    waited = []
    for _ in range(3):
        began = time.monotonic()
        writer.write(b"what?\\n")
        await reader.readline()
        waited.append(time.monotonic() - began)
    return max(waited)

async def main():
    print(max(await asyncio.gather(*(ask() for _ in range(24)))))

asyncio.run(main())
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
    holds: list[Json] = json.loads(link.sender.call("netnice", "hold", "--json"))
    assert [hold["device"] for hold in holds] in ([], ["eth"])
    paths: list[Json] = holds[0]["paths"] if holds else []
    return paths[0] if paths else None


def backlog(link: Link) -> int:
    """Return the packets that wait at the bottleneck."""
    (queue,) = json.loads(link.router.call("tc", "-j", "-s", "qdisc", "show", "dev", "right"))
    packets: int = queue["qlen"]
    return packets


def test_it_fills_an_idle_link_and_the_queue_there_stays_empty(held: Link) -> None:
    sink = held.sink()
    held.send(sink, "--flows", "64", under=RUN)
    wait_until("a rate", lambda: (path_of(held) or {}).get("rate_bits"))
    time.sleep(3)
    before, since = path_of(held), time.monotonic()
    queues = []
    for _ in range(20):
        time.sleep(0.25)
        queues.append(backlog(held))
    after, seconds = path_of(held), time.monotonic() - since
    print(after, queues)
    sent_mbit = 8e-6 * (after["background_bytes"] - before["background_bytes"]) / seconds
    # a token bucket lets a probe pass before a queue shows it: up to 4 % too much
    assert after["rate_bits"] == pytest.approx(RATE_MBIT * 1e6, rel=0.05)
    assert sent_mbit == pytest.approx(RATE_MBIT, rel=0.03)
    assert max(queues) <= 3
    assert after["unheld"] == 0
    nice = held.sender.start("netnice", "run", "--algorithm", "nice", "--", "true")
    assert nice.status() == 0
    assert "nice yields to that wait too: it will be slow" in nice.errors
    held.sender.clear()
    assert sink.report()["errors"] == 0


def test_connections_leave_one_after_the_other_some_packets_each(held: Link) -> None:
    sink = held.sink()
    held.send(sink, "--flows", "16", under=RUN)
    wait_until("a rate", lambda: (path_of(held) or {}).get("rate_bits"))
    time.sleep(3)
    data = (p.sport for p in Capture(held.receiver, "eth").packets() if p.payload)
    turns = [len(list(turn)) for _, turn in groupby(islice(data, 1000))]
    print(turns)
    # 12 in a turn, or fewer if no more came in time. In pairs, as TCP sends them: 2
    assert mean(turns) > 9
    # two turns follow each other where nobody else looked in time
    assert max(turns) <= 3 * 12
    held.sender.clear()
    assert sink.report()["errors"] == 0


def test_requests_do_not_wait_for_a_rate_that_they_cannot_show(held: Link) -> None:
    python, at = (PYTHON, "-S", "-E", "-c"), (RECEIVER, "7000")
    assert held.receiver.start(*python, ANSWERS, *at).line() == "serves"
    asks = held.sender.start(*RUN, *python, ASKS, *at)
    assert float(asks.succeed()) < 3e-3 * RTT_MS
    held.receiver.clear()


def test_top_says_whether_it_is_the_path_or_whom_a_held_job_yields_to(held: Link) -> None:
    held.send(held.sink(), under=RUN)
    wait_until("a rate", lambda: (path_of(held) or {}).get("rate_bits"))
    time.sleep(3)

    def job() -> Json:
        view = json.loads(held.sender.call("netnice", "top", "--once", "--json", "--interval", "2"))
        (found,) = view["jobs"]
        return found

    def kept_by_the_path() -> Json:
        found = job()
        return found if found["why"]["reason"] == "path_rate" else None

    # its own queue, while it tries a higher rate, may be taken for that of other hosts
    alone = wait_until("only the path keeps it", kept_by_the_path)
    # `top` itself takes time of this processor, and ACKs that waited meanwhile come together
    assert alone["why"]["bits"] == pytest.approx(RATE_MBIT * 1e6, rel=0.1)
    # 1448 of 1514 bytes are payload
    assert alone["rate_bits"] == pytest.approx(RATE_MBIT * 1e6 * 1448 / 1514, rel=0.05)
    # a packet and a half, 2271 bytes
    assert alone["queue"]["limit_ms"] == pytest.approx(2271 * 8 / RATE_MBIT / 1e3, rel=0.1)
    held.send(held.sink())
    wait_until("the other one is seen", lambda: job()["others"]["on_path"])
    beside = job()
    assert beside["why"] == {
        "reason": "yielding_to_host", "bits": beside["others"]["bits"], "device": None,
    }  # fmt: skip
    assert beside["rate_bits"] < 0.2 * alone["rate_bits"]
    assert " of this host's other traffic" in beside["why_text"]


def names(link: Link) -> list[str]:
    """Return the sender's devices."""
    return [device["ifname"] for device in json.loads(link.sender.call("ip", "-json", "link"))]


def holds(link: Link) -> list[str]:
    """Return those of them that hold."""
    return [hold["device"] for hold in json.loads(link.sender.call("netnice", "hold", "--json"))]


def test_a_run_holds_at_the_device_of_the_default_route_for_as_long_as_it_lasts(link: Link) -> None:
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    before = names(link)
    sink = link.sink()
    run = ("netnice", "run", "--verbose", "--")
    sender = link.send(sink, "--bytes", "3000000", under=run)
    wait_until("packets that waited", lambda: (path_of(link) or {}).get("held"))
    (flow,) = flows()
    assert flow["control"] == DEFAULT
    assert "confirmed complete and intact" in sender.succeed()
    # what it had measured by then
    waited = r"packets waited in this host at eth: the path carries [78]\.\d+ Mbit/s"
    assert re.search(waited, sender.errors)
    wait_until("all is as before", lambda: names(link) == before)
    assert "clsact" not in link.sender.call("tc", "qdisc", "show", "dev", "eth")

    plain = link.send(sink, "--bytes", "300000", under=(*run[:-1], "--no-hold", "--"))
    wait_until("a connection", flows)
    assert names(link) == before
    plain.succeed()
    assert "packets waited" not in plain.errors

    # what is asked for while a run holds stays
    asked = link.sender.start(*run, "cat")
    wait_until("it holds", lambda: holds(link) == ["eth"])
    link.sender.call("netnice", "hold", "eth")
    assert asked.status() == 0
    link.sender.call("netnice", "run", "--", "true")
    assert holds(link) == ["eth"]
    link.sender.call("netnice", "hold", "--off", "eth")
    assert names(link) == before


def test_a_hold_ends_with_its_device(link: Link) -> None:
    before = names(link)
    link.sender.call("ip", "link", "add", "out", "type", "veth", "peer", "name", "far")
    link.sender.call("netnice", "hold", "out")
    assert holds(link) == ["out"]
    link.sender.call("ip", "link", "del", "out")
    link.sender.call("netnice", "run", "--no-hold", "--", "true")
    assert names(link) == before


def test_a_path_that_is_faster_than_asked_for_is_left_alone(link: Link) -> None:
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    link.sender.call("netnice", "hold", "eth", "--fastest", "4")
    sink = link.sink()
    sender = link.send(sink, "--bytes", "3000000", under=RUN)
    wait_until("nothing is held", lambda: (path_of(link) or {}).get("away_s"))
    held = path_of(link)["held"]
    wait_until("a second of it", lambda: path_of(link)["away_s"] < 59)
    assert path_of(link)["held"] == held
    assert "confirmed complete and intact" in sender.succeed()
    link.sender.call("netnice", "hold", "--off", "eth")


def test_a_transfer_goes_on_where_the_waiting_devices_are_taken_away_or_the_hold_ends(
    held: Link,
) -> None:
    held.sender.call("ip", "link", "set", "eth", "mtu", "1300")  # no packet has 1448 bytes then
    sink = held.sink(RECEIVER6)  # the other test has IPv4
    sender = held.send(sink, "--bytes", "8000000", under=RUN)
    wait_until("packets that waited", lambda: (path_of(held) or {}).get("held"))
    wait_until("a rate", lambda: (path_of(held) or {}).get("rate_bits"), 60)
    # as an administrator who does not know what they are for
    (wait,) = (n for n in held.sender.call("ip", "-o", "link").split() if n.startswith("nnwait"))
    held.sender.call("ip", "link", "del", wait.split("@")[0])
    before = bytes_of(held)
    # 8 Mbit/s are 1 MB/s; ten seconds with an open line and Nice's window, and what was lost
    wait_until("two megabytes more", lambda: bytes_of(held) > before + 2_000_000, 30)
    held.sender.call("netnice", "hold", "--off", "eth")
    assert "confirmed complete and intact" in sender.succeed()
    (flow,) = sink.report()["flows"]
    assert flow["complete"]
    held.sender.call("netnice", "hold", "eth")  # as the fixture found it


STRANGER = """
import socket, sys
eth = bytes.fromhex("ffffffffffff 020000000001 0800")
ip = bytes.fromhex("4500011c 00000000 4011799b 00000000 ffffffff")
udp = bytes.fromhex("00440043 01080000") + bytes(256)
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
for _ in range(100):
    s.send(eth + ip + udp)
"""
"""A DHCP client that serves every device."""


@pytest.mark.parametrize("prefix", ["nnwait", "nncut"])
def test_what_others_send_from_the_waiting_devices_does_not_leave(held: Link, prefix: str) -> None:
    (device,) = (n for n in held.sender.call("ip", "-o", "link").split() if n.startswith(prefix))
    before = packets_of(held)
    held.sender.call(PYTHON, "-S", "-E", "-c", STRANGER, device.split("@")[0])
    assert packets_of(held) < before + 50


def packets_of(link: Link) -> int:
    """Return the packets that left the sender."""
    (eth,) = json.loads(link.sender.call("ip", "-s", "-json", "link", "show", "dev", "eth"))
    packets: int = eth["stats64"]["tx"]["packets"]
    return packets


def bytes_of(link: Link) -> int:
    """Return the bytes that the only connection was acknowledged."""
    (line,) = link.sender.call(
        "ss", "-tinOH", "state", "established", "dst", f"[{RECEIVER6}]"
    ).splitlines()
    found = re.search(r"bytes_acked:(\d+)", line)
    return int(found[1]) if found else 0


TOLD = ("netnice", "run", "--verbose", "--")
UDP_PORT = 4433
TOO_MUCH = 1.5
"""Of the rate: it has no congestion control, and loses what is too much, somewhere."""

# as much as that for some seconds, two packets at once, of 1200 bytes with their headers
SENDS = f"""
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print("sends", flush=True)
at, end = time.monotonic(), time.monotonic() + float(sys.argv[1])
while at < end:
    for _ in range(2):
        s.sendto(bytes(1158), ({RECEIVER!r}, {UDP_PORT}))
    at += 2 * 1200 * 8 / {TOO_MUCH * RATE_MBIT * 1e6}
    time.sleep(max(0, at - time.monotonic()))
"""
COUNTS = f"""
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(({RECEIVER!r}, {UDP_PORT}))
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


def counting(link: Link) -> Process:
    """Count the datagrams that come, in the receiver, until none comes for two seconds."""
    counts = link.receiver.start(PYTHON, "-S", "-E", "-c", COUNTS)
    assert counts.line() == "counts"
    return counts


def sends_udp(link: Link) -> Process:
    """Send too much over UDP, in the background, for eight seconds; one of them has passed."""
    udp = link.sender.start(*TOLD, PYTHON, "-S", "-E", "-c", SENDS, "8")
    assert udp.line() == "sends"  # to begin a program takes a while of virtual time
    time.sleep(1)
    return udp


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
    udp = sends_udp(held)
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


@pytest.mark.soak
def test_udp_alone_shows_no_rate_and_is_sent_as_before_and_the_run_says_so(held: Link) -> None:
    counts = counting(held)
    udp = sends_udp(held)
    waits = pings(held)
    assert udp.status() == 0, udp.errors
    print(waits, udp.errors)
    # the queue is full: 50 packets of 1200 bytes are 60 ms
    assert len(waits) < 40 or waits[20] > RTT_MS + 40
    assert int(counts.line()) * 1200 * 8e-6 / 8 > 0.9 * RATE_MBIT
    assert "went out over UDP and did not wait" in udp.errors

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Downloads in the background yield, whoever sends: their receiver's host tells smaller windows.

Where fq is (Debian's kernels), and time is virtual. The senders are plain.
"""

from __future__ import annotations

import json
import re
import time

import pytest
from came import RATE_MBIT, ROOM, RTT_MS, carried_mbit, source_of
from daemon import Daemon, run
from diag import counter
from support import (
    NOBODY,
    PYTHON,
    RECEIVER,
    RECEIVER6,
    SENDER,
    Capture,
    Json,
    Link,
    Process,
    Sink,
    wait_until,
)

UNDER = ("netnice", "run", "--no-hold", "--")
"""The device holds already."""


def shown_by_top(link: Link) -> Json:
    """Return what `netnice top` shows of the only path that downloads come by."""
    (shown,) = json.loads(link.receiver.call("netnice", "top", "--once", "--json"))["downloads"]
    return dict(shown)


@pytest.mark.parametrize("address", [RECEIVER, RECEIVER6])
def test_they_fill_an_idle_link_and_its_queue_stays_empty(pulls: Link, address: str) -> None:
    sink = Sink(pulls.receiver, address, under=UNDER)
    pulls.send(sink, "--flows", "4")
    wait_until("a download", lambda: (source_of(pulls) or {}).get("connections") == 4)
    time.sleep(3)
    # 96 to 98 % in 15 s; a rate taken for too low, and probed again, costs 5 s of them a tenth
    background, received = carried_mbit(pulls, 15)
    payload = 1448 if address == RECEIVER else 1428
    assert background == pytest.approx(RATE_MBIT * payload / 1514, rel=0.06)
    assert received == pytest.approx(RATE_MBIT, rel=0.06)
    (queue,) = json.loads(pulls.router.call("tc", "-j", "-s", "qdisc", "show", "dev", "right"))
    assert queue["qlen"] <= ROOM / 5, queue
    # a probe may be too high until its queue is seen
    assert source_of(pulls)["rate_bits"] == pytest.approx(RATE_MBIT * 1e6, rel=0.25)
    pulls.sender.clear()
    assert sink.report()["errors"] == 0


def test_beside_a_download_of_the_foreground_hardly_anything_comes_and_all_of_it_arrives(
    pulls: Link,
) -> None:
    sink = Sink(pulls.receiver, RECEIVER, under=UNDER)
    sender = pulls.send(sink, "--bytes", "4000000")
    wait_until("a download", lambda: (source_of(pulls) or {}).get("rate_bits", 0) > 7e6)
    pulls.send(pulls.sink())
    wait_until("both", lambda: len(pulls.sender.connections()) == 2)
    time.sleep(5)  # after its first losses a flow leaves some of the link
    background, received = carried_mbit(pulls, 3)
    assert background < 0.1 * received, (background, received)
    shown = shown_by_top(pulls)
    assert shown["why"]["reason"] == "yielding_to_host", shown
    # more than half, but for what comes while it looks: after its first losses a flow fills no link
    assert shown["others_bits"] > 0.5 * RATE_MBIT * 1e6 - shown["background_bits"], shown
    (line,) = [x for x in pulls.receiver.call("netnice", "status").splitlines() if "loads at" in x]
    assert line.startswith("downloads at eth: the path carries ") and "1 connection" in line
    pulls.receiver.call("netnice", "hold", "--off", "eth")
    # plain TCP from then on
    assert "confirmed complete and intact" in sender.succeed()
    pulls.receiver.call("netnice", "hold", "eth")


def test_an_ack_that_waited_tells_of_no_gaps_and_its_checksum_is_right(pulls: Link) -> None:
    # packets of downloads are lost, so ACKs tell of gaps; those are in each of their checksums
    pulls.netem(pulls.sender, "eth", "loss", "3%")
    pulls.receiver.call("ethtool", "-K", "eth", "tx", "off")
    sink = Sink(pulls.receiver, RECEIVER, under=UNDER)
    capture = Capture(pulls.router, "right")
    # after time stamps, as Linux writes them, NOPs where one gap or more stood
    waited = re.compile(rb"\x01\x01\x08\x0a.{8}(\x01{4})+", re.DOTALL)
    gaps = re.compile(rb"\x01\x01\x08\x0a.{8}\x01\x01\x05.*", re.DOTALL)
    sender = pulls.send(sink, "--flows", "4", "--bytes", "1000000")
    capture.first("an ACK that tells of a gap", lambda p: bool(gaps.fullmatch(p.options)))
    capture.first("an ACK that waited", lambda p: bool(waited.fullmatch(p.options)))
    sender.succeed()
    assert counter(pulls.sender, "TcpInCsumErrors") == 0
    report = sink.report()
    assert report["errors"] == 0
    assert [f["complete"] for f in report["flows"]] == [True] * 4


def test_a_download_that_runs_already_is_narrowed_and_goes_on_when_nothing_yields_any_more(
    link: Link,
) -> None:
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    sink = Sink(link.receiver, RECEIVER, under=UNDER)
    sender = link.send(sink, "--bytes", "6000000")
    time.sleep(1.5)
    link.receiver.call("netnice", "hold", "eth")
    wait_until("a smaller window", lambda: (source_of(link) or {}).get("narrowed", 0) > 10)
    time.sleep(1)
    link.receiver.call("netnice", "hold", "--off", "eth")
    assert "confirmed complete and intact" in sender.succeed()
    assert sink.report()["errors"] == 0


def test_a_run_lets_its_downloads_yield_by_itself_and_says_nothing_of_them(link: Link) -> None:
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    sink = Sink(link.receiver, RECEIVER, under=("netnice", "run", "--json", "--"))
    sender = link.send(sink, "--bytes", "3000000")
    wait_until("a smaller window", lambda: (source_of(link) or {}).get("narrowed", 0) > 10)
    assert "confirmed complete and intact" in sender.succeed()
    assert sink.report()["errors"] == 0
    said = json.loads(sink.process.errors)
    assert said["held"]["devices"] == ["eth"], said
    assert said["bytes_received"] >= 3_000_000
    assert said["not_governed"] == [], said


def assert_only(pulls: Link, only: str) -> None:
    """Assert that of a download of a megabyte and an upload beside it, one direction yielded."""
    (hold,) = json.loads(pulls.receiver.call("netnice", "hold", "--json"))
    sent = sum(path["background_bytes"] for path in hold["paths"])
    came = sum(download["background_bytes"] for download in hold["downloads"])
    narrowed = sum(download["narrowed"] for download in hold["downloads"])
    if only == "up":
        assert sent > 0, hold
        assert (came, narrowed) == (0, 0), hold
    else:
        # of the upload too: what it receives are ACKs
        assert came >= 1_000_000 and narrowed > 10, hold
        assert sent == 0, hold


@pytest.mark.parametrize("only", [pytest.param("up", marks=pytest.mark.soak), "down"])
def test_only_one_direction_of_a_run_yields_if_it_says_so(pulls: Link, only: str) -> None:
    # what it sends waits in its host if it is marked, until the path is seen to be too fast for
    # that; a window is made smaller if its download yields
    under = ("netnice", "run", "--no-hold", "--only", only, "--")
    sink = Sink(pulls.receiver, RECEIVER, under=under)
    sender = pulls.send(sink, "--bytes", "1000000")
    other = Sink(pulls.sender, SENDER)
    upload = pulls.receiver.start(*under, "netnice-load", "send", other.at, "--bytes", "200000")
    assert "confirmed complete and intact" in sender.succeed()
    assert "confirmed complete and intact" in upload.succeed()
    assert_only(pulls, only)
    assert sink.report()["errors"] == other.report()["errors"] == 0


@pytest.mark.parametrize("only", ["up", pytest.param("down", marks=pytest.mark.soak)])
def test_only_one_direction_of_what_is_attached_yields_if_that_is_asked_for(
    pulls: Link, only: str
) -> None:
    pulls.limit(RATE_MBIT, ROOM, towards="left")  # or the upload takes the whole processor
    sink = Sink(pulls.receiver, RECEIVER)
    sender = pulls.send(sink, "--bytes", "8000000")
    other = Sink(pulls.sender, SENDER)
    upload = pulls.receiver.start("netnice-load", "send", other.at)
    wait_until("both", lambda: len(pulls.receiver.connections()) == 2)
    for process in (sink.process, upload):
        pulls.receiver.call("netnice", "attach", "--only", only, str(process.pid))
    assert "confirmed complete and intact" in sender.succeed()
    assert_only(pulls, only)
    pulls.receiver.clear()


@pytest.mark.soak
def test_a_download_goes_on_where_the_waiting_devices_are_taken_away(pulls: Link) -> None:
    sink = Sink(pulls.receiver, RECEIVER, under=UNDER)
    sender = pulls.send(sink, "--bytes", "4000000", "--flows", "4")
    wait_until("a smaller window", lambda: (source_of(pulls) or {}).get("narrowed", 0) > 10)
    links = json.loads(pulls.receiver.call("ip", "-json", "link"))
    (wait,) = [link["ifname"] for link in links if link["ifname"].startswith("nnwait")]
    pulls.receiver.call("ip", "link", "del", wait)
    assert "confirmed complete and intact" in sender.succeed()
    assert sink.report()["errors"] == 0


def test_a_router_that_sends_from_another_address_than_it_is_sent_to_is_one_path(
    pulls: Link,
) -> None:
    # as two that share an address do (VRRP, HSRP)
    pulls.router.call("tc", "qdisc", "add", "dev", "right", "clsact")
    pulls.router.call("tc", "filter", "add", "dev", "right", "egress", "matchall", "action",
                      "pedit", "ex", "munge", "eth", "src", "set", "02:00:00:00:00:01")  # fmt: skip
    sink = Sink(pulls.receiver, RECEIVER, under=UNDER)
    pulls.send(sink, "--flows", "4")
    wait_until("a rate", lambda: (source_of(pulls) or {}).get("rate_bits", 0) > 7e6)
    background, received = carried_mbit(pulls, 10)
    assert background == pytest.approx(received, rel=0.06)
    assert received == pytest.approx(RATE_MBIT, rel=0.1)
    pulls.sender.clear()
    assert sink.report()["errors"] == 0


SERVES = f"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
s.bind(({RECEIVER!r}, 5000))
s.listen()
print("listens", flush=True)
s, got = s.accept()[0], 0
while data := s.recv(1 << 16):
    got += len(data)
print(got)
"""
GIVES = f"""
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_MPTCP)
s.connect(({RECEIVER!r}, 5000))
s.sendall(bytes(int(sys.argv[1])))
"""
MPTCP_BYTES = 4_000_000


def mptcp_s(link: Link, *under: str) -> tuple[float, Process]:
    """Return how long a download over MPTCP took, and its receiver."""
    sink = link.receiver.start(*under, PYTHON, "-S", "-E", "-c", SERVES)
    assert sink.line() == "listens"
    began = time.monotonic()
    link.sender.call(PYTHON, "-S", "-E", "-c", GIVES, str(MPTCP_BYTES))
    assert int(sink.line()) == MPTCP_BYTES
    took_s = time.monotonic() - began
    assert sink.status() == 0, sink.errors
    return took_s, sink


def test_a_download_over_mptcp_does_not_yield_and_is_not_slowed_down_and_the_run_says_so(
    pulls: Link,
) -> None:
    # its ACKs have options that no copy of them could have, so a narrowed window would stay narrow
    took_s, sink = mptcp_s(pulls, "netnice", "run", "--json", "--")
    plain_s, _ = mptcp_s(pulls)
    assert took_s < 1.25 * plain_s, plain_s
    said = json.loads(sink.errors)
    assert [what["why"] for what in said["not_governed"]] == ["received"], said


@pytest.mark.soak
def test_a_download_of_which_nothing_is_seen_here_is_not_slowed_down(pulls: Link) -> None:
    # as where answers come in on another device
    pulls.receiver.call("tc", "filter", "del", "dev", "eth", "ingress", "pref", "2")
    sink = Sink(pulls.receiver, RECEIVER, under=UNDER)
    began = time.monotonic()
    pulls.send(sink, "--bytes", "6000000").succeed()
    assert 6_000_000 * 8e-6 / (time.monotonic() - began) > 0.7 * RATE_MBIT
    assert sink.report()["errors"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("under", [run(NOBODY, "--json"), ["netnice", "run", "--json", "--"]])
def test_a_download_that_yielded_is_told_as_nothing_else(pulls: Link, under: list[str]) -> None:
    daemon = Daemon(pulls.receiver)
    sink = ["netnice-load", "sink", "--listen", f"{RECEIVER}:0", "--json", "/dev/null"]
    process = pulls.receiver.start(*under, *sink)
    to = process.line().removeprefix("listening ")
    pulls.sender.start("netnice-load", "send", to, "--bytes", "2000000").succeed()
    assert source_of(pulls)["narrowed"] > 0
    (job,) = json.loads(pulls.receiver.call("netnice", "status", "--json"))["runs"]
    process.popen.terminate()
    assert process.status() == 0, process.errors
    for said in (job, json.loads(process.errors)):
        assert said["bytes_received"] >= 2_000_000
        assert said["not_governed"] == [], said
    daemon.end()


@pytest.mark.soak
def test_downloads_over_a_path_that_is_faster_than_asked_for_are_left_alone(link: Link) -> None:
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    link.receiver.call("netnice", "hold", "eth", "--fastest", "4")
    sink = Sink(link.receiver, RECEIVER, under=UNDER)
    sender = link.send(sink, "--bytes", "4000000")
    wait_until("they do not yield", lambda: (source_of(link) or {}).get("away_s"))
    narrowed = source_of(link)["narrowed"]
    assert "the path is faster than --fastest" in link.receiver.call("netnice", "hold")
    words = shown_by_top(link)["why_text"]
    assert words.startswith("does not yield for ")
    assert words.endswith(" s: faster than --fastest, 4.0 Mbit/s")
    assert "confirmed complete and intact" in sender.succeed()
    assert narrowed > 0
    assert source_of(link)["narrowed"] == narrowed
    (run,) = json.loads(link.receiver.call("netnice", "status", "--json"))["runs"]
    assert [what["why"] for what in run["not_governed"]] == ["left_alone"]
    assert sink.report()["errors"] == 0
    assert "and such fast ones are left alone" in sink.process.errors
    # one that is asked for anew has them yield
    link.receiver.call("netnice", "hold", "eth", "--fastest", "20")
    sink = Sink(link.receiver, RECEIVER, under=UNDER)
    link.send(sink, "--bytes", "2000000").succeed()
    assert source_of(link)["narrowed"] > 0
    (run,) = json.loads(link.receiver.call("netnice", "status", "--json"))["runs"]
    assert run["not_governed"] == []
    assert sink.report()["errors"] == 0
    assert "received" not in sink.process.errors
    link.receiver.call("netnice", "hold", "--off", "eth")


def test_what_a_container_or_a_virtual_machine_downloads_yields_where_its_host_holds(
    link: Link,
) -> None:
    # they are behind their host as the receiver is behind the router, which has no socket of theirs
    link.without_offloads().delay(RTT_MS)
    link.sender.call("tc", "qdisc", "replace", "dev", "eth", "root", "tbf",
                     "rate", f"{RATE_MBIT}mbit", "burst", "3028", "limit", "75700")  # fmt: skip
    link.router.call("netnice", "hold", "left")
    sink = Sink(link.receiver, RECEIVER, under=UNDER)
    sender = link.send(sink, "--bytes", "2000000", "--flows", "2")
    wait_until(
        "smaller windows", lambda: (source_of(link, link.router) or {}).get("narrowed", 0) > 10
    )
    assert source_of(link, link.router)["connections"] == 2
    assert "confirmed complete and intact" in sender.succeed()
    assert sink.report()["errors"] == 0
    link.router.call("netnice", "hold", "--off", "left")

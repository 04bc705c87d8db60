# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What `netnice status` shows of a connection is what the path makes of it.

Where time is virtual: on a busy machine a rate and a round-trip time are also those of the machine.
"""

from __future__ import annotations

import re

import pytest
from support import RECEIVER, SENDER, Enabled, Link, call, flows, wait_until


def test_status_shows_a_connections_state_as_it_is(enabled: Enabled) -> None:
    # 1514 bytes take 1.5 ms at 8 Mbit/s: with 50 packets the queue lasts 75.7 ms
    packet_us, packets = 1514, 50
    link = enabled("vegas").limit(8, packets)
    sender = link.send(link.sink(), "--control", "nn_vegas")
    (flow,) = wait_until("100 kB", lambda: [f for f in flows() if f["bytes_acked"] > 100_000])
    (seen,) = link.sender.connections()
    assert flow["control"] == "nn_vegas"
    assert flow["local"].startswith(SENDER)
    assert flow["remote"].startswith(RECEIVER)
    assert flow["mss"] == 1448  # 1500 less 20 of IP, 20 of TCP, 12 of its time stamps
    # tbf lets two packets through at once; then the link's own rate is the least RTT there is
    assert 0 < flow["base_rtt_us"] <= 3 * packet_us
    assert flow["base_rtt_us"] <= flow["srtt_us"] <= (packets + 3) * packet_us
    assert seen.rtt_ms * 1000 <= (packets + 3) * packet_us
    assert flow["gap_us"] == 0
    assert 2 <= flow["cwnd"] <= packets + 10
    # that of the last round, whose window may have been larger
    assert 0 <= flow["queue"] <= packets + 10
    shown = call("netnice", "status")
    assert "nn_vegas" in shown
    assert RECEIVER in shown
    sender.popen.terminate()
    sender.succeed()


@pytest.mark.soak
def test_status_shows_the_available_bandwidth_with_its_interval(link: Link) -> None:
    # a path without delay carries as many packets in a round trip as a measurement takes while a
    # neighbour keeps its queue filled; without the RTT mechanism the flow does not give way to that
    link.limit(8, 50)
    neighbour = link.send(sink := link.sink(), "--control", "reno")
    wait_until("a full queue", lambda: [c for c in link.sender.connections() if c.rtt_ms > 50])
    under = ["netnice", "run", "--algorithm", "imtcp_bg", "--set", "rtt=0", "--"]
    sender = link.send(sink, under=under)
    (flow,) = wait_until("a measurement", lambda: [f for f in flows() if f["available"]])
    measured = flow["available"]
    assert measured["results"] >= 1
    assert 0 < measured["low"] <= measured["mbit"] <= measured["high"]
    # packets per second would be 660 and bytes per second a million
    assert measured["mbit"] < 2 * 8
    rows = call("netnice", "status").splitlines()
    row = next(r for r in rows if r.startswith("nn_imtcp_bg") and RECEIVER in r)
    assert re.search(r" [\d.]+ \[[\d.]+, [\d.]+\] ", row), row
    for process in (sender, neighbour):
        process.popen.terminate()
        process.succeed()


def test_status_shows_the_weight_and_what_it_is_a_share_of(link: Link) -> None:
    settings = [word for s in ("start=0.25", "g_w=0", "T=0.2") for word in ("--set", s)]
    under = ["netnice", "run", "--class", "assured", *settings, "--"]
    sender = link.limit(8, 50).send(link.sink(), under=under)
    (flow,) = wait_until("an estimate", lambda: [f for f in flows() if f["tcp_mbit"]])
    assert flow["weight"] == 0.25
    # alone on the link the flow has all of it: 1448 of 1514 bytes; y0 = y/w. The queue fills at
    # first, and a sample of 0.2 s ends with an ACK: a third more or less
    assert flow["tcp_mbit"] == pytest.approx(8 * 1448 / 1514 / 0.25, rel=0.35)
    assert " 0.25 " in call("netnice", "status")
    sender.popen.terminate()
    sender.succeed()


def test_status_shows_windows_below_a_packet_with_their_gaps(link: Link) -> None:
    falls_to = ("--set", "threshold=0", "--set", "fraction=0", "--set", "together=0", "--set")
    settings = (*falls_to, "least=0.125")
    sender = link.limit(8, 50).send(
        link.sink(), under=["netnice", "run", "--no-hold", *settings, "--"]
    )
    found = wait_until(
        "a window of 1/8", lambda: [f for f in flows() if f["cwnd"] == 0.125 and f["gap_us"]]
    )
    (flow,) = found
    assert flow["yielding"]
    # the gap was computed from the smoothed RTT of then, which was within the queue's RTTs
    assert 0 < flow["gap_us"] <= 2 / 0.125 * 53 * 1514
    sender.popen.terminate()
    sender.succeed()

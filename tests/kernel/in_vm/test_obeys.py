# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The host obeys: a flow alone on a path has the window that its algorithm would have there.

Where time is virtual; nothing is random. What an algorithm does to others, the simulator shows over
many seeds (crates/netnice-sim/tests/k1.rs), and tests/duels once on the kernel.
"""

from __future__ import annotations

import json
import time
from itertools import pairwise
from statistics import mean

import pytest
from diag import Diag
from support import Enabled, Link, wait_until

RATE_MBIT, RTT_MS, ROOM = 8.0, 50.0, 50
SECONDS = 14.0
"""Reno halves three times in it, whenever it begins."""
EVERY_S = 0.1


def windows(link: Link, control: str, *settings: str) -> list[int]:
    """Return the window of a flow that is alone, in packets, ten times a second."""
    sink = link.sink()
    if settings:
        words = [word for setting in settings for word in ("--set", setting)]
        under = ("netnice", "run", "--algorithm", control.removeprefix("nn_"), *words, "--")
        sender = link.send(sink, under=under)
    else:
        sender = link.send(sink, "--control", control)

    diag, port = Diag(link.sender), int(sink.at.rsplit(":", 1)[1])

    def seen() -> list[int]:
        assert not sender.ended(), sender.errors
        ours = [c for c in diag.established() if c.dport == port]
        return [c.cwnd for c in ours if c.control == control]

    # to start a program takes virtual seconds where it has to be read from the host
    wait_until(f"a connection under {control}", seen)
    found = []
    begin = time.monotonic()
    while (at := time.monotonic() - begin) < SECONDS:
        found += seen()
        time.sleep(max(0.0, begin + at + EVERY_S - time.monotonic()))
    link.sender.clear()
    print(control, found)
    return found


def teeth(found: list[int]) -> list[list[int]]:
    """Return the windows from one fall to half to the next, for each that is whole."""
    falls = [i for i, (a, b) in enumerate(pairwise(found), 1) if b < a - 5]
    # a sample within a fall, and the end of slow start, are no tooth
    return [found[i:j] for i, j in pairwise(falls) if j - i > 1 / EVERY_S]


def test_reno_of_the_core_halves_when_and_as_far_as_the_kernels_own_does(enabled: Enabled) -> None:
    link = enabled("reno").limit(RATE_MBIT, ROOM).delay(RTT_MS)
    ours, theirs = (teeth(windows(link, control)) for control in ("nn_reno", "reno"))
    # the path holds 8 Mbit/s * 50 ms / 1514 B = 33 packets and the queue 50: Reno goes from 42 to
    # 84 and back, a packet a round trip of 65 to 125 ms, which is about every 4 s
    for found in (ours, theirs):
        assert len(found) >= 2
        for tooth in found:
            assert (min(tooth), max(tooth)) == pytest.approx((42, 84), abs=2)
    # a sample is a packet; one may fall into the recovery
    for our, their in zip(ours, theirs, strict=False):
        assert abs(len(our) - len(their)) <= 2
        assert mean(abs(a - b) for a, b in zip(our, their, strict=False)) <= 2


def test_vegas_of_the_core_settles_where_the_kernels_own_does(link: Link) -> None:
    link.limit(RATE_MBIT, ROOM).delay(RTT_MS)
    # the kernel's own parameters, not the paper's
    ours = windows(link, "nn_vegas", "alpha=2", "beta=4")
    theirs = windows(link, "vegas")
    # 33 to 34 packets on the path, and 2 to 4 in the queue
    for found in (ours, theirs):
        assert 35 <= mean(found[len(found) // 2 :]) <= 38.5


def sent_bytes(link: Link) -> int:
    """Return how many bytes have left the bottleneck."""
    (queue,) = json.loads(link.router.call("tc", "-s", "-j", "qdisc", "show", "dev", "right"))
    return int(queue["bytes"])


def test_nice_alone_fills_the_path(enabled: Enabled) -> None:
    link = enabled("nice").limit(RATE_MBIT, ROOM).delay(RTT_MS)
    link.send(link.sink(), "--control", "nn_nice")
    # its additive growth needs some seconds, and the receiver's delayed ACKs must not stop it
    time.sleep(3)
    before, begin = sent_bytes(link), time.monotonic()
    time.sleep(SECONDS)
    rate = (sent_bytes(link) - before) * 8e-6 / (time.monotonic() - begin)
    print(f"nn_nice alone: {rate:.2f} of {RATE_MBIT} Mbit/s")
    assert rate >= 0.95 * RATE_MBIT

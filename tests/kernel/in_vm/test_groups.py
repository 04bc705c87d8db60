# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`netnice run --group` beside plain TCP, as the paper on MPAT measured it: 70 ms, iperf3.

Where time is virtual: the shares that runs get, what all of them take from others, and how
soon a change of shares is met.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import pytest
from support import RECEIVER, Link, Process, call, wait_until

RATE_MBIT, QUEUE, RTT_MS = 16.0, 100, 70.0
RTT_S = RTT_MS / 1000 + QUEUE * 1514 * 8 / RATE_MBIT / 1e6
"""With the queue full."""
FIRST_PORT = 5201
GROUP = "transfers"


@pytest.fixture
def path(link: Link) -> Link:
    """Make the path of the paper, with plain TCP as Reno."""
    link.sender.call("sh", "-c", "echo reno > /proc/sys/net/ipv4/tcp_congestion_control")
    return link.limit(RATE_MBIT, QUEUE).delay(RTT_MS)


class Transfers:
    """Endless transfers by iperf3, each to a server of its own."""

    def __init__(self, link: Link) -> None:
        """Start none yet."""
        self.link = link
        self.clients: list[Process] = []

    def start(self, *under: str) -> None:
        """Start one more, as a command of `under`."""
        port = str(FIRST_PORT + len(self.clients))
        server = self.link.receiver.start("iperf3", "--server", "--port", port, "--forceflush")
        wait_until("the server listens", lambda: "listening" in server.line())
        options = ("--client", RECEIVER, "--port", port, "--time", "80000", "--interval", "0")
        self.clients.append(self.link.sender.start(*under, "iperf3", *options))

    def acked(self) -> list[int]:
        """Return what has arrived by now, in bytes, for each in the order of their start."""
        found = [0] * len(self.clients)
        for line in self.link.sender.call("ss", "-tinOH", "state", "established").splitlines():
            acked = re.search(r"\bbytes_acked:(\d+)", line)
            port = int(line.split()[3].rsplit(":", 1)[1])
            if acked and 0 <= port - FIRST_PORT < len(found):
                # the other connection to the server is for control
                found[port - FIRST_PORT] = max(found[port - FIRST_PORT], int(acked[1]))
        return found

    def measure(self, seconds: float) -> list[float]:
        """Return the throughput of each from now on, in Mbit/s of payload."""
        before, start_s = self.acked(), time.monotonic()
        time.sleep(seconds)
        after, end_s = self.acked(), time.monotonic()
        return [
            (b - a) * 8e-6 / (end_s - start_s) for a, b in zip(before, after, strict=True)
        ]  # fmt: skip

    def under_way(self) -> None:
        """Wait until all have left slow start behind."""
        wait_until("all are under way", lambda: min(self.acked()) > 200_000)


def in_group(share: float, *options: str) -> Sequence[str]:
    return ["netnice", "run", "--group", GROUP, "--share", str(share), *options, "--"]


def parts(rates: Sequence[float]) -> list[float]:
    return [r / sum(rates) for r in rates]


@pytest.mark.soak
def test_five_runs_divide_five_fair_shares_one_to_five(path: Link) -> None:
    """M1, figure 1 of the paper, with five plain connections beside them."""
    transfers = Transfers(path)
    shares = (1, 2, 3, 4, 5)
    for share in shares:
        transfers.start(*in_group(share))
        transfers.start()
    transfers.under_way()
    time.sleep(10)
    rates = transfers.measure(150)
    ours, plain = rates[::2], rates[1::2]
    print(f"M1: ours {[round(r, 3) for r in ours]} Mbit/s, sum {sum(ours):.2f}; "
          f"plain {[round(r, 3) for r in plain]}, sum {sum(plain):.2f}; "
          f"ratio of the sums {sum(ours) / sum(plain):.3f}")  # fmt: skip
    assert parts(ours) == pytest.approx(parts(shares), rel=0.1)
    # Four runs had 0.93, 1.02, 1.04 and 1.13: who meets the full queue is chance, with a standard
    # deviation of 0.09; this is three. One shared loop would have 0.2.
    assert sum(ours) == pytest.approx(sum(plain), rel=0.25)


@pytest.mark.soak
def test_runs_in_the_background_divide_what_they_find_one_to_four(path: Link) -> None:
    transfers = Transfers(path)
    shares = (1, 2, 3, 4)
    for share in shares:
        transfers.start(*in_group(share, "--algorithm", "nice"))
    transfers.under_way()
    time.sleep(10)
    rates = transfers.measure(60)
    print(f"background: {[round(r, 3) for r in rates]} Mbit/s, sum {sum(rates):.2f}")
    assert parts(rates) == pytest.approx(parts(shares), rel=0.1)
    # nobody else is there
    assert sum(rates) > 0.75 * RATE_MBIT


@pytest.mark.soak
def test_changed_shares_are_met_within_three_round_trips(path: Link) -> None:
    """M4, figure 3 of the paper: from the fourth round trip on each has its new share."""
    transfers = Transfers(path)
    changes = ((1, 1, 1), (1, 2, 3), (6, 1, 2), (1, 5, 1))
    for share in changes[0]:
        transfers.start(*in_group(share))
    transfers.under_way()
    time.sleep(10)
    for shares in changes[1:]:
        for client, share in zip(transfers.clients, shares, strict=True):
            call("netnice", "share", GROUP, str(client.pid), str(share))
        time.sleep(3 * RTT_S)
        rates = transfers.measure(20 * RTT_S)
        print(f"M4: {shares}: wanted {[round(p, 3) for p in parts(shares)]}, "
              f"got {[round(p, 3) for p in parts(rates)]}")  # fmt: skip
        assert parts(rates) == pytest.approx(parts(shares), rel=0.1)

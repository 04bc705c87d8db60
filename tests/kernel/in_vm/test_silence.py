# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Silent phases (FAIRBAT, mode=tau): nothing new leaves, losses are answered, it wakes on time."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import pytest
from support import PYTHON, RECEIVER, Capture, Link, Packet, flows, wait_until

PERIOD_S, WEIGHT = 4.0, 0.5
PERIODS = 8
DELAY_MS, RATE_MBIT, QUEUE = 40.0, 4.0, 10
DRAIN_S = 0.3
"""A round trip with a full queue is 70 ms, a delayed ACK comes 40 ms later, and a loss in the last
window takes a few round trips more."""


@dataclass(frozen=True)
class Phase:
    """The packets from one silence to the next."""

    packets: list[Packet]

    @property
    def start_s(self) -> float:
        """When the first packet left."""
        return self.packets[0].time_s

    @property
    def length_s(self) -> float:
        """From the first to the last packet."""
        return self.packets[-1].time_s - self.start_s


def phases(capture: Capture, count: int) -> list[Phase]:
    """Return the next `count` phases that are whole: with a second of silence before and after."""
    found: list[list[Packet]] = []
    for packet in capture.packets():
        if packet.payload == 0:
            continue
        if not found or packet.time_s - found[-1][-1].time_s > 1:
            found.append([])
        found[-1].append(packet)
        if len(found) == count + 2:
            return [Phase(packets) for packets in found[1:-1]]
    return []


def under(algorithm: str, weight: float, period_s: float) -> list[str]:
    """Return the command that makes a flow silent for the share 1 - `weight` of each period."""
    settings = ["mode=tau", f"start={weight}", "g_w=0", f"d_c={period_s}", "d_r=0"]
    options = [word for s in settings for word in ("--set", s)]
    return ["netnice", "run", "--algorithm", algorithm, *options, "--"]


@pytest.mark.parametrize("algorithm", ["fairbat1", "fairbat2"])
def test_a_silent_phase_sends_nothing_and_ends_on_time(link: Link, algorithm: str) -> None:
    link.limit(RATE_MBIT, QUEUE).delay(DELAY_MS)
    sender = link.send(link.sink(), under=under(algorithm, WEIGHT, PERIOD_S))
    # the kernel does not pace the first ten packets of a connection: they are through
    wait_until("the first phase", lambda: [f for f in flows() if f["yielding"]])
    found = phases(link.capture(), PERIODS)
    (flow,) = flows()
    late_s = [b.start_s - a.start_s - PERIOD_S for a, b in pairwise(found)]
    over_s = [p.length_s - WEIGHT * PERIOD_S for p in found]
    # first bytes of packets sent after the active phase that had not been sent before
    new = [
        sum(p.seq > max(q.seq for q in phase.packets[:i])
            for i, p in enumerate(phase.packets)
            if i and p.time_s > phase.start_s + WEIGHT * PERIOD_S + DRAIN_S)
        for phase in found
    ]  # fmt: skip
    again = [len(p.packets) - len({q.seq for q in p.packets}) for p in found]
    print(f"silence_wake_up_late {max(late_s) * 1000:.1f} ms; all {late_s}; phases over by "
          f"{over_s}; new packets in silence {new}; sent again {again}")  # fmt: skip
    assert len(found) == PERIODS
    assert new == [0] * PERIODS
    # the share of the time that the weight asks for, but for the drain
    assert all(-0.1 < o < DRAIN_S for o in over_s)
    # the kernel takes a whole rate for 1448 bytes in 2 s: 1/724 too long at most, and its timers
    assert all(abs(late) < 0.02 for late in late_s)
    assert sum(again) > 0, "the queue must have been full now and then"
    assert flow["weight"] == WEIGHT
    sender.popen.terminate()
    sender.succeed()


LONG_DELAY_MS = 1000.0
"""So long that a packet which was captured at the router can still be taken out of its queue."""


def lose_what_is_on_its_way(link: Link) -> None:
    """Begin the router's queue anew, with the delay on the way to the receiver, and empty."""
    link.router.call("tc", "qdisc", "del", "dev", "right", "root")
    link.netem(link.router, "right", "delay", f"{LONG_DELAY_MS}ms")


WRITER = """
import socket, sys
s = socket.create_connection((sys.argv[1], int(sys.argv[2])))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for line in sys.stdin:
    for _ in range(int(line)):
        s.sendall(bytes(1448))
"""


def test_a_timeout_after_the_silence_does_not_begin_another(link: Link) -> None:
    weight, period_s = 0.5, 20.0
    link.without_offloads().netem(link.router, "right", "delay", f"{LONG_DELAY_MS}ms")
    lose_what_is_on_its_way(link)  # the next time it need not wait for files
    # with nothing new to send Linux' probe (RFC 8985) asks no control; a timeout does
    link.sender.call("sh", "-c", "echo 0 > /proc/sys/net/ipv4/tcp_early_retrans")
    listener = link.receiver.listen(RECEIVER)
    port = listener.getsockname()[1]
    packets = (p for p in link.capture().packets() if p.payload and p.dport == port)
    writer = link.sender.start(
        *under("fairbat1", weight, period_s), PYTHON, "-c", WRITER, RECEIVER, str(port)
    )
    writer.tell("20")  # the kernel does not pace the first ten
    begun_s = max(next(packets).time_s for _ in range(20))
    time.sleep(0.6 * period_s)
    writer.tell("1")
    carrier = next(packets)
    lose_what_is_on_its_way(link)
    assert carrier.time_s - begun_s < 0.8 * period_s, "in the silence, which it makes"
    assert next(packets).seq == carrier.seq
    told_s = time.time()
    writer.tell("1")
    late_s = next(packets).time_s - told_s
    print(f"written to sent after a timeout {late_s:.4f} s")
    # the window after a timeout is one packet: the next leaves a round trip later
    assert late_s < 2 * LONG_DELAY_MS / 1000
    writer.succeed()

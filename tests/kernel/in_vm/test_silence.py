# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Silent phases (FAIRBAT, mode=tau): nothing new leaves, losses are answered, it wakes on time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
from support import Capture, Link, Packet, flows, wait_until

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


@pytest.mark.parametrize("algorithm", ["fairbat1", "fairbat2"])
def test_a_silent_phase_sends_nothing_and_ends_on_time(link: Link, algorithm: str) -> None:
    link.limit(RATE_MBIT, QUEUE).delay(DELAY_MS)
    settings = ["mode=tau", f"start={WEIGHT}", "g_w=0", f"d_c={PERIOD_S}", "d_r=0"]
    options = [word for s in settings for word in ("--set", s)]
    sender = link.send(
        link.sink(), under=["netnice", "run", "--algorithm", algorithm, *options, "--"]
    )
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

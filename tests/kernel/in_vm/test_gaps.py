# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Windows below two packets: two packets at the distance that the paper asks for."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import pytest
from diag import Diag
from support import Capture, Link, flows, wait_until

BASE_MS, DELAY_MS = 40.0, 50.0
BURSTS = 12


def bursts(capture: Capture, count: int) -> list[list[float]]:
    """Return the times of the packets of the next `count` bursts, of which the first is whole."""
    found: list[list[float]] = []
    for packet in capture.packets():
        if packet.payload < 1000:
            continue
        # the second packet follows within 30 ms; a gap is 8 RTTs at least
        if not found or packet.time_s - found[-1][-1] > DELAY_MS / 1000:
            found.append([])
        found[-1].append(packet.time_s)
        if len(found) == count + 2:
            return found[1:-1]
    return found


@pytest.mark.soak
@pytest.mark.parametrize("window", [Fraction(1, 4), Fraction(1, 16), Fraction(1, 48)], ids=str)
def test_a_window_w_sends_two_packets_every_2_over_w_round_trips(
    link: Link, window: Fraction
) -> None:
    link.without_offloads().delay(BASE_MS)
    # The least RTT is seen at 40 ms. From then on the path takes 50 ms, and with a threshold of 0
    # every round is congested: the window falls to `least` and stays.
    least = f"least={float(window)}"
    settings = (
        "--set", "threshold=0", "--set", "fraction=0", "--set", "together=0", "--set", least,
    )  # fmt: skip
    sender = link.send(link.sink(), under=["netnice", "run", "--no-hold", *settings, "--"])
    wait_until("ten packets", lambda: [f for f in flows() if f["bytes_acked"] > 20_000])
    link.delay(DELAY_MS)
    # the kernel does not pace the first ten packets of a connection: they are through
    # a question to netnice takes an emulated processor a second, and it takes dozens of bursts
    diag = Diag(link.sender)
    wait_until("the RTT at rest", lambda: [
        c for c in diag.established() if c.rtt_ms > 0.997 * DELAY_MS
    ])  # fmt: skip
    wait_until("the least window", lambda: [
        f for f in flows() if abs(f["cwnd"] - window) < 1 / 65536
    ])  # fmt: skip
    (before,) = link.sender.connections()
    capture = link.capture()
    found = bursts(capture, BURSTS)
    (after,) = link.sender.connections()
    assert before.rtt_ms == pytest.approx(after.rtt_ms, rel=0.02)
    wanted_s = 2 / window * before.rtt_ms / 1000
    gaps_s = [b[0] - a[0] for a, b in pairwise(found)]
    print(f"gap_error_w_{window.numerator}/{window.denominator} "
          f"{max(abs(g / wanted_s - 1) for g in gaps_s):.4f} ratio; "
          f"wanted {wanted_s:.4f} s, RTT {before.rtt_ms} ms: {gaps_s}")  # fmt: skip
    assert [len(b) for b in found] == [2] * BURSTS
    # a least RTT apart, but no more than 30 ms: the receiver would delay its ACK by 40 ms
    for first_s, second_s in found:
        assert second_s - first_s == pytest.approx(0.030, rel=0.05)
    # each gap, not only their mean, within the 5 % that the timers of a real kernel get
    for gap_s in gaps_s:
        assert gap_s == pytest.approx(wanted_s, rel=0.05)
    sender.popen.terminate()
    sender.succeed()

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Copies as points, seconds and ping, and what they are over strict priority and no copy."""

from __future__ import annotations

from pathlib import Path

from ...claims.claim import Json, Measured
from ...claims.results import Results
from ...scenario import describe, read
from . import recovery
from .copies import (
    IDLE,
    NICE,
    PATHS,
    PRIORITY,
    REPLICATE,
    SIZE,
    UNLIMITED,
    capacity,
    kbit,
    rates,
)

Point = tuple[float, float]

OURS = (NICE, REPLICATE)
GENTLE = 1.25
"""Mean ping over that without a copy, up to which nobody notices."""
FAST = 1.5
"""Duration over that under strict priority, up to which nothing is wasted."""


def results(measured: Measured, name: str) -> Results:
    """Return the experiment that ran a copy."""
    return measured[{REPLICATE: "ours", PRIORITY: "ideal"}.get(name, "copies")]


def point(measured: Measured, path: str, name: str) -> Point:
    """Return the duration of a copy in seconds, and the mean ping meanwhile in ms."""
    (seconds,) = results(measured, name).values("seconds", name, path=path)
    (ping,) = results(measured, name).values("ping_ms", name, path=path)
    return seconds, ping


def throttles(path: str) -> list[str]:
    """Return the names of Reno's copies on a path, the unlimited one last."""
    return [kbit(rate) for rate in sorted(rates(path))] + [UNLIMITED]


def at_rate(path: str, rate_mbit: float) -> str:
    """Return the name of the copy on a path that a throttle gives there."""
    return kbit(rate_mbit) if rate_mbit < capacity(path) else UNLIMITED


def words(value: Point) -> str:
    """Return a point as in ``63 s, 41 ms``."""
    return f"{value[0]:.0f} s, {value[1]:.0f} ms"


def on_a_line(measured: Measured) -> dict[str, Point]:
    """Return the points of the modem that sends one packet after the other, by copy."""
    found = measured["serialised"]
    return {
        name: (found.values("seconds", name, path="modem")[0],
               found.values("ping_ms", name, path="modem")[0])
        for name in found.backgrounds(path="modem") if name != IDLE
    }  # fmt: skip


def badness(measured: Measured, path: str, name: str) -> tuple[float, float]:
    """Return duration over that under strict priority, and ping over that without a copy."""
    seconds, ping = point(measured, path, name)
    (idle,) = measured["copies"].values("ping_ms", IDLE, path=path)
    return seconds / point(measured, path, PRIORITY)[0], ping / idle


def worst(measured: Measured, name: str) -> Point:
    """Return the worst of both ratios that one of ours, or strict priority, has on a path."""
    slow, ping = zip(*(badness(measured, path, name) for path in PATHS), strict=True)
    return max(slow), max(ping)


def every_rate() -> list[float]:
    """Return every throttle rate that was measured on a path."""
    return sorted({rate for path in PATHS for rate in rates(path)})


def worst_throttled(measured: Measured, rate_mbit: float) -> Point:
    """Return the same of a throttle.

    Where it was not measured its duration is at least what the rate takes for the bytes.
    """
    slow, pings = [], []
    for path in PATHS:
        if rate_mbit >= capacity(path) or rate_mbit in rates(path):
            duration, ping = badness(measured, path, at_rate(path, rate_mbit))
            slow.append(duration)
            pings.append(ping)
        else:
            ideal, _ = point(measured, path, PRIORITY)
            slow.append(8e-6 * SIZE / rate_mbit / ideal)
    return max(slow), max(pings)


def excess(ratios: Point) -> float:
    """Return how far the worse of both ratios is from its bound, as their ratio."""
    return max(ratios[0] / FAST, ratios[1] / GENTLE)


def longer(measured: Measured, name: str, path: str, change: str) -> float:
    """Return a setting's duration over strict priority's, on the kernel."""
    found = measured["settings"]
    (seconds,) = found.values("seconds", name, path=path, change=change)
    (ideal,) = found.values("seconds", PRIORITY, path=path, change=change)
    return seconds / ideal


def share(measured: Measured, name: str, path: str, change: str) -> Json:
    """Return a setting's goodput over strict priority's, in the simulator."""
    return measured["recovery"].ratio("mbit", name, PRIORITY, path=path, change=change)


def fills(path: str, change: str) -> float:
    """Return the packets that fill a path without a queue."""
    bottleneck = recovery.simulated(path, change, recovery.RHYTHMS_S[0]).bottleneck
    return float(1e3 * bottleneck.rate_mbit * bottleneck.rtt_ms / packet_bits(path))


def packet_bits(path: str) -> int:
    """Return the bits of a full packet on a path's links."""
    known = describe(read(Path("nice") / path))
    return 8 * int(known.mss_bytes + known.header_bytes)

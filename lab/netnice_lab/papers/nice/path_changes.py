# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The paths of section 5 in the simulator, with one thing changed at a time, to find causes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...claims.results import Results
from ...experiment import Point, Simulated
from ...scenario import NONE, Scenario, describe, read
from .paths import NICE, PATHS, actions

Json = dict[str, Any]

NAME = "paths-simulated"
CHANGES = (
    "as on the kernel", "half the buffer", "twice the buffer", "packets of 576 bytes",
    "transfers ten times as long", "no others",
)  # fmt: skip
"""What is changed of the paths in the simulator."""
JITTER_MS = 0.1
"""Jitter of the propagation there, so that seeds differ: nothing else is random on these paths."""


def changed(scenario: Scenario, change: str) -> Scenario:
    """Return the scenario with one of CHANGES, and with jitter."""
    bottleneck, foreground = scenario.bottleneck, scenario.foreground
    room = bottleneck.limit_packets
    bottleneck = bottleneck.but(jitter_ms=JITTER_MS)
    scenario = scenario.but(bottleneck=bottleneck)
    match change:
        case "half the buffer":
            return scenario.but(bottleneck=bottleneck.but(limit_packets=room // 2))
        case "twice the buffer":
            return scenario.but(bottleneck=bottleneck.but(limit_packets=room * 2))
        case "packets of 576 bytes":
            # as much room in bytes
            known = describe(scenario)
            payload, packet = 576 - known.header_bytes, known.mss_bytes + known.header_bytes
            shorter = bottleneck.but(limit_packets=round(room * packet / 576))
            return scenario.but(mss_bytes=payload, bottleneck=shorter)
        case "transfers ten times as long":
            size = 10 * foreground.mean_bytes
            longer = foreground.but(mean_bytes=size, max_bytes=size)
            return scenario.but(
                foreground=longer, measure_s=10 * scenario.measure_s, drain_s=2000.0
            )
        case "no others":
            return scenario.but(cross=[])
    return scenario


def changes(path: str) -> list[str]:
    """Return the changes that are any on a path."""
    return [c for c in CHANGES if c != "no others" or read(Path(f"nice/{path}")).cross]


def simulated() -> Simulated:
    """Return the paths in the simulator with each change."""
    points = []
    for path in PATHS:
        for change in changes(path):
            scenario = changed(read(Path(f"nice/{path}")), change)
            at = {"path": path, "change": change}
            points.append(Point(at, scenario.but(background=actions(scenario, NICE))))
    return Simulated(NAME, points)


def kept(results: Results, path: str, change: str, name: str) -> Json:
    """Return what `paths.kept` does, of the simulator with a change; the interval is over seeds."""
    return results.ratio("fct_s", NONE, name, path=path, change=change)

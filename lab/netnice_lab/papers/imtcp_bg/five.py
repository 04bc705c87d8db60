# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section IV-B: five flows that join one after the other and leave in the opposite order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ...engines.sim import Simulator, Trace
from ...experiment import Context, Procedure, as_points, simulating
from ...scenario import read

Json = dict[str, Any]

NAME = "five"
FLOWS = 5
SECONDS, BIN_S = 500, 5
KINDS = ("queue_packets", "acked_packets", "dropped_packets")
PACKET_BYTES = 1500


def digest(trace: Trace) -> Json:
    """Return `queue_packets`, the mean over all of the run; and of each five seconds `flows_mbit`,
    a list for each flow, `queue_over_time` and `drops_over_time`, packets.
    """  # noqa: D205
    at, queue = trace.series("queue_packets", "bottleneck")
    begin = np.arange(0, SECONDS, BIN_S, dtype=float)
    flows = []
    for flow in range(FLOWS):
        rates = trace.rate("acked_packets", f"background {flow}", begin, begin + BIN_S)
        flows.append([float(r) for r in rates * PACKET_BYTES * 8e-6])
    over_time = [float(queue[(at > b) & (at <= b + BIN_S)].mean()) for b in begin]
    drops = trace.rate("dropped_packets", "bottleneck", begin, begin + BIN_S) * BIN_S
    return {
        "queue_packets": float(queue[at <= SECONDS].mean()),
        "flows_mbit": flows,
        "queue_over_time": over_time,
        "drops_over_time": [float(d) for d in drops],
    }


def measure(context: Context) -> list[Json]:
    """Simulate five flows of each kind; return the only point."""
    scenario = read(Path("imtcp-bg/five"))
    names = context.among(b.name for b in scenario.background)

    def one(simulator: Simulator, task: tuple[int, str]) -> tuple[Json, Json]:
        seed, name = task
        trace = simulator.traced(scenario, seed, name, KINDS)
        return {}, {"background": name, **digest(trace)}

    return as_points(
        context.simulate([(seed, name) for seed in context.numbers for name in names], one)
    )


EXPERIMENT = Procedure(NAME, measure, depends=simulating("imtcp_bg", "lp", "nice", "reno"))

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Section IV-B: five flows that join one after the other and leave in the opposite order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...experiment import columns, head, trace_all
from ...scenario import read
from ...sim import Trace

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


def measure(
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Simulate five flows of each kind; return the experiment's document."""
    del folder
    scenario = read(Path("imtcp-bg/five"))
    names = [b.name for b in scenario.background]
    tasks = [(name, seed) for name in names for seed in range(1, seeds + 1)]
    digests = trace_all(
        [(scenario, *task) for task in tasks], [digest] * len(tasks),
        kinds=KINDS, jobs=jobs, progress=progress,
    )  # fmt: skip
    found = dict(zip(tasks, digests, strict=True))
    runs = [
        [{"background": name, **found[name, seed]} for name in names]
        for seed in range(1, seeds + 1)
    ]
    return {**head(NAME, seeds, command), "points": [{"at": {}, "runs": columns(runs)}]}

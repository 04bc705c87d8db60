# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Weights over time: from below and above, with more TCP flows from half of the time on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...fairness import equilibrium
from ...scenario import Scenario, read
from ...sim import Series, Simulator
from ..measure import head, rounded
from .experiments import FAIR, SINGLE, STARTS, rule_of, stopwatch, variants, with_flows

Json = dict[str, Any]

NAME = "convergence"
"""Of the file that is saved."""
TCP = 10
"""k at first; twice as many from CHANGE_S on."""
FLOWS = (1, 10, 100)
"""l."""
FROM_BOTH = 10
"""l with which weights start from below and above; the others from below."""
CHANGE_S, END_S = 1000.0, 2000.0
SETTLED_S = 300.0
"""The last seconds of each half, in which the weights have settled."""
BIN_S = 10.0
MBIT = 14.0
"""What the flows share: there are no short flows here, and no other reason for weights to move."""
SEED = 1


def scenario(fair: int) -> Scenario:
    """Return the scenario for l = `fair`, with a background for each start of each variant."""
    base = with_flows(stopwatch(read(SINGLE), END_S), TCP, fair)
    (first,) = base.cross
    more = replace(first, name="more TCP", start_s=CHANGE_S)
    named: Mapping[str, tuple[str, Mapping[str, float]]] = {
        name_of(name, start): (name, {"start": start}) for name in FAIR for start in STARTS
    }
    changed = variants(base, named)
    return replace(changed, cross=[first, more], warmup_s=0.0)


def name_of(name: str, start: float) -> str:
    """Return what the background is called that starts with such a weight."""
    return f"{name} from {start:g}"


def measure(
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str] = (),
    folder: Path | None = None,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Simulate with one seed; return, for each variant, start and l, the mean weight over time.

    `weights` are means over the flows in steps of BIN_S; `before` and `after` over the last
    SETTLED_S of each half, `spread` the standard deviation of the weights over time there, relative
    to them; `settled_s` is when they last entered the 15 % around `before`, and `theory` are the
    equilibria. `seeds` and `folder` are not used.
    """
    del seeds, folder
    tasks = [
        (n, name, start)
        for n in FLOWS
        for name in FAIR
        for start in (STARTS if n == FROM_BOTH else STARTS[:1])
    ]
    simulator = Simulator()
    ended = 0

    def one(task: tuple[int, str, float]) -> Json:
        nonlocal ended
        fair, name, start = task
        trace = simulator.traced(scenario(fair), SEED, name_of(name, start), ["weight"])
        ended += 1
        progress(ended, len(tasks))
        weights = _means([trace.series("weight", flow) for flow in trace.names("weight")], start)
        return {"at": {"fair": fair, "name": name, "start": start}, **summary(weights, name, fair)}

    with ThreadPoolExecutor(jobs) as pool:
        try:
            points = list(pool.map(one, sorted(tasks, key=lambda task: -task[0])))
        finally:
            simulator.stop()
    return {**head(NAME, 1, command), "points": rounded(points)}


def _means(lines: Sequence[tuple[Series, Series]], start: float) -> list[float]:
    """Return the mean weight of all flows at the end of each bin; each keeps its last one."""
    ends = np.arange(BIN_S, END_S + BIN_S / 2, BIN_S)
    flows = []
    for times, values in lines:
        index = np.searchsorted(times, ends, side="right") - 1
        flows.append(np.where(index >= 0, values[np.maximum(index, 0)], start))
    return [float(w) for w in np.mean(flows, axis=0)]


def equilibria(name: str, fair: int) -> list[float]:
    """Return the weights of both halves in theory."""
    return [equilibrium(rule_of(name), k, fair, 1.0, MBIT).weight for k in (TCP, 2 * TCP)]


def summary(weights: Sequence[float], name: str, fair: int) -> Json:
    """Return what `measure` does of the weights over time."""
    half, last = int(CHANGE_S / BIN_S), int(SETTLED_S / BIN_S)
    parts = [np.array(weights[half - last : half]), np.array(weights[-last:])]
    before, after = (float(np.mean(p)) for p in parts)
    outside = [i for i, w in enumerate(weights[:half]) if abs(w / before - 1) > 0.15]
    return {
        "weights": list(weights),
        "before": before,
        "after": after,
        "spread": [float(np.std(p) / np.mean(p)) for p in parts],
        "settled_s": (outside[-1] + 2) * BIN_S if outside else BIN_S,
        "theory": equilibria(name, fair),
    }

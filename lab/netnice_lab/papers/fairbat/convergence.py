# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Weights over time: from below and above, with more TCP flows from half of the time on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...engines.sim import Series, Simulator
from ...experiment import Context, Procedure, rounded, simulating
from ...fairness import equilibrium
from ...scenario import Scenario, read
from .experiments import FAIR, GAINS, SINGLE, STARTS, rule_of, stopwatch, variants, with_flows

Json = dict[str, Any]

NAME = "convergence"
"""Of the file that is saved."""
TCP = 10
"""k at first; twice as many from CHANGE_S on."""
FLOWS = (1, 10, 100)
"""l."""
FROM_BOTH = 10
"""l with which weights start from below and above, and with which gains are changed; the others
start from below, with the default gains."""
DEFAULT, *CHANGED = (name for name in GAINS if not name.startswith(("T", "periods")))
"""Names of the gains."""
CHANGE_S, END_S = 1000.0, 2000.0
SETTLED_S = 300.0
"""The last seconds of each half, in which the weights have settled."""
BIN_S = 10.0
MBIT = 14.0
"""What the flows share: there are no short flows here, and no other reason for weights to move."""
SEED = 1


def scenario(fair: int, gains: str = DEFAULT) -> Scenario:
    """Return the scenario for l = `fair`, with a background for each start of each variant."""
    base = with_flows(stopwatch(read(SINGLE), END_S), TCP, fair)
    (first,) = base.cross
    more = first.but(name="more TCP", start_s=CHANGE_S)
    named: Mapping[str, tuple[str, Mapping[str, float | str]]] = {
        name_of(name, start): (name, {"start": start, **GAINS[gains]})
        for name in FAIR
        for start in STARTS
    }
    changed = variants(base, named)
    return changed.but(cross=[first, more], warmup_s=0.0)


def name_of(name: str, start: float) -> str:
    """Return what the background is called that starts with such a weight."""
    return f"{name} from {start:g}"


def measure(context: Context) -> list[Json]:
    """Simulate with one seed; return, for each variant, l, start and gains, the weight over time.

    `weights` are means over the flows in steps of BIN_S; `before` and `after` over the last
    SETTLED_S of each half, `spread` the standard deviation of the weights over time there, relative
    to them, and `own` that of one flow's weights, in mean; `settled_s` is when they last entered
    the 15 % around `before`, and `theory` are the equilibria.
    """
    tasks = [
        (n, name, start, gains)
        for n in FLOWS
        for name in FAIR
        for start, gains in (
            *((start, DEFAULT) for start in (STARTS if n == FROM_BOTH else STARTS[:1])),
            *((STARTS[0], gains) for gains in (CHANGED if n == FROM_BOTH else [])),
        )
    ]

    def one(simulator: Simulator, task: tuple[int, str, float, str]) -> Json:
        fair, name, start, gains = task
        trace = simulator.traced(scenario(fair, gains), SEED, name_of(name, start), ["weight"])
        weights = _binned([trace.series("weight", flow) for flow in trace.names("weight")], start)
        at = {"fair": fair, "name": name, "start": start, "gains": gains}
        return {"at": at, **summary(weights, name, fair)}

    points = context.simulate(sorted(tasks, key=lambda task: -task[0]), one)
    return [rounded(point) for point in points]


EXPERIMENT = Procedure(
    NAME, measure, seeds=1, random=False, depends=simulating("fairbat1", "fairbat2", "reno")
)


def _binned(lines: Sequence[tuple[Series, Series]], start: float) -> list[list[float]]:
    """Return the weights of each flow at the end of each bin; each keeps its last one."""
    ends = np.arange(BIN_S, END_S + BIN_S / 2, BIN_S)
    flows = []
    for times, values in lines:
        index = np.searchsorted(times, ends, side="right") - 1
        flows.append(np.where(index >= 0, values[np.maximum(index, 0)], start).tolist())
    return flows


def equilibria(name: str, fair: int) -> list[float]:
    """Return the weights of both halves in theory."""
    return [equilibrium(rule_of(name), k, fair, 1.0, MBIT).weight for k in (TCP, 2 * TCP)]


def summary(flows: Sequence[Sequence[float]], name: str, fair: int) -> Json:
    """Return what `measure` does of the flows' weights over time."""
    half, last = int(CHANGE_S / BIN_S), int(SETTLED_S / BIN_S)
    each = np.array(flows)
    weights = [float(w) for w in np.mean(each, axis=0)]
    settled = [each[:, half - last : half], each[:, -last:]]
    parts = [np.mean(p, axis=0) for p in settled]
    before, after = (float(np.mean(p)) for p in parts)
    outside = [i for i, w in enumerate(weights[:half]) if abs(w / before - 1) > 0.15]
    return {
        "weights": weights,
        "before": before,
        "after": after,
        "spread": [float(np.std(p) / np.mean(p)) for p in parts],
        "own": [float(np.mean(np.std(p, axis=1) / np.mean(p, axis=1))) for p in settled],
        "settled_s": (outside[-1] + 2) * BIN_S if outside else BIN_S,
        "theory": equilibria(name, fair),
    }

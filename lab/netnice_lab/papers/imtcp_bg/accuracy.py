# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""How near the measurement comes to the bandwidth that is available (ImTCP; ImTCP-bg, II)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...engines.sim import Series, Simulator, Trace
from ...experiment import Context, Procedure, as_points, simulating
from ...scenario import Scenario, describe, read
from .experiments import with_servers

Json = dict[str, Any]

NAME = "accuracy"
ALGORITHMS = ("imtcp", "imtcp_bg")
KEYS = ("available_mbit", "rtt_ms", "acked_packets", "left_bytes")
STEPPING = {"constant": "cbr", "Poisson": "poisson"}
"""Kinds of cross traffic that step, and what scenarios call them."""
WEB = "web"
WEB_MBIT = (10, 30, 50, 70, 90)
KINDS = (*STEPPING, WEB)
SMALL_NAME, SMALL, SMALL_BYTES = "accuracy-small", "Poisson, 150 bytes", 150
"""An ablation: as many bytes in ten times as many packets vary by a third as much."""

SETTLED_S = 2.0
"""A step counts for the error from then on: by then the measurement must have followed."""
NEAR = 0.2
"""Relative error of a measurement that has followed a step."""
RUN = 5
"""Results whose median must be near for a step to count as followed."""
WINDOW_S = 0.5
"""Time over which the bandwidth that web traffic leaves is averaged, before each result."""

FLOW, LINK, LINK_MBIT = "background 0", "bottleneck", 100


def scenarios() -> dict[tuple[str, int], Scenario]:
    """Return what is simulated, by kind and Mbit/s; 0: those that step."""
    steps, web = read(Path("imtcp-bg/steps")), read(Path("imtcp-bg/web"))
    planned: dict[tuple[str, int], Scenario] = {}
    for kind, cross in STEPPING.items():
        changed = [c.but(kind=cross) for c in steps.cross]
        planned[kind, 0] = steps.but(cross=changed)
    flows = [b.but(from_="a", to="b") for b in steps.background]
    for mbit in WEB_MBIT:
        planned[WEB, mbit] = with_servers(web, mbit).but(background=flows)
    return planned


def small() -> dict[tuple[str, int], Scenario]:
    """Return what is simulated of the ablation."""
    steps = scenarios()["Poisson", 0]
    cross = [c.but(packet_bytes=SMALL_BYTES) for c in steps.cross]
    return {(SMALL, 0): steps.but(cross=cross)}


def steps(scenario: Scenario, kind: str) -> list[tuple[float, float, float]]:
    """Return begin, end in seconds and Mbit/s of the traffic, for each of its levels."""
    if kind != WEB:
        return [(c.start_s, c.stop_s or 0.0, c.rate_mbit or 0.0) for c in scenario.cross]
    end = scenario.warmup_s + scenario.measure_s
    return [(scenario.warmup_s - SETTLED_S, end, 100 * scenario.foreground.load)]


def left(trace: Trace, at_s: Series, packet_bytes: int) -> Series:
    """Return what others left of the link, in Mbit/s on the wire, before each of the times."""
    begin = at_s - WINDOW_S
    all_ = trace.rate("left_bytes", LINK, begin, at_s)
    own = trace.rate("acked_packets", FLOW, begin, at_s) * packet_bytes
    return LINK_MBIT - (all_ - own) * 8e-6


def follows(errors: Series) -> int | None:
    """Return the first result from which on the median of RUN is near; None if there is none."""
    for first in range(len(errors) - RUN + 1):
        if abs(errors[first]) <= NEAR and abs(np.median(errors[first : first + RUN])) <= NEAR:
            return first
    return None


def digest(scenario: Scenario, kind: str, trace: Trace) -> list[Json]:
    """Return what is kept of a run, for each level of its cross traffic, beside the level itself.

    `per_rtt`: results in a round trip; `error`: median of the relative error's absolute value;
    `bias`: median of the relative error; `follow_s`: until the level was followed, in so many round
    trips `follow_rtts` with so many results `follow_results`; `each_s`: median of the results of
    each second, in Mbit/s on the wire. The first three are of the time from SETTLED_S on.
    """
    times, results = trace.series("available_mbit", FLOW)
    rtt_at, rtts = trace.series("rtt_ms", FLOW)
    known = describe(scenario)
    packet = known.mss_bytes + known.header_bytes
    kept = []
    for begin, end, _ in steps(scenario, kind):
        inside = (times >= begin) & (times < end)
        at, found = times[inside], results[inside]
        level = next(mbit for b, _, mbit in steps(scenario, kind) if b == begin)
        truth = left(trace, at, packet) if kind == WEB else np.full(len(at), LINK_MBIT - level)
        errors = found / truth - 1
        chosen = errors[at >= begin + SETTLED_S]
        rtt_s = rtts[(rtt_at >= begin + SETTLED_S) & (rtt_at < end)].mean() / 1e3
        first = follows(errors)
        until = begin if first is None else float(at[first])
        before_s = rtts[(rtt_at >= begin) & (rtt_at <= until)] / 1e3
        kept.append(
            {
                "per_rtt": len(chosen) * rtt_s / (end - begin - SETTLED_S),
                "error": float(np.median(np.abs(chosen))) if len(chosen) else None,
                "bias": float(np.median(chosen)) if len(chosen) else None,
                "follow_s": None if first is None else until - begin,
                "follow_rtts": (until - begin) / before_s.mean() if len(before_s) else None,
                "follow_results": None if first is None else first + 1,
                "each_s": [
                    float(np.median(second)) if len(second) else None
                    for s in np.arange(begin, end)
                    if (second := found[(at >= s) & (at < s + 1)]) is not None
                ],
            }
        )
    return kept


def measure(plan: Callable[[], dict[tuple[str, int], Scenario]], context: Context) -> list[Json]:
    """Simulate all kinds of traffic beside each algorithm; return the points.

    They are the levels of the traffic in their order.
    """
    planned = {key: s for key, s in plan().items() if context.wants(traffic=key[0])}
    tasks = [
        (key, algorithm, seed)
        for key in planned for algorithm in ALGORITHMS for seed in context.numbers
    ]  # fmt: skip

    def one(simulator: Simulator, task: tuple[tuple[str, int], str, int]) -> list[Json]:
        key, algorithm, seed = task
        return digest(planned[key], key[0], simulator.traced(planned[key], seed, algorithm, KEYS))

    found = dict(zip(tasks, context.simulate(tasks, one), strict=True))
    return as_points(
        (
            {"traffic": key[0], "begin_s": begin, "mbit": mbit},
            {"background": name, **found[key, name, seed][index]},
        )
        for key, scenario in planned.items()
        for index, (begin, _, mbit) in enumerate(steps(scenario, key[0]))
        for seed in context.numbers
        for name in ALGORITHMS
    )


EXPERIMENTS = [
    Procedure(name, partial(measure, plan), depends=simulating(*ALGORITHMS))
    for name, plan in ((NAME, scenarios), (SMALL_NAME, small))
]

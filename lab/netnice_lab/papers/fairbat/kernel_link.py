# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""FAIRBAT beside TCP on one link of the Linux kernel in virtual time, and the same simulated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ...engines import kernel
from ...engines.sim import Simulator
from ...experiment import Context, Procedure, as_points, running, simulating
from ...fairness import equilibrium
from ...scenario import Scenario, read
from ...scenario import variants as variants_of
from .experiments import FAIR, STARTS, of_weights, rule_of, variants, with_flows

Json = dict[str, Any]

NAME, PHASE, PACED = "kernel", "kernel-phase", "kernel-paced"
"""Of the files that are saved: both algorithms in both ways on RED; fixed weights on drop-tail, and
paced there."""
SCENARIO = Path("fairbat/kernel")
FLOWS, PHASE_FLOWS = 3, 10
"""k = l, on RED and on drop-tail."""
MBIT = 14.0
"""What the flows share."""
WEIGHTS = (0.2, 0.5)
"""Fixed weights of alpha-TCP on drop-tail."""
ACKS = {"delayed": True, "at once": False}
"""How receivers acknowledge there; ns-2's do at once."""
ENGINES = ("kernel", "simulator")
SEEDS = 10
"""Of the simulator; the kernel runs once at each point."""
Points = list[tuple[Json, Scenario]]
"""Scenarios, and where they are among the points of the document."""


def theory(name: str) -> float:
    """Return the weight at the equilibrium."""
    return equilibrium(rule_of(name), FLOWS, FLOWS, 1.0, MBIT).weight


def adapting() -> Points:
    """Return both algorithms in both ways, on RED, from weights below and above."""
    base = read(SCENARIO)
    return [
        ({"start": w}, variants(base, {name: (name, {"start": w}) for name in FAIR}))
        for w in STARTS
    ]


def phase() -> Points:
    """Return alpha-TCP of fixed weights on drop-tail; nothing has to settle but windows."""
    queue = [f"bottleneck.{k}" for k in ("queue=drop-tail", "limit_packets=200", "rtt_ms=20")]
    base = with_flows(read(SCENARIO, queue), PHASE_FLOWS, PHASE_FLOWS)
    scenario = of_weights(base, WEIGHTS, {}, ["alpha"]).but(warmup_s=30.0, measure_s=60.0)
    return [({"acks": n}, scenario.but(delayed_acks=delayed)) for n, delayed in ACKS.items()]


def paced() -> Points:
    """Return the same with ACKs at once and paced senders."""
    return [
        (at, scenario.but(pacing=True, warmup_s=15.0, measure_s=30.0))
        for at, scenario in phase()
        if not scenario.delayed_acks
    ]


def measure(of: Callable[[], Points], context: Context) -> list[Json]:
    """Run every background once on the kernel, SEEDS times simulated; return the points.

    Runs have `mbit` and `cross_mbit`. There is no foreground that could be harmed, so that neither
    no background nor strict priority is run.
    """
    scenarios = [(at, scenario) for at, scenario in of() if context.wants(**at)]
    tick = context.ticks(sum(len(scenario.background) for _, scenario in scenarios))
    entries: list[tuple[Json, Json]] = []
    for at, scenario in scenarios:
        simulator = Simulator(threads=context.jobs)
        simulated = [r for seed in range(1, SEEDS + 1) for r in simulator.runs(scenario, seed)]
        for engine, runs in zip(
            ENGINES, (_on_the_kernel(scenario, context, tick), simulated), strict=True
        ):
            entries += [({"engine": engine, **at}, _kept(run)) for run in runs]
    return as_points(entries)


def _on_the_kernel(scenario: Scenario, context: Context, tick: Callable[..., None]) -> list[Json]:
    plan = kernel.plan(scenario, variants_of(scenario)[2:])
    return list(map(plan.digest, context.on_kernel(plan.scenario, plan.runs, tick=tick)))


def _kept(entry: Json) -> Json:
    return {
        "background": entry["background"],
        "mbit": entry["background_goodput_mbit"],
        "cross_mbit": sum(cross["goodput_mbit"] for cross in entry["cross"]),
    }


EXPERIMENTS = [
    Procedure(
        name, partial(measure, of), seeds=1, random=False, kernel=True,
        depends=running(*ours) | simulating(*ours, "reno"),
    )
    for name, of, ours in (
        (NAME, adapting, ("fairbat1", "fairbat2")),
        (PHASE, phase, ("fairbat1",)),
        (PACED, paced, ("fairbat1",)),
    )
]  # fmt: skip

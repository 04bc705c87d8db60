# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""FAIRBAT beside TCP on one link of the Linux kernel in virtual time, and the same simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ... import job, kernel, vm
from ...claims.paper import Extra
from ...experiment import columns, head
from ...fairness import equilibrium
from ...scenario import Scenario, read
from ...sim import Simulator
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
    scenario = replace(of_weights(base, WEIGHTS, {}, ["alpha"]), warmup_s=30.0, measure_s=60.0)
    return [({"acks": n}, replace(scenario, delayed_acks=delayed)) for n, delayed in ACKS.items()]


def paced() -> Points:
    """Return the same with ACKs at once and paced senders."""
    return [
        (at, replace(scenario, pacing=True, warmup_s=15.0, measure_s=30.0))
        for at, scenario in phase()
        if not scenario.delayed_acks
    ]


def measure(
    name: str,
    of: Callable[[], Points],
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Run every background once on the kernel, SEEDS times simulated; return the document.

    The kernel has as many machines as `jobs`. Runs have `mbit` and `cross_mbit`. There is no
    foreground that could be harmed, so that neither no background nor strict priority is run.
    `seeds` and `folder` are not used: a run on the kernel has no seed.
    """
    del seeds, folder
    scenarios = of()
    total = sum(len(scenario.background) for _, scenario in scenarios)
    points: list[Json] = []
    done = 0

    def one_more() -> None:
        nonlocal done
        done += 1
        progress(done, total)

    for at, scenario in scenarios:
        ran = _on_the_kernel(scenario, jobs, one_more)
        simulator = Simulator(threads=jobs)
        simulated = [simulator.runs(scenario, seed) for seed in range(1, SEEDS + 1)]
        for engine, runs in zip(ENGINES, ([ran], simulated), strict=True):
            kept = columns([[_kept(r) for r in of_seed] for of_seed in runs])
            points.append({"at": {"engine": engine, **at}, "runs": kept})
    return {**head(name, 1, command), "kernel": vm.find_kernel().version, "points": points}


def _on_the_kernel(scenario: Scenario, jobs: int, one_more: Callable[[], None]) -> list[Json]:
    bottleneck = kernel.check(scenario, scenario.background)
    plan = [
        {
            "index": index, "seed": 1, "queue": bottleneck.queue,
            "background": job.background_json(background),
        }
        for index, background in enumerate(scenario.background)
    ]  # fmt: skip
    runs: list[Json] = []

    def collect(outcome: Json) -> None:
        runs.append(kernel.digest(scenario, plan[outcome["run"]], outcome))
        one_more()

    job.run_all(
        scenario, plan, vms=jobs, timeout_s=kernel.timeout_s(scenario, len(plan)), each=collect
    )  # fmt: skip
    return runs


def _kept(entry: Json) -> Json:
    return {
        "background": entry["background"],
        "mbit": entry["background_goodput_mbit"],
        "cross_mbit": sum(cross["goodput_mbit"] for cross in entry["cross"]),
    }


EXTRAS = (
    Extra(NAME, partial(measure, NAME, adapting)),
    Extra(PHASE, partial(measure, PHASE, phase)),
    Extra(PACED, partial(measure, PACED, paced)),
)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""FAIRBAT beside TCP on one link of the Linux kernel in virtual time, and the same simulated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ... import job, kernel, vm
from ...fairness import equilibrium
from ...scenario import Scenario, read
from ...sim import Simulator
from ..measure import head, rounded
from ..paper import Extra
from .experiments import fixed, of_weights, rule_of

Json = dict[str, Any]

NAME, PHASE = "kernel", "kernel-phase"
"""Of the files that are saved: both algorithms in both ways on RED; fixed weights on drop-tail."""
SCENARIO = Path("fairbat/kernel")
FLOWS = 3
"""k = l."""
MBIT = 14.0
"""What the flows share."""
WEIGHTS = (0.2, 0.5)
"""Fixed weights of alpha-TCP on drop-tail."""
ENGINES = ("kernel", "simulator")


def theory(name: str) -> float:
    """Return the weight at the equilibrium."""
    return equilibrium(rule_of(name), FLOWS, FLOWS, 1.0, MBIT).weight


def adapting() -> Scenario:
    """Return both algorithms in both ways, on RED."""
    return read(SCENARIO)


def phase() -> Scenario:
    """Return alpha-TCP of fixed weights on drop-tail; nothing has to settle but windows."""
    queue = ["bottleneck.queue=drop-tail", "bottleneck.limit_packets=200"]
    scenario = of_weights(read(SCENARIO, queue), WEIGHTS, {})
    alpha = [b for b in scenario.background if b.name in {fixed("alpha", w) for w in WEIGHTS}]
    return replace(scenario, background=alpha, warmup_s=30.0, measure_s=60.0)


def measure(
    name: str,
    of: Callable[[], Scenario],
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Run every background once on either engine; return the experiment's document.

    The kernel has as many machines as `jobs`. Its runs have `mbit` and `cross_mbit`. There is no
    foreground that could be harmed, so that neither no background nor strict priority is run.
    `seeds` and `folder` are not used: on this link only the hosts' own generators are random.
    """
    del seeds, folder
    scenario = of()
    bottleneck = kernel.check(scenario, scenario.background)
    plan = [
        {
            "index": index, "seed": 1, "queue": bottleneck.queue,
            "background": job.background_json(background),
        }
        for index, background in enumerate(scenario.background)
    ]  # fmt: skip
    runs: Json = {}

    def collect(outcome: Json) -> None:
        entry = kernel.digest(scenario, plan[outcome["run"]], outcome)
        runs[entry["background"]] = _kept(entry)
        progress(len(runs), len(plan))

    job.run_all(
        scenario, plan, vms=jobs, timeout_s=kernel.timeout_s(scenario, len(plan)), each=collect
    )  # fmt: skip
    simulated = {r["background"]: _kept(r) for r in Simulator(threads=jobs).runs(scenario, 1)}
    return {
        **head(name, 1, command),
        "kernel": vm.find_kernel().version,
        "points": [
            {"at": {"engine": engine}, "runs": rounded(found)}
            for engine, found in zip(ENGINES, (runs, simulated), strict=True)
        ],
    }


def _kept(entry: Json) -> Json:
    return {
        "mbit": [entry["background_goodput_mbit"]],
        "cross_mbit": [sum(cross["goodput_mbit"] for cross in entry["cross"])],
    }


EXTRAS = (
    Extra(NAME, partial(measure, NAME, adapting)),
    Extra(PHASE, partial(measure, PHASE, phase)),
)

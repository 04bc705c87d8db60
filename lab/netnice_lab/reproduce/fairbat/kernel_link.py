# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Both algorithms in both ways on the Linux kernel in virtual time, beside TCP on one link."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ... import job, kernel, vm
from ...fairness import equilibrium
from ...scenario import read
from ..measure import head, rounded
from .experiments import rule_of

Json = dict[str, Any]

NAME = "kernel"
"""Of the file that is saved."""
SCENARIO = Path("fairbat/kernel")
FLOWS = 3
"""k = l."""
MBIT = 14.0
"""What the flows share."""


def theory(name: str) -> float:
    """Return the weight at the equilibrium."""
    return equilibrium(rule_of(name), FLOWS, FLOWS, 1.0, MBIT).weight


def measure(
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Run every background once, in as many machines as `jobs`; return the experiment's document.

    Its runs have `mbit` and `cross_mbit`. There is no foreground that could be harmed, so that
    neither no background nor strict priority is run. `seeds` and `folder` are not used: on this
    link only the kernel's own generators are random.
    """
    del seeds, folder
    scenario = read(SCENARIO)
    bottleneck = kernel.check(scenario, scenario.background)
    plan = [
        {
            "index": index, "seed": 1, "queue": bottleneck.queue,
            "background": job.background_json(background),
        }
        for index, background in enumerate(scenario.background)
    ]  # fmt: skip
    runs: dict[str, Json] = {}

    def collect(outcome: Json) -> None:
        entry = kernel.digest(scenario, plan[outcome["run"]], outcome)
        runs[entry["background"]] = {
            "mbit": [entry["background_goodput_mbit"]],
            "cross_mbit": [sum(cross["goodput_mbit"] for cross in entry["cross"])],
        }
        progress(len(runs), len(plan))

    job.run_all(
        scenario, plan, vms=jobs, timeout_s=kernel.timeout_s(scenario, len(plan)), each=collect
    )  # fmt: skip
    return {
        **head(NAME, 1, command),
        "kernel": vm.find_kernel().version,
        "points": [{"at": {}, "runs": rounded(runs)}],
    }

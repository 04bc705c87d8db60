# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenario K1 with one to 64 flows, on the Linux kernel in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ... import kernel
from ...experiment import columns, head, kept_of_kernel
from .experiments import k1

Json = dict[str, Any]

NAME = "k1"
SEEDS = 3
"""Most seeds: a run takes half a minute and more of a machine."""


def measure(
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    folder: Path,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Run K1 in one virtual machine; return the experiment's document."""
    del jobs, folder
    scenario, numbers = k1(), range(1, min(seeds, SEEDS) + 1)
    total, ended = len(scenario.variants()) * len(numbers), 0

    def count(_: Json) -> None:
        nonlocal ended
        ended += 1
        progress(ended, total)

    result = kernel.run(scenario, seeds=numbers, vms=1, command=command, progress=count)
    runs = [
        [
            {"background": run["background"], **kept_of_kernel(run)}
            for run in result["runs"] if run["seed"] == seed
        ]
        for seed in numbers
    ]  # fmt: skip
    return {
        **head(NAME, len(numbers), command),
        "kernel": result["kernel"],
        "points": [{"at": {}, "runs": columns(runs)}],
    }

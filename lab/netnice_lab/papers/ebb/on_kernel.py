# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""K1 with held connections, on the Linux kernel in virtual time."""

from __future__ import annotations

from typing import Any

from ...engines import kernel
from ...engines.base import measure as measured
from ...experiment import Context, Procedure, as_points
from ...records import depends
from ...scenario import variants
from .experiments import k1, kept

Json = dict[str, Any]

NAME, FLOWS = "kernel", (1, 16, 64)


def measure(context: Context) -> list[Json]:
    """Run it in one virtual machine; return its only point."""
    scenario = k1(*FLOWS)
    tick = context.ticks(len(variants(scenario)) * len(context.numbers))
    result = measured(
        kernel.Kernel(), scenario, seeds=context.numbers, jobs=1, command=context.command,
        progress=tick,
    )  # fmt: skip
    return as_points(
        ({}, {"background": run["background"], **kept(run, scenario.measure_s)})
        for run in result["runs"]
    )


def experiment() -> Procedure:
    """Return it."""
    return Procedure(NAME, measure, kernel=True, depends=frozenset(depends(k1(*FLOWS), "kernel")))

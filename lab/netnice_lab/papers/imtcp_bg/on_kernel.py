# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenario K1 with one to 64 flows, on the Linux kernel in virtual time."""

from __future__ import annotations

from typing import Any

from ...engines import kernel
from ...engines.base import measure as measured
from ...experiment import Context, Procedure, as_points, kept_of_kernel, running
from ...scenario import variants
from .experiments import k1

Json = dict[str, Any]

NAME = "k1"


def measure(context: Context) -> list[Json]:
    """Run K1 in one virtual machine; return its only point."""
    scenario = k1()
    tick = context.ticks(len(variants(scenario)) * len(context.numbers))
    result = measured(
        kernel.Kernel(), scenario, seeds=context.numbers, jobs=1, command=context.command,
        progress=tick,
    )  # fmt: skip
    return as_points(
        ({}, {"background": run["background"], **kept_of_kernel(run)}) for run in result["runs"]
    )


EXPERIMENT = Procedure(NAME, measure, kernel=True, depends=running("imtcp_bg", "nice"))

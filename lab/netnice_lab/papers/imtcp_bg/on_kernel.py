# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Scenario K1 with one to 64 flows, on the Linux kernel in virtual time."""

from __future__ import annotations

from ...experiment import Context, Procedure, kept_of_kernel, running
from .experiments import Json, k1

NAME = "k1"


def measure(context: Context) -> list[Json]:
    """Run K1; return its only point."""
    return context.in_one_machine(k1(), kept_of_kernel)


EXPERIMENT = Procedure(NAME, measure, kernel=True, depends=running("imtcp_bg", "nice"))

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""K1 with held connections, on the Linux kernel in virtual time."""

from __future__ import annotations

from ...experiment import Context, Procedure
from ...records import depends
from .experiments import Json, k1, kept

NAME, FLOWS = "kernel", (1, 16, 64)


def measure(context: Context) -> list[Json]:
    """Run it; return its only point."""
    return context.in_one_machine(k1(*FLOWS), kept)


def experiment() -> Procedure:
    """Return it."""
    return Procedure(NAME, measure, kernel=True, depends=frozenset(depends(k1(*FLOWS), "kernel")))

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Experiments with background TCP on the real Linux kernel, in virtual time."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: ``build/``, ``target/`` and ``results/`` are found below it."""

PAPERS = sorted(
    f.parent.name.replace("_", "-") for f in Path(__file__).parent.glob("papers/*/__init__.py")
)
"""What `netnice-lab reproduce` takes: its packages, which take seconds to import."""


class LabError(Exception):
    """Something the user can act on: a sentence that says what failed, why, and what to do next."""

    def __init__(self, said: str, status: int = 1) -> None:
        """Say so; `status` is the exit status that comes of it, 2 for a scenario's own faults."""
        super().__init__(said)
        self.status = status

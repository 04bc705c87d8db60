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

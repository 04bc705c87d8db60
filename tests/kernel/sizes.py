# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""How much a test does: minutes in all for `make test`, the full size for `make soak`."""

from __future__ import annotations

import os
from typing import TypeVar

import pytest
from support import algorithms, wide

Size = TypeVar("Size")

SOAK = os.environ.get("NETNICE_SOAK") == "1"


def sized(usual: Size, full: Size) -> Size:
    """Return the size of a test: `full` where the environment has NETNICE_SOAK=1."""
    return full if SOAK else usual


def only_soaked(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return which of the tests run, and which `make soak` alone runs: those marked `soak`."""
    left = [item for item in items if not SOAK and item.get_closest_marker("soak")]
    return [item for item in items if item not in left], left


SILENT = "fairbat1 mode=tau d_c=1 d_r=1"
"""With periods of a second or two, instead of half a minute."""

MODES = ["reno", "nice", "imtcp", SILENT]
"""An algorithm, with settings, for each way in which a host obeys.

A window clocked by ACKs; bursts with a gap, below two packets; probes whose spacing is set just
before each leaves; silence for part of the time.
"""

EACH = sized(MODES, [*algorithms(), SILENT])
"""For tests of what the host does: the algorithm only chooses how."""


def under(each: str) -> list[str]:
    """Return the command that runs another under one of EACH."""
    name, *settings = each.split()
    options = [word for setting in settings for word in ("--set", setting)]
    return ["netnice", "run", "--algorithm", name, *wide(name), *options, "--"]


def control(each: str) -> str:
    """Return the name that the kernel has for one of EACH."""
    return f"nn_{each.split(maxsplit=1)[0]}"


SLOW, FAST = 1, 20
"""Mbit/s: slow until the test has looked, or on a busy machine a transfer ends before."""

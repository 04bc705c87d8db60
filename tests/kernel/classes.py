# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What netnice chooses unless it is told otherwise: the first line of core/classes.def."""

from __future__ import annotations

import re
from pathlib import Path

CLASSES = Path(__file__).parents[2] / "core" / "classes.def"


def _first() -> str:
    found = re.search(r"^NN_CLASS\(\w+, (\w+),", CLASSES.read_text(), re.MULTILINE)
    assert found, f"{CLASSES} has no class"
    return found[1]


ALGORITHM = _first()
DEFAULT = f"nn_{ALGORITHM}"  # as the kernel knows it

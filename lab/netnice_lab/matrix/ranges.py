# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What a search for the worst varies."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Range:
    """Values between two bounds, evenly in their logarithms."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return where in it a value is: 0 to 1."""
        return math.log(value / self.low) / math.log(self.high / self.low)


RANGES = {
    "rate_mbit": Range(1, 100),
    "rtt_ms": Range(5, 200),
    "bdp": Range(0.1, 10),
    "load": Range(0.1, 0.9),
    "fetches_per_s": Range(2, 20),
    "flows": Range(1, 100),
}
QUEUES = ("drop-tail", "pie", "codel", "fq_codel")
WHOLE = ("rtt_ms", "flows")

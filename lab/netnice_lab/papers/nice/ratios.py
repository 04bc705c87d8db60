# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Ratios that several claims on TCP Nice are judged by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...claims.results import Results
from ...scenario import IDEAL

Json = dict[str, Any]

ALIKE = 1.1
"""Ratio within which two latencies are "hardly distinguishable": the width of a line in a figure
whose axis has two decades in 5 cm."""


def setting(name: str, flows: int) -> Json:
    """Return a point of the experiment "settings"."""
    return {"setting": name, "flows": flows}


def over_priority(found: Results, background: str, **at: float | str) -> Json:
    """Return packet latency over that under router priority."""
    return found.ratio("packet_rtt_ms", background, IDEAL, **at)


def worst(found: Results, background: str, key: str, places: Sequence[float]) -> tuple[float, Json]:
    """Return where a background is worst against router priority, and by how much."""
    ratios = {place: over_priority(found, background, **{key: place}) for place in places}
    place = max(ratios, key=lambda p: float(ratios[p]["mean"]))
    return place, ratios[place]


def settings_named(names: Iterable[str]) -> str:
    """Return settings of the tables; in words if there is none."""
    return "; ".join(names) or "in none of the settings below"

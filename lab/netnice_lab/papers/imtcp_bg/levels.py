# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the accuracy's experiments say of each level of the traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import stats
from ...claims.results import Results

Json = dict[str, Any]


def levels(found: Results, traffic: str) -> list[Mapping[str, Any]]:
    """Return the points of a kind of traffic, in their order."""
    return [p["at"] for p in found.document["points"] if p["at"]["traffic"] == traffic]


def worst(found: Results, key: str, traffic: str, name: str) -> tuple[Json, Mapping[str, Any]]:
    """Return the greatest mean over the levels, and where it was."""
    places = levels(found, traffic)
    means = [(mean(found, key, name, at), at) for at in places]
    return max(means, key=lambda pair: pair[0]["mean"] if pair[0]["mean"] is not None else 1e9)


def mean(found: Results, key: str, name: str, at: Mapping[str, Any]) -> Json:
    """Return the mean over seeds of a level; nothing if a seed had none."""
    values = found.values(key, name, **at)
    return stats.interval([] if None in values else values)

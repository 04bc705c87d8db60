# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Parts of a group's flows, totals of groups, and how they vary. "As" is taken as within 5 %."""

from __future__ import annotations

from statistics import fmean, pstdev
from typing import Any

from ... import stats
from ...claims.results import Results
from .experiments import MOMENTS, MPAT, TCP

Json = dict[str, Any]

CLOSE = 0.05


def parts(found: Results, background: str, shares: list[float], **at: Any) -> list[Json]:  # noqa: ANN401
    """Return what each flow got, over what its share of the flows' total is."""
    flows = [
        found.values(f"flow {i}", background, **at) for i in range(1, len(shares) + 1)
    ]  # fmt: skip
    totals = [sum(rates) for rates in zip(*flows, strict=True)]
    return [
        stats.interval(
            [rate / total * sum(shares) / share for rate, total in zip(rates, totals, strict=True)]
        )
        for rates, share in zip(flows, shares, strict=True)
    ]  # fmt: skip


def worst(values: list[Json]) -> Json:
    """Return the value that is farthest from 1."""
    return max(values, key=lambda v: abs(v["mean"] - 1))


def near(value: Json) -> bool:
    """Whether a ratio is 1 within what "as" is taken for."""
    return bool(abs(value["mean"] - 1) <= CLOSE)


def total(found: Results, background: str = MPAT, **at: Any) -> Json:  # noqa: ANN401
    """Return the total of a group over that of as many flows of TCP with the same seeds."""
    return found.ratio("mbit", background, TCP, **at)


def over(values: list[float], reference: list[float]) -> Json:
    """Return the mean ratio of values of the same seeds, with its interval."""
    return stats.interval([a / b for a, b in zip(values, reference, strict=True)])


def variation(found: Results, background: str, key: str = "mbit", **at: Any) -> list[float]:  # noqa: ANN401
    """Return the standard deviation over half seconds, over the mean, of each seed."""
    rows = [found.values(key, background, **at, at=t) for t in MOMENTS]
    return [pstdev(seed) / fmean(seed) for seed in zip(*rows, strict=True)]

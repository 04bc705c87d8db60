# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Pages that a browser loaded, by how they came, beside the same without prefetching."""

from __future__ import annotations

import math
from typing import Any

from ... import stats
from ...claims.claim import Json, times
from ...claims.results import Results
from ...scenario import NONE
from .browsing import CACHED, FIRST, KINDS, LATE, UNFORESEEN


def by_kind(found: Results, name: str, kind: str) -> Json:
    """Return how long pages of a kind take over the same without prefetching, with an interval.

    `mean` and its interval are over the seeds that have any, of geometric means; `pages` is how
    many there are, `all` of how many; `s` and `none_s` are geometric means of all of them, and
    `later_s` is the mean difference; `kb` and `none_kb` are what one waits for on average, and
    `ahead_kb` what Chromium asks for ahead because of it.
    """
    ratios, pairs, every = [], [], 0
    for ours, none in zip(pages(found, name), pages(found, NONE), strict=True):
        every += len(ours)
        mine = [(a, b) for a, b in zip(ours, none, strict=True) if a[2] == kind]
        pairs += mine
        if mine:
            ratios.append(geometric([a[1] / b[1] for a, b in mine]))
    out = {**stats.interval(ratios), "pages": len(pairs), "all": every}
    if pairs:
        out |= {
            "s": geometric([a[1] for a, _ in pairs]), "none_s": geometric([b[1] for _, b in pairs]),
            "later_s": stats.mean([a[1] - b[1] for a, b in pairs]),
            "kb": stats.mean([a[3] for a, _ in pairs]),
            "none_kb": stats.mean([b[3] for _, b in pairs]),
            "ahead_kb": stats.mean([a[4] for a, _ in pairs]),
        }  # fmt: skip
    return out


def pages(found: Results, name: str) -> list[list[list[Any]]]:
    """Return the pages of each seed, each as in `browsing.each`."""
    runs: list[Any] = found.values("each", name)
    return runs


def geometric(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def gain_by_kind(found: Results, name: str) -> str:
    """Return how many pages there are of each kind, and how long they take over none."""
    kinds = {kind: by_kind(found, name, kind) for kind in KINDS}
    told_as = {
        FIRST: "are the first of a walk", CACHED: "come from the cache",
        UNFORESEEN: "are not asked for ahead", LATE: "are, and yet not there in time",
    }  # fmt: skip
    parts = [
        f"{kinds[kind]['pages']} {told_as[kind]} ({times(kinds[kind])})"
        for kind in (FIRST, CACHED, UNFORESEEN, LATE)
        if kinds[kind]["pages"]
    ]
    return f"of {kinds[FIRST]['all']} pages {', '.join(parts)}"


def waits(found: Results, name: str, rate_mbit: float) -> str:
    """Return how much longer pages take that suggest, and what of it the link's time explains."""
    first = by_kind(found, name, FIRST)
    if first["later_s"] <= 0:
        return ""
    later_ms, link_ms = 1000 * first["later_s"], 8 * first["ahead_kb"] / rate_mbit
    return (
        " What a page suggests Chromium asks for at once, even while the page loads: with it the "
        f"first pages of walks take {later_ms:.0f} ms longer on average, and the "
        f"{first['ahead_kb']:.0f} kB that they have it ask for take the link "
        f"{link_ms:.0f} ms.{' The rest is not explained.' if later_ms > 2 * link_ms else ''}"
    )

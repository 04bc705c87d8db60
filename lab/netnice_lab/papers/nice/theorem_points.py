# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The points of the document that `theorem.measure` returns: which there are, how they are told."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

NAME = "theorem"
"""Of the experiment."""
SHARE = 0.2
"""q_t as a share of the queue: the prototype's threshold (section 2.3)."""


def plain(document: Json) -> list[Json]:
    """Return the points of the grid that are as the theorem has it, q_t a share of the buffer."""
    return [p for p in part(document, "grid") if not p["late"] and not p["mild"] and _fits(p)]


def literal(document: Json) -> list[Json]:
    """Return the points of the grid with the prototype's threshold, whatever the buffer."""
    return [p for p in part(document, "grid") if not _fits(p)]


def part(document: Json, name: str) -> list[Json]:
    """Return the points of one part of the document; see `theorem.measure`."""
    return [p for p in document["points"] if p["part"] == name]


def where(rows: Iterable[Json], **wanted: object) -> list[Json]:
    """Return the points, or settings, that have these values."""
    return [row for row in rows if all(_flat(row)[k] == v for k, v in wanted.items())]


def one(rows: Iterable[Json], **wanted: object) -> Json:
    """Return the one point that has these values."""
    (found,) = where(rows, **wanted)
    return found


def share(value: float) -> str:
    """Return a share of the model's in percent, or a small one as a power of ten."""
    return f"{100 * value:.2g} %" if abs(value) >= 1e-5 or value == 0 else f"{value:.0e}"


def lost(value: Json) -> str:
    """Return a measured share in percent, with its interval."""
    low, mean, high = (value[k] for k in ("lo", "mean", "hi"))
    if low is None:
        return f"{100 * mean:.1f} %"
    return f"{100 * mean:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def least(value: Json) -> float:
    """Return the lower end of an interval, or the mean where there is none."""
    return float(value["mean"] if value["lo"] is None else value["lo"])


def _fits(p: Json) -> bool:
    return math.isclose(p["trigger"], SHARE * p["buffer"])


def _flat(row: Json) -> Json:
    setting: Json = row.get("setting", row)
    return setting


def place(row: Json) -> str:
    """Return a point or setting in the paper's symbols."""
    s = _flat(row)
    return f"m = {s['reno']}, l = {s['nice']}, B = {s['buffer']:g}"

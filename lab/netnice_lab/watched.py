# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The panels of the dashboard, from what ``netnice top --once --json`` said again and again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt

from . import LabError
from .plot import OTHERS, OURS, REFERENCE, save

Json = dict[str, Any]


def read(record: Path) -> list[Json]:
    """Return the views of a record, a line each; raise LabError if it is none."""
    try:
        views = [json.loads(line) for line in record.read_text().splitlines()]
        if not any(view["jobs"] for view in views):
            raise LabError(f"{record} has no job.")
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise LabError(f"{record} is no record of netnice top --once --json: {error}.") from error
    return views


def points(views: list[Json], *keys: str) -> tuple[list[float], list[float]]:
    """Return the times since the first view, and a number of its first job, where known."""
    found = []
    for view in views:
        value: Any = view["jobs"][0] if view["jobs"] else None
        for key in keys:
            value = value and value[key]
        if value is not None:
            found.append((view["time"] - views[0]["time"], value))
    return [at for at, _ in found], [value for _, value in found]


def panels(views: list[Json], out: Path) -> None:
    """Write the first job's rate, what else was sent, its queue and its reason as SVG."""
    figure, (rates, queue, why) = plt.subplots(
        3, sharex=True, figsize=(7.2, 5.4), layout="constrained", height_ratios=(3, 2, 1)
    )
    for keys, name, shade in (
        (("others", "bits"), "others", OTHERS),
        (("rate_bits",), "the job", OURS),
    ):
        times, bits = points(views, *keys)
        rates.step(times, [b / 1e6 for b in bits], where="pre", color=shade, label=name)
    rates.set_ylabel("Mbit/s")
    for key, name, shade in (("now_ms", "now", OURS), ("limit_ms", "limit", REFERENCE)):
        times, ms = points(views, "queue", key)
        queue.step(times, ms, where="pre", color=shade, label=name)
    queue.set_ylabel("queue, ms")
    times, reasons = points(views, "why", "reason")
    names = sorted(set(map(str, reasons)))
    why.scatter(times, [names.index(str(r)) for r in reasons], color=OURS, s=9, marker="s")
    why.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    why.set_ylim(-0.5, len(names) - 0.5)
    why.set_xlabel("seconds")
    for axes in (rates, queue, why):
        axes.spines[["top", "right"]].set_visible(False)
    for axes in (rates, queue):
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, loc="upper right", fontsize=9)
    save(figure, out)

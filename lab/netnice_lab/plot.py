# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The figure: harm to the foreground against use of what is spare. Drawn from saved JSON only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
# Text stays text (small files, searchable), and equal data gives an equal file.
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "netnice", "font.size": 10})

from matplotlib import pyplot as plt  # noqa: E402 (after the backend is chosen)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402

from . import LabError  # noqa: E402
from .scenario import IDEAL, NONE  # noqa: E402
from .stats import spread  # noqa: E402

Json = dict[str, Any]

OURS, OTHERS, REFERENCE = "#0072b2", "#d55e00", "#009e73"
"""Colours that remain distinct for colour-blind readers (Okabe and Ito)."""


def colour(name: str) -> str:
    """Return the colour of a background: ours, the reference, or another."""
    if name == IDEAL:
        return REFERENCE
    return OURS if name.startswith("nn_") or "netnice" in name else OTHERS


def harm_and_share(result: Json, out: Path) -> None:
    """Write the main figure of a result as SVG: one point with its interval per background.

    Raises LabError if the result has no foreground, and so no harm to show.
    """
    points = [
        e for e in result["summary"]
        if e["background"] != NONE
        and e["fct_ratio_mean"]["mean"] is not None
        and e["share"]["mean"] is not None
    ]  # fmt: skip
    if not points:
        raise LabError(
            "This result has no foreground completion times to draw. "
            "Run the scenario with foreground.load above 0."
        )
    scenario = result["scenario"]
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for entry in points:
        harm, share = entry["fct_ratio_mean"], entry["share"]
        low, high = spread(harm)
        # A ratio cannot be negative, though an interval from few seeds can.
        axes.errorbar(
            harm["mean"], share["mean"] * 100,
            xerr=[[min(low, harm["mean"] - 0.5)], [high]],
            yerr=[[100 * d] for d in spread(share)],
            fmt="D" if entry["background"] == IDEAL else "o",
            color=colour(entry["background"]), markersize=6, elinewidth=1, capsize=2,
        )  # fmt: skip
    largest = max(e["fct_ratio_mean"]["mean"] for e in points)
    if largest > 3:
        axes.set_xscale("log")
        ticks = [t for t in (1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100) if t <= largest * 1.6]
        axes.set_xticks(ticks, minor=False)
        axes.set_xticks([], minor=True)
        axes.set_xlim(0.9, largest * 1.6)
    else:
        margin = 0.15 * max(largest - 1, 0.2)
        axes.set_xlim(1 - margin, largest + 3 * margin)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))  # noqa: RUF001
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g} %"))
    axes.set_ylim(0, max(115.0, *(e["share"]["mean"] * 100 + 15 for e in points)))
    axes.axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
    axes.axhline(100, color="#bbbbbb", linewidth=1, zorder=0)
    axes.set_xlabel("users' mean completion time, over that without background (less is better)")
    axes.set_ylabel("share of spare bandwidth used")
    axes.set_title(scenario.get("title") or scenario["name"], loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    _label(figure, axes, points)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, metadata={"Date": None, "Creator": "netnice-lab"})
    plt.close(figure)


def _label(figure: Figure, axes: Axes, points: list[Json]) -> None:
    """Write each point's name beside it, at the first place where it covers nothing."""
    figure.draw_without_rendering()
    transform = axes.transData.transform
    spots: list[tuple[float, float]] = [
        tuple(transform((e["fct_ratio_mean"]["mean"], e["share"]["mean"] * 100))) for e in points
    ]
    taken: list[Any] = []
    frame = axes.get_window_extent()
    for entry, spot in zip(points, spots, strict=True):
        text = axes.annotate(
            entry["background"], spot, xycoords="figure pixels", fontsize=9,
            color=colour(entry["background"]), annotation_clip=False,
        )  # fmt: skip
        for distance in range(8, 90, 7):
            for dx, dy, ha, va in (
                (1, 0.6, "left", "bottom"), (1, -0.6, "left", "top"),
                (-1, 0.6, "right", "bottom"), (-1, -0.6, "right", "top"),
                (0, 1, "center", "bottom"), (0, -1, "center", "top"),
            ):  # fmt: skip
                text.set_position((spot[0] + dx * distance * 0.7, spot[1] + dy * distance))
                text.set(horizontalalignment=ha, verticalalignment=va)
                box = text.get_window_extent().padded(1)
                clear = not any(box.overlaps(other) for other in taken)
                clear &= not any(box.padded(4).contains(*other) for other in spots)
                inside = frame.x0 < box.x0 and box.x1 < frame.x1 + 40 and frame.y0 < box.y0
                if clear and inside:
                    break
            else:
                continue
            break
        taken.append(text.get_window_extent().padded(1))

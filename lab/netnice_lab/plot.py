# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The figure: harm to the foreground against use of what is spare. Drawn from saved JSON only."""

from __future__ import annotations

import itertools
import math
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl

mpl.use("svg")
# Text stays text (small files, searchable), and equal data gives an equal file.
mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "netnice", "font.size": 10})

from matplotlib import pyplot as plt  # noqa: E402 (after the backend is chosen)
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.ticker import FuncFormatter  # noqa: E402
from matplotlib.transforms import Bbox  # noqa: E402

from . import LabError, output  # noqa: E402
from .report import named, starved, unshared  # noqa: E402
from .scenario import IDEAL, NONE  # noqa: E402
from .stats import spread  # noqa: E402

_Side = tuple[float, float, Literal["left", "center", "right"], Literal["bottom", "top"]]
_SIDES: tuple[_Side, ...] = (
    (0.7, 0.6, "left", "bottom"),
    (0.7, -0.6, "left", "top"),
    (-0.7, 0.6, "right", "bottom"),
    (-0.7, -0.6, "right", "top"),
    (0, 1, "center", "bottom"),
    (0, -1, "center", "top"),
)

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

    Raises LabError if the result has no foreground, and so no harm to show, or no shares.
    """
    summary = result["summary"]
    points = [
        e for e in summary
        if e["background"] != NONE and e["fct_ratio_mean"]["mean"] is not None
    ]  # fmt: skip
    hungry = starved(summary)
    if not points and hungry:
        raise LabError(
            f"This result has no harm to draw: no fetch finished with {hungry}. "
            "Run the scenario for longer, or with a lower foreground.load."
        )
    if not points:
        raise LabError(
            "This result has no foreground completion times to draw. "
            "Run the scenario with foreground.load above 0."
        )
    if why := unshared(summary):
        raise LabError(
            f"This result has no shares to draw: {why}. "
            "Run the scenario where users leave more, as with a lower foreground.load."
        )
    scenario = result["scenario"]
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    means = [e["fct_ratio_mean"]["mean"] for e in points]
    smallest, largest = min(1.0, *means), max(1.0, *means)
    # A ratio cannot be negative, though an interval from few seeds can.
    floor = smallest / 2
    for entry in points:
        harm, share = entry["fct_ratio_mean"], entry["share"]
        low, high = spread(harm)
        axes.errorbar(
            harm["mean"], share["mean"] * 100,
            xerr=[[min(low, harm["mean"] - floor)], [high]],
            yerr=[[100 * d] for d in spread(share)],
            fmt="D" if entry["background"] == IDEAL else "o",
            color=colour(entry["background"]), markersize=6, elinewidth=1, capsize=2,
        )  # fmt: skip
    if largest > 3:
        axes.set_xscale("log")
        left = min(0.9, smallest / 1.1)
        marks = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100)
        ticks = [t for t in marks if left <= t <= largest * 1.6]
        axes.set_xticks(ticks, minor=False)
        axes.set_xticks([], minor=True)
        axes.set_xlim(left, largest * 1.6)
    else:
        margin = 0.15 * max(largest - 1, 0.2)
        axes.set_xlim(min(1 - margin, smallest - margin / 2), largest + 3 * margin)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))  # noqa: RUF001
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g} %"))
    axes.set_ylim(0, max(115.0, *(e["share"]["mean"] * 100 + 15 for e in points)))
    axes.plot(1, 100, marker="*", markersize=14, color="#bbbbbb", zorder=1)
    axes.axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
    axes.axhline(100, color="#bbbbbb", linewidth=1, zorder=0)
    axes.set_xlabel("users' mean completion time, over that without background (less is better)")
    axes.set_ylabel("share of spare bandwidth used")
    title = scenario.get("title") or scenario["name"]
    if hungry:
        title += f"\nNo fetch finished with {hungry}."
    axes.set_title(title, loc="left", fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    _label(figure, axes, points, floor)
    save(figure, out)


def save(figure: Figure, out: Path) -> None:
    """Write a figure as SVG, and forget it."""
    svg = StringIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "netnice-lab"})
    plt.close(figure)
    output.write(out, svg.getvalue())


def _label(figure: Figure, axes: Axes, points: list[Json], floor: float) -> None:
    """Write each point's name beside it, at the nearest place where it covers nothing."""
    figure.draw_without_rendering()
    frame = axes.get_window_extent()

    def box(left: float, right: float, low: float, high: float, margin: float) -> Bbox:
        corners = axes.transData.transform([(left, low), (right, high)])
        return Bbox(corners).padded(margin)

    names, shades, spots = ["ideal"], ["#888888"], [(1.0, 100.0)]
    taken = [box(1, 1, 100, 100, 7)]
    for entry in points:
        x, y = entry["fct_ratio_mean"]["mean"], entry["share"]["mean"] * 100
        (left, right), (low, high) = spread(entry["fct_ratio_mean"]), spread(entry["share"])
        names.append(named(entry))
        shades.append(colour(entry["background"]))
        spots.append((x, y))
        # The marker, and both bars of its interval.
        taken.append(box(x, x, y, y, 5))
        taken.append(box(max(x - left, floor), x + right, y, y, 2))
        taken.append(box(x, x, y - 100 * low, y + 100 * high, 2))
    pixels = [axes.transData.transform(spot) for spot in spots]
    for index, (name, shade, (x, y)) in enumerate(zip(names, shades, pixels, strict=True)):
        text = axes.annotate(
            name, (x, y), xycoords="figure pixels", fontsize=9, color=shade, parse_math=False
        )
        for distance, (dx, dy, across, along) in itertools.product(range(8, 90, 5), _SIDES):
            text.set_position((x + dx * distance, y + dy * distance))
            text.set(horizontalalignment=across, verticalalignment=along)
            place = text.get_window_extent()
            inside = frame.x0 < place.x0 and place.x1 < frame.x1 and frame.y0 < place.y0
            centre = ((place.x0 + place.x1) / 2, (place.y0 + place.y1) / 2)
            nearest = min(
                range(len(pixels)), key=[math.dist(p, centre) for p in pixels].__getitem__
            )
            if inside and nearest == index and not any(place.overlaps(other) for other in taken):
                break
        taken.append(text.get_window_extent().padded(1))

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Figures of the analysis of TCP Nice, drawn only from what `theorem.measure` returned."""

from __future__ import annotations

import itertools
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from ...claims.draw import BLUE, GREEN, GREY, RED
from .theorem_points import part, plain, where

Json = dict[str, Any]

LINES: dict[str, Json] = {
    "bound": {"color": GREY, "label": "Theorem 1"},
    "interference": {"color": BLUE, "label": "fluid model"},
    "interference_paced": {"color": BLUE, "linestyle": ":", "label": "with paced windows"},
}
"""What the model says, and how it is drawn."""
LEAST = 1e-4
"""Losses below are drawn at the lower edge: no run is long enough to tell them from none."""


def loss(document: Json) -> Figure:
    """Bound, fluid and packets over B/m, a panel for each number of Nice flows and each buffer."""
    grid = plain(document)
    flows = sorted({p["nice"] for p in grid})
    buffers = sorted({p["buffer"] for p in grid})
    figure, rows = plt.subplots(
        len(flows), len(buffers), figsize=(2.5 * len(buffers), 2.2 * len(flows)),
        sharex=True, sharey=True, layout="constrained",
    )  # fmt: skip
    for (line, nice), (column, buffer) in itertools.product(enumerate(flows), enumerate(buffers)):
        axes = rows[line][column]
        points = sorted(where(grid, nice=nice, buffer=buffer), key=_ratio)
        x = [_ratio(p) for p in points]
        for key, style in LINES.items():
            axes.plot(x, [p["model"][key] for p in points], linewidth=1.1, **style)
        for p in points:
            _measured(axes, _ratio(p), p["loss"])
        _share(axes)
        axes.set_xscale("log", base=2)
        axes.set_xticks([0.25, 1, 4, 16], ["¼", "1", "4", "16"])
        axes.set_title(f"l = {nice}, B = {buffer}", loc="left", fontsize=9)
        if line == len(flows) - 1:
            axes.set_xlabel("B/m", fontsize=9)
    figure.supylabel("share of its throughput that Reno loses", fontsize=10)
    handles = [Line2D([], [], **style) for style in LINES.values()]
    handles.append(Line2D([], [], color=RED, marker="o", linestyle="", label="packets"))
    figure.legend(handles=handles, loc="outside upper center", ncols=4, frameon=False, fontsize=9)
    return figure


def windows(document: Json) -> Figure:
    """Windows over a period of the fluid model, a panel for each course."""
    courses = part(document, "course")
    figure, panels = plt.subplots(
        1, len(courses), figsize=(3.8 * len(courses), 3.8), sharey=True, layout="constrained"
    )
    for axes, course in zip(panels, courses, strict=True):
        s = course["setting"]
        seconds, reno, nice = zip(*course["points"], strict=True)
        total = [r + n for r, n in zip(reno, nice, strict=True)]
        end = seconds[-1]
        alone = course["alone"]
        axes.plot(*zip(*alone, strict=True), color=GREY, linestyle="--", linewidth=1)
        axes.annotate(
            "Reno alone", alone[-1], xytext=(-4, 6), textcoords="offset points", ha="right",
            fontsize=8, color=GREY,
        )  # fmt: skip
        axes.plot(seconds, total, color=GREEN, linewidth=1.2, label="both")
        axes.plot(seconds, reno, color=RED, linewidth=1.2, label="Reno $W_r$")
        axes.plot(seconds, nice, color=BLUE, linewidth=1.6, label="Nice $W_n$")
        pipe = s["pipe"]
        marks = {"µτ": pipe, "µτ + $q_t$": pipe + s["trigger"], "µτ + B": pipe + s["buffer"]}
        for name, level in marks.items():
            axes.axhline(level, color="#dddddd", linewidth=0.8, zorder=0)
            axes.annotate(
                name, (1.0, level), xycoords=("axes fraction", "data"), xytext=(2, 0),
                textcoords="offset points", va="center", fontsize=7, color=GREY,
            )  # fmt: skip
        for at in course["intervals"].values():
            if at < end:
                axes.axvline(at, color="#eeeeee", linewidth=0.8, zorder=0)
        axes.set_xlim(0, 1.02 * max(end, alone[-1][0]))
        axes.set_ylim(0, 1.12 * (s["pipe"] + s["buffer"]))
        axes.set_title(f"m = {s['reno']}, l = {s['nice']}", loc="left", fontsize=10)
        axes.set_xlabel("seconds since the loss")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("outstanding packets")
    panels[0].legend(frameon=False, fontsize=8, loc=(0.6, 0.25))
    return figure


def breaks(document: Json) -> Figure:
    """Loss over the bound of Theorem 1: above one the bound is broken."""
    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    grid = plain(document)
    axes.plot(
        [_ratio(p) for p in grid],
        [p["model"]["interference"] / p["model"]["bound"] for p in grid],
        "o", color=BLUE, markerfacecolor="white", markersize=4, label="fluid model",
    )  # fmt: skip
    surely = [p for p in grid if p["loss"]["lo"] is not None and p["loss"]["lo"] > 0]
    axes.plot(
        [1.06 * _ratio(p) for p in surely],
        [p["loss"]["mean"] / p["model"]["bound"] for p in surely],
        "s", color=RED, markersize=3.5, label="packets, where they certainly lose",
    )  # fmt: skip
    axes.axhline(1, color=GREY, linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.set_xlabel("B/m: packets of queue for each Reno flow")
    axes.set_ylabel("loss of throughput, over the bound")
    axes.set_title("Above the line Theorem 1 is broken", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def trigger(document: Json) -> Figure:
    """Loss over the queue that Nice tolerates, everything else the same."""
    figure, axes = plt.subplots(figsize=(5.6, 4.0), layout="constrained")
    rows = part(document, "trigger")
    x = [row["trigger"] for row in rows]
    for key, style in LINES.items():
        axes.plot(x, [row["model"][key] for row in rows], linewidth=1.2, **style)
    repaired = [row["model"]["bound_repaired"] for row in rows]
    axes.plot(x, repaired, color=GREEN, linewidth=1.2, label="bound without Lemma 3")
    for row in rows:
        _measured(axes, row["trigger"], row["loss"])
    axes.plot([], [], "o", color=RED, markersize=4, label="packets")
    _share(axes)
    axes.set_ylim(1e-10, 1)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    first = rows[0]
    axes.set_xlabel(f"$q_t$: packets of queue above which Nice yields, of {first['buffer']}")
    axes.set_ylabel("share of its throughput that Reno loses")
    axes.set_title(f"m = {first['reno']}, l = {first['nice']}", loc="left", fontsize=10)
    axes.legend(frameon=False, fontsize=9, loc="center right")
    return figure


def _ratio(entry: Json) -> float:
    return float(entry["buffer"] / entry["reno"])


def _measured(axes: Axes, x: float, value: Json) -> None:
    """Draw a measured loss with its interval, or an arrow below its upper end if it may be none."""
    mean, low, high = value["mean"], value["lo"], value["hi"]
    if low is None:
        low = high = mean
    if low <= 0:
        if high > LEAST:
            axes.errorbar(
                x, high, yerr=[[high / 2], [0]], uplims=True, fmt="none",
                color=RED, elinewidth=0.8, capsize=2, zorder=3,
            )  # fmt: skip
        return
    axes.errorbar(
        x, mean, yerr=[[mean - low], [high - mean]], fmt="o", color=RED, markersize=4,
        elinewidth=1, capsize=2, zorder=3,
    )  # fmt: skip


def _share(axes: Axes) -> None:
    """Make the vertical axis a share, logarithmic."""
    axes.set_yscale("log")
    axes.set_ylim(LEAST, 1.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
    axes.spines[["top", "right"]].set_visible(False)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What the figures of reproductions have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from .. import plot
from ..stats import spread

Json = dict[str, Any]

# Okabe and Ito: they remain distinct for colour-blind readers.
BLUE, SKY, GREEN, ORANGE, RED, PURPLE = (
    "#0072b2", "#56b4e9", "#009e73", "#e69f00", "#d55e00", "#cc79a7",
)  # fmt: skip
GREY = "#888888"


Panels = tuple[Figure, list[Axes]]


def frame(xlabel: str, ylabel: str) -> tuple[Figure, Axes]:
    """Return an empty figure with one set of axes."""
    figure, axes = plt.subplots(figsize=(6.0, 3.9), layout="constrained")
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def panels(count: int, size: tuple[float, float], *, sharey: bool = False) -> Panels:
    """Return a figure of `size` inches with so many axes side by side."""
    figure, drawn = plt.subplots(
        1, count, figsize=size, layout="constrained", squeeze=False, sharey=sharey
    )
    for axes in drawn[0]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, list(drawn[0])


def below(figure: Figure, axes: Axes, columns: int) -> None:
    """Write the legend of `axes` below the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=8
    )  # fmt: skip


def errors(values: Sequence[Json]) -> list[list[float]]:
    """Return how far the intervals reach below and above their means, as matplotlib wants it."""
    return [list(ends) for ends in zip(*map(spread, values), strict=True)]


def line(
    axes: Axes, x: Sequence[float], values: Sequence[Json], *, label: str, colour: str, style: str
) -> None:
    """Draw means with their intervals over x; `style` is of marker and line, as in ``o-``."""
    points = [(at, v) for at, v in zip(x, values, strict=True) if v["mean"] is not None]
    axes.errorbar(
        [at for at, _ in points],
        [v["mean"] for _, v in points],
        yerr=errors([v for _, v in points]),
        fmt=style, color=colour, label=label, linewidth=1.3, markersize=4, elinewidth=0.8,
        capsize=2,
    )  # fmt: skip


def logarithmic(axes: Axes, *, x: Sequence[float] | None = None, y: bool = False) -> None:
    """Make axes logarithmic with plain numbers; `x` are the ticks of the horizontal one."""
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    if x is not None:
        axes.set_xscale("log")
        axes.set_xticks(x, minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(plain)
    if y:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(plain)
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: _few(value)))
        axes.tick_params(axis="y", which="minor", labelsize=8)


def _few(value: float) -> str:
    """Return a minor tick's label: 2 and 5 of each decade alone."""
    leading = f"{value:.0e}"[0]
    return f"{value:g}" if leading in "25" else ""


def save(draw: Callable[[], Figure], file: Path) -> Path:
    """Draw a figure and write it as SVG; return the file."""
    plot.save(draw(), file)
    return file

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Share over harm: the oracle's curve as a line, all else as points."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from ..claims.draw import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, below, logarithmic, panels
from ..claims.draw import save as save_figure
from ..claims.results import Results
from ..scenario import IDEAL, NONE
from .study import BOUND, EBB, FLOWS, ORACLES, PLACES, TOLD, TYPED, cell

COLOURS = (SKY, ORANGE, RED, PURPLE, "#000000", "#f0e442")
MARKS = dict(zip(FLOWS, "osD^", strict=True))
TICKS = (1.0, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)


def draw(results: Results, title: str, file: Path) -> None:
    """Draw a network's figure: a panel for each place; marks tell the number of flows."""
    save_figure(lambda: figure(results, title), file)


def figure(results: Results, title: str) -> Figure:
    """Return it."""
    drawn, axes = panels(len(PLACES), (10.5, 4.4), sharey=True)
    names = results.backgrounds(place=next(iter(PLACES)), flows=FLOWS[0])
    others = [n for n in names if n not in (NONE, *ORACLES)]
    fixed = {IDEAL: GREY, TOLD: BLUE, TYPED: GREY, EBB: GREEN}
    rest = iter(COLOURS)
    colours = {name: fixed.get(name) or next(rest) for name in others}
    for axis, place in zip(axes, PLACES, strict=True):
        for flows, mark in MARKS.items():
            at = {"place": place, "flows": flows}
            curve = [cell(results, name, **at) for name in ORACLES]
            x, y = ([v["mean"] for v in values] for values in zip(*curve, strict=True))
            label = "oracle, a round trip late" if flows == FLOWS[0] else None
            axis.plot(x, [100 * v for v in y], f"{mark}-", color=BLUE, markersize=3, label=label)
            for name, colour in colours.items():
                harm, share = cell(results, name, **at)
                axis.plot(
                    harm["mean"], 100 * share["mean"], mark, color=colour, markersize=5,
                    fillstyle="none" if name in (TOLD, TYPED) else "full",
                    label=name if flows == FLOWS[0] else None,
                )  # fmt: skip
        logarithmic(axis, x=TICKS)
        axis.set_xlim(0.92, 24)
        axis.axvline(BOUND, color="#cccccc", linewidth=1, zorder=0)
        axis.set_title(place, fontsize=10)
        axis.set_xlabel("harm (less is better)")
    axes[0].set_ylabel("share of what strict priority gets, %")
    drawn.suptitle(
        f"{title}; marks: {', '.join(f'{n}' for n in FLOWS)} flows (o, square, diamond, triangle)",
        fontsize=10,
    )
    below(drawn, axes[0], 6)
    return drawn

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Share over harm: the oracle's curve as a line, all else as points."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from ..claims.draw import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, below, panels
from ..claims.draw import save as save_figure
from ..claims.results import Results
from ..scenario import IDEAL, NONE
from .study import BOUND, EBB, FLOWS, ORACLES, PLACES, TOLD, TYPED, cell

COLOURS = (SKY, ORANGE, RED, PURPLE, "#000000", "#f0e442")
MARKS = dict(zip(FLOWS, "osD^", strict=True))
TICKS = (0, 5, 10, 30, 100, 300, 1000)
"""Per cent, linear up to 10."""


def draw(results: Results, title: str, file: Path) -> None:
    """Draw a network's figure: a panel for each place; marks tell the number of flows."""
    save_figure(lambda: figure(results, title), file)


def longer(harm: float) -> float:
    """Return by how many per cent fetches take longer."""
    return 100 * (harm - 1)


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
            x = [longer(harm["mean"]) for harm, _ in curve]
            y = [100 * share["mean"] for _, share in curve]
            label = "oracle, a round trip late" if flows == FLOWS[0] else None
            axis.plot(
                list(map(longer, x)),
                [100 * v for v in y],
                f"{mark}-",
                color=BLUE,
                markersize=3,
                label=label,
            )
            for name, colour in colours.items():
                harm, share = cell(results, name, **at)
                axis.plot(
                    longer(harm["mean"]), 100 * share["mean"], mark, color=colour, markersize=5,
                    fillstyle="none" if name in (TOLD, TYPED) else "full",
                    label=name if flows == FLOWS[0] else None,
                )  # fmt: skip
        axis.set_xscale("symlog", linthresh=10, linscale=1.5)
        axis.set_xticks(TICKS, [str(tick) for tick in TICKS])
        axis.set_xticks([], minor=True)
        axis.set_xlim(-2, 10_000)
        axis.set_ylim(0, 180)
        axis.axvline(longer(BOUND), color="#cccccc", linewidth=1, zorder=0)
        axis.set_title(place, fontsize=10)
        axis.set_xlabel("fetches take longer by, %")
    axes[0].set_ylabel("share of what strict priority gets, %")
    drawn.suptitle(
        f"{title}. Circles: 1 flow, squares: 4, diamonds: 16, triangles: 64", fontsize=10
    )
    below(drawn, axes[0], 6)
    return drawn

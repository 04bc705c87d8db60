# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The matrix as a picture, of saved data alone: a row for each cell, a dot for each background."""

from __future__ import annotations

from pathlib import Path

from matplotlib.ticker import FuncFormatter, NullLocator

from ..claims.draw import BLUE, GREEN, GREY, ORANGE, RED, SKY, below, panels
from ..plot import save
from ..scenario import IDEAL
from .axes import CUBIC, EBB, ELSEWHERE, LP, NICE
from .page import COLUMNS, Saved, has_spare

COLOURS = {IDEAL: GREEN, EBB: BLUE, ELSEWHERE: SKY, NICE: GREY, LP: ORANGE, CUBIC: RED}
TICKS = (1, 1.5, 2, 3, 5, 10, 20, 50)
MOST_SHARE = 180
"""Per cent; what takes more is drawn there."""
ROW_INCHES = 0.17


def draw(saved: Saved, out: Path) -> None:
    """Write it as SVG."""
    rows = [
        (f"{axis.title}: {cell['at'][axis.name]}", cell)
        for axis, document in saved
        for cell in document["points"]
    ]
    figure, (harm, share) = panels(2, (11.0, 1.4 + ROW_INCHES * len(rows)), sharey=True)
    for name in COLUMNS:
        colour, marker = COLOURS[name], "D" if name == IDEAL else "o"
        known = [(y, cell[name], has_spare(cell)) for y, (_, cell) in enumerate(rows)]
        x, y = [its["harm"]["mean"] for _, its, _ in known], [y for y, *_ in known]
        harm.scatter(x, y, 16, color=colour, marker=marker, label=name)
        spare = [(y, 100 * its["share"]["mean"]) for y, its, has in known if has]
        x, y = [min(of, MOST_SHARE) for _, of in spare], [y for y, _ in spare]
        share.scatter(x, y, 16, color=colour, marker=marker)
    harm.set_yticks(range(len(rows)), [label for label, _ in rows], fontsize=8)
    harm.set_ylim(len(rows) - 0.5, -0.5)
    harm.set_xscale("log")
    harm.set_xticks(TICKS)
    harm.xaxis.set_minor_locator(NullLocator())
    harm.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))  # noqa: RUF001
    share.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g} %"))
    harm.set_xlabel("users' mean completion time, over that without background")
    share.set_xlabel(f"share of the spare bandwidth; {MOST_SHARE} % stands for more, too")
    begin = 0
    for _, document in saved:
        for axes in (harm, share):
            axes.axhline(begin - 0.5, color="#dddddd", linewidth=1, zorder=0)
        begin += len(document["points"])
    harm.axvline(1, color="#bbbbbb", linewidth=1, zorder=0)
    share.axvline(100, color="#bbbbbb", linewidth=1, zorder=0)
    below(figure, harm, len(COLUMNS))
    save(figure, out)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables and figures of the page on MPAT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from ...claims import draw
from ...claims.claim import Drawing, Measured, Table, times
from .experiments import (
    ALL_RULES,
    BOTH,
    CM,
    FREE,
    MPAT,
    MULTCP,
    ONE,
    SIZES,
    SPLITS,
    STEP,
    TCP,
    split,
)
from .ratios import parts, worst


def _by_size(measured: Measured) -> Sequence[Sequence[str]]:
    found, rows = measured["scale"], []
    for n in SIZES:
        for name in SPLITS:
            at: dict[str, Any] = {"flows": n, "split": name}
            here = found.backgrounds(**at)
            shares = split(name, n)
            rows.append(
                [
                    str(n), name,
                    *(
                        times(found.ratio("mbit", b, TCP, **at)) if b in here else ""
                        for b in (MPAT, MULTCP, CM)
                    ),
                    times(worst(parts(found, MPAT, shares, **at))),
                ]
            )  # fmt: skip
    return rows


SIZE_TABLE = Table(
    "Totals over those of as many flows of TCP, and the part of MPAT's flow that is farthest from "
    "its share, over that",
    ("flows", "division", "MPAT", "MulTCP", "one loop", "farthest"),
    _by_size,
)


def _figure_sizes(measured: Measured) -> Figure:
    found = measured["scale"]
    figure, axes = draw.frame("flows in the group", "total over that of as many flows of TCP")
    for name, colour, style in (
        (MPAT, draw.BLUE, "o-"), (MULTCP, draw.RED, "s--"), (CM, draw.GREY, "^:"),
    ):  # fmt: skip
        values = [found.ratio("mbit", name, TCP, flows=n, split="even") for n in SIZES]
        draw.line(axes, SIZES, values, label=name, colour=colour, style=style)
    draw.logarithmic(axes, x=SIZES)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


SIZE_FIGURE = Drawing(
    "scale", "Totals of groups by size (M2).", _figure_sizes
)  # fmt: skip


def _by_rule(measured: Measured) -> Sequence[Sequence[str]]:
    found = measured["rules"]
    return [
        [
            rule,
            *(times(found.ratio("mbit", rule, TCP, traffic=w)) for w in (BOTH, ONE, FREE)),
        ]
        for rule in ALL_RULES
    ]


RULE_TABLE = Table(
    "Totals of five flows at 1:2:3:4:5 over those of five flows of TCP: by ACKs (mpat), by rules "
    "of 3.3.3, and unpaced; free ACKs have a queue of their own. A flow of TCP whose packets come "
    "bunched behind compressed ACKs is hit and halves its bunch; a member of a group becomes 1/2N "
    "smaller and is hit again",
    ("mapping", BOTH, ONE, FREE),
    _by_rule,
)


def _figure_step(measured: Measured) -> Figure:
    found = measured["step"]
    figure, axes = draw.frame("round trips after 30 Mbit/s of UDP begin", "Mbit/s of ten flows")
    trips = [n for n in STEP if isinstance(n, int)]
    for name, colour, style in ((MPAT, draw.BLUE, "o-"), (TCP, draw.GREY, "s--")):
        values = [found.mean("mbit", name, at="before")]
        values += [found.mean("mbit", name, at=n) for n in trips]
        draw.line(axes, [0, *trips], values, label=name, colour=colour, style=style)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    return figure


STEP_FIGURE = Drawing("step", "Transient congestion (M5).", _figure_step)

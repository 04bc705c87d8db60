# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The figure of Theorem 1 and the bounds beside it."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...claims.claim import Measured
from ...claims.draw import BLUE, GREEN, GREY, ORANGE, RED, panels
from .theory import FEW, part


def figure(measured: Measured) -> Figure:
    """Draw Theorem 1 over lambda, r_{k,l} over l, and the worst cases over k."""
    drawn, (over_active, over_fair, over_tcp) = panels(3, (10.4, 3.6))
    for k, colour in zip(FEW, (RED, BLUE, GREEN), strict=True):
        (curve,) = part(measured, "curve", tcp=k)
        over_active.plot(
            curve["active"], [100 * v for v in curve["decrease"]], color=colour, label=f"k = {k}"
        )
        rows = part(measured, "finite", tcp=k)
        over_fair.plot(
            [p["fair"] for p in rows], [100 * p["value"] for p in rows], "o-", color=colour,
            markersize=3, label=f"k = {k}",
        )  # fmt: skip
        limit = part(measured, "bound", tcp=k)[0]["theorem"]["value"]
        over_fair.axhline(100 * limit, color=colour, linewidth=0.8, linestyle="--")
    bounds = part(measured, "bound")
    for key, colour, label in (
        ("tau_over_optimal", RED, "optimum beside tau-TCP"),
        ("weighted_over_optimal", ORANGE, "optimum beside weighted TCP"),
        ("theorem", BLUE, "weighted TCP beside tau-TCP"),
    ):
        over_tcp.plot(
            [b["tcp"] for b in bounds], [100 * b[key]["value"] for b in bounds], "o-",
            color=colour, markersize=3, label=label,
        )  # fmt: skip
    over_tcp.plot([1, 2], [17.3, 12.2], "x", color=GREY, label="the paper's Theorem 1")
    for axes, label in ((over_active, "lambda"), (over_fair, "tau-TCP flows l")):
        axes.set_xscale("log")
        axes.set_xlabel(label)
        axes.legend(frameon=False, fontsize=8)
    over_tcp.set_xlabel("TCP flows k")
    over_tcp.legend(frameon=False, fontsize=7)
    over_active.set_ylabel("relative decrease of delay, %")
    over_active.set_ylim(0)
    return drawn

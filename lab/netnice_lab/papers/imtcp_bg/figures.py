# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The paper's figures drawn anew from the saved experiments, and those of the measurement."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...claims.claim import Drawing, Measured
from ...claims.draw import BLUE, GREEN, GREY, ORANGE, RED, SKY, below, frame, line, panels
from ...scenario import IDEAL, NONE
from . import accuracy, five
from .experiments import DELTA, GAMMA, OURS, SERVERS, WRITTEN
from .levels import levels, mean

LOOK = {
    NONE: ("no background", GREY, "x--"),
    IDEAL: ("available bandwidth (strict priority)", GREEN, "s--"),
    "reno": ("Reno", RED, "^-"),
    "nice": ("Nice", SKY, "D-"),
    "lp": ("TCP-LP", ORANGE, "v-"),
    OURS: ("ImTCP-bg", BLUE, "o-"),
    WRITTEN: ("ImTCP-bg as written", BLUE, "o:"),
}
XLABEL = "number of web servers"


def steps(measured: Measured) -> Figure:
    """Return what was measured each second beside traffic that steps."""
    found = measured[accuracy.NAME]
    figure, drawn = panels(2, (9.4, 3.6), sharey=True)
    for axes, traffic in zip(drawn, accuracy.STEPPING, strict=True):
        for at in levels(found, traffic):
            begin, left = at["begin_s"], accuracy.LINK_MBIT - at["mbit"]
            axes.plot([begin, begin + 10], [left, left], color=GREY, linewidth=4, alpha=0.5)
            for name, colour in zip(accuracy.ALGORITHMS, (ORANGE, BLUE), strict=True):
                (each, *_) = found.values("each_s", name, **at)
                seconds = [begin + 0.5 + i for i in range(len(each))]  # type: ignore[arg-type]
                axes.plot(
                    seconds, each, "o", color=colour, markersize=3,
                    label=name if not begin else None,
                )  # fmt: skip
        axes.set_title(f"{traffic} traffic", loc="left", fontsize=10)
        axes.set_xlabel("s")
    drawn[0].set_ylabel("available bandwidth, Mbit/s")
    drawn[0].set_ylim(0, 110)
    below(figure, drawn[0], 2)
    return figure


def errors(measured: Measured) -> Figure:
    """Return the error over the bandwidth that is available, for each kind of traffic."""
    found = measured[accuracy.NAME]
    figure, drawn = panels(2, (9.4, 3.6), sharey=True)
    for axes, name in zip(drawn, accuracy.ALGORITHMS, strict=True):
        kinds = zip(accuracy.KINDS, (GREEN, BLUE, RED), strict=True)
        for traffic, colour in kinds:
            places = levels(found, traffic)[:5]
            left = [accuracy.LINK_MBIT - at["mbit"] for at in places]
            values = [mean(found, "error", name, at) for at in places]
            line(axes, left, values, label=traffic, colour=colour, style="o-")
        axes.axhline(0.2, color=GREY, linewidth=0.8, linestyle="--")
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel("available bandwidth, Mbit/s")
    drawn[0].set_ylabel("median relative error")
    drawn[0].set_ylim(0, 1)
    below(figure, drawn[0], 3)
    return figure


def figure_2(measured: Measured) -> Figure:
    """Throughput of the background over the number of servers."""
    return over_servers(measured, IDEAL, "mbit", "background throughput, Mbit/s")


def figure_3(measured: Measured) -> Figure:
    """Download times over the number of servers."""
    return over_servers(measured, NONE, "fct_s", "mean download time, s")


def over_servers(measured: Measured, reference: str, key: str, ylabel: str) -> Figure:
    """Return what each background and the reference have of `key`, over the number of servers."""
    figure, axes = frame(XLABEL, ylabel)
    for name in (reference, "reno", "nice", "lp", OURS, WRITTEN):
        label, colour, style = LOOK[name]
        values = [measured["web"].mean(key, name, servers=n) for n in SERVERS]
        line(axes, SERVERS, values, label=label, colour=colour, style=style)
    axes.set_ylim(0)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    return figure


def figure_4(measured: Measured) -> Figure:
    """Throughput of five connections over time, a panel for each kind."""
    names = ("reno", "nice", "lp", OURS)
    figure, drawn = panels(len(names), (11.0, 3.2), sharey=True)
    for axes, name in zip(drawn, names, strict=True):
        (flows, *_) = measured[five.NAME].values("flows_mbit", name)
        for index in range(five.FLOWS):
            rates: list[float] = flows[index]  # type: ignore[index]
            at = [five.BIN_S * (i + 0.5) for i in range(len(rates))]
            axes.plot(at, rates, linewidth=0.9, label=f"{index + 1}")
        axes.set_title(LOOK[name][0], loc="left", fontsize=10)
        axes.set_xlabel("s")
    drawn[0].set_ylabel("throughput, Mbit/s")
    drawn[0].set_ylim(0, 100)
    below(figure, drawn[0], five.FLOWS)
    return figure


def trade_off(measured: Measured) -> Figure:
    """Share over harm for each gamma and delta."""
    found = measured["trade-off"]
    figure, axes = frame("mean download time, over none", "share of strict priority's goodput")
    places = [p["at"] for p in found.document["points"]]
    for label, colour, places_of in (
        ("gamma", BLUE, [at for at in places if at["delta"] == DELTA]),
        ("delta", RED, [at for at in places if at["gamma"] == GAMMA]),
    ):
        chosen = sorted(places_of, key=lambda at, label=label: at[label])  # type: ignore[misc]
        x = [found.harm(OURS, "fct_s", **at)["mean"] for at in chosen]
        y = [found.share(OURS, **at)["mean"] for at in chosen]
        axes.plot(x, y, "o-", color=colour, label=label, linewidth=1.2, markersize=4)
        for at, right, up in zip(chosen, x, y, strict=True):
            axes.annotate(
                f"{at[label]:g}", (right, up), xytext=(4, 4), textcoords="offset points",
                fontsize=8, color=colour,
            )  # fmt: skip
    axes.legend(frameon=False, fontsize=8)
    return figure


STEPS = Drawing("steps", "What is measured while other traffic steps; grey: what it leaves", steps)
ERRORS = Drawing("errors", "Median relative error of the measurement; dashed: 20 %", errors)
FIGURE_2 = Drawing("figure-2", "Figure 2: background throughput, one connection", figure_2)
FIGURE_3 = Drawing("figure-3", "Figure 3: download times of the web traffic", figure_3)
FIGURE_4 = Drawing("figure-4", "Figure 4: throughput of five connections", figure_4)
TRADE_OFF = Drawing("trade-off", "The trade-off over gamma and delta, 50 servers", trade_off)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The paper's figures, drawn anew from the saved experiments, with its axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from ...claims.claim import Drawing, Measured
from ...claims.draw import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, below, frame, line, panels
from ...fairness import f, theorem_1
from ...scenario import NONE
from . import convergence, ratios
from .experiments import (
    ALPHA,
    FAIR,
    FLOWS,
    GAMMAS,
    LINK_FLOWS,
    PHASE_FLOWS,
    PHASE_WEIGHTS,
    QUEUES,
    REFERENCE,
    TAU,
    TCP,
    WEIGHTS,
)

Json = dict[str, Any]

HALVES = (("FB-I", ALPHA[0], TAU[0]), ("FB-II", ALPHA[1], TAU[1]))
DENSE = range(1, FLOWS[-1] + 1)
OF_TCP = dict(zip(TCP, ((BLUE, SKY), (RED, ORANGE)), strict=True))
LOOK = {
    "FB-I tau": (BLUE, "o-"), "FB-I tau, gamma 0.5": (SKY, "D-"), "FB-II tau": (GREEN, "s-"),
    "FB-I alpha": (BLUE, "o:"), "LEDBAT": (ORANGE, "v-"), "LEDBAT, 100 ms": (ORANGE, "v:"),
    "TCP-LP": (RED, "^-"),
}  # fmt: skip


def figure_3(measured: Measured) -> Figure:
    """Weights over the number of FAIRBAT flows, beside theory."""
    results = measured["single"]
    drawn, halves = panels(2, (9.6, 4.2))
    for axes, (title, alpha, tau) in zip(halves, HALVES, strict=True):
        for k in TCP:
            dark, light = OF_TCP[k]
            axes.plot(
                DENSE, [ratios.theory(alpha, k, n) for n in DENSE], "--", color=GREY,
                linewidth=1, label="theory" if k == TCP[0] else None,
            )  # fmt: skip
            for name, label, colour, style in (
                (alpha, f"alpha-TCP, k = {k}", dark, "o-"), (tau, f"tau-TCP, k = {k}", light, "s-"),
            ):  # fmt: skip
                values = [ratios.weight(results, name, k, n, tcp=k, fair=n) for n in FLOWS]
                line(axes, FLOWS, values, label=label, colour=colour, style=style)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("FAIRBAT flows l")
        axes.set_ylim(0, 1)
    halves[0].set_ylabel("weight yi/y0")
    below(drawn, halves[0], 5)
    return drawn


def figure_4(measured: Measured) -> Figure:
    """Delay of short flows over the number of FAIRBAT flows, beside TCP in their place."""
    results = measured["single"]
    drawn, halves = panels(2, (9.6, 4.2), sharey=True)
    for axes, (title, alpha, tau) in zip(halves, HALVES, strict=True):
        for k in TCP:
            dark, light = OF_TCP[k]
            for name, label, colour, style in (
                (REFERENCE, f"TCP, k = {k}", dark, "^:"),
                (alpha, f"alpha-TCP, k = {k}", dark, "o-"),
                (tau, f"tau-TCP, k = {k}", light, "s-"),
            ):  # fmt: skip
                values = [results.mean("fct_s", name, tcp=k, fair=n) for n in FLOWS]
                line(axes, FLOWS, values, label=label, colour=colour, style=style)
            expected = [
                ratios.delay_theory(k + n * ratios.theory(alpha, k, n)) for n in DENSE
            ]  # fmt: skip
            label_ = "theory" if k == TCP[0] else None
            axes.plot(DENSE, expected, "--", color=GREY, linewidth=1, label=label_)
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("FAIRBAT flows l")
        axes.set_ylim(0)
    halves[0].set_ylabel("mean delay of a short flow, s")
    below(drawn, halves[0], 4)
    return drawn


def figure_5(measured: Measured) -> Figure:
    """Both sides of (6) and (4) over gamma."""
    drawn, halves = panels(2, (9.6, 4.2))
    for axes, names, title in zip(halves, (ALPHA, TAU), ("alpha-TCP", "tau-TCP"), strict=True):
        for name, colour, of in zip(names, (BLUE, RED), ("(6), FB-I", "(4), FB-II"), strict=True):
            left, right, presumed = zip(
                *(ratios.sides(measured, name, g) for g in GAMMAS), strict=True
            )
            for values, side, style in ((left, "left", "o-"), (right, "right", "s--")):
                line(axes, GAMMAS, values, label=f"{of}: {side}", colour=colour, style=style)
            if name == names[0]:
                line(
                    axes, GAMMAS, presumed, label="(6), FB-I: gamma/y0²", colour=SKY, style="D:"
                )  # fmt: skip
        axes.set_title(title, loc="left", fontsize=10)
        axes.set_xlabel("gamma")
        axes.set_ylim(0)
    below(drawn, halves[0], 5)
    return drawn


def figure_2(measured: Measured) -> Figure:
    """Throughput over TCP's for fixed weights, a panel for each queue."""
    drawn, row = panels(len(QUEUES), (15.0, 3.8), sharey=True)
    for axes, queue in zip(row, QUEUES, strict=True):
        axes.plot((0, 1), (0, 1), color=GREY, linewidth=1, linestyle="--", label="the weight")
        axes.axhline(1, color=GREY, linewidth=0.6)
        for mode, colours in (("alpha", (BLUE, SKY, GREEN)), ("tau", (RED, ORANGE, PURPLE))):
            for n, colour in zip(PHASE_FLOWS, colours, strict=True):
                values = [
                    ratios.phase_ratio(measured, queue, n, mode, w) for w in PHASE_WEIGHTS
                ]  # fmt: skip
                line(
                    axes, PHASE_WEIGHTS, values, label=f"{mode}-TCP, k = l = {n}", colour=colour,
                    style="o-" if mode == "alpha" else "s-",
                )  # fmt: skip
        axes.set_title(queue, loc="left", fontsize=9)
        axes.set_xlabel("weight set")
    row[0].set_ylabel("throughput over TCP's")
    below(drawn, row[0], 4)
    return drawn


def _links(measured: Measured, key: str, ylabel: str) -> Figure:
    results = measured["two-links"]
    drawn, axes = frame("background flows on the first link l", ylabel)
    for name, (colour, style) in LOOK.items():
        values = [results.ratio(key, name, REFERENCE, fair=n) for n in LINK_FLOWS]
        line(axes, LINK_FLOWS, values, label=name, colour=colour, style=style)
    axes.axhline(1, color=GREY, linewidth=0.8)
    axes.set_ylim(0)
    axes.legend(frameon=False, fontsize=7, ncols=2)
    return drawn


def figure_7(measured: Measured) -> Figure:
    """Throughput on two links over that of TCP."""
    return _links(measured, "mbit", "throughput over TCP's in their place")


def figure_8(measured: Measured) -> Figure:
    """Delay of short flows on the second link over that beside TCP."""
    return _links(measured, "fct_s", "delay of short flows over that beside TCP")


def theorem(measured: Measured) -> Figure:
    """Delay over the share of throughput, and how much less it is with alpha-TCP."""
    drawn, (delays, less) = panels(2, (9.6, 3.9))
    results = measured["weights"]
    for mode, colour, style in (("alpha", BLUE, "o-"), ("tau", RED, "s-")):
        pairs = [ratios.shares(measured, mode, w) for w in WEIGHTS]
        line(
            delays, [got["mean"] for got, _ in pairs], [delay for _, delay in pairs],
            label=f"{mode}-TCP", colour=colour, style=style,
        )  # fmt: skip
    none = results.mean("fct_s", NONE)["mean"]
    delays.plot(0, none, "x", color=GREY, label="none")
    grid = [0.02 * i for i in range(47)]
    delays.plot(
        grid, [ratios.delay_theory(1 / (1 - x)) for x in grid], "--", color=GREY,
        label="weighted TCP, theory",
    )  # fmt: skip
    actives = [0.1 * i for i in range(1, 120)]
    spread = [(f(1, x), x) for x in actives]
    delays.plot(
        [share for share, _ in spread if share < 0.93],
        [ratios.delay_theory(1 + x) for share, x in spread if share < 0.93],
        ":", color=RED, label="tau-TCP, many flows, theory",
    )  # fmt: skip
    found = ratios.differences(measured)
    line(
        less, [at for at, _ in found], [_percent(v) for _, v in found], label="simulated, l = 10",
        colour=BLUE, style="o-",
    )  # fmt: skip
    less.axhline(100 * theorem_1(1).value, color=RED, linestyle="--", label="Theorem 1, k = 1")
    for axes in (delays, less):
        axes.set_xlabel("share of what is spare")
        axes.legend(frameon=False, fontsize=8)
    delays.set_ylabel("mean delay of a short flow, s")
    less.set_ylabel("alpha-TCP's delay less than tau-TCP's, %")
    return drawn


def _percent(value: Json) -> Json:
    return {key: None if v is None else 100 * v for key, v in value.items()}


def weights(measured: Measured) -> Figure:
    """Mean weights over time, a panel for each number of flows."""
    every: list[Json] = measured[convergence.NAME].document["points"]
    points = [p for p in every if p["at"]["gains"] == convergence.DEFAULT]
    drawn, row = panels(len(convergence.FLOWS), (10.4, 3.8), sharey=True)
    colours = dict(zip(FAIR, (BLUE, GREEN, RED, ORANGE), strict=True))
    for axes, n in zip(row, convergence.FLOWS, strict=True):
        for p in points:
            name, start = p["at"]["name"], p["at"]["start"]
            if p["at"]["fair"] != n:
                continue
            times = [convergence.BIN_S * (i + 1) for i in range(len(p["weights"]))]
            low = start < 0.5
            axes.plot(
                times, p["weights"], color=colours[name], linewidth=1.1,
                linestyle="-" if low else ":", label=name if low else None,
            )  # fmt: skip
            if name in ALPHA and low:
                for theory, ends in zip(
                    p["theory"], ((0, convergence.CHANGE_S), (convergence.CHANGE_S, times[-1])),
                    strict=True,
                ):  # fmt: skip
                    axes.plot(ends, (theory, theory), color=GREY, linewidth=0.8, linestyle="--")
        axes.axvline(convergence.CHANGE_S, color=GREY, linewidth=0.6)
        axes.set_title(f"l = {n}", loc="left", fontsize=10)
        axes.set_xlabel("seconds")
        axes.set_ylim(0, 1)
    row[0].set_ylabel("mean weight")
    below(drawn, row[0], 4)
    return drawn


def _drawing(name: str, caption: str, draw: Callable[[Measured], Figure]) -> Drawing:
    return Drawing(name, caption, draw)


FIGURES = {
    "2": _drawing(
        "figure-2",
        "Figure 2, as throughputs: fixed weights beside as much TCP, no short flows", figure_2,
    ),
    "3": _drawing("figure-3", "Figure 3: weights at equilibrium, gamma = 1", figure_3),
    "4": _drawing("figure-4", "Figure 4: delay of short flows, gamma = 1", figure_4),
    "5": _drawing("figure-5", "Figure 5: both sides of (6) and (4), k = l = 10", figure_5),
    "7": _drawing("figure-7", "Figure 7: throughput on two links", figure_7),
    "8": _drawing("figure-8", "Figure 8: delay of short flows on the second link", figure_8),
    "theorem": _drawing(
        "theorem-1", "Theorem 1 in packets: delay for a share of throughput, k = 1, l = 10", theorem
    ),
    "weights": _drawing(
        "convergence",
        "Weights from 0.1 (lines) and 1 (dotted); 10 TCP flows, 20 from the middle on; dashed: "
        "theory",
        weights,
    ),
}  # fmt: skip
"""By the paper's numbers, and those of its other claims."""

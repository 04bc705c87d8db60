# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The report's figures, drawn anew from the saved experiments, with its axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...claims.claim import Drawing, Measured
from ...claims.draw import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    below,
    frame,
    line,
    logarithmic,
    panels,
)
from ...claims.results import Results
from ...scenario import IDEAL
from . import paths
from .experiments import FLOWS, OURS, PAPER, SPARE, THRESHOLDS, WINDOWS

Json = dict[str, Any]

LOOK = {
    IDEAL: ("router priority", GREEN, "s--"),
    PAPER: ("Nice, the paper's rules", BLUE, "o-"),
    OURS: ("Nice, our nice", SKY, "D-"),
    "reno": ("Reno", RED, "^-"),
    "vegas": ("Vegas(1,3)", ORANGE, "v-"),
    "vegas(0,0)": ("Vegas(0,0)", PURPLE, "<-"),
    "window 1": ("window 1", "#444444", "^:"),
    "window 2": ("window 2", "#777777", "v:"),
    "window 4": ("window 4", "#999999", "<:"),
    "window 16": ("window 16", "#bbbbbb", ">:"),
}
FIRST = (IDEAL, PAPER, OURS, "reno", "vegas", "vegas(0,0)")
LIMITED = (IDEAL, PAPER, OURS, *WINDOWS)
UDP = (IDEAL, PAPER, OURS, "reno", "vegas")
FLOW_TICKS = (1, 2, 4, 8, 16, 32, 64, 100)
MINUTES_15_S = 900


def _seconds(value: Json) -> Json:
    """Return milliseconds as seconds."""
    return {key: v / 1e3 if v is not None else None for key, v in value.items()}


def _megabytes(value: Json) -> Json:
    """Return Mbit/s as MB in the 15 minutes measured."""
    return {k: v / 8 * MINUTES_15_S if v is not None else None for k, v in value.items()}


def _curves(
    axes: Axes, results: Results, key: str, names: Sequence[str], over: str,
    places: Sequence[float], scale: Callable[[Json], Json] = lambda v: v,
) -> None:  # fmt: skip
    for name in names:
        label, colour, style = LOOK[name]
        values = [scale(results.mean(key, name, **{over: place})) for place in places]
        line(axes, places, values, label=label, colour=colour, style=style)


def _latency(
    results: Results, names: Sequence[str], over: str, places: Sequence[float], xlabel: str,
    fetches: bool = True,
) -> Figure:  # fmt: skip
    """Return packet latency as the paper has it, and completion times beside it."""
    columns = 2 if fetches else 1
    figure, drawn = panels(columns, (1.4 + 4.4 * columns, 3.9))
    ticks = FLOW_TICKS if over == "flows" else None
    for axes, key, ylabel in zip(
        drawn,
        ("packet_rtt_ms", "fct_s"),
        ("mean foreground packet latency, s", "mean completion time of a request, s"),
        strict=False,
    ):
        scale = _seconds if key.endswith("_ms") else lambda v: v
        _curves(axes, results, key, names, over, places, scale)
        logarithmic(axes, x=ticks, y=True)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
    below(figure, drawn[0], 4)
    return figure


def _throughput(results: Results, names: Sequence[str]) -> Figure:
    figure, axes = frame("number of background flows", "MB of the background in 15 minutes")
    _curves(axes, results, "mbit", names, "flows", FLOWS, _megabytes)
    logarithmic(axes, x=FLOW_TICKS)
    axes.set_ylim(0)
    axes.legend(frameon=False, fontsize=8, ncols=2)
    return figure


SPARE_LABEL = "spare capacity S, of the demand"
FLOWS_LABEL = "number of background flows"


def figure_2(measured: Measured) -> Figure:
    """Latency over the spare capacity."""
    return _latency(measured["spare"], FIRST, "spare", SPARE, SPARE_LABEL)


def figure_3(measured: Measured) -> Figure:
    """Latency over the number of flows."""
    return _latency(measured["flows"], FIRST, "flows", FLOWS, FLOWS_LABEL)


def figure_4(measured: Measured) -> Figure:
    """Goodput of the background over the number of flows."""
    return _throughput(measured["flows"], FIRST)


def figure_5(measured: Measured) -> Figure:
    """Latency over the threshold."""
    figure, axes = frame("threshold", "mean foreground packet latency, s")
    _curves(
        axes, measured["threshold"], "packet_rtt_ms", (IDEAL, PAPER, OURS), "threshold",
        THRESHOLDS, _seconds,
    )  # fmt: skip
    vegas = _seconds(measured["flows"].mean("packet_rtt_ms", "vegas", flows=16))["mean"]
    axes.axhline(vegas, color=ORANGE, linewidth=1, linestyle="--", label="Vegas(1,3)")
    logarithmic(axes, y=True)
    axes.legend(frameon=False, fontsize=8)
    return figure


def figure_11(measured: Measured) -> Figure:
    """Latency over the spare capacity beside rate limits."""
    return _latency(measured["spare"], LIMITED, "spare", SPARE, SPARE_LABEL)


def figure_12(measured: Measured) -> Figure:
    """Latency over the number of flows beside rate limits."""
    return _latency(measured["flows"], LIMITED, "flows", FLOWS, FLOWS_LABEL)


def figure_13(measured: Measured) -> Figure:
    """Goodput of the background over the number of flows beside rate limits."""
    return _throughput(measured["flows"], LIMITED)


def figure_14(measured: Measured) -> Figure:
    """Latency of UDP over the spare capacity."""
    return _latency(measured["udp-spare"], UDP, "spare", SPARE, SPARE_LABEL, fetches=False)


def figure_15(measured: Measured) -> Figure:
    """Latency of UDP over the number of flows."""
    return _latency(measured["udp-flows"], UDP, "flows", FLOWS, FLOWS_LABEL, fetches=False)


def figure_16(measured: Measured) -> Figure:
    """Goodput of the background over the number of flows beside UDP."""
    return _throughput(measured["udp-flows"], UDP)


PRIMARY = {"Reno": "white", "netnice": SKY}


def figure_6(measured: Measured) -> Figure:
    """Bars of transfer times, a panel for each path; lines from the least to the greatest."""
    results = measured[paths.NAME]
    figure, drawn = panels(len(paths.PATHS), (10.4, 3.6))
    for axes, path in zip(drawn, paths.PATHS, strict=True):
        names = results.backgrounds(path=path)
        for index, name in enumerate(names):
            values = results.values("transfer_s", name, path=path)
            mean = sum(values) / len(values)
            axes.bar(
                index, mean, color=PRIMARY[name.split("/")[0]], edgecolor="black", linewidth=0.8,
                yerr=[[mean - min(values)], [max(values) - mean]],
                error_kw={"elinewidth": 1, "capsize": 3},
            )  # fmt: skip
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=8)
        axes.set_title(path, loc="left", fontsize=10)
        logarithmic(axes, y=True)
    drawn[0].set_ylabel("time of the primary transfer, s")
    return figure


def figure_7(measured: Measured) -> Figure:
    """Throughput of the primary transfers in their order."""
    results = measured[paths.NAME]
    figure, drawn = panels(len(paths.PATHS), (10.4, 3.4), sharey=True)
    look: Mapping[str, tuple[str, str]] = {
        "Reno/Nice": (BLUE, "o-"), "Reno/Nice8": (BLUE, "o:"), "Reno/netnice": (SKY, "D-"),
        "Reno/netnice8": (SKY, "D:"), "Reno/Reno": (RED, "^-"), "Reno/Reno8": (RED, "^:"),
        paths.NICE_ALONE: (GREEN, "s-"),
    }  # fmt: skip
    for axes, path in zip(drawn, paths.PATHS, strict=True):
        alone = results.values("transfer_s", paths.ALONE, path=path)
        axes.axhline(100, color=GREY, linewidth=0.8, label=paths.ALONE)
        for name, (colour, style) in look.items():
            values = results.values("transfer_s", name, path=path)
            kept = [100 * a / b for a, b in zip(alone, values, strict=False)]
            axes.plot(
                range(1, len(kept) + 1), kept, style, color=colour, label=name, markersize=4,
                linewidth=1.1,
            )  # fmt: skip
        axes.set_title(path, loc="left", fontsize=10)
        axes.set_xlabel("transfer")
        axes.set_xticks(range(1, len(alone) + 1))
    drawn[0].set_ylabel("throughput of the primary transfer,\n% of Reno/NULL")
    drawn[0].set_ylim(0)
    below(figure, drawn[0], 8)
    return figure


def _drawing(number: int, caption: str, draw: Callable[[Measured], Figure]) -> Drawing:
    return Drawing(f"figure-{number}", f"Figure {number}: {caption}", draw)


FIGURES = {
    2: _drawing(2, "spare capacity and latency, 8 flows", figure_2),
    3: _drawing(3, "number of flows and latency, S = 1", figure_3),
    4: _drawing(4, "number of flows and what they get, S = 1", figure_4),
    5: _drawing(5, "threshold and latency, 16 flows, S = 1", figure_5),
    6: _drawing(
        6, "times of transfers on four paths; lines from the least to the greatest", figure_6
    ),
    7: _drawing(
        7,
        "throughput of the primary transfers in their order, instead of the hours of a day; the "
        "first starts with the secondary ones",
        figure_7,
    ),
    11: _drawing(11, "spare capacity and latency beside rate limits, 8 flows", figure_11),
    12: _drawing(12, "number of flows and latency beside rate limits, S = 1", figure_12),
    13: _drawing(13, "number of flows and what they get beside rate limits, S = 1", figure_13),
    14: _drawing(14, "spare capacity and latency of bursts of UDP, 8 flows", figure_14),
    15: _drawing(15, "number of flows and latency of bursts of UDP, S = 2", figure_15),
    16: _drawing(16, "number of flows and what they get beside bursts of UDP, S = 2", figure_16),
}
"""By the report's numbers."""

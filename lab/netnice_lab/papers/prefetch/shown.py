# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables and figures of the page on prefetching."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from ...claims import draw
from ...claims.claim import Drawing, Measured, Table, times
from ...claims.results import Results
from ...scenario import NONE
from . import browsing
from .browsing import ALONE, BESIDE, DIRECT, HTTP2, KINDS
from .kinds import by_kind
from .replays import (
    AGGRESSIVE,
    BOTH,
    CABLE,
    LOADS,
    MODEM,
    NICE,
    PERFECT,
    RENO,
    STRATEGIES,
    THRESHOLDS,
    named,
)

COLOURS = {RENO: draw.ORANGE, NICE: draw.BLUE}
TOLD = {ALONE: "", BESIDE: ", beside downloads", HTTP2: ", beside downloads, HTTP/2"}
"""What is added to the names of trials."""
COLUMNS = (
    "prefetches", "mean s", "over none", "p95 s", "from cache %", "demand % of link", "ahead MB",
    "used MB", "dropped %", "views left",
)  # fmt: skip
CAPTION = (
    "Response times; what demand took of the link, what was fetched ahead and used; dropped packets"
)
LOADS_CAPTION = "The aggressive strategy on a cable as demand grows, hours of the log overlaid"
BROWSER_COLUMNS = (
    "prefetches", "load s (geometric)", "over none", "over direct", "load s (mean)", "over none",
    "p95 s", "from cache %", "demand MB", "answers ahead", "ahead MB", "download s", "over none",
)  # fmt: skip
BROWSER_CAPTION = "Times to load, pages from the cache, what was sent, times of downloads"
KIND_COLUMNS = (
    "prefetches", "pages", "number", "load s without", "load s", "over none", "ms longer (mean)",
    "kB without", "kB", "kB ahead",
)  # fmt: skip
KIND_CAPTION = "Pages of all seeds by how they came, and the same pages without prefetching (none)"


def browser_rows(measured: Measured, settings: Sequence[browsing.Setting]) -> list[list[str]]:
    """Return every trial with browsers."""
    out = []
    for setting in settings:
        found = measured[setting.name]
        for name in found.backgrounds():

            def mean(key: str, digits: int, found: Results = found, name: str = name) -> str:
                value: float = found.mean(key, name)["mean"]
                # What did not pass the proxy, the proxy has not counted.
                return "" if name == DIRECT else f"{value:.{digits}f}"

            downloads = found.mean("download_s", name) if setting.download else None
            straight = DIRECT in found.backgrounds()
            out.append([
                f"{name}{TOLD[setting]}",
                times(found.mean("typical_s", name), 3), times(found.harm(name, "typical_s")),
                times(found.ratio("typical_s", name, DIRECT)) if straight else "",
                times(found.mean("load_s", name), 2), times(found.harm(name, "load_s")),
                f"{found.mean('p95_s', name)['mean']:.2f}",
                f"{100 * found.mean('cached', name)['mean']:.0f}",
                mean("demand_mb", 1), mean("prefetches", 0), mean("ahead_mb", 1),
                times(downloads, 3) if downloads else "",
                times(found.harm(name, "download_s")) if downloads else "",
            ])  # fmt: skip
    return out


def kind_rows(measured: Measured, settings: Sequence[browsing.Setting]) -> list[list[str]]:
    """Return for each kind of page how long it took, and waited for, with and without."""
    out = []
    for setting in settings:
        found = measured[setting.name]
        for name in (n for n in found.backgrounds() if n not in (NONE, DIRECT)):
            for kind in KINDS:
                row = by_kind(found, name, kind)
                if row["pages"]:
                    out.append([
                        f"{name}{TOLD[setting]}", kind, f"{row['pages']}", f"{row['none_s']:.3f}",
                        f"{row['s']:.3f}", times(row), f"{1000 * row['later_s']:.0f}",
                        f"{row['none_kb']:.0f}", f"{row['kb']:.0f}", f"{row['ahead_kb']:.0f}",
                    ])  # fmt: skip
    return out


def browser_bars(measured: Measured) -> Figure:
    """Draw the geometric mean of times to load by trial, alone and beside downloads."""
    settings = {"alone": ALONE, "beside downloads": BESIDE}
    colours = COLOURS | {NONE: draw.GREY, DIRECT: draw.SKY, PERFECT: draw.GREEN}
    figure, axes = draw.frame("", "geometric mean time to load, s")
    names = list(browsing.TRIALS)
    for at, name in enumerate(names):
        offset = 0.2 * (at - (len(names) - 1) / 2)
        found = [measured[setting.name] for setting in settings.values()]
        places = [i for i, results in enumerate(found) if name in results.backgrounds()]
        values = [found[i].mean("typical_s", name) for i in places]
        axes.bar(
            [i + offset for i in places], [v["mean"] for v in values], 0.18,
            yerr=draw.errors(values), capsize=2, color=colours[name], label=name,
        )  # fmt: skip
    axes.set_xticks(range(len(settings)), list(settings))
    axes.set_ylim(bottom=0)
    draw.below(figure, axes, len(names))
    return figure


def load_rows(measured: Measured) -> list[list[str]]:
    """Return every trial with growing demand."""
    return [
        [str(setting.hours), *row]
        for setting in LOADS
        for row in rows(measured, setting.name, **setting.at)
    ]


def rows(measured: Measured, experiment: str, **at: int) -> list[list[str]]:
    """Return every trial of an experiment, at one of its points."""
    found, out = measured[experiment], []
    for name in found.backgrounds(**at):

        def mean(key: str, name: str = name) -> float:
            value: float = found.mean(key, name, **at)["mean"]
            return value

        out.append([
            name, times(found.mean("mean_s", name, **at), 3),
            times(found.harm(name, "mean_s", **at)),
            f"{mean('p95_s'):.2f}", f"{100 * mean('hit'):.0f}", f"{100 * mean('load'):.1f}",
            f"{mean('prefetched_mb'):.1f}", f"{mean('used_mb'):.1f}",
            f"{100 * mean('drops'):.1f}", f"{mean('unfinished'):g}",
        ])  # fmt: skip
    return out


def bars(measured: Measured, experiment: str) -> Figure:
    """Draw the mean response time of every strategy, with its interval."""
    found = measured[experiment]
    figure, axes = draw.frame("", "mean response time, s")
    for offset, by in zip((-0.18, 0.18), BOTH, strict=True):
        values = [found.mean("mean_s", named(s, by)) for s in STRATEGIES]
        axes.bar(
            [i + offset for i in range(len(STRATEGIES))], [v["mean"] for v in values], 0.34,
            yerr=draw.errors(values), capsize=2, color=COLOURS[by], label=by,
        )  # fmt: skip
    axes.axhline(
        found.mean("mean_s", NONE)["mean"], color=draw.GREY, linewidth=0.9, linestyle=":",
        label="no prefetching",
    )  # fmt: skip
    axes.set_xticks(range(len(STRATEGIES)), STRATEGIES)
    draw.below(figure, axes, 4)
    return figure


def growing(measured: Measured) -> Figure:
    """Draw the aggressive strategy's time over none's, over the demand, with Reno and with Nice."""
    found = measured[LOADS[0].name]
    figure, axes = draw.frame("demand without prefetching, % of the link", "mean time over none")
    demand = [100 * found.mean("load", NONE, **s.at)["mean"] for s in LOADS]
    for by in BOTH:
        values = [found.harm(named(AGGRESSIVE, by), "mean_s", **s.at) for s in LOADS]
        draw.line(axes, demand, values, label=by, colour=COLOURS[by], style="o-")
    axes.axhline(1.0, color=draw.GREY, linewidth=0.9, linestyle=":", label="no prefetching")
    axes.set_ylim(bottom=0)
    draw.below(figure, axes, 3)
    return figure


def trade_off(measured: Measured) -> Figure:
    """Draw the mean response time over the threshold, with Reno and with Nice."""
    found = measured["thresholds"]
    figure, axes = draw.frame("least probability of what is prefetched", "mean response time, s")
    for by in BOTH:
        values = [found.mean("mean_s", named(t, by)) for t in THRESHOLDS]
        draw.line(axes, THRESHOLDS, values, label=by, colour=COLOURS[by], style="o-")
    axes.axhline(
        found.mean("mean_s", NONE)["mean"], color=draw.GREY, linewidth=0.9, linestyle=":",
        label="no prefetching",
    )  # fmt: skip
    draw.logarithmic(axes, x=THRESHOLDS)
    axes.set_ylim(bottom=0)
    draw.below(figure, axes, 3)
    return figure


def trials(experiment: str) -> Table:
    """Return the table of an experiment's trials."""
    return Table(CAPTION, COLUMNS, partial(rows, experiment=experiment))


def browsed(settings: Sequence[browsing.Setting]) -> tuple[Table, Table]:
    """Return the tables of all trials with browsers, and of the first's pages."""
    return (
        Table(BROWSER_CAPTION, BROWSER_COLUMNS, partial(browser_rows, settings=settings)),
        Table(KIND_CAPTION, KIND_COLUMNS, partial(kind_rows, settings=settings[:1])),
    )


FIGURE_8 = Drawing(
    "figure-8", "Figure 8: mean response time on a cable", partial(bars, experiment=CABLE.name)
)
FIGURE_9 = Drawing(
    "figure-9", "Figure 9: mean response time on a modem", partial(bars, experiment=MODEM.name)
)
GROWING = Drawing("loads", LOADS_CAPTION, growing)
LOADS_TABLE = Table(LOADS_CAPTION, ("hours", *COLUMNS), load_rows)
TRADE_OFF_FIGURE = Drawing(
    "trade-off", "Mean response time on a cable over the predictor's threshold", trade_off
)
BROWSERS_FIGURE = Drawing("browser", "Time to load a page in Chromium", browser_bars)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What prefetching in the background must show, judged from what was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure

from ... import stats
from ...claims import draw
from ...claims.claim import Judgement as Claim
from ...claims.claim import Measured, percent, times
from ...claims.legacy import judge
from ...claims.results import Results
from ...scenario import NONE
from . import browsing
from .browsing import ALONE, BESIDE, CACHED, DIRECT, FIRST, HTTP2, KINDS, LATE, UNFORESEEN
from .replays import (
    AGGRESSIVE,
    BOTH,
    CONSERVATIVE,
    LOADS,
    NICE,
    PERFECT,
    RENO,
    STRATEGIES,
    THRESHOLDS,
    named,
)

Json = dict[str, Any]

SLOWER = 2.0
"""Mean response time over that without prefetching, from which Reno counts as several times."""
NO_SLOWER = 1.0
"""The same, up to which Nice costs nobody anything."""
NOT_SLOWED = 1.05
"""Mean time of a download over that without prefetching, up to which it is not slowed."""

COLOURS = {RENO: draw.ORANGE, NICE: draw.BLUE}


def over_none(found: Results, name: str) -> Json:
    """Return the mean response time over that without prefetching, with its interval."""
    return found.harm(name, "mean_s")


def is_above(ratio: Json, bound: float) -> bool:
    """Tell whether the whole interval lies above a bound."""
    return ratio["lo"] is not None and bool(ratio["lo"] > bound)


def is_below(ratio: Json, bound: float) -> bool:
    """Tell whether the whole interval lies below a bound."""
    return ratio["hi"] is not None and bool(ratio["hi"] < bound)


def told(found: Results, name: str) -> str:
    """Return a trial's ratio as in ``aggressive, Reno 1.20 [1.10, 1.30]``."""
    return f"{name} {times(over_none(found, name))}"


def why(found: Results) -> str:
    """Return what limits the gain and the harm: hits, bytes, and a perfect predictor."""
    perfect, ours, reno = (named(s, by) for s, by in (
        (PERFECT, NICE), (AGGRESSIVE, NICE), (AGGRESSIVE, RENO),
    ))  # fmt: skip
    hit = {name: percent(found.mean("hit", name)) for name in (NONE, ours, reno, perfect)}
    bytes_mb = {name: found.mean("prefetched_mb", name)["mean"] for name in (ours, reno)}
    demand = found.mean("demand_mb", NONE)["mean"]
    return (
        "With Nice the aggressive predictor takes "
        f"{times(found.ratio('mean_s', ours, reno))} times as long as with Reno. Even a predictor "
        "that knows the rest of the client's view and its next ten gets, with Nice, "
        f"{times(over_none(found, perfect))} times the time without prefetching. The cache answers "
        f"{hit[NONE]} of the requests without prefetching, {hit[ours]} with the aggressive "
        f"predictor and Nice, {hit[reno]} with Reno, {hit[perfect]} with the perfect one. Demand "
        f"is {percent(found.mean('load', NONE))} of the capacity; the aggressive predictor fetches "
        f"{bytes_mb[reno] / demand:.1f} times its bytes ahead with Reno and "
        f"{bytes_mb[ours] / demand:.1f} times with Nice, where "
        f"{1 / found.mean('load', NONE)['mean'] - 1:.1f} times would fill the link."
    )


def by_load(measured: Measured) -> str:
    """Return what the aggressive strategy does as demand grows against the cable's link."""
    found = measured[LOADS[0].name]
    demand = ", ".join(percent(found.mean("load", NONE, **s.at)) for s in LOADS)
    told_by = []
    for by in BOTH:
        name = named(AGGRESSIVE, by)
        ratios = ", ".join(times(found.harm(name, "mean_s", **s.at)) for s in LOADS)
        mb = [found.mean("prefetched_mb", name, **s.at)["mean"] for s in LOADS]
        ahead = ", ".join(f"{one:.1f}" for one in mb)
        told_by.append(f"with {by} {ratios} times as long as none, and fetches {ahead} MB ahead")
    return (
        f"What it takes is a link with less to spare: as demand grows on the cable ({demand} of "
        f"the link), the aggressive predictor takes {'; '.join(told_by)}."
    )


def p1(measured: Measured) -> Claim:
    """On a cable the aggressive strategy is the best with Nice, and harmful with Reno."""
    found = measured["cable"]
    ratios = {n: over_none(found, n)["mean"] for n in found.backgrounds() if PERFECT not in n}
    ours, reno = named(AGGRESSIVE, NICE), named(AGGRESSIVE, RENO)
    others = [named(CONSERVATIVE, by) for by in BOTH]
    fastest = min(ratios[n] for n in (NONE, reno, *others)) >= ratios[ours]
    return judge(
        "P1",
        "Cable: aggressive prefetching is the fastest of all with Nice, and with Reno at least "
        f"{SLOWER:g} times as slow as none (mean response time; figure 8)",
        paper="3 times faster; 6 times slower",
        ours=f"over none: {'; '.join(told(found, name) for name in (ours, reno, *others))}",
        first=over_none(found, ours),
        holds=fastest and ratios[reno] >= SLOWER,
        cause=f"{why(found)} {by_load(measured)}",
    )


def p2(measured: Measured) -> Claim:
    """On a modem aggressive prefetching harms with Reno, and does not with Nice."""
    found = measured["modem"]
    ours, reno = named(AGGRESSIVE, NICE), named(AGGRESSIVE, RENO)
    return judge(
        "P2",
        f"Modem: aggressive prefetching is at least {SLOWER:g} times as slow as none with Reno, "
        "and no slower than none with Nice (figure 9)",
        paper="about 3 times slower; no slower",
        ours=f"over none: {told(found, ours)}; {told(found, reno)}",
        first=over_none(found, ours),
        holds=over_none(found, ours)["mean"] <= NO_SLOWER
        and over_none(found, reno)["mean"] >= SLOWER,
        cause=f"{why(found)} {by_load(measured)}",
    )


def p3(measured: Measured) -> Claim:
    """However low the threshold, Nice costs nothing, where Reno begins to cost."""
    found = measured["thresholds"]
    ratios = {by: [over_none(found, named(t, by)) for t in THRESHOLDS] for by in BOTH}
    worst = {by: max(ratios[by], key=lambda r: float(r["mean"])) for by in BOTH}
    by_threshold = "; ".join(
        f"{by} "
        + ", ".join(f"{t:g}: {times(r)}" for t, r in zip(THRESHOLDS, ratios[by], strict=True))
        for by in BOTH
    )
    return judge(
        "P3",
        "Cable: prefetching with Nice is no slower than none at any threshold, and with Reno it "
        "gets slower than none as the threshold falls",
        paper="Nice has no cliff",
        ours=f"the slowest, over none: Nice {times(worst[NICE])}, Reno {times(worst[RENO])}",
        first=worst[NICE],
        holds=worst[NICE]["mean"] <= NO_SLOWER and is_above(ratios[RENO][0], NO_SLOWER),
        cause=f"By threshold: {by_threshold}.",
    )


def by_kind(found: Results, name: str, kind: str) -> Json:
    """Return how long pages of a kind take over the same without prefetching, with an interval.

    `mean` and its interval are over the seeds that have any, of geometric means; `pages` is how
    many there are, `all` of how many; `s` and `none_s` are geometric means of all of them, and
    `later_s` is the mean difference; `kb` and `none_kb` are what one waits for on average, and
    `ahead_kb` what Chromium asks for ahead because of it.
    """
    ratios, pairs, every = [], [], 0
    for ours, none in zip(pages(found, name), pages(found, NONE), strict=True):
        every += len(ours)
        mine = [(a, b) for a, b in zip(ours, none, strict=True) if a[2] == kind]
        pairs += mine
        if mine:
            ratios.append(geometric([a[1] / b[1] for a, b in mine]))
    out = {**stats.interval(ratios), "pages": len(pairs), "all": every}
    if pairs:
        out |= {
            "s": geometric([a[1] for a, _ in pairs]), "none_s": geometric([b[1] for _, b in pairs]),
            "later_s": stats.mean([a[1] - b[1] for a, b in pairs]),
            "kb": stats.mean([a[3] for a, _ in pairs]),
            "none_kb": stats.mean([b[3] for _, b in pairs]),
            "ahead_kb": stats.mean([a[4] for a, _ in pairs]),
        }  # fmt: skip
    return out


def pages(found: Results, name: str) -> list[list[list[Any]]]:
    """Return the pages of each seed, each as in `browsing.each`."""
    runs: list[Any] = found.values("each", name)
    return runs


def geometric(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def gain_by_kind(found: Results, name: str) -> str:
    """Return how many pages there are of each kind, and how long they take over none."""
    kinds = {kind: by_kind(found, name, kind) for kind in KINDS}
    told_as = {
        FIRST: "are the first of a walk", CACHED: "come from the cache",
        UNFORESEEN: "are not asked for ahead", LATE: "are, and yet not there in time",
    }  # fmt: skip
    parts = [
        f"{kinds[kind]['pages']} {told_as[kind]} ({times(kinds[kind])})"
        for kind in (FIRST, CACHED, UNFORESEEN, LATE)
        if kinds[kind]["pages"]
    ]
    return f"of {kinds[FIRST]['all']} pages {', '.join(parts)}"


def waits(found: Results, name: str, rate_mbit: float) -> str:
    """Return how much longer pages take that suggest, and what of it the link's time explains."""
    first = by_kind(found, name, FIRST)
    if first["later_s"] <= 0:
        return ""
    later_ms, link_ms = 1000 * first["later_s"], 8 * first["ahead_kb"] / rate_mbit
    return (
        " What a page suggests Chromium asks for at once, even while the page loads: with it the "
        f"first pages of walks take {later_ms:.0f} ms longer on average, and the "
        f"{first['ahead_kb']:.0f} kB that they have it ask for take the link "
        f"{link_ms:.0f} ms.{' The rest is not explained.' if later_ms > 2 * link_ms else ''}"
    )


def few(load: Json, found: Results) -> str:
    """Return that the seeds are too few to tell, if pages are sooner but their interval holds 1."""
    if load["mean"] >= 1 or is_below(load, 1):
        return ""
    return f"{found.seeds} seeds are too few to tell whether pages gain: walks differ. "


def p5(measured: Measured) -> Claim:
    """In Chromium pages come sooner, and nobody else notices."""
    alone, beside = measured[ALONE.name], measured[BESIDE.name]
    load, download = alone.harm(NICE, "typical_s"), beside.harm(NICE, "download_s")
    straight = alone.ratio("typical_s", NICE, DIRECT)
    sooner = is_below(load, 1) and is_below(straight, 1)
    return judge(
        "P5",
        "Chromium on the cable: pages load sooner with prefetching in the background than without, "
        "be it through the proxy that suggests nothing (none) or straight from nginx (direct; "
        "geometric means, both intervals below 1), and a second browser's downloads take at most "
        f"{100 * (NOT_SLOWED - 1):.0f} % longer",
        paper="no browser",
        ours=f"pages over none {times(load)}, over direct {times(straight)}"
        f"{'' if sooner else ', no gain that can be told'}; beside downloads over none "
        f"{times(beside.harm(NICE, 'typical_s'))}; downloads over none {times(download)}",
        first=load,
        holds=sooner and download["mean"] <= NOT_SLOWED,
        cause=f"{few(load, alone)}Over none, {gain_by_kind(alone, NICE)}."
        f"{waits(alone, NICE, ALONE.rate_mbit)} The ceiling: with a proxy that has learned the "
        "very walks, and suggests all that it foresees, pages take "
        f"{times(alone.harm(PERFECT, 'typical_s'))} times as long; {gain_by_kind(alone, PERFECT)}."
        f"{waits(alone, PERFECT, ALONE.rate_mbit)} "
        "The proxy itself: none takes "
        f"{times(alone.ratio('typical_s', NONE, DIRECT))} times as long as direct.",
    )


def p5h(measured: Measured) -> Claim:
    """Over HTTP/2, where pages and prefetches have one connection, it is the same."""
    found = measured[HTTP2.name]
    load, download = (found.harm(NICE, key) for key in ("typical_s", "download_s"))
    return judge(
        "P5H",
        "Chromium over HTTP/2 beside downloads: pages load sooner with prefetching in the "
        "background than without (geometric mean, its interval below 1), and the downloads take at "
        f"most {100 * (NOT_SLOWED - 1):.0f} % longer",
        paper="no browser",
        ours=f"over none: pages {times(load)}; downloads {times(download)}",
        first=load,
        holds=is_below(load, 1) and download["mean"] <= NOT_SLOWED,
        cause=f"{few(load, found)}Over none, {gain_by_kind(found, NICE)}."
        f"{waits(found, NICE, HTTP2.rate_mbit)}",
    )


TOLD = {ALONE: "", BESIDE: ", beside downloads", HTTP2: ", beside downloads, HTTP/2"}
"""What is added to the names of trials."""


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

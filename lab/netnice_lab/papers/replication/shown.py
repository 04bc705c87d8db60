# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables and the figure of the page on replication."""

from __future__ import annotations

from matplotlib.figure import Figure

from ...claims import draw
from ...claims.claim import Drawing, Measured, Table, times
from . import recovery
from .copies import CHANGED, IDLE, NICE, PATHS, PRIORITY, REPLICATE, UNLIMITED, kbit, rates
from .points import (
    OURS,
    every_rate,
    excess,
    fills,
    longer,
    point,
    results,
    share,
    throttles,
    worst,
    worst_throttled,
)


def line_rows(measured: Measured) -> list[list[str]]:
    """Return every copy over the modem that sends one packet after the other."""
    found = measured["serialised"]
    out = []
    for name in found.backgrounds(path="modem"):
        cells = [found.values(key, name, path="modem")[0] for key in ("seconds", "ping_ms")]
        (p95,) = found.values("ping_p95_ms", name, path="modem")
        out.append([name, *(f"{c:.0f}" if c is not None else "" for c in (*cells, p95))])
    return out


def rate_rows(measured: Measured) -> list[list[str]]:
    """Return what is carried of idle lines, one packet after the other."""
    found, out = measured["line"], []
    for rate in found.places("mbit"):
        cells = [f"{rate:g}"]
        for name in (recovery.DEFAULT, NICE, recovery.VEGAS):
            mbit, ping = (found.mean(k, name, mbit=rate)["mean"] for k in ("mbit", "probe_ms"))
            cells += [f"{100 * mbit / rate:.0f} %", f"{ping:.0f}"]
        out.append(cells)
    return out


def worst_rows(measured: Measured) -> list[list[str]]:
    """Return both worst ratios of every throttle, of ours and of strict priority."""
    rows = [(kbit(rate), worst_throttled(measured, rate)) for rate in every_rate()]
    rows += [(name, worst(measured, name)) for name in (UNLIMITED, *OURS, PRIORITY)]
    return [
        [name, f"{slow:.2f}", f"{ping:.2f}", f"{excess((slow, ping)):.1f}"]
        for name, (slow, ping) in rows
    ]


def settings_rows(measured: Measured) -> list[list[str]]:
    """Return what every setting has beside others: kernel and simulator."""
    asis, kernel, found = recovery.AS_IT_IS, measured["settings"], measured["recovery"]
    out = []
    for name in [*recovery.SETTINGS, PRIORITY]:
        cells = ["our nice" if name == recovery.DEFAULT else name]
        for path in recovery.BUSY:
            if name in kernel.backgrounds(path=path, change=asis):
                (ping,) = kernel.values("ping_ms", name, path=path, change=asis)
                cells += [f"{longer(measured, name, path, asis):.2f}", f"{ping:.0f}"]
            else:
                cells += ["", ""]
            cells.append(times(share(measured, name, path, asis)))
            cells.append(times(found.mean("others_ms", name, path=path, change=asis), 0))
        out.append(cells)
    return out


def changes_rows(measured: Measured) -> list[list[str]]:
    """Return what our nice has on the paths with something changed."""
    kernel, found = measured["settings"], measured["recovery"]
    out = []
    for path in recovery.BUSY:
        for change in recovery.CHANGES:
            cells = [path, change]
            for name in recovery.TRACED:
                there = {"path": path, "change": change} in [
                    p["at"] for p in kernel.document["points"]
                ]
                cells.append(f"{longer(measured, name, path, change):.2f}" if there else "")
                cells.append(times(share(measured, name, path, change)))
            for key in ("idle_others", "idle_asleep", "idle_awake"):
                mean = found.mean(key, recovery.DEFAULT, path=path, change=change)["mean"]
                cells.append(f"{100 * mean:.0f} %")
            window = found.mean("window", recovery.DEFAULT, path=path, change=change)["mean"]
            cells += [f"{window:.1f}", f"{fills(path, change):.1f}"]
            out.append(cells)
    return out


def fleet_rows(measured: Measured) -> list[list[str]]:
    """Return every way to reach many destinations."""
    found = measured["fleet"]
    return [
        [
            name,
            times(found.mean("seconds", name), 0),
            times(found.mean("fct", name)),
            times(found.mean("fct_p95", name)),
        ]
        for name in found.backgrounds()
    ]


def rows(measured: Measured) -> list[list[str]]:
    """Return every copy on every path."""
    found, out = measured["copies"], []
    for path in PATHS:
        (idle,) = found.values("ping_ms", IDLE, path=path)
        out.append([path, IDLE, "", f"{idle:.0f}", ""])
        for name in [*throttles(path), *OURS, PRIORITY]:
            seconds, ping = point(measured, path, name)
            (p95,) = results(measured, name).values("ping_p95_ms", name, path=path)
            out.append([path, name, f"{seconds:.0f}", f"{ping:.0f}", f"{p95:.0f}"])
    return out


def changed_rows(measured: Measured) -> list[list[str]]:
    """Return the copies on the path that changes."""
    out = []
    for name in [*measured["copies"].backgrounds(path=CHANGED), REPLICATE]:
        found = results(measured, name)
        cells = [name, f"{point(measured, CHANGED, name)[0]:.0f}"]
        for phase in ("before", "slow", "after"):
            for key, digits in ((f"mbit_{phase}", 2), (f"ping_{phase}_ms", 0)):
                (value,) = found.values(key, name, path=CHANGED)
                cells.append("–" if value is None else f"{value:.{digits}f}")  # noqa: RUF001
        out.append(cells)
    return out


def figure_10(measured: Measured) -> Figure:
    """Draw ping against completion time on each path: Reno's throttles and Nice."""
    found = measured["copies"]
    figure, all_axes = draw.panels(len(PATHS), (11.0, 3.2))
    for axes, path in zip(all_axes, PATHS, strict=True):
        own = [kbit(rate) for rate in sorted(rates(path))] + [UNLIMITED]
        points = [point(measured, path, name) for name in own]
        axes.plot(*zip(*points, strict=True), "o-", color=draw.ORANGE, markersize=4,
                  linewidth=1.2, label="Reno, throttled")  # fmt: skip
        marks = ((NICE, draw.SKY, "s"), (REPLICATE, draw.BLUE, "D"), (PRIORITY, draw.GREY, "*"))
        for name, colour, marker in marks:
            axes.plot(*point(measured, path, name), marker, color=colour, label=name)
        (idle,) = found.values("ping_ms", IDLE, path=path)
        axes.axhline(idle, color=draw.GREY, linewidth=0.9, linestyle=":", label="no copy")
        axes.set_title(path, fontsize=10)
        axes.set_xscale("log")
        axes.set_ylim(bottom=0)
        axes.set_xlabel("completion time, s")
    all_axes[0].set_ylabel("mean ping, ms")
    draw.below(figure, all_axes[0], 5)
    return figure


FIGURE_10 = Drawing(
    "figure-10", "Figure 10: mean ping against completion time, on four paths", figure_10
)
COPIES = Table(
    "Every copy: completion time, mean and 95th percentile of the ping",
    ("path", "copy", "s", "ping ms", "p95 ms"),
    rows,
)
LINE = Table(
    "The modem with one packet after the other", ("copy", "s", "ping ms", "p95 ms"), line_rows
)
RATES = Table(
    "Idle lines of other rates in the simulator, one packet after the other, else as the modem: "
    "share of the rate that is carried, and mean ping in ms",
    ("Mbit/s", "our nice", "ping", "Nice", "ping", "decrease=1", "ping"),
    rate_rows,
)
WORST = Table(
    "Worst of the four paths: duration over strict priority's (where a throttle was not measured "
    "at least what its rate takes), ping over that without a copy (where it was measured), and how "
    "many times a bound the worse of them is",
    ("copy", "duration", "ping", "over its bound"),
    worst_rows,
)
SETTINGS = Table(
    "One flow beside others' transfers, and two and four: duration over strict priority's and ping "
    "on the kernel (K); throughput over strict priority's and RTT of others' packets in the "
    "simulator (S, five rhythms of the others)",
    (
        "setting", "london K", "ping ms", "S", "others ms",
        "delaware K", "ping ms", "S", "others ms",
    ),
    settings_rows,
)  # fmt: skip
CHANGES = Table(
    "The same paths with something changed, duration (K) and throughput (S) as above; shares of "
    "the capacity that our nice leaves idle during others' transfers, and between them with a "
    "window below and above two packets; its mean then, and what fills the path",
    (
        "path", "change", "our nice K", "S", "together=2 K", "S",
        "others", "below two", "above", "window", "fills",
    ),
    changes_rows,
)  # fmt: skip
CHANGING = Table(
    "40 MB over 10 Mbit/s, 0.5 Mbit/s from 10 to 70 s after the start, then 10",
    (
        "copy", "s", "before: Mbit/s", "ping ms", "slow: Mbit/s", "ping ms",
        "after: Mbit/s", "ping ms",
    ),
    changed_rows,
)  # fmt: skip
FLEET = Table(
    "32 destinations: the last one's time, users' completion times over none",
    ("copies", "s", "mean", "p95"),
    fleet_rows,
)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What replication in the background must show, judged from what was measured."""

from __future__ import annotations

from matplotlib.figure import Figure

from .. import draw
from ..claim import Claim, judge, times
from ..measure import Results
from ..paper import Measured
from . import fleet
from .copies import (
    CHANGED,
    FAST_MBIT,
    IDLE,
    NICE,
    PATHS,
    PRIORITY,
    REPLICATE,
    SLOW_MBIT,
    UNLIMITED,
    USUAL,
    capacity,
    kbit,
    rates,
)

Point = tuple[float, float]

OURS = (NICE, REPLICATE)
FOLLOWED = 0.5
"""Share of the capacity that follows it, before and after a change."""
GENTLE = 1.25
"""Mean ping over that without a copy, up to which nobody notices."""
FAST = 1.5
"""Duration over that under strict priority, up to which nothing is wasted."""
UNNOTICED = 1.1
"""Users' mean completion time over that without replication."""

MODEM_CAUSE = (
    "A rate below that of an idle line makes no queue, for whoever knows it. The lab's token "
    "bucket lets a packet leave at once where a modem would take 212 ms for it, more than the "
    "path's RTT: in the simulator, with one packet after the other as in a modem (600 s), a "
    "constant rate of 42.45 kbit/s has a mean ping of 213 ms instead of 120, the report's Nice at "
    "40 kbit/s 391 ms. So the bucket flatters a throttle, but a line that is known and idle is not "
    "where Nice is better."
)


def results(measured: Measured, name: str) -> Results:
    """Return the experiment that ran a copy."""
    return measured[{REPLICATE: "ours", PRIORITY: "ideal"}.get(name, "copies")]


def point(measured: Measured, path: str, name: str) -> Point:
    """Return the duration of a copy in seconds, and the mean ping meanwhile in ms."""
    (seconds,) = results(measured, name).values("seconds", name, path=path)
    (ping,) = results(measured, name).values("ping_ms", name, path=path)
    return seconds, ping


def throttles(path: str) -> list[str]:
    """Return the names of Reno's copies on a path, the unlimited one last."""
    return [kbit(rate) for rate in sorted(rates(path))] + [UNLIMITED]


def at_rate(path: str, rate_mbit: float) -> str:
    """Return the name of the copy on a path that a throttle gives there."""
    return kbit(rate_mbit) if rate_mbit < capacity(path) else UNLIMITED


def words(value: Point) -> str:
    """Return a point as in ``63 s, 41 ms``."""
    return f"{value[0]:.0f} s, {value[1]:.0f} ms"


def r1(measured: Measured) -> Claim:
    """No throttle is both faster and gentler than Nice."""
    better = []
    for path in PATHS:
        for ours in OURS:
            seconds, ping = point(measured, path, ours)
            for name in throttles(path):
                other = point(measured, path, name)
                if other[0] < seconds and other[1] < ping:
                    better.append(
                        f"on {path} {name} has {words(other)}, {ours} {words((seconds, ping))}"
                    )
    told = [f"{path} {words(point(measured, path, REPLICATE))}" for path in PATHS]
    return judge(
        "R1",
        "On every path no throttle of Reno is both faster and gentler (completion time, mean ping) "
        "than Nice, the report's or ours in `netnice replicate` (figure 10)",
        paper="none is; no numbers",
        ours=f"`netnice replicate`: {'; '.join(told)}",
        first=None,
        holds=not better,
        cause=f"Both faster and gentler: {'; '.join(better)}. {MODEM_CAUSE}",
    )


def badness(measured: Measured, path: str, name: str) -> tuple[float, float]:
    """Return duration over that under strict priority, and ping over that without a copy."""
    seconds, ping = point(measured, path, name)
    (idle,) = measured["copies"].values("ping_ms", IDLE, path=path)
    return seconds / point(measured, path, PRIORITY)[0], ping / idle


def r2(measured: Measured) -> Claim:
    """One throttle does not fit all paths; Nice does."""
    told, fits = [], []
    for owner in PATHS:
        rate = USUAL * capacity(owner)
        slow, ping = zip(
            *(badness(measured, path, at_rate(path, rate)) for path in PATHS), strict=True
        )  # fmt: skip
        told.append(f"{kbit(rate)} (for {owner}) {max(slow):.1f} and {max(ping):.2f}")
        if max(slow) <= FAST and max(ping) <= GENTLE:
            fits.append(kbit(rate))
    ours = {name: [badness(measured, path, name) for path in PATHS] for name in OURS}
    worst = {name: (max(b[0] for b in v), max(b[1] for b in v)) for name, v in ours.items()}
    misses = [n for n, (slow, ping) in worst.items() if slow > FAST or ping > GENTLE]
    nice = "; ".join(f"{name} {slow:.2f} and {ping:.2f}" for name, (slow, ping) in worst.items())
    return judge(
        "R2",
        f"Each path's good throttle ({USUAL:g} of its capacity) is bad on another path, Nice on "
        "none: duration over strict priority's and mean ping over that without a copy, each the "
        f"worst of four paths, at most {FAST:g} and {GENTLE:g}",
        paper="no throttle fits; Nice does",
        ours=f"{nice}; {'; '.join(told)}",
        first=None,
        holds=not misses and not fits,
        cause=f"Not within both bounds: {', '.join(misses) or 'none of ours'}; throttles within "
        f"both everywhere: {', '.join(fits) or 'none'}. By path, {by_path(ours)}.",
    )


def by_path(ours: dict[str, list[tuple[float, float]]]) -> str:
    """Return both ratios of ours on every path."""
    return "; ".join(
        f"{name}: "
        + ", ".join(f"{p} {s:.2f} and {g:.2f}" for p, (s, g) in zip(PATHS, v, strict=True))
        for name, v in ours.items()
    )


def r3(measured: Measured) -> Claim:
    """Judge whether a capacity that changes twentyfold is followed both ways."""
    found = measured["ours"]
    capacities = {"before": FAST_MBIT, "slow": SLOW_MBIT, "after": FAST_MBIT}
    shares, told = {}, []
    for phase, rate in capacities.items():
        (mbit,) = found.values(f"mbit_{phase}", REPLICATE, path=CHANGED)
        (ping,) = found.values(f"ping_{phase}_ms", REPLICATE, path=CHANGED)
        shares[phase] = mbit / rate
        told.append(f"{phase} {mbit:.2f} of {rate:g} Mbit/s, ping {ping:.0f} ms")
    lost = [phase for phase, share in shares.items() if share < FOLLOWED]
    return judge(
        "R3",
        "A path whose capacity falls to a twentieth during the copy and comes back after a minute "
        f"is followed both ways: at least {100 * FOLLOWED:.0f} % of it is used in each phase",
        paper="bandwidths change drastically; no numbers",
        ours="; ".join(told),
        first=None,
        holds=not lost,
        cause=f"Less than {100 * FOLLOWED:.0f} % in the phase {', '.join(lost)}.",
    )


def r4(measured: Measured) -> Claim:
    """Users of a server that replicates to many hardly notice."""
    found = measured["fleet"]
    harm = {name: found.mean("fct", name) for name in found.backgrounds()}
    seconds = {name: found.mean("seconds", name) for name in found.backgrounds()}
    told = [
        f"{name} {times(harm[name])} times, {seconds[name]['mean']:.0f} s" for name in harm
    ]  # fmt: skip
    return judge(
        "R4",
        f"{fleet.DESTINATIONS} destinations on mixed paths from a server that also serves web "
        f"users: their mean completion time is at most {UNNOTICED:g} times that of no replication",
        paper="no numbers",
        ours=f"{'; '.join(told)} for the last destination",
        first=harm[fleet.OURS],
        holds=harm[fleet.OURS]["mean"] <= UNNOTICED,
        cause=f"{times(harm[fleet.OURS])} times.",
    )


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

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What replication in the background must show, judged from what was measured."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from ...claims import draw
from ...claims.claim import Json, Measured, times
from ...claims.claim import Judgement as Claim
from ...claims.legacy import judge
from ...claims.results import Results
from . import fleet, recovery
from .copies import (
    CHANGED,
    FAST_MBIT,
    IDLE,
    NICE,
    PATHS,
    PRIORITY,
    REPLICATE,
    SIZE,
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
PACKET_BITS = 8 * 1514
"""Of a full Ethernet frame."""
APART_MS = 30.0
"""Between the two packets of a small window (core/alg/nice.h, NN_NICE_APART_US)."""
UNNOTICED = 1.1
"""Users' mean completion time over that without replication."""


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


def dominating(others: Mapping[str, Point], ours: Mapping[str, Point]) -> list[str]:
    """Return in words which of the others are both faster and gentler than which of ours."""
    found = []
    for name, (seconds, ping) in ours.items():
        better = [f"{o} ({words(p)})" for o, p in others.items() if p[0] < seconds and p[1] < ping]
        if better:
            found.append(f"{' and '.join(better)} than {name} ({words((seconds, ping))})")
    return found


def r1(measured: Measured) -> Claim:
    """No throttle is both faster and gentler than Nice."""
    better = []
    for path in PATHS:
        others, ours = (
            {name: point(measured, path, name) for name in names}
            for names in (throttles(path), OURS)
        )
        better += [f"on {path} {told}" for told in dominating(others, ours)]
    told = [f"{path} {words(point(measured, path, REPLICATE))}" for path in PATHS]
    return judge(
        "R1",
        "On every path no throttle of Reno is both faster and gentler (completion time, mean ping) "
        "than Nice, the report's or ours in `netnice replicate` (figure 10)",
        paper="none is; no numbers",
        ours=f"`netnice replicate`: {'; '.join(told)}",
        first=None,
        holds=not better,
        cause=f"Both faster and gentler: {'; '.join(better)}. {modem_cause(measured)}",
    )


def on_a_line(measured: Measured) -> dict[str, Point]:
    """Return the points of the modem that sends one packet after the other, by copy."""
    found = measured["serialised"]
    return {
        name: (found.values("seconds", name, path="modem")[0],
               found.values("ping_ms", name, path="modem")[0])
        for name in found.backgrounds(path="modem") if name != IDLE
    }  # fmt: skip


def modem_cause(measured: Measured) -> str:
    """Return what the modem's line does to the comparison, as measured."""
    points = on_a_line(measured)
    (idle,) = measured["serialised"].values("ping_ms", IDLE, path="modem")
    (bucket,) = measured["copies"].values("ping_ms", IDLE, path="modem")
    name = kbit(USUAL * capacity("modem"))
    ours = {REPLICATE: points[REPLICATE]}
    slower = {o: p for o, p in points.items() if o not in (REPLICATE, PRIORITY)}
    still = dominating(slower, ours)
    return (
        "A rate below that of an idle line makes hardly a queue, for whoever knows it and knows "
        "that nobody else is there. The lab flatters it: its token bucket lets a packet leave at "
        f"once where a modem would take {1e-3 * PACKET_BITS / capacity('modem'):.0f} ms for it. "
        f"With one packet after the other (second table) {name} adds "
        f"{points[name][1] - idle:.0f} ms to the ping, not "
        f"{point(measured, 'modem', name)[1] - bucket:.0f}, and strict priority "
        f"{points[PRIORITY][1] - idle:.0f}; netnice replicate "
        f"{points[REPLICATE][1] - idle:.0f}. There, too, both faster and gentler: "
        f"{'; '.join(still) or 'none'}. {line_cause(measured)}"
    )


def carried(measured: Measured, name: str, rate: float) -> float:
    """Return the share of an idle line's rate that a setting carries, in the simulator."""
    mean: float = measured["line"].mean("mbit", name, mbit=rate)["mean"]
    return mean / rate


def line_cause(measured: Measured) -> str:
    """Return what our default makes of lines of several rates."""
    queued = 1e-3 * PACKET_BITS / APART_MS
    rates = measured["line"].places("mbit")
    slow, fast = [r for r in rates if r < queued], [r for r in rates if r >= queued]

    def span(name: str, rates: list[float]) -> str:
        shares = [100 * carried(measured, name, rate) for rate in rates]
        ends = (f"{end(shares):.0f}" for end in (min, max))
        return f"{' to '.join(dict.fromkeys(ends))} %"

    return (
        f"Two packets of ours leave at most {APART_MS:.0f} ms apart, since receivers delay an ACK "
        f"by 40; on a line below {queued:.1f} Mbit/s the second then waits for the first, a queue "
        "to which the flow yields: in the simulator (third table) our default carries "
        f"{span(recovery.DEFAULT, slow)} of such a line's rate, without yielding (decrease=1) "
        f"{span(recovery.VEGAS, slow)}; of a faster line's {span(recovery.DEFAULT, fast)}."
    )


def badness(measured: Measured, path: str, name: str) -> tuple[float, float]:
    """Return duration over that under strict priority, and ping over that without a copy."""
    seconds, ping = point(measured, path, name)
    (idle,) = measured["copies"].values("ping_ms", IDLE, path=path)
    return seconds / point(measured, path, PRIORITY)[0], ping / idle


def worst(measured: Measured, name: str) -> Point:
    """Return the worst of both ratios that one of ours, or strict priority, has on a path."""
    slow, ping = zip(*(badness(measured, path, name) for path in PATHS), strict=True)
    return max(slow), max(ping)


def every_rate() -> list[float]:
    """Return every throttle rate that was measured on a path."""
    return sorted({rate for path in PATHS for rate in rates(path)})


def worst_throttled(measured: Measured, rate_mbit: float) -> Point:
    """Return the same of a throttle.

    Where it was not measured its duration is at least what the rate takes for the bytes.
    """
    slow, pings = [], []
    for path in PATHS:
        if rate_mbit >= capacity(path) or rate_mbit in rates(path):
            duration, ping = badness(measured, path, at_rate(path, rate_mbit))
            slow.append(duration)
            pings.append(ping)
        else:
            ideal, _ = point(measured, path, PRIORITY)
            slow.append(8e-6 * SIZE / rate_mbit / ideal)
    return max(slow), max(pings)


def excess(ratios: Point) -> float:
    """Return how far the worse of both ratios is from its bound, as their ratio."""
    return max(ratios[0] / FAST, ratios[1] / GENTLE)


def r2(measured: Measured) -> Claim:
    """One throttle does not fit all paths; Nice does."""
    told = []
    for owner in PATHS:
        slow, ping = worst_throttled(measured, USUAL * capacity(owner))
        told.append(f"{kbit(USUAL * capacity(owner))} (for {owner}) {slow:.1f} and {ping:.2f}")
    throttled = {kbit(rate): worst_throttled(measured, rate) for rate in every_rate()}
    fits = [name for name, ratios in throttled.items() if excess(ratios) <= 1]
    ours = {name: worst(measured, name) for name in OURS}
    misses = [name for name, ratios in ours.items() if excess(ratios) > 1]
    nice = "; ".join(f"{name} {slow:.2f} and {ping:.2f}" for name, (slow, ping) in ours.items())
    least = min(throttled, key=lambda name: excess(throttled[name]))
    return judge(
        "R2",
        f"Each path's good throttle ({USUAL:g} of its capacity) is bad on another path, Nice on "
        "none: duration over strict priority's and mean ping over that without a copy, each the "
        f"worst of four paths, at most {FAST:g} and {GENTLE:g}",
        paper="no throttle fits; Nice does",
        ours=f"{nice}; {'; '.join(told)}",
        first=None,
        holds=not misses and not fits,
        cause=f"Throttles within both bounds everywhere: {', '.join(fits) or 'none'}. The least "
        f"bad of all {len(throttled)} rates, {least}, exceeds a bound "
        f"{excess(throttled[least]):.1f} times; "
        + ", ".join(f"{name} {excess(ours[name]):.1f} times" for name in OURS)
        + f". By path, {by_path(measured)}. {duration_cause(measured)} {ping_cause(measured)}",
    )


def by_path(measured: Measured) -> str:
    """Return both ratios of ours on every path."""
    return "; ".join(
        f"{name}: "
        + ", ".join("{} {:.2f} and {:.2f}".format(p, *badness(measured, p, name)) for p in PATHS)
        for name in OURS
    )


def longer(measured: Measured, name: str, path: str, change: str) -> float:
    """Return a setting's duration over strict priority's, on the kernel."""
    found = measured["settings"]
    (seconds,) = found.values("seconds", name, path=path, change=change)
    (ideal,) = found.values("seconds", PRIORITY, path=path, change=change)
    return seconds / ideal


def share(measured: Measured, name: str, path: str, change: str) -> Json:
    """Return a setting's goodput over strict priority's, in the simulator."""
    return measured["recovery"].ratio("mbit", name, PRIORITY, path=path, change=change)


def fills(path: str, change: str) -> float:
    """Return the packets that fill a path without a queue."""
    bottleneck = recovery.simulated(path, change, recovery.RHYTHMS_S[0]).bottleneck
    assert bottleneck is not None
    return 1e3 * bottleneck.rate_mbit * bottleneck.rtt_ms / PACKET_BITS


def duration_cause(measured: Measured) -> str:
    """Return why a copy beside others takes longer than it must, as measured."""
    on_kernel = "; ".join(kernel_words(measured, path) for path in recovery.BUSY)
    simulated = "; ".join(simulator_words(measured, path) for path in recovery.BUSY)
    return (
        f"*Duration* over strict priority's on the kernel, under `netnice run`: {on_kernel}. Alone "
        "the flow fills the path, and no threshold brings it within the bound: others' transfers "
        "halve the window again and again, below two packets it rests, and it grows by a packet "
        "each round trip until the next transfer comes. In the simulator, which is harder on the "
        "flow than the kernel on london, the capacity is left idle between their transfers: "
        f"{simulated}."
    )


def kernel_words(measured: Measured, path: str) -> str:
    """Return durations of settings on a path, over strict priority's."""
    asis, found = recovery.AS_IT_IS, measured["settings"]

    def span(parameter: str) -> str:
        ratios = [
            longer(measured, name, path, asis)
            for name in found.backgrounds(path=path, change=asis) if name.startswith(parameter)
        ]  # fmt: skip
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    ping, vegas = (
        found.values("ping_ms", name, path=path, change=asis)[0]
        for name in (recovery.DEFAULT, recovery.VEGAS)
    )
    return (
        f"{path} {longer(measured, recovery.DEFAULT, path, asis):.2f}, without others "
        f"{longer(measured, recovery.DEFAULT, path, recovery.ALONE):.2f}, with 30 ms "
        f"{longer(measured, recovery.DEFAULT, path, recovery.NEAR):.2f}, with ACKs at once "
        f"{longer(measured, recovery.DEFAULT, path, recovery.PROMPT):.2f}; thresholds of 0.1 to "
        "0.4 "
        f"{span('threshold=')}, together from 0 to 2 {span('together=')}, imtcp_bg "
        f"{longer(measured, recovery.OTHER, path, asis):.2f}; a packet less instead of half the "
        f"window (decrease=1) {longer(measured, recovery.VEGAS, path, asis):.2f}, at a ping of "
        f"{vegas:.0f} instead of {ping:.0f} ms"
    )


def simulator_words(measured: Measured, path: str) -> str:
    """Return what of a path was left idle when, and what gains how much."""
    asis, found = recovery.AS_IT_IS, measured["recovery"]

    def idle(key: str) -> str:
        mean = found.mean(key, recovery.DEFAULT, path=path, change=asis)["mean"]
        return f"{100 * mean:.0f} %"

    def of(name: str, change: str = asis) -> str:
        return f"{share(measured, name, path, change)['mean']:.2f}"

    window = found.mean("window", recovery.DEFAULT, path=path, change=asis)["mean"]
    return (
        f"{path} {idle('idle_others')} idle during them, {idle('idle_asleep')} between them with a "
        f"window below two packets, {idle('idle_awake')} with a larger one; the window is "
        f"{window:.1f} packets then, {fills(path, asis):.0f} fill the path; throughput over strict "
        f"priority's {of(recovery.DEFAULT)}, with ACKs at once "
        f"{of(recovery.DEFAULT, recovery.PROMPT)}, with 30 ms "
        f"{of(recovery.DEFAULT, recovery.NEAR)}, "
        f"never below two packets {of(recovery.AWAKE)}, all three "
        f"{of(recovery.AWAKE, recovery.NEAR_PROMPT)}, with two and four flows {of('2 flows')} and "
        f"{of('4 flows')}, with decrease=1 {of(recovery.VEGAS)}"
    )


def ping_cause(measured: Measured) -> str:
    """Return what a copy must cost the modem's ping."""
    points = on_a_line(measured)
    (idle,) = measured["serialised"].values("ping_ms", IDLE, path="modem")
    ratios = {name: points[name][1] / idle for name in (PRIORITY, REPLICATE)}
    within = "within" if ratios[PRIORITY] <= GENTLE else "not within"
    return (
        f"*Ping* on the modem: a packet takes {1e-3 * PACKET_BITS / capacity('modem'):.0f} ms "
        "there, and a ping that meets one waits for its rest. With one packet after the other "
        f"strict priority has {ratios[PRIORITY]:.2f} times the ping without a copy, {within} the "
        f"bound, and netnice replicate {ratios[REPLICATE]:.2f}, at a duration of "
        f"{points[REPLICATE][0] / points[PRIORITY][0]:.2f} times strict priority's (see R1)."
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
        cells = [name]
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
    """Return what our default has on the paths with something changed."""
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

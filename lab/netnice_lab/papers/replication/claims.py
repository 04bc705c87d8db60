# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What replication in the background must show, judged from what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...claims.claim import Found, Measured, claim, found, times
from . import fleet, recovery, shown
from .copies import (
    CHANGED,
    FAST_MBIT,
    IDLE,
    PATHS,
    PRIORITY,
    REPLICATE,
    SLOW_MBIT,
    USUAL,
    capacity,
    kbit,
)
from .points import (
    FAST,
    GENTLE,
    OURS,
    Point,
    badness,
    every_rate,
    excess,
    fills,
    longer,
    on_a_line,
    packet_bits,
    point,
    share,
    throttles,
    words,
    worst,
    worst_throttled,
)

FOLLOWED = 0.5
"""Share of the capacity that follows it, before and after a change."""
APART_MS = 30.0
"""Between the two packets of a small window (core/alg/nice.h, NN_NICE_APART_US)."""
UNNOTICED = 1.1
"""Users' mean completion time over that without replication."""


def dominating(others: Mapping[str, Point], ours: Mapping[str, Point]) -> list[str]:
    """Return in words which of the others are both faster and gentler than which of ours."""
    said = []
    for name, (seconds, ping) in ours.items():
        better = [f"{o} ({words(p)})" for o, p in others.items() if p[0] < seconds and p[1] < ping]
        if better:
            said.append(f"{' and '.join(better)} than {name} ({words((seconds, ping))})")
    return said


def idle_ping(measured: Measured, experiment: str, path: str = "modem") -> float:
    """Return the mean ping without a copy, in ms."""
    (ping,) = measured[experiment].values("ping_ms", IDLE, path=path)
    return ping


@claim(
    "R1",
    needs=("copies", "ours", "ideal", "serialised", "line"),
    text="On every path no throttle of Reno is both faster and gentler (completion time, mean "
    "ping) than Nice, the report's or ours in `netnice replicate` (figure 10)",
    paper="none is; no numbers",
    ours="`netnice replicate`: {each}",
    cause="Both faster and gentler: {better}. A rate below that of an idle line makes hardly a "
    "queue, if one knows the rate and knows that nobody else is there. The lab makes it look "
    "better than it is: its token bucket lets a packet leave at once where a modem would take "
    "{packet_ms:.0f} ms for it. With one packet after the other (second table) {throttle} adds "
    "{line_adds[throttle]:.0f} ms to the ping instead of {bucket_adds:.0f}, strict priority "
    "{line_adds[priority]:.0f}, netnice replicate {line_adds[ours]:.0f}. There, too, both "
    "faster and gentler: {still}. Two packets of ours leave at most {apart_ms:.0f} ms apart, "
    "since receivers delay an ACK by 40. On a line below {queued_mbit:.1f} Mbit/s the second "
    "one then waits for the first, and the flow yields to that queue. In the simulator (third "
    "table) our nice carries {slow[default]} of such a line's rate, without yielding "
    "(decrease=1) {slow[vegas]}; of a faster line's rate {fast}.",
    drawings=(shown.FIGURE_10,),
    tables=(shown.COPIES, shown.LINE, shown.RATES),
)
def no_throttle_is_better(measured: Measured) -> Found:
    """No throttle is both faster and gentler than Nice."""
    better = []
    for path in PATHS:
        others, ours = (
            {name: point(measured, path, name) for name in names}
            for names in (throttles(path), OURS)
        )
        better += [f"on {path} {said}" for said in dominating(others, ours)]
    on_line, throttle = on_a_line(measured), kbit(USUAL * capacity("modem"))
    slower = {o: p for o, p in on_line.items() if o not in (REPLICATE, PRIORITY)}
    names = {"throttle": throttle, "priority": PRIORITY, "ours": REPLICATE}
    line = measured["line"]
    queued_mbit = 1e-3 * packet_bits("modem") / APART_MS
    slow, fast = (
        [rate for rate in line.places("mbit") if (rate < queued_mbit) == is_slow]
        for is_slow in (True, False)
    )

    def carried(name: str, of: list[float]) -> str:
        shares = [100 * line.mean("mbit", name, mbit=rate)["mean"] / rate for rate in of]
        ends = (f"{end(shares):.0f}" for end in (min, max))
        return f"{' to '.join(dict.fromkeys(ends))} %"

    return found(
        not better,
        each="; ".join(f"{path} {words(point(measured, path, REPLICATE))}" for path in PATHS),
        better="; ".join(better),
        packet_ms=1e-3 * packet_bits("modem") / capacity("modem"),
        throttle=throttle,
        line_adds={
            key: on_line[name][1] - idle_ping(measured, "serialised")
            for key, name in names.items()
        },
        bucket_adds=point(measured, "modem", throttle)[1] - idle_ping(measured, "copies"),
        still="; ".join(dominating(slower, {REPLICATE: on_line[REPLICATE]})) or "none",
        apart_ms=APART_MS,
        queued_mbit=queued_mbit,
        slow={
            "default": carried(recovery.DEFAULT, slow), "vegas": carried(recovery.VEGAS, slow),
        },
        fast=carried(recovery.DEFAULT, fast),
    )  # fmt: skip


@claim(
    "R2",
    needs=("copies", "ours", "ideal", "serialised", "settings", "recovery"),
    text=f"Each path's good throttle ({USUAL:g} of its capacity) is bad on another path, Nice on "
    "none: duration over strict priority's and mean ping over that without a copy, each the worst "
    f"of four paths, at most {FAST:g} and {GENTLE:g}",
    paper="no throttle fits; Nice does",
    ours="{nice}; {by_owner}",
    cause="Throttles within both bounds everywhere: {fits}. The least bad of all {rates} rates, "
    "{least}, exceeds a bound {least_excess:.1f} times; {our_excess}. By path, {by_path}. "
    "*Duration* over strict priority's on the kernel, of our nice: {on_kernel}. Alone "
    "the flow fills the path. No threshold brings it within the bound: others' transfers halve "
    "the window again and again, below two packets it rests, and it grows by a packet each "
    "round trip until the next transfer comes. The simulator is harder on the flow than the "
    "kernel on london. There the capacity is left idle between the others' transfers: "
    "{simulated}. *Ping* on the modem: a packet takes {packet_ms:.0f} ms there, and a ping that "
    "meets one waits for its rest. With one packet after the other strict priority has "
    "{ideal_ping:.2f} times the ping without a copy, {within} the bound, and netnice replicate "
    "{our_ping:.2f}, at a duration of {our_duration:.2f} times strict priority's (see R1).",
    tables=(shown.WORST, shown.SETTINGS, shown.CHANGES),
)
def one_throttle_does_not_fit_all(measured: Measured) -> Found:
    """One throttle does not fit all paths; Nice does."""
    by_owner = {
        owner: worst_throttled(measured, USUAL * capacity(owner)) for owner in PATHS
    }  # fmt: skip
    throttled = {kbit(rate): worst_throttled(measured, rate) for rate in every_rate()}
    fits = [name for name, ratios in throttled.items() if excess(ratios) <= 1]
    ours = {name: worst(measured, name) for name in OURS}
    least = min(throttled, key=lambda name: excess(throttled[name]))
    on_line, idle = on_a_line(measured), idle_ping(measured, "serialised")
    ideal_ping = on_line[PRIORITY][1] / idle
    return found(
        not fits and all(excess(ratios) <= 1 for ratios in ours.values()),
        nice="; ".join(f"{name} {slow:.2f} and {ping:.2f}" for name, (slow, ping) in ours.items()),
        by_owner="; ".join(
            f"{kbit(USUAL * capacity(owner))} (for {owner}) {slow:.1f} and {ping:.2f}"
            for owner, (slow, ping) in by_owner.items()
        ),
        fits=", ".join(fits) or "none",
        rates=len(throttled),
        least=least,
        least_excess=excess(throttled[least]),
        our_excess=", ".join(f"{name} {excess(v):.1f} times" for name, v in ours.items()),
        by_path="; ".join(
            f"{name}: "
            + ", ".join(
                "{} {:.2f} and {:.2f}".format(p, *badness(measured, p, name)) for p in PATHS
            )
            for name in OURS
        ),
        on_kernel="; ".join(kernel_words(measured, path) for path in recovery.BUSY),
        simulated="; ".join(simulator_words(measured, path) for path in recovery.BUSY),
        packet_ms=1e-3 * packet_bits("modem") / capacity("modem"),
        ideal_ping=ideal_ping,
        within="within" if ideal_ping <= GENTLE else "not within",
        our_ping=on_line[REPLICATE][1] / idle,
        our_duration=on_line[REPLICATE][0] / on_line[PRIORITY][0],
    )


ON_KERNEL = (
    "{path} {default:.2f}, without others {alone:.2f}, with 30 ms {near:.2f}, with ACKs at once "
    "{prompt:.2f}; thresholds of 0.1 to 0.4 {thresholds}, together from 0 to 2 {together}, "
    "imtcp_bg {other:.2f}; a packet less instead of half the window (decrease=1) {vegas:.2f}, at a "
    "ping of {vegas_ping:.0f} instead of {ping:.0f} ms"
)


def kernel_words(measured: Measured, path: str) -> str:
    """Return durations of settings on a path, over strict priority's."""
    settings, asis = measured["settings"], {"path": path, "change": recovery.AS_IT_IS}

    def span(parameter: str) -> str:
        names = [n for n in settings.backgrounds(**asis) if n.startswith(parameter)]
        ratios = [longer(measured, name, **asis) for name in names]
        return f"{min(ratios):.2f} to {max(ratios):.2f}"

    def changed(change: str) -> float:
        return longer(measured, recovery.DEFAULT, path, change)

    return ON_KERNEL.format(
        path=path,
        default=changed(recovery.AS_IT_IS),
        alone=changed(recovery.ALONE),
        near=changed(recovery.NEAR),
        prompt=changed(recovery.PROMPT),
        thresholds=span("threshold="),
        together=span("together="),
        other=longer(measured, recovery.OTHER, **asis),
        vegas=longer(measured, recovery.VEGAS, **asis),
        vegas_ping=settings.values("ping_ms", recovery.VEGAS, **asis)[0],
        ping=settings.values("ping_ms", recovery.DEFAULT, **asis)[0],
    )


IN_SIMULATOR = (
    "{path} {idle[others]} idle during them, {idle[asleep]} between them with a window below two "
    "packets, {idle[awake]} with a larger one; the window is {window:.1f} packets then, "
    "{fills:.0f} fill the path; throughput over strict priority's {default}, with ACKs at once "
    "{prompt}, with 30 ms {near}, never below two packets {awake}, all three {all_three}, with two "
    "and four flows {two} and {four}, with decrease=1 {vegas}"
)


def simulator_words(measured: Measured, path: str) -> str:
    """Return what of a path was left idle when, and what gains how much."""
    asis: dict[str, Any] = {"path": path, "change": recovery.AS_IT_IS}

    def mean(key: str) -> float:
        value: float = measured["recovery"].mean(key, recovery.DEFAULT, **asis)["mean"]
        return value

    def of(name: str, change: str = recovery.AS_IT_IS) -> str:
        return f"{share(measured, name, path, change)['mean']:.2f}"

    return IN_SIMULATOR.format(
        path=path,
        idle={k: f"{100 * mean(f'idle_{k}'):.0f} %" for k in ("others", "asleep", "awake")},
        window=mean("window"),
        fills=fills(**asis),
        default=of(recovery.DEFAULT),
        prompt=of(recovery.DEFAULT, recovery.PROMPT),
        near=of(recovery.DEFAULT, recovery.NEAR),
        awake=of(recovery.AWAKE),
        all_three=of(recovery.AWAKE, recovery.NEAR_PROMPT),
        two=of("2 flows"),
        four=of("4 flows"),
        vegas=of(recovery.VEGAS),
    )


@claim(
    "R3",
    needs=("copies", "ours"),
    text="A path whose capacity falls to a twentieth during the copy and comes back after a minute "
    f"is followed both ways: at least {100 * FOLLOWED:.0f} % of it is used in each phase",
    paper="bandwidths change drastically; no numbers",
    ours="{each}",
    cause=f"Less than {100 * FOLLOWED:.0f} % in the phase " + "{lost}.",
    tables=(shown.CHANGING,),
)
def a_changing_capacity_is_followed(measured: Measured) -> Found:
    """Judge whether a capacity that changes twentyfold is followed both ways."""
    each, lost = [], []
    for phase, rate in {"before": FAST_MBIT, "slow": SLOW_MBIT, "after": FAST_MBIT}.items():
        mbit, ping = (
            measured["ours"].values(key, REPLICATE, path=CHANGED)[0]
            for key in (f"mbit_{phase}", f"ping_{phase}_ms")
        )
        each.append(f"{phase} {mbit:.2f} of {rate:g} Mbit/s, ping {ping:.0f} ms")
        lost += [phase] if mbit / rate < FOLLOWED else []
    return found(not lost, each="; ".join(each), lost=", ".join(lost))


@claim(
    "R4",
    needs=("fleet",),
    text=f"{fleet.DESTINATIONS} destinations on mixed paths from a server that also serves web "
    f"users: their mean completion time is at most {UNNOTICED:g} times that of no replication",
    paper="no numbers",
    ours="{each} for the last destination",
    cause="{harm} times.",
    tables=(shown.FLEET,),
)
def users_hardly_notice(measured: Measured) -> Found:
    """Users of a server that replicates to many hardly notice."""
    runs = measured["fleet"]
    harm = {name: runs.mean("fct", name) for name in runs.backgrounds()}
    seconds = {name: runs.mean("seconds", name)["mean"] for name in harm}
    ours = harm[fleet.OURS]
    return found(
        ours["mean"] <= UNNOTICED, ours, harm=ours,
        each="; ".join(f"{n} {times(v)} times, {seconds[n]:.0f} s" for n, v in harm.items()),
    )  # fmt: skip

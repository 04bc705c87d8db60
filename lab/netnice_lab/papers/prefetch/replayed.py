# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims P1 to P3 on prefetching: clients that replay a web log, on a cable and on a modem."""

from __future__ import annotations

from typing import Any

from ...claims.claim import Found, Json, Measured, claim, found, percent, times
from ...claims.results import Results
from ...scenario import NONE
from . import shown
from .replays import (
    AGGRESSIVE,
    BOTH,
    CABLE,
    CONSERVATIVE,
    LOADS,
    MODEM,
    NICE,
    PERFECT,
    RENO,
    THRESHOLDS,
    TRADE_OFF,
    named,
)

SLOWER = 2.0
"""Mean response time over that without prefetching, from which Reno counts as several times."""
NO_SLOWER = 1.0
"""The same, up to which Nice costs nobody anything."""

OURS, BY_RENO, FORESEEN = named(AGGRESSIVE, NICE), named(AGGRESSIVE, RENO), named(PERFECT, NICE)

CAUSE = (
    "With Nice the aggressive predictor takes {over_reno} times as long as with Reno. Even a "
    "predictor that knows the rest of the client's view and its next ten gets, with Nice, "
    "{foreseen} times the time without prefetching. The cache answers {hit[none]:%} of the "
    "requests without prefetching, {hit[ours]:%} with the aggressive predictor and Nice, "
    "{hit[reno]:%} with Reno, {hit[foreseen]:%} with the perfect one. Demand is {demand:%} of the "
    "capacity; the aggressive predictor fetches {ahead[reno]:.1f} times its bytes ahead with Reno "
    "and {ahead[ours]:.1f} times with Nice, where {room:.1f} times would fill the link. What it "
    "takes is a link with less to spare: as demand grows on the cable ({growing} of the link), the "
    "aggressive predictor takes {by_load}."
)


def over_none(trials: Results, name: str) -> Json:
    """Return the mean response time over that without prefetching, with its interval."""
    return trials.harm(name, "mean_s")


def told(trials: Results, *names: str) -> str:
    """Return trials' ratios as in ``aggressive, Reno 1.20 [1.10, 1.30]``."""
    return "; ".join(f"{name} {times(over_none(trials, name))}" for name in names)


def cause(trials: Results, loads: Results) -> dict[str, Any]:
    """Return what limits gain and harm: hits, bytes, a perfect predictor; and growing demand."""
    names = {"none": NONE, "ours": OURS, "reno": BY_RENO, "foreseen": FORESEEN}
    demand_mb = trials.mean("demand_mb", NONE)["mean"]
    by_load = []
    for by in BOTH:
        name = named(AGGRESSIVE, by)
        ratios = ", ".join(times(loads.harm(name, "mean_s", **s.at)) for s in LOADS)
        mb = ", ".join(f"{loads.mean('prefetched_mb', name, **s.at)['mean']:.1f}" for s in LOADS)
        by_load.append(f"with {by} {ratios} times as long as none, and fetches {mb} MB ahead")
    return {
        "over_reno": trials.ratio("mean_s", OURS, BY_RENO),
        "foreseen": over_none(trials, FORESEEN),
        "hit": {key: trials.mean("hit", name) for key, name in names.items()},
        "demand": trials.mean("load", NONE),
        "ahead": {
            key: trials.mean("prefetched_mb", names[key])["mean"] / demand_mb
            for key in ("ours", "reno")
        },
        "room": 1 / trials.mean("load", NONE)["mean"] - 1,
        "growing": ", ".join(percent(loads.mean("load", NONE, **s.at)) for s in LOADS),
        "by_load": "; ".join(by_load),
    }


@claim(
    "P1",
    needs=(CABLE.name, LOADS[0].name),
    text="Cable: aggressive prefetching is the fastest of all with Nice, and with Reno at least "
    f"{SLOWER:g} times as slow as none (mean response time; figure 8)",
    paper="3 times faster; 6 times slower",
    ours="over none: {told}",
    cause=CAUSE,
    drawings=(shown.FIGURE_8, shown.GROWING),
    tables=(shown.trials(CABLE.name), shown.LOADS_TABLE),
)
def fastest_with_nice_on_a_cable(measured: Measured) -> Found:
    """On a cable the aggressive strategy is the best with Nice, and harmful with Reno."""
    cable = measured[CABLE.name]
    others = [named(CONSERVATIVE, by) for by in BOTH]
    ratio = {n: over_none(cable, n)["mean"] for n in (NONE, OURS, BY_RENO, *others)}
    return found(
        min(v for n, v in ratio.items() if n != OURS) >= ratio[OURS] and ratio[BY_RENO] >= SLOWER,
        over_none(cable, OURS),
        told=told(cable, OURS, BY_RENO, *others),
        **cause(cable, measured[LOADS[0].name]),
    )


@claim(
    "P2",
    needs=(MODEM.name, LOADS[0].name),
    text=f"Modem: aggressive prefetching is at least {SLOWER:g} times as slow as none with Reno, "
    "and no slower than none with Nice (figure 9)",
    paper="about 3 times slower; no slower",
    ours="over none: {told}",
    cause=CAUSE,
    drawings=(shown.FIGURE_9,),
    tables=(shown.trials(MODEM.name),),
)
def no_harm_with_nice_on_a_modem(measured: Measured) -> Found:
    """On a modem aggressive prefetching harms with Reno, and does not with Nice."""
    modem = measured[MODEM.name]
    ours = over_none(modem, OURS)
    return found(
        ours["mean"] <= NO_SLOWER and over_none(modem, BY_RENO)["mean"] >= SLOWER,
        ours,
        told=told(modem, OURS, BY_RENO),
        **cause(modem, measured[LOADS[0].name]),
    )


@claim(
    "P3",
    needs=(TRADE_OFF.name,),
    text="Cable: prefetching with Nice is no slower than none at any threshold, and with Reno it "
    "gets slower than none as the threshold falls",
    paper="Nice has no cliff",
    ours="the slowest, over none: Nice {worst[Nice]}, Reno {worst[Reno]}",
    cause="By threshold: {by_threshold}.",
    drawings=(shown.TRADE_OFF_FIGURE,),
    tables=(shown.trials(TRADE_OFF.name),),
)
def no_cliff_with_nice(measured: Measured) -> Found:
    """However low the threshold, Nice costs nothing, where Reno begins to cost."""
    trials = measured[TRADE_OFF.name]
    ratios = {by: {t: over_none(trials, named(t, by)) for t in THRESHOLDS} for by in BOTH}
    worst = {by: max(of.values(), key=lambda r: float(r["mean"])) for by, of in ratios.items()}
    lowest = ratios[RENO][THRESHOLDS[0]]["lo"]
    return found(
        worst[NICE]["mean"] <= NO_SLOWER and lowest is not None and lowest > NO_SLOWER,
        worst[NICE],
        worst=worst,
        by_threshold="; ".join(
            f"{by} " + ", ".join(f"{t:g}: {times(r)}" for t, r in of.items())
            for by, of in ratios.items()
        ),
    )

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims on groups whose windows are those of CUBIC and TFRC (section 3.3.4)."""

from __future__ import annotations

from ... import stats
from ...claims.claim import Found, Json, Measured, claim, found, times
from ...claims.results import Results
from ...scenario import NONE
from .experiments import (
    ALONE,
    AS_IS,
    BOTH,
    FREE,
    GROUP,
    MPAT,
    NO_FAST,
    NO_HYSTART,
    ONE,
    PACED,
    TCP,
    split,
)
from .ratios import CLOSE, near, over, parts, variation, worst

WAYS = (BOTH, ONE)


def _as_alone(windows: Results, control: str, way: str) -> Json:
    """Return the total of a group over that of as many flows alone."""
    return windows.ratio("mbit", GROUP, ALONE, windows=control, traffic=way)


def _part(windows: Results, control: str) -> Json:
    """Return the part of a group's flow that is farthest off."""
    shares = split("1 to N", 5)
    return worst(
        [worst(parts(windows, GROUP, shares, windows=control, traffic=w)) for w in WAYS]
    )  # fmt: skip


def _paced(paced: Results, control: str, beside: str, way: str) -> list[float]:
    """Return what five flows had together that were on their own, but paced as members are."""
    at = {"windows": control, "beside": beside, "traffic": way, "kind": ALONE}
    flows = [paced.values(f"{ALONE} {i} mbit", NONE, **at) for i in range(1, 6)]
    return [sum(seed) for seed in zip(*flows, strict=True)]


@claim(
    "cubic",
    needs=("windows", "paced"),
    text="Five flows at 1:2:3:4:5 with windows of CUBIC have as much as five flows of CUBIC beside "
    "five of CUBIC (5 %), and each gets its part (5 %)",
    paper="not in the paper",
    ours="{totals}; at worst {part:3} of a flow's part",
    cause="ACKs that wait behind packets and come bunched: where they have a queue of their own "
    "the total is {free}. Why a group gets more out of bunched ACKs than flows do was not "
    "found. With windows of Reno it has {reno} there. HyStart is not the cause ({no_hystart} "
    "without it), nor is fast convergence ({no_fast} without it). Pace hardly is: over flows of "
    "CUBIC that are paced as members of a group are, the total is {beside[both ways]}, one way "
    "{beside[one way]}; where all traffic is paced, {every[both ways]}, one way {every[one "
    "way]}.{sure}",
)
def cubic(measured: Measured) -> Found:
    """Windows of CUBIC."""
    windows, paced = measured["windows"], measured["paced"]
    totals, part = {w: _as_alone(windows, "cubic", w) for w in WAYS}, _part(windows, "cubic")
    both, uncertain = totals[BOTH], ""
    if both["lo"] is not None and both["lo"] <= 1 + CLOSE <= both["hi"]:
        uncertain = f" That it is more than {1 + CLOSE} is not certain: the interval has it."

    def where_all_is(way: str) -> Json:
        at = {"windows": "cubic", "beside": PACED, "traffic": way, "kind": GROUP}
        return over(paced.values("mbit", GROUP, **at), _paced(paced, "cubic", PACED, way))

    return found(
        all(near(v) for v in (*totals.values(), part)),
        both,
        totals=", ".join(f"{way} {times(v)}" for way, v in totals.items()),
        part=part,
        free=_as_alone(windows, "cubic", FREE),
        reno=_as_alone(windows, "reno", BOTH),
        no_hystart=_as_alone(windows, NO_HYSTART, BOTH),
        no_fast=_as_alone(windows, NO_FAST, BOTH),
        beside={
            w: over(
                windows.values("mbit", GROUP, windows="cubic", traffic=w),
                _paced(paced, "cubic", AS_IS, w),
            )
            for w in WAYS
        },
        every={w: where_all_is(w) for w in WAYS},
        sure=uncertain,
    )


@claim(
    "tfrc",
    needs=("windows", "smooth", "paced"),
    text="A group with loops of TFRC (3.3.4) is as five flows of TFRC: it has their total (5 %), "
    "each gets its part (5 %), and it varies less than a group with windows of Reno; a flow of "
    "TFRC varies less than one of Reno, and gets from half to twice as much (RFC 5348, 1)",
    paper="in words",
    ours="{totals} of five flows of TFRC, {of_tcp[0]} and {of_tcp[1]} of five of TCP; at worst "
    "{part:3} of a flow's part; flows of TFRC {fair[0]} and {fair[1]} of as many of TCP; standard "
    "deviation over half seconds, over the mean: a flow of TFRC {one[alone]}, of TCP {one[tcp]}; "
    "the group {five[group]}, with windows of Reno {five[mpat]}, five flows of TFRC "
    "{five[alone]}, of TCP {five[tcp]}",
    cause="Most of it is pace. Members of a group are paced. Flows on their own send as ACKs "
    "come, to a queue from which a packet has just left. One way, flows of TFRC that are paced "
    "as members are have {of_alone} of what unpaced ones have, and {of_reno} times as much as "
    "TCP. The group has {group} of what these paced flows have. The cause of the rest was not "
    "found.",
)
def tfrc(measured: Measured) -> Found:
    """Section 3.3.4."""
    windows, smooth = measured["windows"], measured["smooth"]
    totals, part = {w: _as_alone(windows, "tfrc", w) for w in WAYS}, _part(windows, "tfrc")
    fair, of_tcp = (
        [windows.ratio("mbit", b, TCP, windows="tfrc", traffic=w) for w in WAYS]
        for b in (ALONE, GROUP)
    )
    one = {b: stats.interval(variation(smooth, b, "flow 3")) for b in (ALONE, TCP)}
    five = {b: stats.interval(variation(smooth, b)) for b in (GROUP, MPAT, ALONE, TCP)}
    paced = _paced(measured["paced"], "tfrc", AS_IS, ONE)
    group, alone, tcp = (
        windows.values("mbit", b, windows="tfrc", traffic=ONE) for b in (GROUP, ALONE, TCP)
    )
    return found(
        all(near(v) for v in (*totals.values(), part))
        and five[GROUP]["mean"] < five[MPAT]["mean"]
        and one[ALONE]["mean"] < one[TCP]["mean"]
        and all(0.5 <= v["mean"] <= 2 for v in fair),
        totals[BOTH],
        totals=", ".join(f"{way} {times(v)}" for way, v in totals.items()),
        of_tcp=of_tcp,
        part=part,
        fair=fair,
        one=one,
        five=five,
        of_alone=over(paced, alone),
        of_reno=over(paced, tcp),
        group=over(group, paced),
    )

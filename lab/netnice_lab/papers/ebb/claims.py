# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims E1 to E6: what holding a background in its host promises."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import stats
from ...claims.claim import Found, Measured, claim, found, percent, times
from ...claims.results import Results
from ...limit import study
from ...scenario import IDEAL
from . import on_kernel
from .experiments import CUBIC, DRAWN, FLOWS, IDLE, MANY, OF_A_PATH, QUEUES, STEPS, drawn, named

Json = dict[str, Any]

OF_LIMIT = 0.7
"""Of the share of an oracle that knows everything a round trip late, with as much harm."""


def over_priority(results: Results, key: str, of: int, **at: float | str) -> Json:
    """Return completion times beside `of` connections over those under strict priority."""
    return results.ratio(key, named(of), IDEAL, **at)


def by_flows(values: dict[int, Json]) -> str:
    """Return numbers with their intervals, as in ``1.02 [1.01, 1.03] (1 flow)``."""
    return ", ".join(f"{times(v)} ({n} flow{'s' * (n > 1)})" for n, v in values.items())


def shares(values: dict[int, Json]) -> str:
    """Return shares in the same way."""
    return ", ".join(f"{percent(v)} ({n})" for n, v in values.items())


def least(values: Sequence[Json]) -> Json:
    """Return the value with the smallest mean."""
    return min(values, key=lambda v: float(v["mean"]))


def most(values: Sequence[Json]) -> Json:
    """Return the value with the greatest mean."""
    return max(values, key=lambda v: float(v["mean"]))


@claim(
    "E1",
    needs=("k1",),
    text="K1, foreground of the same host, 1 to 100 flows: fetches take at most as long as under "
    "strict priority and 1 % of no background, and the share is at least 96 %; the 99th percentile "
    "is at most 10 % above strict priority's",
    paper="+ .01, 96 %, 1.10",
    ours="harm {harms}; strict priority {priority}; shares {shares}; the 99th percentile "
    "{p99} times strict priority's at most",
    cause="Not known. docs/design/ebb.md has what is.",
)
def the_same_host(measured: Measured) -> Found:
    """All of K1's numbers of connections, and the tail."""
    k1 = measured["k1"]
    harm = {n: k1.harm(named(n), "fct_s", flows=n) for n in MANY}
    priority = most([k1.harm(IDEAL, "fct_s", flows=n) for n in MANY])
    share = {n: k1.share(named(n), flows=n) for n in MANY}
    tails = most([over_priority(k1, "fct_p99_s", n, flows=n) for n in MANY])
    return found(
        most([*harm.values()])["mean"] <= priority["mean"] + 0.01
        and least([*share.values()])["mean"] >= 0.96
        and tails["mean"] <= 1.1,
        harm[1], harms=by_flows(harm), priority=priority, shares=shares(share), p99=tails,
    )  # fmt: skip


@claim(
    "E2",
    needs=(on_kernel.NAME,),
    text="The same on Linux, 1, 16 and 64 flows: + 2 %, 95 %",
    paper="+ .02, 95 %",
    ours="harm {harms}; strict priority {priority}; shares {shares}",
    cause="Not known. docs/design/ebb.md has what is.",
)
def on_linux(measured: Measured) -> Found:
    """As `data/ebb/kernel` has them."""
    kernel = measured[on_kernel.NAME]
    harm = {n: kernel.harm(named(n), "fct_s") for n in on_kernel.FLOWS}
    share = {n: kernel.share(named(n)) for n in on_kernel.FLOWS}
    priority = kernel.harm(IDEAL, "fct_s")
    return found(
        most([*harm.values()])["mean"] <= priority["mean"] + 0.02
        and least([*share.values()])["mean"] >= 0.95,
        harm[1], harms=by_flows(harm), priority=priority, shares=shares(share),
    )  # fmt: skip


@claim(
    "E3",
    needs=("paths",),
    text=f"{DRAWN} paths drawn at random (2 to 200 Mbit/s, 5 to 200 ms, half to five BDP of "
    "drop-tail, or fq_codel), 1 and 16 flows: at most 1 % above strict priority, at least 96 %, on "
    "average over the paths",
    paper="+ .01, 96 %",
    ours="{harm} times strict priority's, {share:%}; drop-tail {kinds[drop-tail][0]} and "
    "{kinds[drop-tail][1]:%}, fq_codel {kinds[fq_codel][0]} and {kinds[fq_codel][1]:%}; {good} of "
    "{all} meet both by themselves; most harm: {worst}; least share: {poorest}",
    cause="Where a queue is ten packets or little more, fetches that are dropped stay in the "
    "virtual queue until it has drained. In a fair queue a train beside a fetch shows half the "
    "rate, which probes raise slowly. The rest is not found. Strict priority has one queue of 1000 "
    "packets where ebb has fq_codel, and fetches wait for each other in it.",
)
def random_paths(measured: Measured) -> Found:
    """Means over the paths, and the two that are worst."""
    results, paths = measured["paths"], list(drawn())
    each = [(i, n) for i in range(DRAWN) for n in OF_A_PATH]
    harm = {(i, n): over_priority(results, "fct_s", n, path=i)["mean"] for i, n in each}
    share = {(i, n): results.share(named(n), path=i)["mean"] for i, n in each}

    def told(of: tuple[int, int]) -> str:
        path, flows = paths[of[0]], of[1]
        return (
            f"{harm[of]:.2f} and {100 * share[of]:.0f} % with {flows} "
            f"flow{'s' * (flows > 1)} at {path['rate_mbit']:g} Mbit/s, {path['rtt_ms']} ms, "
            f"{path['limit_packets']} packets of {path['queue']}"
        )

    harms, its = stats.interval([*harm.values()]), stats.interval([*share.values()])
    return found(
        harms["mean"] <= 1.01 and its["mean"] >= 0.96,
        harms, harm=harms, share=its, all=len(each),
        kinds={
            kind: [
                stats.interval([values[of] for of in each if paths[of[0]]["queue"] == kind])
                for values in (harm, share)
            ]
            for kind in QUEUES
        },
        good=sum(harm[of] <= 1.01 and share[of] >= 0.96 for of in each),
        worst=told(max(harm, key=lambda of: harm[of])),
        poorest=told(min(share, key=lambda of: share[of])),
    )  # fmt: skip


@claim(
    "E4",
    needs=("others",),
    text="K1, foreground of another host, 1 to 64 flows: fetches take at most 5 % longer, at no "
    "less than 70 % of what an oracle gets with that harm that knows everything a round trip late",
    paper="1.05, 70 %",
    ours="harm {harms}; shares {shares}; the oracle's {limits}",
    cause="The background learns of others by the queue that they make, and leaves them room for "
    "all its connections at once: it gains nothing from having many. The oracle sees each of their "
    "packets, and leaves room for those that will come ([the limit](../evaluation.md#the-limit)).",
)
def another_host(measured: Measured) -> Found:
    """Of the oracle's curve in docs/data/limit, where its harm is 1.05."""
    others, oracle = measured["others"], study.load("k1")
    harm = {n: others.harm(named(n), "fct_s", flows=n) for n in FLOWS}
    share = {n: others.share(named(n), flows=n) for n in FLOWS}
    limits = {n: study.limit(oracle, place="other hosts", flows=n) for n in FLOWS}
    return found(
        most([*harm.values()])["mean"] <= study.BOUND
        and all(share[n]["mean"] >= OF_LIMIT * limits[n] for n in FLOWS),
        harm[1], harms=by_flows(harm), shares=shares(share),
        limits=", ".join(f"{100 * best:.0f} % ({n})" for n, best in limits.items()),
    )  # fmt: skip


@claim(
    "E5",
    needs=("idle",),
    text="An idle link, from 2 s after the start: at least 98 % of what CUBIC gets, 1 to 64 flows; "
    "90 % with 10 ms of jitter, after a rise of the RTT, and with losses of 1 %",
    paper="98 %, 90 %",
    ours="{told}",
    cause="A queue that is no longer than the jitter is not seen. So probes raise the rate by 3 to "
    "7 % too much, until the queue looks like others' and the background leaves them room. By "
    "chance jitter is learned as half of what it is, and room is left for up to 10 s "
    "(core/host/path_delay.h): that is what many flows have.",
)
def idle_links(measured: Measured) -> Found:
    """Over CUBIC with as many flows, from 2 s on."""
    idle = measured["idle"]
    got = {
        link: {n: idle.ratio("mbit", named(n), CUBIC, link=link, flows=n) for n in FLOWS}
        for link in IDLE
    }
    told = "; ".join(f"{link} {shares(values)}" for link, values in got.items())
    floors = {link: 0.98 if not change else 0.9 for link, change in IDLE.items()}
    return found(
        all(least([*got[link].values()])["mean"] >= floor for link, floor in floors.items()),
        got["K1"][1], told=told,
    )  # fmt: skip


@claim(
    "E6",
    needs=("steps",),
    text="In the 4 s after the rate of K1 halves or doubles, 1 and 16 flows: fetches take at most "
    "10 % longer than without background",
    paper="1.10",
    ours="{told}; strict priority {priority} at most",
    cause="Not known. docs/design/ebb.md has what is.",
)
def rate_steps(measured: Measured) -> Found:
    """Four seconds from the step on."""
    steps = measured["steps"]
    harm = {to: {n: steps.harm(named(n), "fct_s", to=to) for n in OF_A_PATH} for to in STEPS}
    told = "; ".join(f"{to} {by_flows(values)}" for to, values in harm.items())
    priority = most([steps.harm(IDEAL, "fct_s", to=to) for to in STEPS])
    return found(
        all(v["mean"] <= 1.1 for values in harm.values() for v in values.values()),
        harm["half"][1], told=told, priority=priority,
    )  # fmt: skip

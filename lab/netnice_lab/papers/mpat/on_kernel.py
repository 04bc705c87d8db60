# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims M1, M3 and M4 on the Linux kernel in virtual time, with iperf3 under `netnice run`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from ... import stats, tools
from ...claims.claim import Found, Measured, claim, found, times
from ...claims.results import Results
from ...engines.kernel import timeout_s
from ...experiment import Context, Point, Procedure, Simulated, as_points, running
from ...scenario import Scenario, read
from .experiments import MPAT, TCP, group, keep, split
from .ratios import over, parts, worst

Json = dict[str, Any]

NAME, WIDE, SIMULATED = "kernel", "kernel-wide", "like-kernel"
SCENARIO = Path("mpat/kernel")

BESIDE = 5
SHARES = split("1 to N", 5)
RATIOS = (95.0, 300.0)
RATIO_S = 150.0
WIDE_MBIT, WIDE_PACKETS = 33.5, 194
"""The paper's fair share, of 400 kB/s, and a queue in proportion."""
RED_PACKETS = 250
"""Of RED, whose queue is then about as long as drop-tail's: it drops between a sixth and half."""
TURNS = ([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
CHANGES, CHANGE_S = 4, 8.0
"""Changes from one division to the other in a run, and seconds between them."""
TRIP_S = 0.105
"""A round trip with half of the queue."""
TRIPS = (1, 3, 8, 20, 60)
"""Round trips after a change; what is told is between one and the next."""

OFF = 0.1
"""How far off a ratio or a total may be (issue of the kernel engine)."""


def divisions(scenario: Scenario) -> list[Json]:
    """Return what is run with every seed: its point, its background, the steps of `guest`."""
    rest = {"wait_s": scenario.warmup_s}
    long = [rest, {"wait_s": scenario.measure_s}]
    turning: list[Json] = [rest]
    for index in range(CHANGES):
        turning.append({"wait_s": CHANGE_S, "shares": TURNS[(index + 1) % 2]})
        turning += [{"wait_s": (b - a) * TRIP_S} for a, b in pairwise((0, *TRIPS))]
    return [
        {"at": {"kind": "shares"}, "background": TCP, "shares": None, "flows": 5, "steps": long},
        {"at": {"kind": "shares"}, "background": MPAT, "shares": SHARES, "steps": long},
        *(
            {
                "at": {"kind": "ratio", "ratio": ratio}, "background": MPAT,
                "shares": [ratio, 1.0, 1.0], "steps": [rest, {"wait_s": RATIO_S}],
            }
            for ratio in RATIOS
        ),
        {"at": {"kind": "change"}, "background": MPAT, "shares": TURNS[0], "steps": turning},
    ]  # fmt: skip


def wide(base: Scenario) -> Scenario:
    """Return the scenario with the paper's rate."""
    found = base.bottleneck.but(rate_mbit=WIDE_MBIT, limit_packets=WIDE_PACKETS)
    return base.but(bottleneck=found)


def planned(name: str) -> tuple[Scenario, list[Json]]:
    """Return the scenario of an experiment, and what is run in it."""
    base = read(SCENARIO)
    if name == NAME:
        return base, divisions(base)
    return wide(base), [d for d in divisions(base) if d["at"].get("ratio") == RATIOS[0]]


def rates(before: Json, after: Json) -> list[float]:
    """Return the goodput of each transfer between two samples, in Mbit/s."""
    seconds = after["at_s"] - before["at_s"]
    return [
        (b - a) * 8e-6 / seconds for a, b in zip(before["acked"], after["acked"], strict=True)
    ]  # fmt: skip


def digest(division: Json, samples: Sequence[Json]) -> list[tuple[Json, Json]]:
    """Return the points of one run, and what is kept at each."""
    flows = len(division["shares"] or []) or division["flows"]

    def told(found: Sequence[float]) -> Json:
        return {
            "background": division["background"],
            "mbit": sum(found[:flows]),
            **{f"flow {i}": rate for i, rate in enumerate(found[:flows], 1)},
            "tcp mbit": sum(found[flows:]),
        }

    if division["at"]["kind"] != "change":
        return [(division["at"], told(rates(samples[0], samples[1])))]
    points = []
    for index, trips in enumerate(TRIPS[:-1]):
        mean = [0.0] * (flows + BESIDE)
        for change in range(CHANGES):
            at = 1 + change * (1 + len(TRIPS)) + 1 + index
            found = rates(samples[at], samples[at + 1])
            if change % 2:  # back to the first division: the flows trade places
                found[:flows] = reversed(found[:flows])
            mean = [m + f / CHANGES for m, f in zip(mean, found, strict=True)]
        points.append(({"kind": "change", "after": trips}, told(mean)))
    return points


def measure(name: str, context: Context) -> list[Json]:
    """Run an experiment in virtual machines; return its points."""
    scenario, divided = planned(name)
    plan: list[Json] = []
    for seed in context.numbers:
        for division in divided:
            flows = len(division["shares"] or []) or division["flows"]
            starts = random.Random(seed)  # who is there first is the only chance here
            plan.append(
                {
                    "seed": seed, "queue": scenario.bottleneck.queue,
                    "background": {"control": "nn_mpat"},
                    "division": {
                        **division, "beside": BESIDE,
                        "starts_s": [starts.uniform(0, 2) for _ in range(flows + BESIDE)],
                    },
                }
            )  # fmt: skip
    outcomes = context.on_kernel(
        scenario, plan, timeout_s=timeout_s(scenario, 3 * len(plan)),
        programs=[tools.tool("iperf3"), tools.tool("ss")],
    )  # fmt: skip
    return as_points(
        entry
        for run, outcome in zip(plan, outcomes, strict=True)
        for entry in digest(run["division"], outcome["samples"])
    )


EXPERIMENTS = [
    Procedure(name, partial(measure, name), kernel=True, depends=running("mpat/group"))
    for name in (NAME, WIDE)
]


def simulated() -> Simulated:
    """Return the same in the simulator, but for the changes."""
    base = read(SCENARIO)
    three = {
        ratio: base.but(measure_s=RATIO_S, background=[group(base, MPAT, [ratio, 1.0, 1.0])])
        for ratio in RATIOS
    }
    ratios = [Point({"kind": "ratio", "ratio": r}, s) for r, s in three.items()]
    red = base.bottleneck.but(queue="red", limit_packets=RED_PACKETS)
    random = [
        Point({"kind": "ratio", "ratio": r, "queue": "red"}, s.but(bottleneck=red))
        for r, s in three.items()
    ]
    paper = Point({"kind": "ratio", "ratio": RATIOS[0], "rate": "wide"}, wide(three[RATIOS[0]]))
    points = [Point({"kind": "shares"}, base), *ratios, paper, *random]
    return Simulated(SIMULATED, points, keep, seeds=10)


def _near(value: Json) -> bool:
    return bool(abs(value["mean"] - 1) <= OFF)


def _ratio(results: Results, ratio: float, **at: str) -> Json:
    """Return the first flow's goodput over the mean of the other two."""
    where: Json = {"kind": "ratio", "ratio": ratio} | at
    columns = [results.values(f"flow {i}", MPAT, **where) for i in (1, 2, 3)]
    return stats.interval(
        [
            2 * first / (second + third) if second + third else 0.0
            for first, second, third in zip(*columns, strict=True)
        ]
    )


@claim(
    "M1K",
    needs=(NAME, SIMULATED),
    text="On the Linux kernel five iperf3 at 1:2:3:4:5 beside five of plain TCP, one way, 16 "
    "Mbit/s: each gets its part within 10 %, all together within 10 % of five plain ones",
    paper="135, 265, 395, 530, 640 kB/s beside 400 for a flow of TCP",
    ours="{all} of five plain ones ({beside} of those beside them); at worst {part:3} of a flow's "
    "part; {rates} kB/s; in the simulator {simulated} and {simulated_part:3}",
)
def five_flows(measured: Measured) -> Found:
    """Figure 1."""
    at = {"kind": "shares"}
    kernel, simulated = measured[NAME], measured[SIMULATED]
    all_, part = kernel.ratio("mbit", MPAT, TCP, **at), worst(parts(kernel, MPAT, SHARES, **at))
    rates = [kernel.mean(f"flow {i}", MPAT, **at)["mean"] for i in range(1, 6)]
    return found(
        _near(all_) and _near(part),
        all_,
        all=all_,
        beside=over(*(kernel.values(key, MPAT, **at) for key in ("mbit", "tcp mbit"))),
        part=part,
        rates=", ".join(f"{r * 125:.0f}" for r in rates),
        simulated=simulated.ratio("mbit", MPAT, TCP, **at),
        simulated_part=worst(parts(simulated, MPAT, SHARES, **at)),
    )


@claim(
    "M3K",
    needs=(WIDE, SIMULATED),
    text="On the Linux kernel one of three iperf3 gets 95 times what each other gets, where a fair "
    "share is the paper's 400 kB/s (within 10 %)",
    paper="95",
    ours="{got:1}, in the simulator {simulated:1}",
    cause="As for M3KH.",
)
def one_flow_has_much_more(measured: Measured) -> Found:
    """Sections 4.2 and 4.5, at the paper's rate."""
    got = _ratio(measured[WIDE], RATIOS[0])
    simulated = _ratio(measured[SIMULATED], RATIOS[0], rate="wide")
    return found(abs(got["mean"] / RATIOS[0] - 1) <= OFF, got, got=got, simulated=simulated)


@claim(
    "M3KH",
    needs=(NAME, SIMULATED),
    text="The same at 200 kB/s, and 300 times, where the small ones have less than a packet each "
    "round trip (within 10 %)",
    paper="not in the paper",
    ours="{each}",
    cause="Whom drop-tail drops, on both engines: in the simulator, with RED of "
    f"{RED_PACKETS} packets in its place, "
    "{red}. Why it meets the small ones more often is not found.",
)
def one_flow_has_much_more_of_half(measured: Measured) -> Found:
    """Sections 4.2 and 4.5, at half of that rate: the small flows have less than a packet."""
    simulated = measured[SIMULATED]
    got = {r: _ratio(measured[NAME], r) for r in RATIOS}
    return found(
        all(abs(v["mean"] / r - 1) <= OFF for r, v in got.items()),
        got[RATIOS[0]],
        each="; ".join(
            f"{r:.0f}: {times(v, 1)}, in the simulator {times(_ratio(simulated, r), 1)}"
            for r, v in got.items()
        ),
        red="; ".join(f"{r:.0f}: {times(_ratio(simulated, r, queue='red'), 1)}" for r in RATIOS),
    )


@claim(
    "M4K",
    needs=(NAME,),
    text="On the Linux kernel shares that `netnice share` changes (1:2:3 to 3:2:1 and back) are "
    "met within 3 round trips (10 %)",
    paper="2 to 3",
    ours=f"at worst of a flow's part, over {CHANGES} changes of each run, by round trips: {{each}}",
)
def changed_shares_are_met(measured: Measured) -> Found:
    """Section 4.5."""
    off = {
        n: worst(parts(measured[NAME], MPAT, TURNS[1], kind="change", after=n)) for n in TRIPS[:-1]
    }
    return found(
        all(_near(off[n]) for n in TRIPS[1:-1]), off[TRIPS[0]],
        each="; ".join(f"{a} to {b}: {times(off[a])}" for a, b in pairwise(TRIPS)),
    )  # fmt: skip

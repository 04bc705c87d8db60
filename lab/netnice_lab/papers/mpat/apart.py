# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Groups in the background whose members meet different bottlenecks: not in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ... import stats
from ...claims.claim import Found, Measured, Table, claim, found, times
from ...claims.results import Results
from ...experiment import Point, Simulated
from ...scenario import NONE, Scenario, Section, read

Json = dict[str, Any]

NAME = "apart"
PATHS = ("modem", "cable", "london", "delaware")
"""Scenarios of TCP Nice's section 5; each member's path has the rate, delay and queue of one."""
SHARED = "shared"
"""A bottleneck that all members cross, as K1's, before paths that are no longer slow."""
CONTROL, MORE = "nice", 4.0
FAVOURED = ("modem", "cable", "delaware")
"""Paths of the member that has `MORE` parts, where the others have one."""
NOBODY, ALONE = "none", "own"
SLOWED = 1.05

CAPTION = (
    "Users' mean completion times over none, by what they share with members; Mbit/s of members "
    "alone on a link of their own, and of all four behind a bottleneck that they share with the "
    f"users. In groups one member has {MORE:g} parts"
)
COLUMNS = ("", "on their own", *(f"in a group, {p} has {MORE:g}" for p in FAVOURED))


def members(by: str) -> list[Section]:
    """Return a flow without end to each path: nobody's, on its own, or in one group."""
    if by == NOBODY:
        return []
    flows = [
        Section(name=path, kind="tcp", control=CONTROL, from_="a", to=path, stagger_s=0.1)
        for path in PATHS
    ]
    if by == ALONE:
        return flows
    return [f.but(group=NAME, shares=[MORE if f.name == by else 1.0]) for f in flows]


def scenario(users: str, by: str) -> Scenario:
    """Return the scenario in which users fetch over one path, or over the shared bottleneck."""
    links = []
    for path in PATHS:
        found = read(Path("nice") / path).bottleneck
        links.append(
            Section(
                name=path, from_="a", to=path, duplex=True, rate_mbit=found.rate_mbit,
                delay_ms=found.rtt_ms / 2, limit_packets=found.limit_packets,
            )
        )  # fmt: skip
    if users == SHARED:
        k1 = read(Path("k1")).bottleneck
        links = [
            Section(
                name="up", from_="a", to="b", duplex=True, rate_mbit=k1.rate_mbit,
                limit_packets=k1.limit_packets,
            ),
            Section(name=SHARED, from_="b", to=SHARED, duplex=True, delay_ms=k1.rtt_ms / 2),
            *(
                link.but(from_="b", rate_mbit=None, limit_packets=None) for link in links
            ),
        ]  # fmt: skip
    return Scenario(
        name=NAME, warmup_s=20.0, measure_s=200.0, drain_s=60.0, link=links,
        foreground=Section(sizes="pareto", from_="a", to=users), cross=members(by),
    )  # fmt: skip


def keep(run: Json, _measure_s: float) -> Json:
    """Return the users' mean completion time, and the goodput of each member."""
    return {
        "fct_s": run["foreground"]["fct_mean_s"],
        **{c["name"] + " mbit": c["goodput_mbit"] for c in run["cross"]},
    }


def simulated() -> Simulated:
    """Return users on each path beside members of each kind."""
    points = [
        Point({"users": users, "members": by}, scenario(users, by))
        for users in (*PATHS, SHARED)
        for by in (NOBODY, ALONE, *FAVOURED)
    ]
    return Simulated(NAME, points, keep, seeds=30)


def slowed(found: Results, users: str, by: str, over: str = NOBODY) -> Json:
    """Return the users' completion time beside members over that beside others."""
    values = [found.values("fct_s", NONE, users=users, members=m) for m in (by, over)]
    return stats.interval([a / b for a, b in zip(*values, strict=True)])


def idle(found: Results, path: str, by: str) -> Json:
    """Return the Mbit/s of the member of a path where it is alone."""
    elsewhere = next(p for p in PATHS if p != path)
    return found.mean(f"{path} mbit", NONE, users=elsewhere, members=by)


def together(found: Results, by: str) -> Json:
    """Return the Mbit/s of all members behind the bottleneck that they share with the users."""
    at = {"users": SHARED, "members": by}
    rates = [found.values(f"{path} mbit", NONE, **at) for path in PATHS]
    return stats.interval([sum(each) for each in zip(*rates, strict=True)])


def _rows(measured: Measured) -> Sequence[Sequence[str]]:
    results, kinds = measured[NAME], (ALONE, *FAVOURED)
    return [
        *([f"users of {u}", *(times(slowed(results, u, by)) for by in kinds)]
          for u in (*PATHS, SHARED)),
        *([f"{path} idle, Mbit/s", *(times(idle(results, path, by), 3) for by in kinds)]
          for path in PATHS),
        [f"all, {SHARED}, Mbit/s", *(times(together(results, by)) for by in kinds)],
    ]  # fmt: skip


TABLE = Table(CAPTION, COLUMNS, _rows)


@claim(
    NAME,
    needs=(NAME,),
    text="Four flows of Nice in a group, each behind a link of its own or all behind one, slow "
    f"users down as four on their own do (mean completion time, {100 * (SLOWED - 1):.0f} %)",
    paper="not in the paper",
    ours="at worst {each}",
    cause="A window of the group hears of all members' packets, and what a member may have in "
    "flight is bounded by what the algorithm allows on its own path (core/aggregate/any.h).",
    tables=(TABLE,),
)
def nobody_pays_for_a_group(measured: Measured) -> Found:
    """Nobody pays for a group whose paths are apart."""
    worst = {
        users: max(
            (slowed(measured[NAME], users, by, ALONE) for by in FAVOURED),
            key=lambda v: float(v["mean"]),
        )
        for users in (*PATHS, SHARED)
    }
    return found(
        all(v["mean"] <= SLOWED for v in worst.values()),
        max(worst.values(), key=lambda v: float(v["mean"])),
        each=", ".join(f"{users} {times(v)}" for users, v in worst.items()),
    )

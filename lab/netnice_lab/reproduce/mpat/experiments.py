# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is simulated of the paper on MPAT: section 4."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...scenario import Background, Scenario, ShareChange, read
from ..measure import Experiment, Point

Json = dict[str, Any]

SHARES = Path("mpat/shares")

TCP, MPAT, MULTCP, CM = "tcp", "mpat", "multcp", "cm"
RULES = ("same", "other", "any")
"""The rules of 3.3.3, in the paper's order."""
EACH = "each ACK"
"""Runs of no length: each ACK is charged to a window drawn anew."""

SIZES = (2, 5, 10, 25, 50, 100)
SPLITS = ("even", "1 to N", "one half")
RATIOS = (2, 10, 95, 300, 1000)
CHANGE_S, ROUND_TRIP_MS = 40.0, 70
AFTER = (-1, 1, 2, 3, 5, 8)
"""Round trips after a change of shares."""
BEFORE_TO, AFTER_TO = [1.0, 2.0, 3.0], [3.0, 2.0, 1.0]
GROUPS = (2, 4, 6, 8, 10)


def keep(run: Json, _measure_s: float) -> Json:
    """Return the goodput of the background, of each of its flows, and of other traffic."""
    return {
        "mbit": run["background_goodput_mbit"],
        "retransmits": run["background_retransmits"],
        **{f"flow {i}": rate for i, rate in enumerate(run["background_flow_mbit"], 1)},
        **{c["name"] + " mbit": c["goodput_mbit"] for c in run["cross"]},
        **{
            c["name"] + " lost": c["lost"] / c["packets"] if c["packets"] else None
            for c in run["cross"]
        },
    }


def one_way(base: Scenario) -> Scenario:
    """Return the scenario without traffic the other way."""
    return replace(base, cross=[c for c in base.cross if c.from_ != "b"])


def group(base: Scenario, name: str, shares: Sequence[float]) -> Background:
    """Return a background of the scenario as a group with these shares."""
    found = next(b for b in base.background if b.name == name)
    grouped = list(shares) if found.group else None
    return replace(found, flows=len(shares), shares=grouped)


def split(name: str, flows: int) -> list[float]:
    """Return the shares of so many flows, by the name of their division."""
    if name == "even":
        return [1.0] * flows
    if name == "1 to N":
        return [float(i) for i in range(1, flows + 1)]
    return [float(flows - 1)] + [1.0] * (flows - 1)


def rules(base: Scenario) -> Scenario:
    """Return the scenario with all ways to map packets to windows, beside plain TCP."""
    mpat = next(b for b in base.background if b.name == MPAT)
    tcp = next(b for b in base.background if b.name == TCP)
    others = [replace(mpat, name=rule, set={"mapping": rule}) for rule in RULES]
    return replace(
        base, background=[tcp, mpat, replace(mpat, name=EACH, set={"run": 0.0}), *others]
    )


def scaled(base: Scenario, flows: int, name: str) -> Scenario:
    """Return the scenario with groups of so many flows on a link that keeps the fair share."""
    link = base.link[0]
    assert link.rate_mbit is not None and link.limit_packets is not None
    wide = (flows + 5) / 10
    return replace(
        base,
        measure_s=60.0,
        link=[
            replace(
                link,
                rate_mbit=link.rate_mbit * wide,
                limit_packets=round(link.limit_packets * wide),
            )
        ],
        background=[group(base, b, split(name, flows)) for b in (TCP, MPAT, MULTCP, CM)],
    )


def ratio(base: Scenario, ratio: float) -> Scenario:
    """Return the scenario with three flows, the first of which has so many times a share."""
    return replace(base, background=[group(base, MPAT, [ratio, 1.0, 1.0])])


def changed(base: Scenario, after: int) -> Scenario:
    """Return the scenario measured for one round trip, so many after a change of shares."""
    round_trip_s = ROUND_TRIP_MS / 1e3 * 1.5  # with half of the queue
    mpat = replace(
        group(base, MPAT, BEFORE_TO), change=[ShareChange(at_s=CHANGE_S, shares=AFTER_TO)]
    )
    return replace(
        base,
        warmup_s=CHANGE_S + (after - 1) * round_trip_s,
        measure_s=round_trip_s,
        background=[mpat],
    )


def competing(base: Scenario) -> Scenario:
    """Return the scenario with five groups at once, and with as many flows of plain TCP."""
    link = base.link[0]
    assert link.rate_mbit is not None and link.limit_packets is not None
    wide = (sum(GROUPS) + 5) / 10
    return replace(
        base,
        measure_s=120.0,
        link=[
            replace(
                link,
                rate_mbit=link.rate_mbit * wide,
                limit_packets=round(link.limit_packets * wide),
            )
        ],
        cross=[
            *base.cross,
            *(
                replace(
                    base.cross[0],
                    name=f"group {n}",
                    control="mpat",
                    flows=n,
                    group=f"{n}",
                    shares=split("1 to N", n),
                )
                for n in GROUPS
            ),
        ],
        background=[],
    )


def plain(base: Scenario) -> Scenario:
    """Return the scenario with every group of other traffic as flows of plain TCP."""
    return replace(
        base,
        cross=[
            replace(c, control="reno", group=None, shares=None) if c.group else c
            for c in base.cross
        ],
    )


def experiments() -> list[Experiment]:
    """Return everything that is simulated."""
    base = read(SHARES)
    ways = {"both ways": base, "one way": one_way(base)}
    return [
        Experiment("shares", [Point({"traffic": w}, s) for w, s in ways.items()], keep),
        Experiment("rules", [Point({"traffic": w}, rules(s)) for w, s in ways.items()], keep),
        Experiment(
            "scale",
            [
                Point({"flows": n, "split": s}, scaled(one_way(base), n, s))
                for n in SIZES
                for s in SPLITS
            ],
            keep,
        ),
        Experiment("ratio", [Point({"ratio": r}, ratio(base, r)) for r in RATIOS], keep),
        Experiment("change", [Point({"after": n}, changed(base, n)) for n in AFTER], keep),
        Experiment(
            "groups",
            [
                Point({"kind": "groups"}, competing(one_way(base))),
                Point({"kind": "tcp"}, plain(competing(one_way(base)))),
            ],
            keep,
        ),
    ]

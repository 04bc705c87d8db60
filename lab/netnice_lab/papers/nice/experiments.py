# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is simulated: sections 4 and 10 of the report, and what explains the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...experiment import Point, Simulated
from ...scenario import Scenario, read
from . import path_changes

WEB, UDP = Path("nice/web"), Path("nice/udp")

PAPER, OURS = "nice", "netnice"
"""The paper's literal Nice, and this project's default."""
BOTH = (PAPER, OURS)
WINDOWS = ("window 1", "window 2", "window 4", "window 16")
RIVALS = ("reno", "vegas", "vegas(0,0)")
ABLATIONS = ("detection", "decrease", "windows below one")
WITHOUT = {(name, part): f"{name} without {part}" for name in BOTH for part in ABLATIONS}
FLOOR = WITHOUT[PAPER, "windows below one"]

SPARE = (0.1, 0.2, 0.4, 0.7, 1.0, 2.0, 4.0)
FLOWS = (1, 2, 4, 8, 10, 16, 32, 64, 100)
THRESHOLDS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FRACTIONS = (0.1, 0.3, 0.4, 0.5, 0.7, 0.9)
FRACTION_FLOWS = (2, 16)


def linked(base: Scenario, spare: float) -> Scenario:
    """Return the scenario on a link of (1 + spare) times its demand, which stays."""
    if base.foreground is None:
        demand = sum(c.flows * (c.rate_mbit or 0) / 2 for c in base.cross)  # half of the time on
        rate = demand * (1 + spare)
        return base.but(bottleneck=base.bottleneck.but(rate_mbit=rate))
    rate = base.bottleneck.rate_mbit * base.foreground.load * (1 + spare)
    return base.but(
        bottleneck=base.bottleneck.but(rate_mbit=rate),
        foreground=base.foreground.but(load=1 / (1 + spare)),
    )


def beside(base: Scenario, names: Sequence[str], flows: int) -> Scenario:
    """Return the scenario with these backgrounds alone, of so many flows each."""
    chosen = [b.but(flows=flows) for b in base.background if b.name in names]
    assert len(chosen) == len(names), names
    return base.but(background=chosen, ideal=base.ideal.but(flows=flows))


def with_rule(base: Scenario, settings: Mapping[str, float]) -> Scenario:
    """Return the scenario with some parameters of all its backgrounds set anew."""
    changed = [b.but(set={**b.set, **settings}) for b in base.background]
    return base.but(background=changed)


SETTINGS: dict[str, list[str]] = {
    "as above": [],
    "a quarter of the rate": ["bottleneck.rate_mbit=0.711"],
    "four times the rate": ["bottleneck.rate_mbit=11.376"],
    "round trip of 50 ms": ["bottleneck.rtt_ms=50"],
    "round trip of 200 ms": ["bottleneck.rtt_ms=200"],
    "queue of 25 packets": ["bottleneck.limit_packets=25"],
    "queue of 100 packets": ["bottleneck.limit_packets=100"],
    "Poisson arrivals, bounded Pareto sizes": [
        "foreground.arrivals=poisson", "foreground.sizes=pareto", "foreground.mean_bytes=20000",
    ],
    "one size at constant gaps": ["foreground.arrivals=periodic", "foreground.mean_bytes=24565"],
    "requests up to 10 MB": ["foreground.max_bytes=10000000"],
    "requests up to 10 MB, a quarter of the rate": [
        "foreground.max_bytes=10000000", "bottleneck.rate_mbit=0.711",
    ],
    "receivers with 2 packets": ["foreground.window_packets=2"],
    "receivers with 8 packets, a quarter of the rate": [
        "foreground.window_packets=8", "bottleneck.rate_mbit=0.711",
    ],
    "receivers without limit": ["foreground.window_packets=1000000"],
    "TCP of today's Linux": ["profile=linux", "mss_bytes=1024", "header_bytes=40"],
}  # fmt: skip
"""What differs from web.toml, by the name that tables have for it."""
COMPARED = {1: (*BOTH, "window 1"), 16: (*BOTH, "reno", "vegas"), 64: (*BOTH, "window 1", FLOOR)}
"""What is compared in every setting, by the number of flows."""

RULES: dict[str, Mapping[str, float]] = {
    "the paper's": {},
    "threshold 0.05": {"threshold": 0.05},
    "threshold 0.02": {"threshold": 0.02},
    "as soon as enough packets were delayed": {"early": 1},
    "growth after quiet rounds only": {"quiet": 0.05},
    "harder decrease below two packets": {"shrink": 0.05},
    "the last three": {"early": 1, "quiet": 0.05, "shrink": 0.05},
    "packets one by one besides": {"early": 1, "quiet": 0.05, "shrink": 0.05, "spread": 0.8},
}
"""Changes to the paper's rules, one at a time and together."""
RULED = (16, 100)
"""Flows that they are tried with."""


def simulated() -> list[Simulated]:
    """Return everything that is simulated of scenarios."""
    web, udp = read(WEB), read(UDP)
    few = (*BOTH, *RIVALS, *WINDOWS)
    many = (*few, "window 8", *WITHOUT.values())
    return [
        Simulated(
            "spare",
            [Point({"spare": s}, beside(linked(web, s), few, 8)) for s in SPARE],
        ),
        Simulated("flows", [Point({"flows": n}, beside(web, many, n)) for n in FLOWS]),
        Simulated(
            "threshold",
            [
                Point({"threshold": t}, with_rule(beside(web, BOTH, 16), {"threshold": t}))
                for t in THRESHOLDS
            ],
        ),
        Simulated(
            "fraction",
            [
                Point({"fraction": f, "flows": n}, with_rule(beside(web, BOTH, n), {"fraction": f}))
                for f in FRACTIONS
                for n in FRACTION_FLOWS
            ],
        ),
        Simulated(
            "udp-spare",
            [
                Point({"spare": s}, beside(linked(udp, s), (*BOTH, "reno", "vegas"), 8))
                for s in SPARE
            ],
        ),
        Simulated(
            "udp-flows",
            [Point({"flows": n}, beside(udp, (*BOTH, "reno", "vegas"), n)) for n in FLOWS],
        ),
        Simulated(
            "settings",
            [
                Point(
                    {"setting": name, "flows": n},
                    beside(read(WEB, overrides), names, n),
                )
                for name, overrides in SETTINGS.items()
                for n, names in COMPARED.items()
            ],
        ),
        Simulated(
            "rules",
            [
                Point({"rule": name, "flows": n}, with_rule(beside(web, (PAPER,), n), rule))
                for name, rule in RULES.items()
                for n in RULED
            ],
        ),
        path_changes.simulated(),
    ]

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What is simulated of FAIRBAT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...experiment import Point, Simulated
from ...fairness import Rule
from ...scenario import Scenario, read

Json = dict[str, Any]

SEEDS = 10

SINGLE, TWO_LINKS = Path("fairbat/single"), Path("fairbat/two-links")

SPARE_MBIT = 10.0
"""C (1 - rho) of the single link, payload."""
LOAD = 4 / 14
"""rho of the single link."""
PER_S = 1 / 6
"""Short flows that arrive there in a second."""
MEAN_MBIT = 24.0
"""Mean size of a short flow."""

ALPHA, TAU = ("FB-I alpha", "FB-II alpha"), ("FB-I tau", "FB-II tau")
FAIR = (*ALPHA, *TAU)
REFERENCE = "TCP"
RULES: Mapping[str, Rule] = {"FB-I": "fairbat1", "FB-II": "fairbat2"}

TCP = (3, 10)
"""k on the single link; the paper does not give its own."""
FLOWS = (1, 10, 30)
"""l there."""
GAMMAS = (0.5, 1.5, 2.5)
"""Figure 5."""
GAMMA_FLOWS = 10
"""k = l there."""
SIZES: Mapping[int, float] = {3: 8000.0, 12: 16000.0}
"""Mean size of a short flow in MB, and seconds in which their delay is measured (delta = 1/y0)."""
LINK_FLOWS = (10, 20, 30)
"""l on the two links."""
WEIGHTS = (0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Fixed weights of the comparison of delays (theorem 1), beside one TCP flow."""
LONG: Mapping[str, float] = {"d_c": 60.0, "d_r": 40.0}
"""Periods of tau-TCP there: the theorem presumes that short flows settle in a phase."""
STARTS = (0.1, 1.0)
GAINS: Mapping[str, Mapping[str, float | str]] = {
    "default": {},
    "T x 4": {"T": 40.0},
    "g_e / 4, g_w / 4": {"g_e": 0.05, "g_w": 0.025},
    "g_e = g_w = 1": {"g_e": 1.0, "g_w": 1.0},
    "the paper's step": {"step": "paper", "g_w": 0.02},
    "periods / 4": {"d_c": 5.0, "d_r": 5.0},
    "periods x 2": {"d_c": 40.0, "d_r": 40.0},
}
"""Parameters that the paper leaves open, changed: also to the greatest gains, and its own step."""
SILENCES = (10, 20, 30)
"""d_c and d_r of a tau-TCP flow of SILENT, in seconds."""
SILENT = 0.5
LONG_GAMMA = 2.5
"""Where both sides of (6) are the farthest apart, and are measured for LONG_S too."""
LONG_S = 6000.0
OTHER_LINKS = ((20, 200), (50, 200), (100, 50))
"""RTT in ms and packets of drop-tail where waits are tried, beside the 100 and 200 of QUEUES."""
_DROP_TAIL = ("bottleneck.queue=drop-tail", "bottleneck.limit_packets=200")
OVERHEADS_MS = (1, 10, 30)
"""Longest random wait of senders, as ns-2's."""
QUEUES: Mapping[str, Sequence[str]] = {
    "RED": ["bottleneck.queue=red", "bottleneck.limit_packets=400"],
    "drop-tail": _DROP_TAIL,
    **{f"drop-tail, waits to {ms} ms": [*_DROP_TAIL, f"overhead_ms={ms}"] for ms in OVERHEADS_MS},
    "drop-tail, paced": [*_DROP_TAIL, "pacing=true"],
}
"""Where alpha-TCP and tau-TCP of a fixed weight meet as much TCP (figure 2), and how all send."""
WAITS = tuple(name for name in QUEUES if "waits" in name)
PACED = "drop-tail, paced"
PHASE_FLOWS = (1, 3, 10)
"""k = l there."""
PHASE_WEIGHTS = (0.2, 0.5, 0.8)


def rule_of(name: str) -> Rule:
    """Return which algorithm a background runs."""
    return RULES[name.split(maxsplit=1)[0]]


def with_flows(base: Scenario, tcp: int, fair: int) -> Scenario:
    """Return the scenario with `tcp` [k] other TCP flows and `fair` [l] flows of a background."""
    cross = [c.but(flows=tcp) for c in base.cross] if tcp else []
    background = [b.but(flows=fair) for b in base.background]
    return base.but(cross=cross, background=background)


def variants(
    base: Scenario, named: Mapping[str, tuple[str, Mapping[str, float | str]]]
) -> Scenario:
    """Return the scenario with backgrounds made of its own: name, its background, and settings."""
    own = {b.name: b for b in base.background}
    made = [
        own[of].but(name=name, set={**own[of].set, **settings})
        for name, (of, settings) in named.items()
    ]
    return base.but(background=made)


def only(base: Scenario, names: Sequence[str]) -> Scenario:
    """Return the scenario with these backgrounds alone."""
    return base.but(background=[b for b in base.background if b.name in names])


def fixed(mode: str, weight: float) -> str:
    """Return what a background of a fixed weight is called."""
    return f"{mode}-TCP {weight:g}"


def of_weights(
    base: Scenario,
    weights: Sequence[float],
    settings: Mapping[str, float],
    modes: Sequence[str] = ("alpha", "tau"),
) -> Scenario:
    """Return the scenario with alpha-TCP and tau-TCP of fixed weights: their adaptation is off."""
    named = {
        fixed(mode, w): (f"FB-I {mode}", {"g_w": 0.0, "start": w, **settings})
        for mode in modes
        for w in weights
    }
    return variants(base, named)


def stopwatch(base: Scenario, measure_s: float) -> Scenario:
    """Return the scenario without short flows, measured for so long."""
    return base.but(foreground=None, warmup_s=100.0, measure_s=measure_s, drain_s=1.0)


def of_size(mb: int) -> list[str]:
    """Return what makes short flows this long, without a limit that matters."""
    return [f"foreground.mean_bytes={mb}000000", "foreground.max_bytes=1000000000"]


def _waiting(rtt_ms: int, packets: int, ms: int) -> list[str]:
    link = ("queue=drop-tail", f"rtt_ms={rtt_ms}", f"limit_packets={packets}")
    return [*(f"bottleneck.{key}" for key in link), f"overhead_ms={ms}"]


def simulated() -> list[Simulated]:
    """Return everything that is simulated of scenarios."""
    single = read(SINGLE)
    ten = with_flows(single, GAMMA_FLOWS, GAMMA_FLOWS)
    links = read(TWO_LINKS)
    found = [
        Simulated("empty", [Point({}, with_flows(only(single, ()), 0, 1))]),
        Simulated(
            "single",
            [Point({"tcp": k, "fair": n}, with_flows(single, k, n)) for k in TCP for n in FLOWS],
        ),
        Simulated(
            "gamma",
            [
                Point(
                    {"gamma": g},
                    variants(ten, {name: (name, {"gamma": g}) for name in FAIR}),
                )
                for g in GAMMAS
            ],
        ),
        Simulated(
            "sizes",
            [
                Point(
                    {"mb": mb, "tcp": k},
                    with_flows(only(read(SINGLE, of_size(mb)), ()), k, 1).but(
                        measure_s=measure_s,
                        drain_s=600.0,
                    ),
                )
                for mb, measure_s in SIZES.items()
                for k in (0, GAMMA_FLOWS)
            ],
        ),
        Simulated(
            "starts",
            [
                Point({"start": w}, variants(ten, {name: (name, {"start": w}) for name in FAIR}))
                for w in STARTS
            ],
        ),
        Simulated(
            "gains",
            [
                Point(
                    {"gains": changed},
                    variants(ten, {name: (name, settings) for name in (ALPHA[0], TAU[0])}).but(
                        warmup_s=600.0,
                        measure_s=1000.0,
                    ),
                )
                for changed, settings in GAINS.items()
            ],
        ),
        Simulated(
            "weights",
            [Point({}, of_weights(with_flows(single, 1, 10), WEIGHTS, LONG))],
        ),
        Simulated(
            "phase",
            [
                Point(
                    {"queue": name, "flows": n},
                    of_weights(
                        with_flows(stopwatch(read(SINGLE, overrides), 300.0), n, n),
                        PHASE_WEIGHTS,
                        {},
                    ),
                )
                for name, overrides in QUEUES.items()
                for n in PHASE_FLOWS
            ],
        ),
        Simulated(
            "waits",
            [
                Point(
                    {"rtt_ms": rtt_ms, "packets": packets, "ms": ms, "flows": n},
                    of_weights(
                        with_flows(
                            stopwatch(read(SINGLE, _waiting(rtt_ms, packets, ms)), 300.0), n, n
                        ),
                        PHASE_WEIGHTS[:1],
                        {},
                        ["alpha"],
                    ),
                )
                for rtt_ms, packets in OTHER_LINKS
                for ms in OVERHEADS_MS[1:]
                for n in (PHASE_FLOWS[0], PHASE_FLOWS[-1])
            ],
        ),
        Simulated(
            "silences",
            [
                Point(
                    {"period": period},
                    of_weights(
                        stopwatch(ten, 1000.0), [SILENT], {"d_c": period, "d_r": period}, ["tau"]
                    ),
                )
                for period in SILENCES
            ],
        ),
        Simulated(
            "long",
            [
                Point(
                    {"gamma": LONG_GAMMA},
                    variants(ten, {ALPHA[0]: (ALPHA[0], {"gamma": LONG_GAMMA})}).but(
                        measure_s=LONG_S,
                    ),
                )
            ],
        ),
        Simulated(
            "two-links",
            [Point({"fair": n}, with_flows(links, links.cross[0].flows, n)) for n in LINK_FLOWS],
        ),
    ]
    return [replace(e, seeds=SEEDS) for e in found]

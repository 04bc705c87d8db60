# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Theorem 1, its lemmas and the bounds beside it (sections II and III.B, appendix), computed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import fairness
from ...claims.claim import Measured
from ...experiment import Context, Procedure, rounded
from ...fairness import Worst
from .experiments import FLOWS, RULES, SPARE_MBIT, TCP

Json = dict[str, Any]

NAME = "theory"
"""Of the file that is saved."""
TCP_FLOWS = (1, 2, 3, 5, 10, 20)
"""k of the bounds."""
FEW = (1, 2, 5)
"""k of the curves."""
TAU_FLOWS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""l of r_{k,l}."""
LOADS = (0.7, 0.9, 0.99)
"""rho of the chain that comes to heavy traffic."""


def measure(_: Context) -> list[Json]:
    """Compute everything; `part` tells the document's points apart.

    `bound` of Theorem 1 for k TCP flows, and as the paper has it for k = 2 (`misprint`), with the
    worst cases beside the optimum; `curve` over lambda; `finite` for l flows; `chain`, the optimum
    for loads below one; `equilibrium`.
    """
    entries = [_bound(k) for k in TCP_FLOWS]
    for k in FEW:
        actives = [float(x) for x in np.geomspace(0.05, 50, 120)]
        worst = [fairness.decrease(k, x, fairness.f(k, x)) for x in actives]
        entries.append({"part": "curve", "tcp": k, "active": actives, "decrease": worst})
    entries += [
        {"part": "finite", "tcp": k, "fair": n, **_worst(fairness.finite(k, n))}
        for k in FEW
        for n in TAU_FLOWS
    ]
    entries += [_chain(load) for load in LOADS]
    for name, rule in RULES.items():
        for k in TCP:
            for n in FLOWS:
                found = fairness.equilibrium(rule, k, n, 1.0, SPARE_MBIT)
                entries.append({
                    "part": "equilibrium", "rule": name, "tcp": k, "fair": n,
                    "tcp_mbit": found.tcp_mbit, "fair_mbit": found.fair_mbit,
                    "weight": found.weight, "welfare": found.welfare,
                })  # fmt: skip
    return [rounded(entry) for entry in entries]


def _worst(found: Worst) -> Json:
    return {"value": found.value, "at": found.at}


def _bound(tcp: int) -> Json:
    """Return the worst cases beside `tcp` TCP flows."""
    return {
        "part": "bound",
        "tcp": tcp,
        "theorem": _worst(fairness.theorem_1(tcp)),
        "misprint": _worst(fairness.theorem_1(tcp, flows=1)),
        "weighted_over_optimal": _worst(fairness.weighted_over_optimal(tcp)),
        "tau_over_optimal": _worst(fairness.tau_over_optimal(tcp)),
        "tau_over_optimal_at_3": _beside_optimal(tcp, 3.0),
    }


def _beside_optimal(tcp: int, active: float) -> float:
    """Return by which share the optimum's delay is less than that of tau-TCP with lambda active."""
    low, high = 0.0, 200.0
    for _ in range(80):
        middle = (low + high) / 2
        less = 1 - fairness.optimal(tcp, middle)[0] < fairness.f(tcp, active)
        low, high = (middle, high) if less else (low, middle)
    return 1 - fairness.optimal(tcp, high)[1] / (tcp + active + 1)


def _chain(load: float) -> Json:
    """Return the worst cases beside the optimum for k = 1 and a load below one."""
    tau, weighted = [], []
    for least in np.unique(np.round(np.linspace(0, 6 / (1 - load), 60)).astype(int)):
        kept, waiting = fairness.optimal_at(load, 1, int(least))
        active = fairness.active_for(1, 1 - kept)
        tau.append(1 - waiting / fairness.short_flows(1 + active, load))
        weighted.append(1 - waiting / fairness.short_flows(1 / kept, load))
    return {
        "part": "chain",
        "load": load,
        "tau_over_optimal": max(tau),
        "weighted_over_optimal": max(weighted),
    }


def part(measured: Measured, name: str, **wanted: object) -> list[Json]:
    """Return the points of one part that have these values."""
    points: list[Json] = measured[NAME].document["points"]
    return [p for p in points if p["part"] == name and all(p[k] == v for k, v in wanted.items())]


EXPERIMENT = Procedure(NAME, measure, seeds=1, random=False)

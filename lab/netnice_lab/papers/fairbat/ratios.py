# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Weights, delays and both sides of the paper's equations: measured, and in theory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import stats
from ...claims.claim import Measured
from ...claims.results import Results
from ...fairness import equilibrium, short_flows, tau_equilibrium
from ...scenario import NONE
from .experiments import (
    GAMMA_FLOWS,
    GAMMAS,
    LOAD,
    MEAN_MBIT,
    PER_S,
    SPARE_MBIT,
    WEIGHTS,
    fixed,
    rule_of,
)

Json = dict[str, Any]


def weights_of(
    results: Results, name: str, tcp: int, fair: int, /, **at: float | str
) -> list[float]:
    """Return yi/y0 as measured with each seed."""
    pairs = zip(
        results.values("mbit", name, **at), results.values("cross_mbit", name, **at), strict=True
    )
    return [(mbit / fair) / (cross / tcp) for mbit, cross in pairs]


def weight(results: Results, name: str, tcp: int, fair: int, /, **at: float | str) -> Json:
    """Return yi/y0 as measured: throughputs of a FAIRBAT flow and of a TCP flow."""
    return stats.interval(weights_of(results, name, tcp, fair, **at))


def theory(name: str, tcp: int, fair: int, gamma: float = 1.0) -> float:
    """Return the weight at the equilibrium (3) or (4) of the single link."""
    return equilibrium(rule_of(name), tcp, fair, gamma, SPARE_MBIT).weight


def tau_theory(name: str, tcp: int, fair: int) -> float:
    """Return the weight at which tau-TCP settles if all that is active shares equally at once."""
    return tau_equilibrium(rule_of(name), tcp, fair, 1.0, SPARE_MBIT)[1]


def error(value: Json, expected: float) -> float:
    """Return by which share a measured mean differs from what is expected."""
    return float(value["mean"] / expected - 1)


def delay_theory(weights: float) -> float:
    """Return the mean delay of a short flow beside TCP of so much weight, by Little's law."""
    return short_flows(weights, LOAD) / PER_S


def signed(value: float) -> str:
    """Return a relative difference as in ``+12 %``."""
    return f"{100 * value:+.0f} %"


def sides(
    measured: Measured, name: str, gamma: float, of: str = "gamma"
) -> tuple[Json, Json, Json]:
    """Return both sides of (6) or (4) at k = l = 10, and for FB-I gamma/y0^2 too.

    `of` is the experiment.
    """
    results, empty = measured[of], measured["empty"]
    before = empty.mean("fct_s", NONE)["mean"]
    left, right, presumed = [], [], []
    columns = (results.values(key, name, gamma=gamma) for key in ("mbit", "cross_mbit", "fct_s"))
    for mbit, cross, delay in zip(*columns, strict=True):
        fair, tcp = mbit / GAMMA_FLOWS, cross / GAMMA_FLOWS
        if rule_of(name) == "fairbat1":
            left.append(1 / fair - 1 / tcp)
            right.append(gamma * ((delay - before) / MEAN_MBIT) ** 2)
            presumed.append(gamma / tcp**2)
        else:
            left.append(tcp / fair)
            right.append(1 + gamma * tcp)
            presumed.append(1 + gamma * tcp)
    return stats.interval(left), stats.interval(right), stats.interval(presumed)


def gaps(measured: Measured, name: str) -> list[float]:
    """Return by how much the left side is more than the right one, for each gamma."""
    return [
        left["mean"] / right["mean"] - 1
        for left, right, _ in (sides(measured, name, g) for g in GAMMAS)
    ]


def phase_ratio(measured: Measured, queue: str, flows: int, mode: str, weight_: float) -> Json:
    """Return yi/y0 of a fixed weight beside as much TCP, without short flows."""
    return weight(
        measured["phase"], fixed(mode, weight_), flows, flows, queue=queue, flows=flows
    )  # fmt: skip


def shares(measured: Measured, mode: str, weight_: float) -> tuple[Json, Json]:
    """Return which share the flows of a fixed weight get of what is spare, and the delay."""
    results, name = measured["weights"], fixed(mode, weight_)
    pairs = zip(results.values("mbit", name), results.values("cross_mbit", name), strict=True)
    got = stats.interval([mbit / (mbit + cross) for mbit, cross in pairs])
    return got, results.mean("fct_s", name)


def differences(measured: Measured) -> list[tuple[float, Json]]:
    """Return, for each weight of tau-TCP, its share, and by how much alpha-TCP's delay is less.

    alpha-TCP's delay at that share is interpolated between its weights, with the same seeds.
    """
    results = measured["weights"]

    def columns(mode: str, key: str) -> list[list[float]]:
        return [results.values(key, fixed(mode, w)) for w in WEIGHTS]

    found = []
    mbit, cross, delay = (columns("alpha", key) for key in ("mbit", "cross_mbit", "fct_s"))
    none = results.values("fct_s", NONE)
    for w in WEIGHTS:
        name = fixed("tau", w)
        own = [results.values(key, name) for key in ("mbit", "cross_mbit", "fct_s")]
        less, at = [], []
        for seed in range(results.seeds):
            share = own[0][seed] / (own[0][seed] + own[1][seed])
            x = [0.0] + [m[seed] / (m[seed] + c[seed]) for m, c in zip(mbit, cross, strict=True)]
            y = [none[seed]] + [d[seed] for d in delay]
            less.append(1 - float(np.interp(share, x, y)) / own[2][seed])
            at.append(share)
        found.append((float(np.mean(at)), stats.interval(less)))
    return found

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The analysis of FAIRBAT: equilibria, welfare, and the delay that a way of yielding costs.

A link of capacity `C` carries `k` TCP flows, `l` FAIRBAT flows, and short flows that offer the load
`rho`; the long-lived flows share the rest, R = C (1 - rho). Throughputs are in Mbit/s, as in the
paper. On average `n + 1` backlogged TCP flows leave (n + 1) rho/(1 - rho) short flows open, which
[7] shows and `short_flows` computes; everything about delays follows from it.

Three ways to get the share `f` of R, by the mean number of short flows that they leave:

    weighted TCP   weights sum up to W, f = W/(k + W)                        k + W + 1
    tau-TCP        N flows are active at a time, f = E[N/(N + k)]            k + E[N] + 1
    optimal        all of the link, while fewer than some number are open    `optimal`

each times rho/(1 - rho). The last one is the analysis of [7], which the paper uses and does not
show; it is derived at `optimal`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaincc, gammaln, hyp1f1
from scipy.stats import binom

from . import LabError

Rule = Literal["fairbat1", "fairbat2"]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Equilibrium:
    """Where the weights settle; throughputs in Mbit/s."""

    tcp_mbit: float
    """Of each TCP flow [y0]."""
    fair_mbit: float
    """Of each FAIRBAT flow [yi]."""
    welfare: float
    """Utilities less the cost to short flows, the objective (1)."""

    @property
    def weight(self) -> float:
        """Share of a TCP flow's throughput that a FAIRBAT flow gets [w]."""
        return self.fair_mbit / self.tcp_mbit


def equilibrium(rule: Rule, tcp: int, fair: int, gamma: float, spare_mbit: float) -> Equilibrium:
    """Return the equilibrium (3) or (4) of `tcp` + `fair` flows that share `spare_mbit` [R].

    FB-I, y0/yi = 1 + gamma/y0, makes k y0 + l yi = R the equation

        (k + l) y0^2 + (k gamma - R) y0 - gamma R = 0,

    and FB-II, y0/yi = 1 + gamma y0, the equation

        k gamma y0^2 + (k + l - gamma R) y0 - R = 0.

    Either has one positive root. Raises LabError without a flow of each kind: without TCP nothing
    makes y0, and 1/y0 is no delay.
    """
    if tcp < 1 or fair < 1 or gamma < 0 or spare_mbit <= 0:
        raise LabError(
            "An equilibrium has at least one flow of each kind, spare capacity, and gamma >= 0."
        )
    a, b, c = (
        (tcp + fair, tcp * gamma - spare_mbit, -gamma * spare_mbit)
        if rule == "fairbat1"
        else (tcp * gamma, tcp + fair - gamma * spare_mbit, -spare_mbit)
    )
    # The form without cancellation, which holds for a = 0 too.
    root = math.sqrt(b * b - 4 * a * c)
    tcp_mbit = (root - b) / (2 * a) if b < 0 and a > 0 else -2 * c / (b + root)
    fair_mbit = (spare_mbit - tcp * tcp_mbit) / fair
    return Equilibrium(tcp_mbit, fair_mbit, welfare(rule, tcp, fair, gamma, spare_mbit, fair_mbit))


def wanted(rule: Rule, tcp_mbit: float, gamma: float) -> float:
    """Return the weight that (3) or (4) want where TCP gets `tcp_mbit` [y0]."""
    return 1 / (1 + (gamma / tcp_mbit if rule == "fairbat1" else gamma * tcp_mbit))


def tau_equilibrium(
    rule: Rule, tcp: int, fair: int, gamma: float, spare_mbit: float
) -> tuple[float, float]:
    """Return where tau-TCP settles: the share tau of the time, and the weight yi/y0 that it makes.

    Whatever is active shares `spare_mbit` [R] equally at once. An active flow then gets
    R E[1/(k + 1 + N)], N the others active of l - 1; it takes that for y0 and sets tau by it. The
    TCP flows get what is left, which is more: they have the link while others are silent (III.C).
    """
    others = np.arange(fair)

    def active_mbit(tau: float) -> float:
        return spare_mbit * float(np.sum(binom.pmf(others, fair - 1, tau) / (tcp + 1 + others)))

    low, high = 0.0, 1.0
    for _ in range(60):
        tau = (low + high) / 2
        low, high = (tau, high) if wanted(rule, active_mbit(tau), gamma) > tau else (low, tau)
    fair_mbit = low * active_mbit(low)
    return low, fair_mbit * tcp / (spare_mbit - fair * fair_mbit)


def welfare(
    rule: Rule, tcp: int, fair: int, gamma: float, spare_mbit: float, fair_mbit: float
) -> float:
    """Return the objective (1), logarithmic utilities, if each FAIRBAT flow gets `fair_mbit`.

    With delta(z) = 1/y0 = k/(R - z), the cost is for FB-I the integral of gamma delta^2, which is
    gamma k^2 (1/(R - Z) - 1/R) for the total Z = l yi, and gamma Z for FB-II.
    """
    total = fair * fair_mbit
    left = spare_mbit - total
    cost = gamma * (tcp**2 * (1 / left - 1 / spare_mbit) if rule == "fairbat1" else total)
    return tcp * math.log(left / tcp) + fair * math.log(fair_mbit) - cost


def short_flows(weights: float, load: float) -> float:
    """Return the mean number of short flows beside TCP flows whose weights sum up so [rho: load].

    The birth-death chain with rho n/(n + W) has the mean (W + 1) rho/(1 - rho) of a negative
    binomial distribution.
    """
    return (weights + 1) * load / (1 - load)


def f(tcp: int, active: float) -> float:
    """Return f_k(lambda) = E[N/(N + k)] for a Poisson N of mean `active` [lambda], `tcp` = k.

    E[k/(N + k)] is the integral of k t^(k-1) e^(-lambda (1-t)) over (0, 1): Kummer's function.
    """
    return float(1 - hyp1f1(1, tcp + 1, -active))


def f_of(tcp: int, fair: int, tau: float) -> float:
    """Return E[N/(N + k)] for `fair` = l tau-TCP flows, each active with probability `tau`."""
    n = np.arange(fair + 1)
    return float(np.sum(binom.pmf(n, fair, tau) * n / (n + tcp)))


def decrease(tcp: int, active: float, share: float, flows: int | None = None) -> float:
    """Return by which share of tau-TCP's delay weighted TCP's is less, if both get `share` [f].

    `active` is E[N]. The paper prints D_alpha below the fraction of Theorem 1's left-hand side; its
    proof and its numbers are of this one, with D_tau below it. `flows` stands for k there, if it is
    not `tcp`.
    """
    return (active - tcp * share / (1 - share)) / ((flows or tcp) + active + 1)


@dataclass(frozen=True)
class Worst:
    """A supremum, and where it is attained."""

    value: float
    at: float


def theorem_1(tcp: int, flows: int | None = None) -> Worst:
    """Return Theorem 1's bound r_{k, infinity}, and its lambda.

    The paper's 12.2 % for k = 2 is not this, but what comes of `flows` = 1 in the denominator.
    """
    return _supremum(
        lambda active: decrease(tcp, active, f(tcp, active), flows), 1e-3, 200.0 * tcp
    )  # fmt: skip


def finite(tcp: int, fair: int) -> Worst:
    """Return r_{k,l}, the worst case with l tau-TCP flows, and its tau."""
    return _supremum(lambda tau: decrease(tcp, fair * tau, f_of(tcp, fair, tau)), 1e-9, 1.0)


def optimal(tcp: int, least: float) -> tuple[float, float]:
    """Return E[k/x] and E[x] of the optimal control in heavy traffic, x = n (1 - rho).

    As rho -> 1 the number n of short flows beside weights W(n) becomes a diffusion of drift
    -1 + (k + W)/x and variance 2. The TCP flows get E[k/x] of what is spare. The least E[x] for
    given E[k/x] has W = 0 but at `least`, where FAIRBAT takes all that reflects x there: what it
    takes costs the less, the fewer wait. The density is then x^k e^-x beyond `least` = a, with
    upper incomplete gamma functions G

        E[k/x] = k G(k, a)/G(k + 1, a),   E[x] = G(k + 2, a)/G(k + 1, a).
    """
    low, middle, high = (_gamma(order, least) for order in (tcp, tcp + 1, tcp + 2))
    return tcp * low / middle, high / middle


def optimal_at(load: float, tcp: int, least: int) -> tuple[float, float]:
    """Return what `optimal` does for a load [rho] below one: the TCP flows' share, and E[n].

    FAIRBAT takes all of the link while `least` short flows are open, and nothing while more are.
    Fewer there never are, and n has the weights prod rho (m + k)/m over m = `least` + 1 to n.
    """
    n = np.arange(least, least + int((tcp + 40) / (1 - load)))  # beyond it less than e^-40
    steps = np.log(load * (n[1:] + tcp) / n[1:])
    weights = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
    chance: Vector = weights / weights.sum()
    left = float(np.sum(chance[1:] * tcp / (n[1:] + tcp)))
    return left / (1 - load), float(np.sum(chance * n))


def weighted_over_optimal(tcp: int) -> Worst:
    """Return by which share of weighted TCP's delay the optimum's is less at most, and its `least`.

    3 - 2 sqrt 2 for k = 1: with u = a + 1, E[1/x] = 1/u, the optimum has (u^2 + 1)/u, weighted TCP
    u + 1, and 1 - (u^2 + 1)/(u (u + 1)) is greatest at u = 1 + sqrt 2.
    """

    def less(least: float) -> float:
        kept, waiting = optimal(tcp, least)
        return 1 - waiting / (tcp / kept + 1)  # k + W = k/(1 - f)

    return _supremum(less, 1e-6, 50.0)


def tau_over_optimal(tcp: int) -> Worst:
    """Return by which share of tau-TCP's delay the optimum's is less at most, and its `least`.

    Both get the same share: lambda is where 1 - f_k(lambda) = E[k/x].
    """

    def less(least: float) -> float:
        kept, waiting = optimal(tcp, least)
        return 1 - waiting / (tcp + active_for(tcp, 1 - kept) + 1)

    return _supremum(less, 1e-6, 50.0)


def active_for(tcp: int, share: float) -> float:
    """Return the lambda for which f_k(lambda) is `share`."""
    low, high = 0.0, 1.0
    while f(tcp, high) < share:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if f(tcp, middle) < share else (low, middle)
    return high


def _gamma(order: int, least: float) -> float:
    """Return the upper incomplete gamma function."""
    return float(gammaincc(order, least) * math.exp(gammaln(order)))


def _supremum(of: Callable[[float], float], low: float, high: float) -> Worst:
    """Return the maximum of a function over a range that it first rises and then falls in."""
    grid = np.geomspace(low, high, 400)
    best = int(np.argmax([of(float(x)) for x in grid]))
    around = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)]))
    found = minimize_scalar(
        lambda x: -of(x), bounds=around, method="bounded", options={"xatol": 1e-9}
    )  # fmt: skip
    return Worst(-float(found.fun), float(found.x))

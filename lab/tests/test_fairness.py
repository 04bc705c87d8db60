# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""FAIRBAT's analysis against numbers derived by hand, the paper's, and independent computations."""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import poisson

from netnice_lab import LabError, fairness
from netnice_lab.fairness import Rule, equilibrium

RULES: tuple[Rule, Rule] = ("fairbat1", "fairbat2")


def test_the_equilibrium_of_fb_1_is_as_derived_by_hand() -> None:
    # k = l = 3, gamma = 1, R = 10: 6 y0^2 + (3 - 10) y0 - 10 = 0, y0 = (7 + sqrt(49 + 240))/12 = 2;
    # y0/yi = 1 + 1/2, yi = 4/3, and 3 * 2 + 3 * 4/3 = 10. Welfare: 3 log 2 + 3 log 4/3 less
    # 9 (1/6 - 1/10) = 0.6.
    found = equilibrium("fairbat1", 3, 3, 1.0, 10.0)
    assert found.tcp_mbit == pytest.approx(2)
    assert found.fair_mbit == pytest.approx(4 / 3)
    assert found.weight == pytest.approx(2 / 3)
    assert found.welfare == pytest.approx(3 * math.log(2) + 3 * math.log(4 / 3) - 0.6)


def test_the_equilibrium_of_fb_2_is_as_derived_by_hand() -> None:
    # k = 2, l = 6, gamma = 1, R = 6: 2 y0^2 + (8 - 6) y0 - 6 = 0, y0 = (-2 + sqrt(4 + 48))/4
    # = 1.302776; y0/yi = 2.302776, yi = 0.565741, and 2 y0 + 6 yi = 6. The cost is 6 yi.
    found = equilibrium("fairbat2", 2, 6, 1.0, 6.0)
    assert found.tcp_mbit == pytest.approx(1.302776, rel=1e-6)
    assert found.fair_mbit == pytest.approx(0.565741, rel=1e-6)
    utility = 2 * math.log(1.302776) + 6 * math.log(0.565741)
    assert found.welfare == pytest.approx(utility - 6 * 0.565741, rel=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_every_equilibrium_satisfies_its_equations_and_maximises_the_welfare(rule: Rule) -> None:
    for k, n, gamma, spare in itertools.product((1, 4, 30), (1, 7, 100), (0.1, 1, 5), (1.0, 90.0)):
        found = equilibrium(rule, k, n, gamma, spare)
        ratio = 1 + gamma / found.tcp_mbit if rule == "fairbat1" else 1 + gamma * found.tcp_mbit
        assert found.tcp_mbit / found.fair_mbit == pytest.approx(ratio)
        assert k * found.tcp_mbit + n * found.fair_mbit == pytest.approx(spare)
        best = minimize_scalar(
            lambda y: -fairness.welfare(rule, k, n, gamma, spare, y),  # noqa: B023
            bounds=(1e-9, spare / n * (1 - 1e-9)), method="bounded", options={"xatol": 1e-10},
        )  # fmt: skip
        assert found.fair_mbit == pytest.approx(best.x, rel=1e-4)


@pytest.mark.parametrize("rule", RULES)
def test_without_a_cost_all_flows_are_equal(rule: Rule) -> None:
    found = equilibrium(rule, 3, 5, 0.0, 8.0)
    assert (found.tcp_mbit, found.weight) == (pytest.approx(1), pytest.approx(1))


def test_more_flows_lower_the_weight_of_fb_1_and_raise_that_of_fb_2() -> None:
    first, second = (
        [equilibrium(rule, 10, n, 1.0, 10.0).weight for n in (1, 10, 30)] for rule in RULES
    )
    assert first == sorted(first, reverse=True)
    assert second == sorted(second)


def test_tau_tcp_settles_below_the_equilibrium_and_nearer_to_it_with_more_flows() -> None:
    # k = l = 1, gamma = 1, R = 2: an active flow gets 1, so that FB-II is active for half of the
    # time; it has 1/2, and TCP the other 3/2.
    assert fairness.tau_equilibrium("fairbat2", 1, 1, 1.0, 2.0) == pytest.approx((1 / 2, 1 / 3))
    for rule in RULES:
        off = [
            fairness.tau_equilibrium(rule, k, n, 1.0, 10.0)[1]
            / equilibrium(rule, k, n, 1.0, 10.0).weight - 1
            for k, n in ((1, 1), (3, 3), (10, 10), (100, 100))
        ]  # fmt: skip
        assert off == sorted(off)
        assert -0.02 < off[-1] < 0


def test_an_equilibrium_without_tcp_is_refused() -> None:
    with pytest.raises(LabError, match="at least one flow of each kind"):
        equilibrium("fairbat1", 0, 1, 1.0, 10.0)


def test_the_share_of_active_flows_is_its_series_and_follows_lemma_2() -> None:
    n = np.arange(400)
    for k, active in itertools.product((1, 2, 5, 20), (0.3, 2.0, 15.0, 80.0)):
        series = float(np.sum(poisson.pmf(n, active) * n / (n + k)))
        assert fairness.f(k, active) == pytest.approx(series, abs=1e-9)
        recursion = 1 - (k + 1) / active * fairness.f(k, active)
        assert fairness.f(k + 1, active) == pytest.approx(recursion, abs=1e-9)
    assert fairness.f(1, 2.0) == pytest.approx((1 + math.exp(-2)) / 2)


def test_theorem_1_gives_17_percent_for_one_tcp_flow_and_10_not_12_for_two() -> None:
    assert fairness.theorem_1(1).value == pytest.approx(0.173, abs=5e-4)
    # lambda = 3: f_1 = (2 + e^-3)/3 = 0.683262, f_2 = 1 - 2/3 f_1 = 0.544492; (3 - 2 * 1.195351)/6
    # = 0.101550, and over the denominator of k = 1, which is 5, 0.121860.
    assert fairness.decrease(2, 3.0, fairness.f(2, 3.0)) == pytest.approx(0.101550, abs=1e-6)
    assert fairness.theorem_1(2).value == pytest.approx(0.1016, abs=1e-4)
    assert fairness.theorem_1(2, flows=1).value == pytest.approx(0.122, abs=5e-4)


def test_few_tau_flows_are_as_derived_and_more_come_to_the_theorem_from_below() -> None:
    # k = l = 1: f = tau/2, f/(1 - f) = tau/(2 - tau); r = tau (1 - tau)/((2 - tau)(2 + tau)), whose
    # derivative is zero where tau^2 - 8 tau + 4 = 0: tau = 4 - 2 sqrt 3 = 0.5359, r = 0.06699.
    one = fairness.finite(1, 1)
    assert (one.value, one.at) == (pytest.approx(0.06699, abs=1e-5), pytest.approx(0.5359, 1e-3))
    for k in (1, 2, 5):
        worst = [fairness.finite(k, n).value for n in (1, 2, 5, 20, 100, 1000)]
        assert worst == sorted(worst)
        assert worst[-1] < fairness.theorem_1(k).value
        assert worst[-1] == pytest.approx(fairness.theorem_1(k).value, rel=0.01)


def test_the_optimum_is_better_than_weighted_tcp_by_the_papers_3_minus_2_sqrt_2() -> None:
    worst = fairness.weighted_over_optimal(1)
    assert worst.value == pytest.approx(3 - 2 * math.sqrt(2), abs=1e-9)
    assert worst.at == pytest.approx(math.sqrt(2), abs=1e-4)


def test_the_optimum_is_better_than_tau_tcp_by_more_than_the_papers_lower_bound() -> None:
    # At lambda = 3: u = 3/(1 - e^-3) = 3.15719; the optimum has (u^2 + 1)/u = 3.47393 short flows
    # times 1 - rho, tau-TCP 5: 30.5 % less.
    kept, waiting = fairness.optimal(1, 2.15719)
    assert 1 - kept == pytest.approx(fairness.f(1, 3.0), abs=1e-5)
    assert 1 - waiting / 5 == pytest.approx(0.3052, abs=1e-4)
    assert 0.305 < fairness.tau_over_optimal(1).value < 0.345


def test_the_optimum_in_heavy_traffic_is_the_limit_of_what_a_chain_of_flows_has() -> None:
    # Without FAIRBAT (least = 0) it is the negative binomial one, with (k + 1) rho/(1 - rho).
    kept, waiting = fairness.optimal_at(0.8, 3, 0)
    assert waiting == pytest.approx(fairness.short_flows(3, 0.8))
    gaps = []
    for load in (0.9, 0.99, 0.999):
        kept, waiting = fairness.optimal_at(load, 1, round(1.5 / (1 - load)))
        limit = fairness.optimal(1, 1.5)
        gaps.append(abs(kept / limit[0] - 1) + abs(waiting * (1 - load) / limit[1] - 1))
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.005

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The fluid model and its bounds, against numbers derived by hand and against each other."""

import itertools
import math
from dataclasses import replace

import pytest

from netnice_lab import LabError, fluid
from netnice_lab.fluid import Setting

GRID = [
    Setting(reno, nice, buffer, 50, 0.2 * buffer)
    for buffer, reno, nice in itertools.product((5, 20, 40), (1, 4, 16), (1, 4, 64))
]
"""gamma (mu tau + B) < mu tau throughout: the case that the paper considers."""


def test_a_period_of_one_reno_flow_alone_lasts_as_derived() -> None:
    # mu tau = 10, B = 6: W goes from 16/2 = 8 to 16. To 10 in two round trips of 0.1 s, then
    # dW/dt = mu/W with mu = 100/s: (16^2 - 10^2)/2/100 = 0.78 s. Sent, by (9): (16^2 - 8^2)/2 = 96.
    got = fluid.period(Setting(1, 0, 6, 10, 2), 8, 0)
    assert got.duration_s == pytest.approx(0.98)
    assert got.reno_end == pytest.approx(16)
    assert got.reno_packets == pytest.approx(96)
    assert got.nice_packets == 0


def test_a_period_with_a_nice_flow_goes_through_the_intervals_as_derived() -> None:
    # m = l = 1, from W_r = 6, W_n = 2. FILL: both grow 1 a round trip, W = 10 after 0.1 s, at 7, 3.
    # VEGAS: W stays, W_n falls to l = 1 in two round trips of 0.1 s; W_r = 9. FLOOR: W grows by
    # mu/W up to 12: (12^2 - 10^2)/2/100 = 0.22 s; W_r = 11. W_n = 1 < 2m: no BALANCE. YIELD: W_n =
    # e^{-(W_r - 11)/2}; W_r + W_n = 16 at W_r = 15.9144 (15.9144 + e^{-2.4572} = 15.9144 + 0.0857).
    got = fluid.period(Setting(1, 1, 6, 10, 2), 6, 2)
    ends = {"FILL": 0.1, "VEGAS": 0.3, "FLOOR": 0.52, "BALANCE": 0.52}
    assert {k: got.intervals[k] for k in ends} == pytest.approx(ends)
    assert got.reno_end == pytest.approx(15.9144, abs=1e-4)
    assert got.nice_end == pytest.approx(0.0857, abs=1e-4)
    assert got.duration_s == got.intervals["YIELD"] > 0.52


def test_many_nice_flows_give_up_as_much_as_reno_takes_while_they_exceed_twice_m() -> None:
    # m = 1, l = 8, from W_r = 4, W_n = 4: FILL adds 2/9 and 16/9; W_n < l, so that FLOOR follows
    # at once; in BALANCE W stays at 12 until W_n = 2m, which takes W_n - 2 round trips of 0.12 s.
    got = fluid.period(Setting(1, 8, 6, 10, 2), 4, 4)
    w_n = 4 + 16 / 9
    assert got.intervals["VEGAS"] == got.intervals["FILL"]
    took = got.intervals["BALANCE"] - got.intervals["FLOOR"]
    assert took == pytest.approx((w_n - 2) * 0.12)


def test_equation_4_and_appendix_a_differ_by_the_root_of_e() -> None:
    # m = 2, B - q_t = 20, 1/2: (4) is 4 e^{-(1 + 10)/2} = 4 e^{-5.5}, the appendix 4 e^{-(1 + 5)}.
    setting = Setting(2, 4, 24, 50, 4)
    assert fluid.residual_4(setting) == pytest.approx(0.0163471, rel=1e-5)
    assert fluid.residual_appendix(setting) == pytest.approx(0.0099150, rel=1e-5)
    for s in GRID:
        ratio = fluid.residual_4(s) / fluid.residual_appendix(s)
        assert ratio == pytest.approx(math.sqrt(math.e))


def test_equation_5_and_the_slides_differ_by_a_constant() -> None:
    # (5) of (4): 2 * 4 e^{-5.5} / (74 * 3/4); slides: 4 * 2 e^{-20/2/2} / (74/2) = 16 e^{-5} / 74.
    setting = Setting(2, 4, 24, 50, 4)
    ours = fluid.interference_5(setting, fluid.residual_4(setting))
    assert ours == pytest.approx(8 * math.exp(-5.5) / 55.5)
    assert fluid.interference_slides(setting) == pytest.approx(16 * math.exp(-5) / 74)
    # 2 (1 - 1/4) e^{1/2}
    assert fluid.interference_slides(setting) / ours == pytest.approx(2.47308, rel=1e-5)


@pytest.mark.parametrize("setting", GRID, ids=str)
def test_corollary_1_bounds_what_nice_still_holds_at_a_loss(setting: Setting) -> None:
    got, exact = fluid.steady(setting), fluid.residual_exact(setting)
    assert got.nice_end <= exact * (1 + 1e-6)
    # x e^{-x} of its own derivation
    x = exact / (2 * setting.reno)
    y = (setting.buffer - setting.trigger) / (2 * setting.reno)
    assert x * math.exp(-x) == pytest.approx(math.exp(-1 - y))


def test_corollary_1_is_reached_by_many_nice_flows_and_exceeds_the_appendix() -> None:
    # m = 4, B - q_t = 4: the appendix has 8 e^{-1.5} = 1.785; x e^{-x} = e^{-1.5} at x = 0.3017.
    setting = Setting(4, 64, 5, 50, 1)
    assert fluid.residual_appendix(setting) == pytest.approx(1.785, abs=1e-3)
    assert fluid.residual_exact(setting) == pytest.approx(8 * 0.3017, abs=1e-3)
    assert fluid.steady(setting).nice_end == pytest.approx(8 * 0.3017, abs=1e-3)


def test_equation_4_fails_too_where_the_flows_nearly_fill_the_queue() -> None:
    # (4) is e^{1/2} times the appendix and Corollary 1 e^x times, x <= 1: (4) fails for x > 1/2,
    # where (B - q_t)/2m < -1 - ln(e^{-1/2}/2) = 0.193. Here it is 4/32 = 0.125.
    setting = Setting(16, 256, 5, 50, 1)
    assert fluid.steady(setting).nice_end > fluid.residual_4(setting)
    assert fluid.residual_exact(replace(setting, buffer=8)) < fluid.residual_4(
        replace(setting, buffer=8)
    )


@pytest.mark.parametrize("setting", GRID, ids=str)
def test_lemma_1_periods_converge_to_one_duration_wherever_they_start(setting: Setting) -> None:
    got = fluid.lemma_1(setting)
    assert got["differs"] < 1e-6
    assert got["periods"] < 40


@pytest.mark.parametrize("setting", GRID, ids=str)
def test_lemma_2_what_reno_sends_depends_on_its_first_and_last_window(setting: Setting) -> None:
    assert fluid.lemma_2(setting)["differs"] < 1e-8


@pytest.mark.parametrize("setting", GRID, ids=str)
def test_periods_differ_by_the_delay_that_nice_gives_way_under(setting: Setting) -> None:
    got = fluid.lemma_3(setting)
    assert got["longer"] == pytest.approx(got["by_delay"], abs=1e-6)


def test_lemma_3_fails_in_a_large_buffer_and_holds_in_a_small_one() -> None:
    # one Reno flow, 40 packets: delta is nothing, so all that Nice held is given up under a queue
    assert fluid.lemma_3(Setting(1, 16, 40, 50, 8))["longer"] > 0.01
    # 16 flows, 5 packets: what Nice holds at the loss brings it forward
    assert fluid.lemma_3(Setting(16, 16, 5, 50, 1))["longer"] < -0.1


def test_theorem_1_is_exceeded_in_its_own_model_and_by_more_the_larger_the_buffer() -> None:
    beyond = []
    for buffer in (10, 20, 40):
        setting = Setting(1, 16, buffer, 50, 0.2 * buffer)
        bound = fluid.interference_5(setting, fluid.residual_4(setting))
        assert fluid.interference(setting) > 0.01 > bound
        beyond.append(fluid.interference(setting) / bound)
    assert beyond == sorted(beyond)


def test_the_loss_is_proportional_to_the_queue_that_nice_tolerates() -> None:
    # (*): Nice gives up the same packets under twice the delay. Theorem 1 has q_t only in delta,
    # which is below 1e-7 here.
    four, eight, sixteen = (fluid.interference(Setting(1, 16, 40, 50, q)) for q in (4, 8, 16))
    assert eight / four == pytest.approx(2, rel=0.1)
    assert sixteen / eight == pytest.approx(2, rel=0.1)


def test_the_loss_falls_with_the_size_of_the_link_and_not_exponentially() -> None:
    # (*): twice the pipe and the buffer: twice the packets given up under the same q_t, of four
    # times the work of a period. Theorem 1 falls from 2e-7 to 4e-14.
    small, large = (fluid.interference(Setting(1, 4096, 30 * k, 50 * k, 6)) for k in (1, 2))
    assert small / large == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("setting", GRID, ids=str)
def test_the_repaired_bound_holds(setting: Setting) -> None:
    assert fluid.interference(setting) <= fluid.interference_repaired(setting)


def test_the_number_of_nice_flows_hardly_matters_once_they_are_many() -> None:
    # what they can hold is bounded by the pipe, what they keep by m
    few, many = (fluid.interference(Setting(2, nice, 20, 50, 4)) for nice in (64, 4096))
    assert many == pytest.approx(few, rel=0.1)


def test_nice_gets_nothing_where_a_loss_leaves_the_queue_filled() -> None:
    # gamma (mu tau + B) = 55 > 50; the windows of Nice halve at each loss and never grow
    got = fluid.steady(Setting(2, 16, 60, 50, 2))
    assert got.nice_packets < 1e-6 * got.reno_packets


def test_paced_windows_still_hold_packets_where_the_theorem_has_none_left() -> None:
    # m = 1, l = 16, B = 20, q_t = 4. 16 flows of w packets give up 16 w (w/2)/2 a round trip, as
    # much as Reno takes at W_n = 8, W_r = 46. Then dW_n/dW_r = -W_n^2/64 up to W_r = 70 - delta:
    # 1/delta = 1/8 + (24 - delta)/64, so delta^2 - 32 delta + 64 = 0: 16 - 192^(1/2) = 2.1436.
    setting = Setting(1, 16, 20, 50, 4)
    assert fluid.steady(replace(setting, paced=True)).nice_end == pytest.approx(2.1436, abs=1e-4)
    assert fluid.steady(setting).nice_end < 1e-3


def test_paced_flows_interfere_more_the_more_they_are() -> None:
    few, some, many = (
        fluid.interference(Setting(1, nice, 20, 50, 4, paced=True)) for nice in (4, 16, 64)
    )
    assert few < some < many
    # the least window alone: 64/48 packets at every loss, of 70
    assert many > 2 * (64 / 48) / 70


def test_a_model_without_meaning_is_refused() -> None:
    with pytest.raises(LabError, match=r"reno is below 1, trigger is not in \[0, buffer\)"):
        Setting(0, 1, 5, 50, 5)

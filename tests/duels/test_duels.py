# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Duels on the real kernel in virtual time, with asserted bounds on both numbers that matter.

Ratios are to no background, shares to strict priority, from the same invocation and seeds.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import pytest
from scipy import stats

CONFIDENCE = 0.99
"""Of the intervals of nice's harm and share: six bounds in a run, and a mean may lie at one."""


def interval(value: dict[str, float], seeds: int) -> tuple[float, float]:
    """Widen the lab's 95 % confidence interval to `CONFIDENCE`."""
    t = stats.t(seeds - 1)
    half = (value["hi"] - value["mean"]) * t.ppf(0.5 + CONFIDENCE / 2) / t.ppf(0.975)
    return value["mean"] - half, value["mean"] + half


@cache
def summary(scenario: str, seeds: int, *options: str) -> dict[str, dict[str, Any]]:
    """Run a scenario in the lab; return its summary by background."""
    command = ["netnice-lab", "run", scenario, "--seeds", str(seeds), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = {row["background"]: row for row in json.loads(done.stdout)["summary"]}
    for name, row in rows.items():
        print(f"{name}: FCT ratio {row['fct_ratio_mean']}, share {row['share']}")
    return rows


def k1() -> dict[str, dict[str, Any]]:
    """Return K1 with the backgrounds under test and one rival; four seeds differ enough."""
    names = ("nn_nice x1", "nn_nice x16", "nn_nice x64", "cubic x16")
    return summary("k1", 4, *(word for name in names for word in ("--only", name)))


@pytest.mark.parametrize(
    ("background", "harm", "share"),
    [("nn_nice x1", 1.05, 0.05), ("nn_nice x16", 1.15, 0.25), ("nn_nice x64", 1.9, 0.4)],
)
def test_nice_leaves_the_foreground_alone_and_takes_a_share_of_what_is_left(
    background: str, harm: float, share: float
) -> None:
    # a bound fails when the confidence interval over the seeds lies beyond it
    row = k1()[background]
    assert interval(row["fct_ratio_mean"], row["seeds"])[0] <= harm
    assert interval(row["share"], row["seeds"])[1] >= share


def test_one_nice_flow_alone_fills_the_link() -> None:
    options = ("--set", "foreground.load=0", "--set", "measure_s=20", "--only", "nn_nice x1")
    # its additive growth needs some seconds, and the receiver's delayed ACKs must not stop it
    assert summary("k1", 1, *options)["nn_nice x1"]["share"]["mean"] >= 0.95


def test_cubic_in_the_background_would_harm_the_foreground_many_times_more() -> None:
    rows = k1()
    # 16 CUBIC flows keep the 50 packets of the queue full: 76 ms more for each of the round trips
    # of a fetch that takes about 170 ms alone, and losses. Without that the lab measures nothing.
    assert rows["cubic x16"]["fct_ratio_mean"]["mean"] > 3
    assert (
        rows["cubic x16"]["fct_ratio_mean"]["mean"]
        > 2 * rows["nn_nice x16"]["fct_ratio_mean"]["mean"]
    )


def fidelity(load: str, seeds: int) -> dict[str, dict[str, Any]]:
    """Return four flows of the core's controls beside four of the kernel's own."""
    return summary("fidelity", seeds, "--set", f"foreground.load={load}")


FAITHFUL = pytest.mark.parametrize(("control", "within"), [("reno", 0.10), ("vegas", 0.15)])


@FAITHFUL
def test_alone_ours_and_the_kernels_own_reach_the_same_goodput(control: str, within: float) -> None:
    rows = fidelity("0", 1)
    ours, theirs = rows[f"nn_{control}"], rows[control]
    assert ours["background_goodput_mbit"] == pytest.approx(
        theirs["background_goodput_mbit"], rel=within
    )


@FAITHFUL
def test_beside_a_foreground_ours_and_the_kernels_own_harm_and_carry_as_much(
    control: str, within: float
) -> None:
    rows = fidelity("0.5", 5)
    ours, theirs = rows[f"nn_{control}"], rows[control]
    assert ours["background_goodput_mbit"] == pytest.approx(
        theirs["background_goodput_mbit"], rel=within
    )
    # the intervals over the seeds come as near to each other as the bound
    our_harm, their_harm = ours["fct_ratio_mean"], theirs["fct_ratio_mean"]
    assert our_harm["lo"] <= their_harm["hi"] * (1 + within)
    assert our_harm["hi"] >= their_harm["lo"] * (1 - within)

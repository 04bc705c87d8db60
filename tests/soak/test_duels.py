# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Duels on the real kernel in virtual time, with seeds enough for bounds on their own.

Ratios are to no background, shares to strict priority, from the same invocation and seeds. Prints
its figures as `name value unit`, which the record of the soak keeps.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import pytest


@cache
def summary(scenario: str, seeds: int, *options: str) -> dict[str, dict[str, Any]]:
    """Run a scenario in the lab; return its summary by background, and print it."""
    command = ["netnice-lab", "run", scenario, "--seeds", str(seeds), "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows = {row["background"]: row for row in json.loads(done.stdout)["summary"]}
    for name, row in rows.items():
        for what, key in (("harm", "fct_ratio_mean"), ("share", "share")):
            for end in ("lo", "mean", "hi"):
                label = f"{scenario}/{name}/{what}/{end}".replace(" ", "_")
                print(f"\n{label} {row[key][end]:.3f} ratio", end="", flush=True)
    print()
    return rows


@pytest.mark.parametrize(
    ("background", "harm", "share"),
    [("nn_nice x1", 1.10, 0.10), ("nn_nice x16", 1.15, 0.20), ("nn_nice x64", 1.4, 0.4)],
)
def test_nice_leaves_the_foreground_alone_and_takes_a_share_of_what_is_left(
    background: str, harm: float, share: float
) -> None:
    # the whole interval of 95 % over ten seeds is on the right side of the bound
    only = ("--only", "nn_nice x1", "--only", "nn_nice x16", "--only", "nn_nice x64")
    row = summary("k1", 10, *only)[background]
    assert row["fct_ratio_mean"]["hi"] <= harm
    assert row["share"]["lo"] >= share


@pytest.mark.parametrize(("control", "within"), [("reno", 0.10), ("vegas", 0.15)])
def test_beside_a_foreground_ours_and_the_kernels_own_harm_and_carry_as_much(
    control: str, within: float
) -> None:
    rows = summary("fidelity", 5, "--set", "foreground.load=0.5")
    ours, theirs = rows[f"nn_{control}"], rows[control]
    assert ours["background_goodput_mbit"] == pytest.approx(
        theirs["background_goodput_mbit"], rel=within
    )
    # the intervals over the seeds come as near to each other as the bound
    our_harm, their_harm = ours["fct_ratio_mean"], theirs["fct_ratio_mean"]
    assert our_harm["lo"] <= their_harm["hi"] * (1 + within)
    assert our_harm["hi"] >= their_harm["lo"] * (1 - within)

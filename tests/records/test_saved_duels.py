# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What `make soak` saved of duels on the real kernel keeps to its bounds.

Ratios are to no background, shares to strict priority, from the same invocation and seeds. The
whole interval of 95 % over the seeds is on the right side of a bound.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from netnice_lab import ROOT


def rows(name: str) -> dict[str, dict[str, Any]]:
    """Return a saved summary by background."""
    saved = json.loads((ROOT / "docs" / "data" / f"{name}.json").read_text())
    assert saved["engine"] == "kernel"
    return {row["background"]: row for row in saved["summary"]}


@pytest.mark.parametrize(
    ("background", "harm", "share"),
    [("nn_nice x1", 1.15, 0.10), ("nn_nice x16", 1.15, 0.20), ("nn_nice x64", 1.4, 0.4)],
)
def test_nice_leaves_the_foreground_alone_and_takes_a_share_of_what_is_left(
    background: str, harm: float, share: float
) -> None:
    row = rows("k1")[background]
    assert row["fct_ratio_mean"]["hi"] <= harm
    assert row["share"]["lo"] >= share


def test_cubic_in_the_background_harms_the_foreground_many_times_more() -> None:
    assert rows("k1")["cubic x16"]["fct_ratio_mean"]["lo"] > 3


@pytest.mark.parametrize(("control", "within"), [("reno", 0.10), ("vegas", 0.15)])
def test_beside_a_foreground_ours_and_the_kernels_own_harm_and_carry_as_much(
    control: str, within: float
) -> None:
    found = rows("fidelity")
    ours, theirs = found[f"nn_{control}"], found[control]
    assert ours["background_goodput_mbit"] == pytest.approx(
        theirs["background_goodput_mbit"], rel=within
    )
    # the intervals over the seeds come as near to each other as the bound
    our_harm, their_harm = ours["fct_ratio_mean"], theirs["fct_ratio_mean"]
    assert our_harm["lo"] <= their_harm["hi"] * (1 + within)
    assert our_harm["hi"] >= their_harm["lo"] * (1 - within)

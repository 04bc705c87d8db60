# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The simulator against what the kernel has done."""

from __future__ import annotations

from typing import Any

import pytest

from netnice_lab import validate

Json = dict[str, Any]


def row(fct: float | None, goodput: float | None, cause: str | None = None) -> validate.Row:
    """Return a row of which only the differences matter."""
    compared: Json = {
        "fct_mean_s": {"kernel": 1.0, "sim": fct, "difference": fct},
        "background_goodput_mbit": {"kernel": 1.0, "sim": goodput, "difference": goodput},
    }
    return validate.Row(50, "x", compared, cause)


def test_a_difference_beyond_the_bound_on_either_side_is_a_disagreement() -> None:
    assert row(0.15, -0.15).agrees
    assert not row(0.16, 0.0).agrees
    assert not row(0.0, -0.16).agrees
    assert row(0.1, None).agrees  # no background, no goodput


@pytest.fixture(scope="module")
def rows() -> list[validate.Row]:
    """Return the comparison with the results of the kernel that are kept."""
    return validate.compare(jobs=2, command=["pytest"])


def test_the_simulator_agrees_with_the_kernel_or_the_cause_is_known(
    rows: list[validate.Row],
) -> None:
    unexplained = [
        f"{r.background}, {r.buffer} packets: {r.differences}"
        for r in rows
        if not r.agrees and r.cause is None
    ]
    assert not unexplained


def test_four_controls_with_one_and_sixteen_flows_and_two_buffers_are_compared(
    rows: list[validate.Row],
) -> None:
    names = {f"{control} x{n}" for control in ("reno", "cubic", "vegas", "nice") for n in (1, 16)}
    for buffer in validate.BUFFERS:
        assert names <= {r.background for r in rows if r.buffer == buffer}


def test_no_cause_is_kept_for_what_agrees(rows: list[validate.Row]) -> None:
    assert [r.background for r in rows if r.agrees and r.cause] == []

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Statistics, against numbers derived by hand."""

from typing import Any

import pytest

from netnice_lab import stats
from netnice_lab.scenario import IDEAL, NONE

Json = dict[str, Any]


def test_the_interval_of_three_values_is_students_t() -> None:
    # Mean 2; standard deviation 1; standard error 1/sqrt(3) = 0.57735;
    # t(0.975, 2 degrees of freedom) = 4.30265; half width 4.30265 * 0.57735 = 2.48414.
    got = stats.interval([1.0, 2.0, 3.0])
    assert got["mean"] == 2.0
    assert got["lo"] == pytest.approx(2 - 2.48414, abs=1e-4)
    assert got["hi"] == pytest.approx(2 + 2.48414, abs=1e-4)


def test_one_value_has_a_mean_and_no_interval() -> None:
    assert stats.interval([1.5]) == {"mean": 1.5, "lo": None, "hi": None}


def test_no_value_has_neither() -> None:
    assert stats.interval([]) == {"mean": None, "lo": None, "hi": None}


def test_percentiles_are_interpolated_linearly() -> None:
    # Of 0, 10, 20, 30, 40 the 95th percentile lies at index 0.95 * 4 = 3.8: 30 + 0.8 * 10 = 38.
    assert stats.percentile([40, 0, 30, 10, 20], 95) == pytest.approx(38)
    assert stats.percentile([], 95) is None


def test_unfinished_fetches_are_counted_and_not_averaged() -> None:
    flows: list[Json] = [
        {"start_s": 3.0, "bytes": 1000, "fct_s": 0.2},
        {"start_s": 4.0, "bytes": 3000, "fct_s": 0.4},
        {"start_s": 5.0, "bytes": 9000, "fct_s": None},
    ]
    got = stats.foreground(flows, 2.0)
    assert (got["flows"], got["unfinished"]) == (3, 1)
    assert got["fct_mean_s"] == pytest.approx(0.3)
    assert got["bytes"] == 4000
    # 4000 bytes in 2 s are 32000 bits / 2 s = 0.016 Mbit/s.
    assert got["goodput_mbit"] == pytest.approx(0.016)


def test_lost_probes_are_counted_and_not_averaged() -> None:
    got = stats.probe([50.0, None, 70.0])
    assert (got["rtt_mean_ms"], got["lost"]) == (60.0, 1)


def run(name: str, seed: int, fct: float, mbit: float) -> Json:
    return {
        "background": name,
        "seed": seed,
        "foreground": {
            "fct_mean_s": fct, "fct_p95_s": 2 * fct, "fct_p99_s": 3 * fct, "unfinished": 0,
        },
        "probe": {"rtt_mean_ms": 50.0 * fct},
        "background_goodput_mbit": mbit,
    }  # fmt: skip


def test_ratios_and_shares_are_paired_by_seed() -> None:
    runs = [
        run(NONE, 1, 0.1, 0), run(IDEAL, 1, 0.1, 4.0), run("b", 1, 0.2, 1.0),
        run(NONE, 2, 0.2, 0), run(IDEAL, 2, 0.2, 2.0), run("b", 2, 0.2, 1.0),
    ]  # fmt: skip
    none, ideal, b = stats.summarise(runs)
    assert none["fct_ratio_mean"]["mean"] == 1.0
    assert ideal["share"]["mean"] == 1.0
    # Seed 1: 0.2 / 0.1 = 2, seed 2: 0.2 / 0.2 = 1; the ratio of the means would be 1.33.
    assert b["fct_ratio_mean"]["mean"] == pytest.approx(1.5)
    # Seed 1: 1 / 4, seed 2: 1 / 2.
    assert b["share"]["mean"] == pytest.approx(0.375)
    assert b["probe_rtt_ratio_mean"] == pytest.approx(1.5)
    assert b["fct_mean_s"] == pytest.approx(0.2)
    assert b["seeds"] == 2


def test_without_foreground_there_are_shares_and_no_ratios() -> None:
    runs = [run(name, 1, 0.0, mbit) for name, mbit in ((NONE, 0.0), (IDEAL, 8.0), ("b", 6.0))]
    for entry in runs:
        entry["foreground"] = {
            "fct_mean_s": None, "fct_p95_s": None, "fct_p99_s": None, "unfinished": 0,
        }  # fmt: skip
        entry["probe"] = None
    b = stats.summarise(runs)[2]
    assert b["fct_ratio_mean"]["mean"] is None
    assert "fct_seeds" not in b
    assert b["share"]["mean"] == pytest.approx(0.75)
    assert b["probe_rtt_ratio_mean"] is None

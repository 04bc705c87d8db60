# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The parts of the replication's reproduction that need no virtual machine."""

from __future__ import annotations

from typing import Any

import pytest

from netnice_lab.reproduce.measure import Results
from netnice_lab.reproduce.replication import claims, copies
from netnice_lab.reproduce.replication.copies import (
    CHANGED,
    NICE,
    PATHS,
    PRIORITY,
    REPLICATE,
    UNLIMITED,
)

Json = dict[str, Any]


def test_a_path_gets_its_own_throttles_and_the_lower_ones_of_others() -> None:
    # 0.25, 0.5, 0.75 and 0.9 of 1.5 Mbit/s; of the others' 0.75 the modem's is below 1.5 Mbit/s
    assert copies.rates("cable") == pytest.approx([0.375, 0.75, 1.125, 1.35, 0.04245])
    assert copies.rates("modem") == pytest.approx([0.01415, 0.0283, 0.04245, 0.05094])


def test_rsync_gets_its_rate_in_units_of_1024_bytes() -> None:
    # 1.5 Mbit/s = 187,500 B/s = 183.105 units
    assert copies.throttled(1.5)["options"] == ["--bwlimit=183.105"]


def test_others_send_for_as_long_as_the_slowest_copy_takes() -> None:
    scenario = copies.scenario("delaware")
    (others,) = scenario.cross
    assert others.stagger_s is not None
    assert others.flows * others.stagger_s >= scenario.measure_s
    # 10 MB at 42.45 kbit/s take 1885 s
    assert scenario.measure_s > 1885


def outcome() -> Json:
    pings = [{"t_s": float(t), "rtt_ms": 10.0 if t < 20 else 30.0} for t in range(100)]
    pings[30]["rtt_ms"] = None
    samples = [[float(t), 125_000.0 * t] for t in range(3, 90)]  # 1 Mbit/s
    return {
        "probe": {"samples": pings}, "copy": {"start_s": 10.0, "end_s": 40.0, "samples": samples},
    }  # fmt: skip


def test_pings_count_while_the_copy_runs() -> None:
    kept = copies.kept(outcome())
    assert kept["seconds"] == [30.0]
    # 10 of 10 ms from 10 s on, 19 of 30 ms from 20 s on, one lost
    assert kept["ping_ms"] == [pytest.approx((10 * 10 + 19 * 30) / 29, abs=1e-3)]
    assert kept["ping_lost"] == [1 / 30]


def test_phases_of_the_path_that_changes_count_by_themselves() -> None:
    longer = outcome()
    longer["copy"]["end_s"] = 90.0
    kept = copies.kept_changing(longer)
    assert [kept[f"mbit_{p}"] for p in ("before", "slow", "after")] == [[1.0]] * 3
    assert kept["ping_after_ms"] == [30.0]


def documents(ours: tuple[float, float], throttled: tuple[float, float]) -> dict[str, Results]:
    """Return results in which ours and the throttled copies take so many s and ms of ping."""
    points, mine, ideal = [], [], []
    for path in PATHS:
        runs = {"idle": {"seconds": [None], "ping_ms": [100.0], "ping_p95_ms": [100.0]}}
        for name in [*claims.throttles(path), NICE]:
            at = ours if name == NICE else throttled
            runs[name] = copy(*((90.0, 300.0) if name == UNLIMITED else at))
        points.append({"at": {"path": path}, "runs": runs})
        mine.append({"at": {"path": path}, "runs": {REPLICATE: copy(*ours)}})
        ideal.append({"at": {"path": path}, "runs": {PRIORITY: copy(100.0, 100.0)}})
    changed = {f"mbit_{p}": [0.4 if p == "slow" else 8.0] for p in ("before", "slow", "after")}
    changed |= {f"ping_{p}_ms": [60.0] for p in ("before", "slow", "after")}
    mine.append({"at": {"path": CHANGED}, "runs": {REPLICATE: changed | copy(*ours)}})
    points.append({"at": {"path": CHANGED}, "runs": {"375 kbit/s": changed | copy(*throttled)}})
    return {
        name: Results({"name": name, "seeds": 1, "points": found})
        for name, found in (("copies", points), ("ours", mine), ("ideal", ideal))
    }


def copy(seconds: float, ping_ms: float) -> dict[str, list[float]]:
    """Return what is kept of a copy."""
    return {"seconds": [seconds], "ping_ms": [ping_ms], "ping_p95_ms": [ping_ms]}


def test_a_throttle_that_is_faster_and_gentler_refutes_r1() -> None:
    assert claims.r1(documents((120.0, 110.0), (110.0, 120.0))).verdict == "holds"
    refuted = claims.r1(documents((120.0, 110.0), (119.0, 109.0)))
    assert refuted.verdict == "differs"
    assert refuted.cause is not None
    assert "on modem 14.15 kbit/s" in refuted.cause


def test_r2_needs_ours_within_bounds_everywhere_and_no_throttle_that_is() -> None:
    assert claims.r2(documents((120.0, 110.0), (400.0, 105.0))).verdict == "holds"
    # ours twice as slow as under strict priority
    assert claims.r2(documents((200.0, 110.0), (400.0, 105.0))).verdict == "differs"


def test_r3_needs_half_of_the_capacity_in_each_phase() -> None:
    measured = documents((120.0, 110.0), (110.0, 120.0))
    assert claims.r3(measured).verdict == "holds"
    runs = measured["ours"].document["points"][-1]["runs"][REPLICATE]
    runs["mbit_after"] = [4.9]
    assert claims.r3(measured).verdict == "differs"


def test_every_table_and_figure_is_made_of_what_was_measured() -> None:
    measured = documents((120.0, 110.0), (110.0, 120.0))
    rows = claims.rows(measured)
    # idle, unlimited, ours and strict priority on each path, and 4 + 5 + 6 + 7 throttles
    assert len(rows) == 5 * 4 + 22
    assert [row[0] for row in claims.changed_rows(measured)] == ["375 kbit/s", REPLICATE]
    assert claims.figure_10(measured).axes

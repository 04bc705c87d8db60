# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The parts of the replication's reproduction that need no virtual machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from netnice_lab.claims.results import Results
from netnice_lab.engines.sim import Trace
from netnice_lab.guest import qdisc
from netnice_lab.papers.replication import claims, copies, recovery, shown
from netnice_lab.papers.replication import points as ratios
from netnice_lab.papers.replication.copies import (
    CHANGED,
    IDLE,
    NICE,
    PATHS,
    PRIORITY,
    REPLICATE,
    UNLIMITED,
)

Json = dict[str, Any]

r1, r2, r3 = (
    claim.judge
    for claim in (
        claims.no_throttle_is_better,
        claims.one_throttle_does_not_fit_all,
        claims.a_changing_capacity_is_followed,
    )
)


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
    assert kept["seconds"] == 30.0
    # 10 of 10 ms from 10 s on, 19 of 30 ms from 20 s on, one lost
    assert kept["ping_ms"] == pytest.approx((10 * 10 + 19 * 30) / 29)
    assert kept["ping_lost"] == 1 / 30


def test_phases_of_the_path_that_changes_count_by_themselves() -> None:
    longer = outcome()
    longer["copy"]["end_s"] = 90.0
    kept = copies.kept_changing(longer)
    assert [kept[f"mbit_{p}"] for p in ("before", "slow", "after")] == [pytest.approx(1.0)] * 3
    assert kept["ping_after_ms"] == 30.0


def documents(ours: tuple[float, float], throttled: tuple[float, float]) -> dict[str, Results]:
    """Return results in which ours and the throttled copies take so many s and ms of ping."""
    points, mine, ideal = [], [], []
    for path in PATHS:
        runs = {"idle": {"seconds": [None], "ping_ms": [100.0], "ping_p95_ms": [100.0]}}
        for name in [*ratios.throttles(path), NICE]:
            at = ours if name == NICE else throttled
            runs[name] = copy(*((90.0, 300.0) if name == UNLIMITED else at))
        points.append({"at": {"path": path}, "runs": runs})
        mine.append({"at": {"path": path}, "runs": {REPLICATE: copy(*ours)}})
        ideal.append({"at": {"path": path}, "runs": {PRIORITY: copy(100.0, 100.0)}})
    changed = {f"mbit_{p}": [0.4 if p == "slow" else 8.0] for p in ("before", "slow", "after")}
    changed |= {f"ping_{p}_ms": [60.0] for p in ("before", "slow", "after")}
    mine.append({"at": {"path": CHANGED}, "runs": {REPLICATE: changed | copy(*ours)}})
    points.append({"at": {"path": CHANGED}, "runs": {"375 kbit/s": changed | copy(*throttled)}})
    found = {
        "copies": points, "ours": mine, "ideal": ideal, "serialised": [line()],
        "settings": settings(), "recovery": recovered(), "line": lines(),
    }  # fmt: skip
    return {
        name: Results({"name": name, "seeds": 1, "points": points})
        for name, points in found.items()
    }


def line() -> Json:
    """Return the modem that sends one packet after the other."""
    (batch,) = copies.serialised()
    runs = {name: copy(2000.0, 240.0) for name in batch.copies}
    runs[IDLE] = copy(200.0, 135.0)
    return {"at": {"path": "modem"}, "runs": runs}


def lines() -> list[Json]:
    """Return lines of which half is carried."""
    return [
        {
            "at": dict(point.at),
            "runs": {
                b.name: {"mbit": [point.at["mbit"] / 2], "probe_ms": [130.0]}
                for b in point.scenario.background
            },
        }
        for point in recovery.line().points
    ]


def settings() -> list[Json]:
    """Return copies that all take three times as long as under strict priority."""
    return [
        {
            "at": batch.at,
            "runs": {n: copy(60.0 if n == PRIORITY else 180.0, 150.0) for n in batch.copies},
        }
        for batch in recovery.batches()
    ]


def recovered() -> list[Json]:
    """Return simulations in which everything has half of strict priority's throughput."""
    idle = {k: [0.1] for k in ("idle_others", "idle_asleep", "idle_awake")} | {"window": [4.0]}
    runs = {name: {"mbit": [1.0], "others_ms": [300.0]} for name in recovery.SETTINGS}
    for name in recovery.TRACED:
        runs[name] |= idle
    runs[PRIORITY] = {"mbit": [2.0], "others_ms": [250.0]}
    return [
        {"at": {"path": path, "change": change}, "runs": runs}
        for path in recovery.BUSY for change in recovery.CHANGES
    ]  # fmt: skip


def copy(seconds: float, ping_ms: float) -> dict[str, list[float]]:
    """Return what is kept of a copy."""
    return {"seconds": [seconds], "ping_ms": [ping_ms], "ping_p95_ms": [ping_ms]}


def test_a_throttle_that_is_faster_and_gentler_refutes_r1() -> None:
    assert r1(documents((120.0, 110.0), (110.0, 120.0))).verdict == "holds"
    refuted = r1(documents((120.0, 110.0), (119.0, 109.0)))
    assert refuted.verdict == "differs"
    assert refuted.cause is not None
    assert "on modem 14.15 kbit/s" in refuted.cause


def test_r2_needs_ours_within_bounds_everywhere_and_no_throttle_that_is() -> None:
    assert r2(documents((120.0, 110.0), (400.0, 105.0))).verdict == "holds"
    # ours twice as slow as under strict priority
    assert r2(documents((200.0, 110.0), (400.0, 105.0))).verdict == "differs"


def test_the_cause_of_r1_compares_on_the_line_too() -> None:
    measured = documents((120.0, 110.0), (119.0, 109.0))
    cause = r1(measured).cause
    assert cause is not None
    # all copies have the same point there
    assert "There, too, both faster and gentler: none." in cause
    assert "42.45 kbit/s adds 105 ms to the ping instead of 9" in cause
    runs = measured["serialised"].document["points"][0]["runs"]
    runs["50.94 kbit/s"] = copy(1900.0, 200.0)
    cause = r1(measured).cause
    assert cause is not None
    assert "gentler: none" not in cause
    assert "50.94 kbit/s (1900 s, 200 ms) than netnice replicate (2000 s, 240 ms)" in cause


def test_a_throttle_takes_at_least_what_its_rate_takes_where_it_was_not_measured() -> None:
    measured = documents((120.0, 110.0), (400.0, 105.0))
    # 10 MB at 14.15 kbit/s take 5654 s on the other paths, 100 s under strict priority
    slow, ping = ratios.worst_throttled(measured, 0.01415)
    assert slow == pytest.approx(8e7 / 14150 / 100)
    assert ping == pytest.approx(1.05)
    # unlimited, with three times the ping, on the paths whose capacity is lower
    assert ratios.worst_throttled(measured, 4.5)[1] == pytest.approx(3.0)
    assert ratios.excess((3.0, 1.25)) == pytest.approx(2.0)


def test_the_cause_of_r2_tells_what_kernel_and_simulator_had() -> None:
    cause = r2(documents((200.0, 110.0), (400.0, 105.0))).cause
    assert cause is not None
    assert "london 3.00, without others 3.00" in cause
    assert "london 10 % idle during them, 10 % between them with a window below two" in cause
    # 2 Mbit/s and 130 ms are 21.5 packets of 1514 bytes
    assert "the window is 4.0 packets then, 21 fill the path" in cause
    assert "throughput over strict priority's 0.50, with ACKs at once 0.50" in cause
    # 240 ms over 135 ms
    assert "strict priority has 1.78 times the ping without a copy, not within the bound" in cause


def test_what_is_left_idle_is_told_by_what_others_and_the_window_did(tmp_path: Path) -> None:
    found = recovery.simulated("london", recovery.AS_IT_IS, 3.1)
    lines = ["time_s,kind,name,value,inflight_packets"]
    left = 0.0
    for i in range(701):
        at = i / 100
        # 2 Mbit/s are 2500 bytes in 10 ms; from 3 s on: a second with others, half used, a second
        # asleep, nothing used, two awake, all used
        used = 0.5 if at <= 4 else 0.0 if at <= 5 else 1.0
        left += 2500 * used
        lines.append(f"{at},left_bytes,bottleneck,{left},")
        lines.append(f"{at},window_packets,background 0,{1 if at <= 5 else 20},1")
        if at <= 4:
            lines.append(f"{at},window_packets,cross 0,10,1")
    file = tmp_path / "trace.csv"
    file.write_text("\n".join(lines))
    kept = recovery.left_idle(Trace(file), found)
    assert kept["idle_others"] == pytest.approx(0.5 / 4, abs=0.01)
    assert kept["idle_asleep"] == pytest.approx(1 / 4, abs=0.01)
    assert kept["idle_awake"] == pytest.approx(0.0, abs=0.01)
    assert kept["window"] == pytest.approx((1 + 2 * 20) / 3, abs=0.2)


def test_others_use_a_quarter_of_the_link_in_every_rhythm() -> None:
    for rhythm in recovery.RHYTHMS_S:
        (others,) = recovery.simulated("london", recovery.AS_IT_IS, rhythm).cross
        assert others.bytes * 8e-6 / rhythm == pytest.approx(0.25 * 2.0, rel=0.01)
        assert others.flows * rhythm >= recovery.MEASURE_S
    assert not recovery.simulated("london", recovery.ALONE, 3.1).cross
    prompt = recovery.simulated("london", recovery.NEAR_PROMPT, 3.1)
    assert prompt.delayed_acks is False
    assert prompt.bottleneck is not None
    assert prompt.bottleneck.rtt_ms == recovery.NEAR_MS


def test_settings_are_copied_under_netnice_run() -> None:
    assert recovery.copied("threshold=0.1")["wrap"] == [
        "netnice", "run", "--algorithm", "nice", "--set", "threshold=0.1", "--",
    ]  # fmt: skip
    asis, alone, *_ = recovery.batches()
    assert asis.at == {"path": "london", "change": recovery.AS_IT_IS}
    # several flows are for the simulator
    assert not {"2 flows", "4 flows"} & set(asis.copies)
    assert list(alone.copies) == [*recovery.CHANGED_TOO, PRIORITY]


def test_a_line_lets_one_packet_leave_at_once_a_shaper_two() -> None:
    assert "burst 3028 " in qdisc.shape(0.0566)
    assert "burst 1514 " in qdisc.shape(0.0566, 1)


def test_r3_needs_half_of_the_capacity_in_each_phase() -> None:
    measured = documents((120.0, 110.0), (110.0, 120.0))
    assert r3(measured).verdict == "holds"
    runs = measured["ours"].document["points"][-1]["runs"][REPLICATE]
    runs["mbit_after"] = [4.9]
    assert r3(measured).verdict == "differs"


def test_every_table_and_figure_is_made_of_what_was_measured() -> None:
    measured = documents((120.0, 110.0), (110.0, 120.0))
    rows = shown.rows(measured)
    # idle, unlimited, ours and strict priority on each path, and 4 + 5 + 6 + 7 throttles
    assert len(rows) == 5 * 4 + 22
    assert [row[0] for row in shown.changed_rows(measured)] == ["375 kbit/s", REPLICATE]
    assert shown.figure_10(measured).axes
    # no copy, three throttles, unlimited, ours, strict priority
    assert len(shown.line_rows(measured)) == 7
    # the rates of each path; then unlimited, ours, and strict priority
    assert shown.rate_rows(measured)[0] == ["0.0566", *3 * ["50 %", "130"]]
    assert len(shown.worst_rows(measured)) == len(ratios.every_rate()) + 4
    assert len(shown.settings_rows(measured)) == len(recovery.SETTINGS) + 1
    assert len(shown.changes_rows(measured)) == 10

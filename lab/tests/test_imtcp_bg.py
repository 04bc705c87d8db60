# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The reproduction of ImTCP-bg: what is kept of traces, claims, reports from saved data alone."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netnice_lab.claims import page
from netnice_lab.claims.paper import Places, find, saved
from netnice_lab.claims.results import Results, save
from netnice_lab.engines import kernel
from netnice_lab.engines.sim import Simulator, Trace
from netnice_lab.experiment import head
from netnice_lab.papers.imtcp_bg import accuracy, claims, five
from netnice_lab.papers.imtcp_bg.experiments import KERNEL_FLOWS, k1, simulated
from netnice_lab.scenario import IDEAL, NONE, describe, describe_all, read, variants

Json = dict[str, Any]
HEADER = "time_s,kind,name,value,inflight_packets\n"


def trace(folder: Path, lines: list[str]) -> Trace:
    file = folder / "trace.csv"
    file.write_text(HEADER + "".join(f"{line},\n" for line in lines))
    return Trace(file)


def test_a_level_has_the_error_and_the_rate_of_its_results(tmp_path: Path) -> None:
    # A result every 100 ms and RTTs of 20 ms. 90 Mbit/s are left for 10 s: the first result is
    # 45, the others 99, so 10 % too much. Then 70 are left; results say so after one second.
    lines = [f"{t / 10},rtt_ms,background 0,20" for t in range(700)]
    for t in range(200):
        value = (45 if t == 0 else 99) if t < 100 else (99 if t < 110 else 70)
        lines.append(f"{t / 10},available_mbit,background 0,{value}")
    scenario = accuracy.scenarios()["constant", 0]
    first, second, third, *_ = accuracy.digest(
        scenario, "constant", trace(tmp_path, lines)
    )  # fmt: skip
    assert first["error"] == pytest.approx(0.1)
    assert first["bias"] == pytest.approx(0.1)
    assert first["per_rtt"] == pytest.approx(0.2)  # 80 in 8 s, which are 400 round trips
    assert first["follow_s"] == pytest.approx(0.1)
    assert (first["each_s"][0], first["each_s"][9]) == (99, 99)
    assert second["follow_s"] == pytest.approx(1.0)
    assert second["error"] == pytest.approx(0)
    assert (third["error"], third["follow_s"], third["per_rtt"]) == (None, None, 0)


def test_what_web_traffic_left_is_the_link_less_what_was_not_the_flows_own(
    tmp_path: Path,
) -> None:
    # 7.5 MB/s leave the link, 60 Mbit/s; 1000 packets of 1500 bytes a second, 12 of it, are its own
    lines = [
        line for t in range(0, 100)
        for line in (
            f"{t / 10},left_bytes,bottleneck,{t * 750_000}",
            f"{t / 10},acked_packets,background 0,{t * 100}",
        )
    ]  # fmt: skip
    found = trace(tmp_path, lines)
    assert accuracy.left(found, np.array([2.0, 5.0]), 1500) == pytest.approx([52.0, 52.0])


def test_a_step_is_followed_by_results_that_stay_near() -> None:
    errors = np.array([0.9, 0.1, 0.9, 0.9, 0.5, 0.19, 0.1, -0.1, 0.3, 0.0, 0.0])
    assert accuracy.follows(errors) == 5
    assert accuracy.follows(errors[:7]) is None


def invented(ours: float, queue: float, error: float) -> dict[str, Json]:
    """Return documents in which ImTCP-bg has this share and queue, the measurement this error."""
    documents = {}
    mbit = {NONE: 0.0, IDEAL: 100.0, "nice": 20.0, "lp": 50.0, "reno": 110.0}
    for experiment in simulated():
        points = []
        for point in experiment.points:
            runs = {}
            for name in [NONE, IDEAL, *(b.name for b in point.scenario.background)]:
                harm = 1.5 if name == "reno" else 1.0 if name == NONE else 1.01
                runs[name] = {
                    "fct_s": [harm, 1.1 * harm], "packet_rtt_ms": [harm, 1.1 * harm],
                    "mbit": [mbit.get(name, 100 * ours)] * 2,
                }  # fmt: skip
            points.append({"at": dict(point.at), "runs": runs})
        documents[experiment.name] = points
    plans = {accuracy.NAME: accuracy.scenarios(), accuracy.SMALL_NAME: accuracy.small()}
    for name, plan in plans.items():
        documents[name] = []
        for (traffic, _), scenario in plan.items():
            for begin, _, rate in accuracy.steps(scenario, traffic):
                column = {
                    "error": [error] * 2, "bias": [error] * 2, "per_rtt": [0.5] * 2,
                    "follow_s": [0.5] * 2, "follow_rtts": [5.0] * 2, "follow_results": [3] * 2,
                    "each_s": [[50.0] * 10] * 2,
                }  # fmt: skip
                at = {"traffic": traffic, "begin_s": begin, "mbit": rate}
                runs = dict.fromkeys(accuracy.ALGORITHMS, column)
                documents[name].append({"at": at, "runs": runs})
    queues = {"reno": 500.0, "nice": 8.0, "lp": 60.0, "imtcp_bg": queue}
    documents[five.NAME] = [
        {
            "at": {},
            "runs": {
                b.name: {
                    "queue_packets": [queues.get(b.name, 100.0)] * 2,
                    "flows_mbit": [[[50.0] * 100] * 5] * 2,
                    "drops_over_time": [
                        [9.0 * (b.name == "lp" and i in claims.ARRIVALS) for i in range(100)]
                    ] * 2,
                }
                for b in read(Path("imtcp-bg/five")).background
            },
        }
    ]  # fmt: skip
    return {
        name: {**head(name, 2, ["test"]), "points": points} for name, points in documents.items()
    }


def verdicts(documents: dict[str, Json]) -> dict[str, str]:
    measured = {name: Results(document) for name, document in documents.items()}
    statements = find("imtcp-bg").claims
    found = [s.judge(measured) for s in statements if set(s.needs) <= set(measured)]
    assert all((c.cause is None) == (c.verdict == "holds") for c in found)
    return {c.id: c.verdict for c in found}


def test_every_claim_of_imtcp_bg_holds_in_the_papers_world() -> None:
    held = dict.fromkeys(("I1", "I1A", "I2", "I3", "I4", "I5", "K1S"), "holds")
    assert verdicts(invented(0.95, 44.0, 0.05)) == held


@pytest.mark.parametrize(
    ("world", "differ"),
    [
        ((0.8, 44.0, 0.05), {"I4"}),
        ((0.4, 44.0, 0.05), {"I2", "I4"}),  # TCP-LP, 0.5, is nearer
        ((0.95, 44.0, 0.15), {"I1"}),  # above 10 % beside constant traffic
        ((0.95, 61.0, 0.05), {"I3"}),  # longer than TCP-LP's
        ((0.95, 101.0, 0.05), {"I3", "I5"}),  # longer than with one mechanism alone
    ],
)
def test_one_number_beyond_its_bound_changes_its_verdicts(
    world: tuple[float, float, float], differ: set[str]
) -> None:
    assert {name for name, v in verdicts(invented(*world)).items() if v == "differs"} == differ


def test_the_report_of_imtcp_bg_says_what_the_saved_files_say(tmp_path: Path) -> None:
    paper, places = find("imtcp-bg"), Places(tmp_path, "imtcp-bg")
    for document in invented(0.95, 44.0, 0.05).values():
        save(document, places.data)
    page.write(paper, saved(paper, tmp_path), tmp_path)
    report = places.page.read_text()
    assert "95 % [95, 95], 1.01 [1.01, 1.01] times" in report
    for name in ("steps", "errors", "figure-2", "figure-3", "figure-4", "trade-off"):
        assert f"../figures/imtcp-bg/{name}.svg" in report
        assert (places.figures / f"{name}.svg").read_text().startswith("<?xml")
    assert "## K1S" in report
    assert "## K1\n" not in report  # nothing was saved of the kernel


def test_every_scenario_of_imtcp_bg_can_run(built: Path) -> None:
    describe_all(accuracy.scenarios().values())
    describe(read(Path("imtcp-bg/five")))
    for experiment in simulated():
        describe_all(point.scenario for point in experiment.points)
    kernel.plan(k1(), variants(k1()))
    assert [b.flows for b in k1().background] == [*KERNEL_FLOWS, *KERNEL_FLOWS]


def test_flows_that_stop_one_after_the_other_are_traced(built: Path) -> None:
    base = read(Path("imtcp-bg/five"))
    background = [
        b.but(flows=2, stagger_s=1.0, stop_s=2.0, stop_stagger_s=1.0)
        for b in base.background if b.name == "imtcp_bg"
    ]  # fmt: skip
    scenario = base.but(measure_s=4.0, drain_s=1.0, background=background)
    found = Simulator().traced(scenario, 1, "imtcp_bg", five.KINDS)
    first, second = (found.series("acked_packets", f"background {i}")[0] for i in (0, 1))
    # the second starts after a second, and stops after two; the first after three
    assert (first[0], second[0]) == (pytest.approx(0.1, abs=0.15), pytest.approx(1.1, abs=0.15))
    assert (first[-1], second[-1]) == (pytest.approx(3.1, abs=0.3), pytest.approx(2.1, abs=0.3))
    queue = found.series("queue_packets", "bottleneck")[1]
    assert len(queue) > 300
    assert found.series("rtt_ms", "background 0")[0].size == 0  # not asked for

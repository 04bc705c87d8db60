# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The analysis of Theorem 1 from its scenarios to its report, on a few points and short runs."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from netnice_lab import experiment
from netnice_lab.claims import draw
from netnice_lab.claims import page as report
from netnice_lab.claims.paper import Paper, Places, of_modules
from netnice_lab.claims.results import Results, load, save
from netnice_lab.experiment import Context
from netnice_lab.papers.nice import theorem, theorem_claims, theorem_packets
from netnice_lab.papers.nice.theorem_packets import Nice, Point, scenario
from netnice_lab.papers.nice.theorem_points import part, plain
from netnice_lab.scenario import describe

Json = dict[str, Any]
CLAIMS = of_modules(theorem_claims)


@pytest.fixture(scope="module")
def document(built: Path) -> Iterator[Json]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(theorem, "BUFFERS", (5, 10, 40))
        patch.setattr(theorem, "RENO", (1, 4, 32))
        patch.setattr(theorem, "FINER", (1, 2))
        patch.setattr(theorem_packets, "MEASURE_S", 10.0)
        yield experiment.measure(theorem.EXPERIMENT, Context(seeds=2, jobs=2))


def test_nice_yields_above_the_queue_that_is_asked_for() -> None:
    # minRTT is 51 transmissions of a packet: 50 of the pipe and its own. maxRTT is 2 minRTT, so
    # that 8 packets of queue are 8/51 of the difference; with 100 packets of queue, 8/100.
    assert Nice(4, 8).section(40, 50)["set"]["threshold"] == pytest.approx(8 / 51)
    assert Nice(4, 8).section(100, 50)["set"]["threshold"] == pytest.approx(8 / 100)


def test_the_link_holds_mu_tau_packets() -> None:
    # 50 packets of 1064 bytes in 100 ms: 50 * 1064 * 8 / 0.1 s = 4.256 Mbit/s; twice for 100.
    for pipe, mbit in ((50, 4.256), (100, 8.512)):
        link = scenario(Point(1, 20, (Nice(4, 4),), pipe)).bottleneck
        assert link is not None
        assert link.rate_mbit == pytest.approx(mbit)
        assert link.limit_packets == 20


def test_scenarios_are_what_the_simulator_understands(built: Path) -> None:
    describe(scenario(Point(32, 5, theorem._variants(5))))


def test_nice_starts_on_an_empty_link_unless_late() -> None:
    table = scenario(Point(2, 40, (Nice(64, 8), Nice(64, 8, late=True))))
    first, late = table["background"]
    reno = table["cross"][0]["start_s"]
    assert first["start_s"] + 63 * first["stagger_s"] < reno < late["start_s"]
    assert late["start_s"] + 63 * late["stagger_s"] < table["warmup_s"]


def test_every_measured_point_has_the_model_of_its_own_proportions(document: Json) -> None:
    for p in [p for name in ("grid", "trigger", "finer") for p in part(document, name)]:
        if p["trigger"] >= p["buffer"]:
            assert p["model"] is None
            continue
        for key in ("reno", "nice", "buffer", "trigger"):
            assert p["model"]["setting"][key] * p["pipe"] / 50 == pytest.approx(p[key])
    assert len(plain(document)) == 3 * 3 * 3


def test_one_reno_flow_alone_gets_what_the_fluid_model_says(document: Json) -> None:
    # With m = 1 nothing need be synchronous. B = 5: 0.818 of the link, 10: 0.867, 40: 0.996.
    for p in plain(document):
        if p["reno"] == 1:
            assert p["alone"]["mean"] == pytest.approx(1 - p["model"]["idle_alone"], abs=0.05)


def test_lemmas_1_and_2_hold_and_lemma_3_and_with_it_theorem_1_do_not(document: Json) -> None:
    measured = {theorem.NAME: Results(document)}
    claims = [s.judge(measured) for s in CLAIMS]
    assert [c.id for c in claims] == [f"A{n}" for n in range(1, 11)]
    verdicts = {c.id: c.verdict for c in claims}
    assert [verdicts[name] for name in ("A3", "A4")] == ["holds", "holds"]
    assert [verdicts[name] for name in ("A1", "A2", "A5")] == ["differs"] * 3


def test_the_report_is_of_the_saved_document_alone(document: Json, tmp_path: Path) -> None:
    save(document, tmp_path)
    saved = load(tmp_path, theorem.NAME)
    assert saved is not None
    assert saved.document == document
    measured = {theorem.NAME: saved}
    paper = Paper("x", "X", "", lambda: [theorem.EXPERIMENT], CLAIMS)
    text = report.markdown(paper, measured, Places(tmp_path, "x"))
    for statement in CLAIMS:
        assert statement.judge(measured).ours in text
        for drawing in statement.drawings:
            file = draw.save(partial(drawing.draw, measured), tmp_path / f"{drawing.name}.svg")
            assert "packets" in file.read_text()
            assert file.name in text

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The limit: what is compared, where the oracle's curve is, and what the page says of data."""

from __future__ import annotations

from pathlib import Path

import pytest

from netnice_lab import LabError
from netnice_lab.claims.results import Results
from netnice_lab.experiment import Context, measure
from netnice_lab.limit import figure, page, study
from netnice_lab.scenario import IDEAL, NONE


def saved(harms: dict[str, float], share: float) -> Results:
    """Return a document in which strict priority has 4 Mbit/s and no background's fetches take 1 s.

    Each of `harms` has its harm, and all others none; their shares are `share`.
    """
    names = [b.name for b in study.backgrounds(1, 8.0, {})]
    runs = {name: {"fct_s": [harms.get(name, 1.0)] * 2, "mbit": [4 * share] * 2} for name in names}
    runs |= {
        NONE: {"fct_s": [1.0, 1.0], "mbit": [0.0, 0.0]},
        IDEAL: {"fct_s": [1.0, 1.0], "mbit": [4.0, 4.0]},
    }
    points = [
        {"at": {"place": place, "flows": flows}, "runs": runs}
        for place in study.PLACES
        for flows in study.FLOWS
    ]
    return Results({"schema": 1, "name": "k1", "seeds": 2, "points": points})


def test_the_share_at_a_harm_lies_between_two_points_of_the_curve() -> None:
    # from 1.04 to 1.08 the share grows by 20 points: at 1.05 a quarter of the way has been gone
    assert study.at_bound([(1.0, 0.0), (1.04, 0.4), (1.08, 0.6)]) == pytest.approx(0.45)
    # chance may let harm fall again; the greatest share below the bound counts
    assert study.at_bound([(1.0, 0.0), (1.06, 0.4), (1.04, 0.6), (1.2, 0.8)]) == pytest.approx(
        0.6 + 0.2 * 0.01 / 0.16
    )
    assert study.at_bound([(1.0, 0.0), (1.01, 0.9)]) == 0.9
    assert study.at_bound([(1.0, 0.0), (1.1, 0.5)]) == pytest.approx(0.25)


def test_the_limit_is_read_of_the_oracle_alone() -> None:
    harms = dict.fromkeys(study.ORACLES, 1.2) | {study.TOLD: 1.0, study.EBB: 1.0}
    # a quarter of the way from no background to 80 % at 1.2
    best = study.limit(saved(harms, 0.8), place="half", flows=4)
    assert best == pytest.approx(0.2)


def test_each_place_says_where_the_foreground_is_and_every_algorithm_of_the_core_is_there() -> None:
    experiment = study.experiment("k1")
    hosts = {p.at["place"]: p.scenario.foreground.host for p in experiment.points}
    assert hosts == {"same host": None, "half": "server", "other hosts": "theirs"}
    names = [b.name for b in experiment.points[0].scenario.background]
    known = [f"nn_{name}" for name in study.ALGORITHMS]
    assert set(known) <= set(names)
    assert {"nn_nice", "nn_lp", "nn_imtcp_bg", "nn_ledbat"} <= set(known)
    assert experiment.first_seed == 101
    assert {"told", "hold", "core/ebb", "sim/nice"} <= experiment.depends


def test_one_point_is_measured_with_its_seeds(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "FLOWS", (1,))
    monkeypatch.setattr(study, "PLACES", {"other hosts": study.PLACES["other hosts"]})
    results = Results(measure(study.experiment("k1"), Context(seeds=2, jobs=2)))
    at = {"place": "other hosts", "flows": 1}
    harm, share = study.cell(results, study.TYPED, **at)
    strict, its = study.cell(results, "oracle 20 %", **at)
    # the typed rate leaves others 5 %; the oracle takes a fifth while it expects nobody
    assert harm["mean"] > 1.3 > strict["mean"]
    assert 0.15 < its["mean"] < 0.3 < share["mean"]


def test_the_page_is_written_of_saved_data_alone(tmp_path: Path) -> None:
    results = saved(dict.fromkeys(study.ORACLES, 1.0) | {study.EBB: 1.03}, 0.5)
    assert page.distances(results).splitlines()[0] == (
        "| same host |" + " 1.03 / 50 of 50 % (100 %) |" * 4
    )
    assert "| nn_ebb, held |" in page.table(results, "half")
    assert "Its most harm is 1.03, where `nn_nice` has 1.00: K1" in page.told({"k1": results})
    figure.draw(results, "K1", tmp_path / "k1.svg")
    assert "oracle, a round trip late" in (tmp_path / "k1.svg").read_text()


def test_data_that_is_not_there_is_named_with_what_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "DATA", tmp_path)
    with pytest.raises(LabError, match=r"limit/fast\.json is missing.*--measure --only fast"):
        study.load("fast")

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The simulator against what the kernel has done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from netnice_lab import ROOT, LabError, validate
from netnice_lab.engines.base import document, load, save
from netnice_lab.scenario import IDEAL, NONE, Scenario, Section

Json = dict[str, Any]


def row(fct: float | None, goodput: float | None, cause: str | None = None) -> validate.Row:
    """Return a row of which only the differences matter."""
    compared: Json = {
        "fct_mean_s": {"kernel": 1.0, "sim": fct, "difference": fct},
        "background_goodput_mbit": {"kernel": 1.0, "sim": goodput, "difference": goodput},
    }
    return validate.Row("table", "x", compared, cause)


def test_a_difference_beyond_the_bound_on_either_side_is_a_disagreement() -> None:
    assert row(0.15, -0.15).agrees
    assert not row(0.16, 0.0).agrees
    assert not row(0.0, -0.16).agrees
    assert row(0.1, None).agrees  # no background, no goodput


@pytest.fixture(scope="module")
def rows(built: Path) -> list[validate.Row]:
    """Return the comparison with the results of the kernel that are kept."""
    return validate.compare(jobs=2, command=["pytest"])


def test_the_simulator_agrees_with_the_kernel_or_it_is_said_what_is_known_of_the_cause(
    rows: list[validate.Row],
) -> None:
    unexplained = [
        f"{r.background}, {r.table}: {r.differences}"
        for r in rows
        if not r.agrees and r.cause is None
    ]
    assert not unexplained


def test_four_controls_with_one_and_sixteen_flows_and_two_buffers_are_compared(
    rows: list[validate.Row],
) -> None:
    names = {f"{control} x{n}" for control in ("reno", "cubic", "vegas", "nice") for n in (1, 16)}
    for buffer in validate.BUFFERS:
        assert names <= {r.background for r in rows if r.table == f"buffer-{buffer}"}


def test_every_algorithm_of_core_is_compared_in_its_modes_and_with_a_group(
    rows: list[validate.Row],
) -> None:
    listed = (ROOT / "core" / "algorithms.def").read_text()
    names = re.findall(r"^NN_ALGORITHM\((\w+)\)$", listed, re.MULTILINE)
    compared = {r.background for r in rows if r.table == "algorithms"}
    assert len(names) > 10
    assert {f"{name} x4" for name in names} <= {b.partition(",")[0] for b in compared}
    # FAIRBAT is told to, and has no group, since it measures what its own packets get
    assert {b for b in compared if b.startswith("fairbat1")} == {
        "fairbat1 x4, alpha", "fairbat1 x4, tau",
    }  # fmt: skip
    assert "nice x4, one group" in compared


def results(seed: int, scenario: Scenario, names: list[str]) -> Json:
    """Return a document of a kernel's runs with invented numbers."""
    runs = [
        {
            "background": name, "seed": seed, "background_goodput_mbit": 1.0,
            "foreground": {"fct_mean_s": 1.0, "unfinished": 0},
        }
        for name in names
    ]  # fmt: skip
    return document(scenario, "kernel", "6.1", ["test"], runs)


def test_what_was_not_measured_yet_is_named_and_added_to_what_was(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(validate, "DATA", tmp_path)
    monkeypatch.setattr(validate, "ROOT", tmp_path)
    table = validate.tables()[-1]
    with pytest.raises(LabError, match=r"algorithms\.json is missing\. Make it with"):
        validate.kept(table)
    # all but one algorithm, and one that there is no more
    own = table.scenario.background
    before = table.scenario.but(background=[*own[1:], Section(name="gone", control="nn_gone")])
    names = [NONE, IDEAL, *(b.name for b in own)]
    measured = [n for n in names if n != own[0].name]
    for seed in (1, 2):
        more = results(seed, before, [*measured, "gone"])
        save(validate.joined(load(table.file), more) if seed > 1 else more, table.file)
    with pytest.raises(LabError, match=f"Add it with .* --only '{own[0].name}'"):
        validate.kept(table)
    plan = validate.planned([own[0].name], seeds=[1, 2, 3])
    assert [(t.name, n, s) for t, n, s in plan] == [("algorithms", [own[0].name], [1, 2])]
    for seed in (1, 2):
        added = results(seed, table.scenario, [NONE, IDEAL, own[0].name])
        save(validate.joined(load(table.file), added), table.file)
    assert [e["background"] for e in validate.kept(table)["summary"]] == names
    assert {e["seeds"] for e in validate.kept(table)["summary"]} == {2}
    # another network: nothing of it can be kept
    other = table.scenario.but(measure_s=1.0)
    save(results(1, other, names), table.file)
    with pytest.raises(LabError, match="of another scenario"):
        validate.kept(table)


def test_no_cause_is_kept_for_what_agrees(rows: list[validate.Row]) -> None:
    assert [r.background for r in rows if r.agrees and r.cause] == []

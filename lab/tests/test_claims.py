# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Claims by themselves: how they are written, listed, checked, measured and published."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from netnice_lab import PAPERS, LabError, records
from netnice_lab.claims import commands, page
from netnice_lab.claims.claim import Drawing, Found, Measured, claim, found, percent, times
from netnice_lab.claims.draw import frame, line
from netnice_lab.claims.paper import DOCS, Paper, Places, find, saved
from netnice_lab.claims.results import Results, load, save
from netnice_lab.cli import app
from netnice_lab.experiment import Context, Point, Simulated, Wanted
from netnice_lab.scenario import read

Json = dict[str, Any]
KEYS = ["id", "text", "paper", "ours", "interval", "verdict", "cause"]


def judged(first: Json, holds: bool) -> Json:
    """Return a claim as JSON whose only number is `first`."""
    made = claim("X1", needs=[], text="A claim", paper="1", ours="{it} times", cause="By {it:1}.")
    return made(lambda _: found(holds, first, it=first)).judge({}).to_json()


def test_a_claim_has_the_keys_of_every_page_and_a_cause_only_if_it_differs() -> None:
    first = {"mean": 1.5, "lo": 1.25, "hi": 1.75}
    held = judged(first, True)
    assert list(held) == KEYS
    assert (held["verdict"], held["cause"], held["interval"]) == ("holds", None, [1.25, 1.75])
    assert held["ours"] == "1.50 [1.25, 1.75] times"
    differs = judged(first, False)
    assert (differs["verdict"], differs["cause"]) == ("differs", "By 1.5 [1.2, 1.8].")
    assert judged({"mean": 1.5, "lo": None, "hi": None}, True)["interval"] is None


def test_numbers_are_written_with_their_intervals() -> None:
    assert times({"mean": 1.266, "lo": 1.25, "hi": 1.281}) == "1.27 [1.25, 1.28]"
    assert times({"mean": 12.61, "lo": None, "hi": None}, 1) == "12.6"
    assert percent({"mean": 0.7, "lo": 0.68, "hi": 0.72}) == "70 % [68, 72]"


def test_a_template_finds_numbers_by_key_and_writes_them_as_asked() -> None:
    harm = {"four times the rate": {"mean": 2.0, "lo": None, "hi": None}}
    made = claim(
        "X1", needs=[], text="", paper="", cause="",
        ours="{harm[four times the rate]:1}, {share:%}, {delay:.0f} ms, {where}",
    )  # fmt: skip
    share = {"mean": 0.5, "lo": 0.4, "hi": 0.6}
    numbers = {"harm": harm, "share": share, "delay": 12.3, "where": "here"}
    assert made(lambda _: found(True, **numbers)).judge({}).ours == (
        "2.0, 50 % [40, 60], 12 ms, here"
    )


@pytest.mark.parametrize("paper", PAPERS)
def test_every_page_is_what_the_saved_data_say(paper: str) -> None:
    reproduction = find(paper)
    text = page.markdown(reproduction, saved(reproduction), Places(DOCS, paper))
    assert text == Places(DOCS, paper).page.read_text()


@pytest.mark.parametrize("paper", PAPERS)
def test_records_of_published_data_name_what_their_experiments_depend_on(paper: str) -> None:
    kept = records.load("data")
    for experiment in find(paper).experiments():
        known = set(kept[f"{paper}/{experiment.name}"]["fingerprint"])
        # results older than the snapshot of whole worlds cannot name it
        assert known | {"world"} == experiment.depends | {"world"}


def test_no_two_claims_have_one_id_and_none_is_lost() -> None:
    names = [of.id for _, of in commands.select()]
    assert len(names) == len(set(names)) == 88


def test_a_single_claim_reads_a_few_points_of_its_experiments() -> None:
    ((paper, n12),) = commands.select(["N12"])
    (wanted,) = commands.reads(n12, saved(paper)).values()
    assert wanted is not None
    # 64 flows: both kinds of Nice, and each of them without one of three additions.
    assert [at for at, _ in wanted.points] == [{"flows": 64}]
    assert len(wanted.names({"flows": 64})) == 2 + 2 * 3


def test_what_is_wanted_may_be_asked_by_a_part_of_a_point() -> None:
    wanted = Wanted([({"path": "modem", "change": "none"}, frozenset(["nice"]))])
    context = Context(wanted=wanted)
    assert context.wants(path="modem")
    assert not context.wants(path="cable")
    assert context.among(["reno", "nice"], path="modem") == ["nice"]
    assert Context().among(["reno", "nice"]) == ["reno", "nice"]


def test_a_verdict_that_is_not_the_pages_is_found(tmp_path: Path) -> None:
    pair = commands.select(["N8"])
    measured = saved(find("nice"))
    save(measured["fraction"].document, Places(tmp_path, "nice").data)
    page.write(find("nice"), saved(find("nice"), tmp_path), tmp_path)
    ((claim, recorded),) = commands.check(pair, tmp_path)
    assert claim.verdict == recorded == "holds"
    file = Places(tmp_path, "nice").page
    file.write_text(file.read_text().replace("**Holds.**", "**Differs.**"))
    ((claim, recorded),) = commands.check(pair, tmp_path)
    assert (claim.verdict, recorded) == ("holds", "differs")


def test_a_claim_without_its_data_is_not_checked(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"N8 needs .*fraction\.json, which is not there"):
        commands.check(commands.select(["N8"]), tmp_path)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "flows.json").write_text("{")
    with pytest.raises(LabError, match=r"flows\.json cannot be read as an experiment"):
        load(tmp_path, "flows")
    (tmp_path / "flows.json").write_text("{}")
    with pytest.raises(LabError, match=r"flows\.json is not an experiment"):
        load(tmp_path, "flows")


def harms(measured: Measured) -> Json:
    harm: Json = measured["short"].harm("cubic x4", "fct_s", flows=4)
    return harm


def figure(measured: Measured) -> Any:  # noqa: ANN401
    drawn, axes = frame("flows", "times")
    line(axes, [4], [harms(measured)], label="cubic", colour="black", style="o")
    return drawn


@claim(
    "S1",
    needs=["short"],
    text="CUBIC harms fetches",
    paper="> 1",
    ours="{harm} times",
    cause="It did not.",
    drawings=[Drawing("figure-1", "Figure 1", figure)],
)
def cubic_harms(measured: Measured) -> Found:
    harm = harms(measured)
    return found(harm["mean"] > 1, harm, harm=harm)


def short(overrides: tuple[str, ...] = ()) -> Paper:
    """Return a paper with one claim on two seconds of simulated traffic, at two points."""
    base = read(Path("smoke"), overrides).but(measure_s=2.0, drain_s=5.0)
    points = [Point({"flows": flows}, base) for flows in (4, 8)]
    return Paper(
        "short", "A short paper", "Nothing to say.",
        lambda: [Simulated("short", points, seeds=2)], [cubic_harms],
    )  # fmt: skip


def test_a_claim_is_published_with_its_own_seeds(built: Path, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    context = Context(jobs=2, progress=lambda *what: told.append(what))
    (judged,) = commands.publish(short(), [cubic_harms], context, tmp_path)
    assert told[-1] == ("short", 4, 4)
    assert (judged.id, judged.verdict, judged.cause) == ("S1", "holds", None)
    saved = json.loads((tmp_path / "data" / "short" / "short.json").read_text())
    assert saved["seeds"] == 2
    point = saved["points"][0]
    assert point["at"] == {"flows": 4}
    assert list(point["runs"]) == ["none", "strict priority", "cubic x4"]
    # Only summaries are kept: one number of each kind for each seed.
    assert all(len(v) == 2 for column in point["runs"].values() for v in column.values())
    none, cubic = (point["runs"][name]["fct_s"] for name in ("none", "cubic x4"))
    mean = sum(c / n for c, n in zip(cubic, none, strict=True)) / 2
    assert judged.ours.startswith(f"{mean:.2f} [")
    page = (tmp_path / "reproduction" / "short.md").read_text()
    assert f"{mean:.2f} [" in page
    assert "![Figure 1](../figures/short/figure-1.svg)" in page
    assert (tmp_path / "figures" / "short" / "figure-1.svg").exists()
    # The same seeds in any number of processes: the same data.
    commands.publish(short(), [cubic_harms], Context(), tmp_path / "again")
    again = json.loads((tmp_path / "again" / "data" / "short" / "short.json").read_text())
    assert again["points"] == saved["points"]


def test_a_claim_that_is_run_measures_what_it_reads(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paper = short()
    commands.publish(paper, [cubic_harms], Context(), tmp_path)
    measured = saved(paper, tmp_path)
    monkeypatch.setattr(commands, "saved", lambda _: measured)
    judged = commands.run(paper, cubic_harms, Context(seeds=1), tmp_path / "run")
    assert judged.verdict == "holds"
    again = Places(tmp_path / "run", "short").data / "short.json"
    (point,) = json.loads(again.read_text())["points"]
    assert point["at"] == {"flows": 4}
    # The simulator has its two references in every run.
    assert point["runs"].keys() == {"none", "strict priority", "cubic x4"}
    published = Results(measured["short"].document).values("fct_s", "cubic x4", flows=4)
    assert point["runs"]["cubic x4"]["fct_s"] == published[:1]


def test_what_new_data_read_besides_is_measured_too(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def elsewhere(measured: Measured) -> Found:
        """Read another point with one seed than with two."""
        results = measured["short"]
        harm = results.harm("cubic x4", "fct_s", flows=4 if results.seeds == 2 else 8)
        return found(True, harm, harm=harm)

    paper, fickle = short(), replace(cubic_harms, measure=elsewhere)
    commands.publish(paper, [cubic_harms], Context(), tmp_path)
    measured = saved(paper, tmp_path)
    monkeypatch.setattr(commands, "saved", lambda _: measured)
    commands.run(paper, fickle, Context(seeds=1), tmp_path / "run")
    again = Places(tmp_path / "run", "short").data / "short.json"
    points = json.loads(again.read_text())["points"]
    assert [p["at"] for p in points] == [{"flows": 4}, {"flows": 8}]


@pytest.mark.parametrize(
    "measure", [commands.run, lambda paper, claim, *more: commands.publish(paper, [claim], *more)]
)
def test_a_place_that_cannot_hold_the_data_is_refused_before_anything_is_measured(
    measure: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "saved", lambda *_: {})
    monkeypatch.setattr(commands.experiments, "measure", lambda *_: pytest.fail("measured"))
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match=r"Nothing can be saved as .*file/.*: Not a directory"):
        measure(short(), cubic_harms, Context(), tmp_path / "file")


def test_what_the_simulator_refuses_ends_the_publication(built: Path, tmp_path: Path) -> None:
    paper = short(("bottleneck.queue=cake",))
    with pytest.raises(LabError, match=r"netnice-sim failed.*cake"):
        commands.publish(paper, [cubic_harms], Context(seeds=1), tmp_path)
    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_claims_are_listed_with_verdict_cost_and_age() -> None:
    done = CliRunner().invoke(app, ["claims", "list", "--paper", "replication", "--json"])
    rows = {row["id"]: row for row in json.loads(done.stdout)["claims"]}
    assert list(rows) == ["R1", "R2", "R3", "R4"]
    r4 = rows["R4"]
    # Five ways to replicate beside the same users, one of which they are compared with: 4 x 3.
    assert (r4["kernel_runs"], r4["simulations"]) == (12, 0)
    assert (r4["verdict"], r4["measured"]) == (r4["recorded"], "2026-11-23")
    assert r4["age_days"] >= 2
    assert r4["changed"] == records.changes(records.of(["data/replication/fleet"]))


def test_claims_of_the_saved_data_agree_with_their_pages() -> None:
    done = CliRunner().invoke(app, ["claims", "check", "--json"])
    assert done.exit_code == 0, done.stderr
    claims = json.loads(done.stdout)["claims"]
    assert len(claims) == 88
    assert all(claim["verdict"] == claim["recorded"] for claim in claims)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce", "nice", "--only", "N99"], "No claim is called 'N99'. Known: N1"),
        (["claims", "run", "N99"], "No claim is called 'N99'. Known: E1"),
        (["claims", "run", "N3", "--quick", "--seeds", "3"], "Leave --quick out, or --seeds."),
    ],
)
def test_what_names_no_claim_or_two_numbers_of_seeds_is_refused(
    refused: Callable[..., tuple[int, str]], arguments: list[str], said: str
) -> None:
    status, sentence = refused(*arguments)
    assert status == (2 if "--quick" in arguments else 1)
    assert said in sentence


def test_a_refusal_is_a_sentence_and_the_exit_status_of_the_program() -> None:
    program = str(Path(sys.executable).with_name("netnice-lab"))
    done = subprocess.run(
        [program, "reproduce", "nize"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "No paper is called 'nize'. Did you mean 'nice'?" in done.stderr

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Tables, sentences and figures from saved results."""

import copy
import json
import xml.etree.ElementTree as ET
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table
from typer.testing import CliRunner

from netnice_lab import ROOT, LabError, plot, report, stats
from netnice_lab.cli import app, console
from netnice_lab.engines import base as runs

Json = dict[str, Any]


def rendered(table: Table) -> str:
    out = StringIO()
    Console(file=out, width=110).print(table)
    return out.getvalue()


def test_the_table_has_a_row_per_background_with_its_numbers(result: Json) -> None:
    lines = rendered(report.table(result)).splitlines()
    (nice,) = [line for line in lines if "nn_nice x16" in line]
    # Paired by seed, 0.22 / 0.20 = 1.10 each time; shares 1.2 / 4.0 = 30 %.
    assert "1.10 [1.10, 1.10]" in nice
    assert "30 [30, 30]" in nice
    for name in ("none", "strict priority", "cubic x16", "lp x16"):
        assert any(name in line for line in lines)


def test_names_titles_and_paths_are_shown_as_they_are(result: Json, tmp_path: Path) -> None:
    name, title = "nice [t=0.1] [/b] :eye: $a$", "costs $5 and $6 [b]"
    result["scenario"]["title"] = title
    for entry in [*result["runs"], *result["summary"]]:
        entry["background"] = entry["background"].replace("nn_nice x16", name)
    saved, drawn = tmp_path / "[red].json", tmp_path / "[red].svg"
    saved.write_text(json.dumps(result))
    point = {"settings": {"x": 1}, "summary": result["summary"]}
    swept = result | {"kind": "sweep", "vary": ["x"], "seeds": 3, "results": [point]}
    (tmp_path / "sweep.json").write_text(json.dumps(swept))
    for shown in (saved, tmp_path / "sweep.json"):
        done = CliRunner().invoke(app, ["table", str(shown)])
        assert done.exception is None
        assert name in done.stdout
        assert title in done.stdout
    done = CliRunner().invoke(app, ["plot", str(saved)])
    assert done.stderr == f"drew {drawn}\n"
    assert f">{name}<" in drawn.read_text()
    assert f">{title}<" in drawn.read_text()


@pytest.mark.parametrize("width", [110, 40])
def test_no_table_loses_a_number(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console.stdout, "width", width)
    saved = ROOT / "docs" / "data" / "threshold.json"
    shown = CliRunner().invoke(app, ["table", str(saved)]).stdout
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    for entry in runs.load(saved)["summary"]:
        harm = report.with_interval(entry["fct_ratio_mean"])
        begin = f"{entry['background']} {entry['fct_mean_s']:.3f} {harm} "
        end = f" {report.with_interval(entry['share'], 100, 0)}"
        assert any(row.startswith(begin) and row.endswith(end) for row in rows)
    listed = CliRunner().invoke(app, ["claims", "list", "--paper", "replication"]).stdout
    assert "…" not in listed
    assert max(map(len, listed.splitlines())) <= 110  # what is no number wraps


def test_progress_is_shown_by_the_names_of_what_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with console.progress() as bar:
        bar.add_task("nice [t=0.1] [/b]")
    assert "nice [t=0.1] [/b]" in capsys.readouterr().err


def test_a_missing_value_is_a_dash() -> None:
    nothing = {"mean": None, "lo": None, "hi": None}
    assert report.with_interval(nothing) == report.number(None) == "–"  # noqa: RUF001


def test_the_sentence_names_the_best_and_the_worst_with_their_numbers(result: Json) -> None:
    text = report.sentence(result)
    assert "nn_nice x16 in the background a fetch takes 1.10 times as long" in text
    # 1.82 / 0.20 = 9.1
    assert "lp x16 9.10 times" in text


def test_the_sentence_tells_of_unfinished_fetches(result: Json) -> None:
    # Two in each of three seeds.
    assert "6 fetches (lp x16) had not finished" in report.sentence(result)


def test_the_table_of_a_sweep_is_followed_by_its_unfinished_fetches(
    result: Json, tmp_path: Path
) -> None:
    point = {"settings": {"x": 1}, "summary": result["summary"]}
    swept = result | {"kind": "sweep", "vary": ["x"], "seeds": 3, "results": [point, point]}
    saved = tmp_path / "sweep.json"
    saved.write_text(json.dumps(swept))
    done = CliRunner().invoke(app, ["table", str(saved)])
    said = " ".join(done.stdout.split())
    assert said.count("lp x16") == 3  # two rows, and the sentence
    assert "12 fetches (lp x16) had not finished when the run ended" in said


def test_a_saved_result_becomes_an_svg_with_a_label_per_background(
    result: Json, tmp_path: Path
) -> None:
    saved = runs.save(
        result | {"engine": "kernel", "date": "2026-01-01T00:00:00+00:00"}, tmp_path / "r.json"
    )
    plot.harm_and_share(runs.load(saved), tmp_path / "r.svg")
    svg = (tmp_path / "r.svg").read_text()
    ET.fromstring(svg)
    for name in ("strict priority", "nn_nice x16", "cubic x16", "lp x16"):
        assert f">{name}<" in svg
    assert ">none<" not in svg


def test_the_figure_is_the_same_each_time_it_is_drawn(result: Json, tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        plot.harm_and_share(result, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_result_without_foreground_cannot_be_drawn_and_says_so(
    result: Json, tmp_path: Path
) -> None:
    for entry in result["summary"]:
        entry["fct_ratio_mean"] = {"mean": None, "lo": None, "hi": None}
    with pytest.raises(LabError, match="foreground"):
        plot.harm_and_share(result, tmp_path / "r.svg")


def test_harm_far_below_one_is_in_the_picture(
    result: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[float, float]] = []
    close = plot.plt.close
    monkeypatch.setattr(
        plot.plt, "close", lambda figure: (seen.append(figure.axes[0].get_xlim()), close(figure))
    )
    for largest in (0.8, 2.0, 9.0):
        for entry in result["summary"]:
            entry["fct_ratio_mean"] = {"mean": largest, "lo": largest - 0.1, "hi": largest + 0.1}
        result["summary"][2]["fct_ratio_mean"] = {"mean": 0.4, "lo": -0.2, "hi": 1.0}
        plot.harm_and_share(result, tmp_path / "r.svg")
        left, right = seen.pop()
        assert 0 < left < 0.4
        assert max(1.0, largest) < right


def test_a_result_without_shares_cannot_be_drawn_and_says_why(result: Json, tmp_path: Path) -> None:
    for run in result["runs"]:
        if run["background"] == "strict priority":
            run["background_goodput_mbit"] = 0.0
    result["summary"] = stats.summarise(result["runs"])
    with pytest.raises(LabError, match=r"no shares to draw: strict .* in 3 of 3 seeds"):
        plot.harm_and_share(result, tmp_path / "r.svg")


def test_a_file_that_is_no_result_is_refused_with_its_name(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"schema": 7}))
    with pytest.raises(LabError, match=r"other\.json is not a result"):
        runs.load(other)


def test_without_foreground_the_sentence_gives_the_range_of_goodputs(result: Json) -> None:
    for entry in result["summary"]:
        entry["fct_ratio_mean"] = {"mean": None, "lo": None, "hi": None}
        entry["fct_mean_s"], entry["unfinished"] = None, 0
    # The mean over seeds 1, 2, 3 of 1.2 and 4.0 Mbit/s, each times 1 - seed / 40: times 0.95.
    assert report.sentence(result).endswith("the backgrounds move 1.14 to 3.80 Mbit/s.")


def test_engines_are_compared_by_their_means_with_intervals_and_difference(result: Json) -> None:
    simulated = copy.deepcopy(result)
    for run in simulated["runs"]:
        if run["background"] == "nn_nice x16":
            run["foreground"]["fct_mean_s"] *= 1.5
            run["background_goodput_mbit"] *= 0.5
    simulated["summary"] = stats.summarise(simulated["runs"])
    lines = rendered(report.engines(result, simulated)).splitlines()
    (nice,) = [line for line in lines if "nn_nice x16" in line]
    # 0.22 / 0.20 = 1.10 and, times 1.5, 1.65; 1.2 / 4.0 = 30 % and half of that.
    assert nice.split()[2:] == [
        "1.10", "[1.10,", "1.10]", "1.65", "[1.65,", "1.65]", "+50",
        "30", "[30,", "30]", "15", "[15,", "15]", "-50",
    ]  # fmt: skip
    (none,) = [line for line in lines if "none" in line]
    # Without a background the share is 0 on both: there is no difference to give.
    assert none.rstrip().endswith("–")  # noqa: RUF001 (a real dash)


def test_packets_own_rtts_take_the_place_of_the_probes_where_they_are_known(result: Json) -> None:
    for run in result["runs"]:
        slower = 3.25 if run["background"] == "cubic x16" else 1.0
        run["foreground"]["packet_rtt_mean_ms"] = 80.0 * slower
    result["summary"] = stats.summarise(result["runs"])
    (cubic,) = [e for e in result["summary"] if e["background"] == "cubic x16"]
    assert cubic["packet_rtt_mean_ms"] == 260.0
    assert cubic["packet_rtt_ratio_mean"]["mean"] == pytest.approx(3.25)
    lines = rendered(report.table(result)).splitlines()
    assert any("cubic x16" in line and " 3.25 " in line for line in lines)
    assert " packet " in rendered(report.table(result))


def test_the_rtts_of_probes_are_called_so_where_those_of_packets_are_not_known(
    result: Json,
) -> None:
    said = rendered(report.table(result))
    assert " probe " in said
    assert "packet" not in said


def test_other_traffic_is_compared_with_itself_without_background(result: Json) -> None:
    for run in result["runs"]:
        rate = 0.5 if run["background"] == "cubic x16" else 2.0
        run["cross"] = [{"name": "t", "goodput_mbit": rate * (1 + run["seed"] / 10)}]
    summary = {e["background"]: e for e in stats.summarise(result["runs"])}
    (cross,) = summary["cubic x16"]["cross"]
    # 0.5 x (1.1 + 1.2 + 1.3) / 3, and 0.5 / 2.0 with each seed.
    assert cross["goodput_mbit"] == pytest.approx(0.6)
    assert cross["goodput_ratio"]["mean"] == pytest.approx(0.25)
    assert "packet_rtt_ratio_mean" not in cross


@pytest.mark.parametrize(
    ("carried", "why"),
    [
        ((0.0, 0.5, 0.0), "strict priority leaves nothing to compare with in 2 of 3 seeds"),
        ((0.1, 0.04, 0.1), "strict priority carries less than 0.1 Mbit/s to compare with"),
    ],
)
def test_a_share_of_almost_nothing_is_a_dash_with_the_reason(
    result: Json, carried: tuple[float, ...], why: str
) -> None:
    for run in result["runs"]:
        if run["background"] == "strict priority":
            run["background_goodput_mbit"] = carried[run["seed"] - 1]
    result["summary"] = stats.summarise(result["runs"])
    said = rendered(report.table(result))
    assert f"no shares: {why}" in " ".join(said.split())
    (lp,) = [line for line in said.splitlines() if "lp x16" in line]
    assert lp.split()[-1] == "–"  # noqa: RUF001 (a real dash)
    assert "of what is spare" not in report.sentence(result)
    compared = rendered(report.engines(result, result))
    assert f"no shares: {why}" in " ".join(compared.split())
    points = [{"settings": {"x": 1}, "summary": result["summary"]}]
    swept = rendered(report.sweep(result | {"vary": ["x"], "seeds": 3, "results": points}))
    assert "no share where strict priority carries less" in " ".join(swept.split())
    assert [line.split()[-1] for line in swept.splitlines() if "lp x16" in line] == [
        "–"  # noqa: RUF001 (a real dash)
    ]


def starving(result: Json, starved: dict[str, tuple[int, ...]]) -> Json:
    """Return the result where no fetch finishes beside these backgrounds with these seeds."""
    for run in result["runs"]:
        if run["seed"] in starved.get(run["background"], ()):
            nothing = {"unfinished": 100, "fct_mean_s": None, "fct_p95_s": None, "fct_p99_s": None}
            run["foreground"] |= nothing
    return result | {"summary": stats.summarise(result["runs"])}


def test_ratios_of_few_seeds_say_of_how_many(result: Json, tmp_path: Path) -> None:
    result = starving(result, {"cubic x16": (1, 2, 3), "lp x16": (1, 3)})
    few = {e["background"]: e["fct_seeds"] for e in result["summary"] if "fct_seeds" in e}
    assert few == {"cubic x16": 0, "lp x16": 1}
    point = {"settings": {"x": 1}, "summary": result["summary"]}
    swept = result | {"vary": ["x"], "seeds": 3, "results": [point]}
    for table in (report.table(result), report.engines(result, result), report.sweep(swept)):
        assert (
            "ratios of the seeds in which fetches finished: "
            "cubic x16 (of 0 of 3 seeds), lp x16 (of 1 of 3 seeds)"
        ) in " ".join(rendered(table).split())
    said = report.sentence(result)
    assert "lp x16 9.10 times as long as without one (the mean of 1 of 3 seeds)" in said
    assert "No fetch finished with cubic x16." in said
    plot.harm_and_share(result, tmp_path / "r.svg")
    drawn = (tmp_path / "r.svg").read_text()
    assert ">lp x16 (of 1 of 3 seeds)<" in drawn
    assert ">No fetch finished with cubic x16.<" in drawn


def test_where_no_fetch_finishes_nobody_says_that_there_was_none(
    result: Json, tmp_path: Path
) -> None:
    every = {e["background"]: (1, 2, 3) for e in result["summary"][2:]}
    alone = starving(result, every)
    names = "nn_nice x16, cubic x16, lp x16"
    assert f"No fetch finished with {names}." in report.sentence(alone)
    assert "Without foreground" not in report.sentence(alone)
    everywhere = starving(result, every | {"none": (1, 2, 3), "strict priority": (1, 2, 3)})
    with pytest.raises(LabError, match="no fetch finished with none, strict priority, nn_nice x16"):
        plot.harm_and_share(everywhere, tmp_path / "r.svg")


def test_a_share_stays_where_all_seeds_pair(result: Json) -> None:
    assert not any("share_seeds" in entry for entry in result["summary"])
    assert report.unshared(result["summary"]) is None
    assert "no share" not in rendered(report.table(result))

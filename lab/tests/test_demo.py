# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The demo's parts that need no virtual machine."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from netnice_lab import ROOT, LabError, demo
from netnice_lab.cli import app
from netnice_lab.scenario import read

Json = dict[str, Any]


def test_the_first_files_by_name_are_chosen_up_to_the_size(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    for name, size in (("z", 10), ("a/2", 20), ("a/1", 30), ("b/1", 40)):
        (tmp_path / name).write_bytes(b"x" * size)
    (tmp_path / "link").symlink_to("z")
    source = demo.select(tmp_path, 70)
    # Files of a directory come before those of its subdirectories; b/1 would make it 100 bytes.
    assert [str(f.relative_to(tmp_path)) for f in source.files] == ["z", "a/1", "a/2"]
    assert source.bytes == 60


def test_an_empty_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="no files to replicate"):
        demo.select(tmp_path, 1000)


def flow(start_s: float, fct_s: float) -> Json:
    return {"start_s": start_s, "bytes": 1000, "fct_s": fct_s, "counted": start_s >= 3.0}


def test_pages_are_compared_with_the_same_pages_while_the_copy_ran() -> None:
    quiet = [flow(1, 9.0), flow(4, 0.1), flow(6, 0.3), flow(20, 0.5)]
    busy = [flow(1, 9.0), flow(4, 0.2), flow(6, 0.6), flow(20, 0.5)]
    outcome = {
        "fetch": {"flows": busy}, "probe": None, "queue": {},
        "copy": {"start_s": 3.0, "end_s": 10.0, "files": 1, "bytes": 1},
    }  # fmt: skip
    row = demo.digest(read(Path("demo")), demo.PLAIN, outcome, quiet)
    # The copy ran from 3 to 10 s: the pages at 4 and 6 s, 0.4 s on average, 0.2 s when quiet.
    assert row["foreground"]["flows"] == 2
    assert row["ratio"]["fct_mean_s"] == pytest.approx(2.0)
    # Both pages took twice as long: nothing varies about that ratio.
    assert row["slower"] == pytest.approx({"mean": 2.0, "lo": 2.0, "hi": 2.0})
    # (0.2 - 0.1) + (0.6 - 0.3)
    assert row["waited_longer_s"] == pytest.approx(0.4)
    assert row["copy"]["seconds"] == pytest.approx(7.0)


def test_a_saved_demo_is_shown_and_drawn_again_as_it_was(tmp_path: Path) -> None:
    saved, drawn = ROOT / "docs" / "data" / "demo.json", tmp_path / "demo.svg"
    shown = CliRunner().invoke(app, ["table", str(saved)])
    assert shown.exit_code == 0
    words = " ".join(shown.stdout.split())
    assert "byte for byte" in words
    # README has what is printed, line by line.
    assert words.partition("While plain rsync")[2] in " ".join(
        (ROOT / "README.md").read_text().split()
    )
    assert CliRunner().invoke(app, ["plot", str(saved), "--out", str(drawn)]).exit_code == 0
    assert drawn.read_bytes() == (ROOT / "docs" / "figures" / "demo.svg").read_bytes()


@pytest.mark.parametrize("command", ["table", "plot"])
def test_the_data_of_a_study_has_no_table_and_says_so(command: str) -> None:
    done = CliRunner().invoke(app, [command, str(ROOT / "docs" / "data" / "matrix" / "rtt.json")])
    assert isinstance(done.exception, LabError)
    assert "data of a study (matrix)" in str(done.exception)


def test_the_sentence_says_no_less_than_nothing() -> None:
    def row(background: str, seconds: float, least: float) -> Json:
        slower = {"mean": 1.05, "lo": least, "hi": 1.1}
        copy = {"seconds": seconds, "bytes": 19_600_000}
        users = {"unfinished": 0}
        return {"background": background, "copy": copy, "slower": slower, "foreground": users}

    rows = [row(demo.PLAIN, 31, 1.2), row(demo.NETNICE, 34, 0.997), row(demo.PRIORITY, 30, 0.98)]
    said = demo.sentence({"runs": rows})
    assert "34 s, and pages 5 % [0, 10] longer" in said
    assert "30 s and 5 % [-2, 10]" in said

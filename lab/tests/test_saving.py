# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Results are saved as a whole or not at all, and what cannot be saved or shown is one sentence."""

import json
import resource
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from netnice_lab import ROOT, LabError
from netnice_lab.cli import app
from netnice_lab.engines import base as runs

Json = dict[str, Any]

SAVED = ROOT / "docs" / "data" / "k1.json"
MAIN = "from netnice_lab.cli import main; main()"
LONG = ["k1", "--engine", "sim", "--seeds", "1000000"]
"""What takes days."""


@pytest.mark.parametrize(
    "command",
    [
        ["run", *LONG],
        ["sweep", "k1", "--vary", "foreground.load=0.3,0.5", "--seeds", "1000000"],
        ["demo"],
    ],
)
@pytest.mark.parametrize(
    ("place", "why"), [(".", "Is a directory"), ("file/result.json", "File exists")]
)
def test_a_place_where_nothing_can_be_saved_is_refused_before_anything_is_measured(
    command: list[str], place: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "demo.json").mkdir()  # the demo's is a directory for two files
    out = tmp_path / ("file" if command == ["demo"] and place != "." else place)
    done = CliRunner().invoke(app, [*command, "--out", str(out)])
    assert isinstance(done.exception, LabError)
    assert done.exception.status == 2
    assert str(done.exception).startswith("Nothing can be saved as ")
    assert f": {why}. Name another" in str(done.exception)


def test_a_figure_is_written_where_it_is_said_to_be(tmp_path: Path) -> None:
    shown = ROOT / "docs" / "figures" / "top.jsonl"
    for command, record in (("plot", SAVED), ("watched", shown)):
        for name in ("x.foo", "x"):
            place = tmp_path / command / name
            done = CliRunner().invoke(app, [command, str(record), "--out", str(place)])
            assert done.exception is None
            ET.parse(place)
        assert sorted(p.name for p in place.parent.iterdir()) == ["x", "x.foo"]
        done = CliRunner().invoke(app, [command, str(record), "--out", str(tmp_path)])
        assert isinstance(done.exception, LabError)
        assert str(done.exception).startswith(f"Nothing can be saved as {tmp_path}: Is a directory")


def test_a_result_that_does_not_fit_leaves_the_older_one_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "result.json"
    place.write_text("older")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            runs.save({"runs": ["x" * 100] * 100}, place)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("result.json", "older")]


def test_a_table_that_cannot_be_written_is_a_failure_with_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", MAIN, "table", str(SAVED)],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "netnice-lab: No space left on device.\n"


@pytest.mark.parametrize("command", ["table", "plot"])
@pytest.mark.parametrize(
    "damage",
    [
        {"scenario": {}},
        {"scenario": None},
        {"summary": [{}]},
        {"summary": None},
        {"summary": []},
    ],
)
def test_a_damaged_result_is_named_in_one_sentence(
    command: str, damage: Json, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps({**json.loads(SAVED.read_text()), **damage}))
    done = CliRunner().invoke(app, [command, str(damaged)])
    assert isinstance(done.exception, LabError)
    assert str(done.exception).startswith(f"{damaged} is damaged, or of another version of the lab")

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Results are saved as a whole or not at all, and what cannot be saved or shown is one sentence."""

import json
import os
import re
import resource
import shlex
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from netnice_lab import ROOT, LabError, output, plot, watched
from netnice_lab.cli import Engine, _places, app
from netnice_lab.engines import base as runs

Json = dict[str, Any]

SAVED = ROOT / "docs" / "data" / "k1.json"
MAIN = "from netnice_lab.cli import main; main()"
LONG = ["k1", "--engine", "sim", "--seeds", "100000"]
"""What takes days."""


@pytest.mark.parametrize(
    "command",
    [
        ["run", *LONG],
        ["sweep", "k1", "--vary", "foreground.load=0.3,0.5", "--seeds", "100000"],
        ["demo"],
    ],
)
@pytest.mark.parametrize(
    ("place", "why"),
    [
        (".", "Is a directory"),
        ("file/result.json", "Not a directory"),
        ("n" * 256, "File name too long"),
    ],
)
def test_a_place_where_nothing_can_be_saved_is_refused_before_anything_is_measured(
    command: list[str], place: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "demo.json").mkdir()  # the demo's is a directory for two files
    out = tmp_path / ("file" if command == ["demo"] and place == "file/result.json" else place)
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


@contextmanager
def disk_full() -> Iterator[None]:
    """Let no file become longer than a kilobyte."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_does_not_fit_leaves_the_older_file_as_it_was_and_is_named(tmp_path: Path) -> None:
    place, shown = tmp_path / "place", ROOT / "docs" / "figures" / "top.jsonl"
    for write in (
        lambda: runs.save({"runs": ["x" * 100] * 100}, place),
        lambda: plot.harm_and_share(runs.load(SAVED), place),
        lambda: watched.panels(watched.read(shown), place),
    ):
        place.write_text("older")
        said = f"{place} cannot be written: File too large. Make room there, or name another place."
        with disk_full(), pytest.raises(LabError, match=re.escape(said)):
            write()
        assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("place", "older")]


def test_a_link_stays_one_and_its_target_is_replaced_with_the_mode_it_has(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "target", tmp_path / "link"
    target.write_text("older")
    target.chmod(0o640)
    link.symlink_to(target)
    (tmp_path / "dangling").symlink_to("far/new")
    for place in (link, tmp_path / "dangling"):
        runs.save({}, place)
        assert place.is_symlink()
        assert place.read_text() == "{}\n"
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in target.parent.iterdir()) == ["new", "target"]


def test_a_name_may_be_as_long_as_the_file_system_takes_it(tmp_path: Path) -> None:
    place = tmp_path / ("n" * 255)
    output.require(place)
    assert runs.save({}, place).read_text() == "{}\n"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        output.require(pipe)
        runs.save({"a": 1}, pipe)
        assert reader.stdout is not None
        assert json.loads(reader.stdout.read()) == {"a": 1}
    assert pipe.is_fifo()


def test_a_device_is_written_to(tmp_path: Path) -> None:
    device = tmp_path / "null"  # never the computer's own
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        device.read_text()
    except PermissionError:
        pytest.skip("makes a device, which needs root")
    output.require(device)
    runs.save({"a": 1}, device)
    assert device.is_char_device()
    assert [p.name for p in tmp_path.iterdir()] == ["null"]


def test_results_of_one_second_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RESULTS", tmp_path / "results")
    result = {"scenario": {"name": "s"}, "engine": "sim", "date": "2026-01-01T00:00:00+00:00"}
    names = [runs.save(result, None).name for _ in range(3)]
    stem = "s-sim-20260101T000000Z"
    assert names == [f"{stem}.json", f"{stem}-2.json", f"{stem}-3.json"]
    with disk_full(), pytest.raises(LabError):
        runs.save({**result, "runs": "x" * 10_000}, None)
    assert len(list((tmp_path / "results").iterdir())) == 3


@pytest.mark.parametrize(
    ("command", "source"),
    [
        (["run", "--engine", "sim"], ROOT / "lab" / "scenarios" / "smoke.toml"),
        (["sweep", "--vary", "ideal.flows=1,2"], ROOT / "lab" / "scenarios" / "smoke.toml"),
        (["plot"], SAVED),
        (["watched"], ROOT / "docs" / "figures" / "top.jsonl"),
    ],
)
def test_nothing_is_saved_in_the_place_of_what_is_read(
    command: list[str], source: Path, tmp_path: Path
) -> None:
    given, link = tmp_path / "given.svg", tmp_path / "link"  # a figure's default name, too
    given.write_text(source.read_text())
    link.symlink_to(given)
    default = [[]] if command[0] in ("plot", "watched") else []
    for where in (["--out", str(given)], ["--out", str(link)], *default):
        done = CliRunner().invoke(app, [*command, str(given), *where])
        assert isinstance(done.exception, LabError)
        assert str(done.exception).endswith(" is read itself. Name another place: --out.")
    assert given.read_text() == source.read_text()


def test_results_of_both_engines_have_a_file_each_but_share_a_pipe(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe", tmp_path / "r.json"
    os.mkfifo(pipe)
    for out, first, second in ((file, "r-kernel.json", "r-sim.json"), (pipe, "pipe", "pipe")):
        assert _places(out, Engine.BOTH) == {
            Engine.KERNEL: tmp_path / first, Engine.SIM: tmp_path / second,
        }  # fmt: skip
        assert _places(out, Engine.SIM) == {Engine.SIM: out}


SHORT = [
    ["run", "smoke", "--engine", "sim", "--seeds", "1"],
    ["sweep", "smoke", "--vary", "ideal.flows=1,2", "--seeds", "1"],
]


@pytest.mark.parametrize("command", SHORT)
def test_a_result_that_cannot_be_saved_is_shown(
    command: list[str], built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise LabError("The disk is full.")

    monkeypatch.setattr(output, "write", full)
    done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "r.json")])
    assert str(done.exception) == "The disk is full."
    assert "cubic x4" in done.stdout


@pytest.mark.parametrize("command", SHORT)
@pytest.mark.parametrize("streams", ["2>/dev/full", "2>&-", ">&-", "2>&1 | true"])
def test_a_result_is_saved_though_nobody_can_read_how_far_it_is(
    streams: str, command: list[str], built: Path, tmp_path: Path
) -> None:
    place, printed = tmp_path / "r.json", tmp_path / "printed"
    lab = [sys.executable, "-c", MAIN, *command, "--out", str(place)]
    with printed.open("w") as out:
        done = subprocess.run(
            ["sh", "-c", f"{shlex.join(lab)} {streams}"], stdout=out, check=False,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    runs.load(place)
    assert ("cubic x4" in printed.read_text()) == (streams in ("2>/dev/full", "2>&-"))


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


def test_a_result_that_is_no_json_of_ours_is_refused_in_one_sentence(tmp_path: Path) -> None:
    damaged, huge = tmp_path / "damaged.json", json.loads(SAVED.read_text())
    huge["summary"][0]["fct_mean_s"] = 10**400
    for text in ("[" * 100_000, json.dumps(huge)):
        damaged.write_text(text)
        done = CliRunner().invoke(app, ["table", str(damaged)])
        assert isinstance(done.exception, LabError)
        assert str(done.exception).startswith(str(damaged))
        assert "\n" not in str(done.exception)


def test_a_record_without_a_number_is_refused_in_one_sentence(tmp_path: Path) -> None:
    record = tmp_path / "top.jsonl"
    text = (ROOT / "docs" / "figures" / "top.jsonl").read_text()
    record.write_text(text.replace("rate_bits", "rate"))
    done = CliRunner().invoke(app, ["watched", str(record)])
    assert str(done.exception).startswith(f"{record} is damaged, or of another version of the lab")
    record.write_text("[" * 100_000)
    done = CliRunner().invoke(app, ["watched", str(record)])
    assert str(done.exception).startswith(f"{record} is no record of netnice top")


def test_what_a_locale_cannot_write_is_a_question_mark(tmp_path: Path) -> None:
    saved = tmp_path / "r.json"
    saved.write_text(SAVED.read_text().replace("cubic x16", "\u4e00"))
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "table", str(saved)],
        env=os.environ | {"PYTHONIOENCODING": "latin-1"}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"| ?  " in done.stdout


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("run smoke", "--seeds"),
        ("run smoke", "--first-seed"),
        ("run smoke", "--jobs"),
        ("sweep smoke --vary ideal.flows=1,2", "--seeds"),
        ("validate", "--seeds"),
        ("limit", "--seeds"),
        ("reproduce nice", "--seeds"),
        ("claims run N3", "--seeds"),
        ("search ebb", "--seeds"),
    ],
)
def test_a_number_that_no_computer_can_do_is_refused(command: str, option: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), option, str(10**11)])
    assert done.exit_code == 2
    assert "less than or equal to" in " ".join(done.stderr.split())

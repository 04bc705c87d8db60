# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""`make soak` goes on where it was, whatever a unit does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import run_units as soak
from netnice_lab import ROOT, records

TRACES = "nice defaults ab 1\nreno defaults 12 4\n"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a checkout with four units, of which the second fails and the third hangs."""
    for module, name, path in (
        (records, "ROOT", ""), (records, "RECORDS", "docs/records"),
        (records, "STALE", "docs/records/stale.toml"), (records, "SAME", "docs/records/same.toml"),
        (soak, "ROOT", ""), (soak, "UNITS", "units.toml"), (soak, "LOGS", "build/soak"),
        (soak, "TABLE", "docs/records/soak.md"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, tmp_path / path)
    monkeypatch.setattr(soak, "PATIENCE", 1)
    (tmp_path / records.TRACES).parent.mkdir(parents=True)
    (tmp_path / records.TRACES).write_text(TRACES)
    (tmp_path / "docs/records").mkdir(parents=True)
    unit = '[[unit]]\nkey = "{}"\nwhat = "w"\ncommand = "{}"\nminutes = {}\ndepends = ["{}"]\n'
    (tmp_path / "units.toml").write_text(
        unit.format("a/one", "sh -c 'echo x/y 1.5 ms; echo 3 passed; echo $NETNICE_SOAK >> one'",
                    1, "core/nice")
        + unit.format("two", "sh -c 'echo 2 passed, 1 failed; exit 1'", 1, "core/*")
        + unit.format("three", "sleep 60", 0.005, "core/reno")
        + unit.format("a/four", "sh -c 'echo >> four'", 1, "core/reno")
    )  # fmt: skip
    records._hash.cache_clear()
    yield tmp_path
    records._hash.cache_clear()


def soaked(monkeypatch: pytest.MonkeyPatch, *options: str) -> int:
    """Run it; return its status."""
    monkeypatch.setattr(sys, "argv", ["soak", *options])
    return soak.main()


def test_a_unit_that_fails_or_hangs_does_not_end_the_others_and_is_recorded(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert soaked(monkeypatch) == 1
    kept = records.load("soak")
    assert {key: record["verdict"] for key, record in kept.items()} == {
        "a/one": "passed", "two": "failed", "three": "took too long", "a/four": "passed",
    }  # fmt: skip
    assert kept["a/one"]["numbers"] == {"passed": 3, "x/y ms": 1.5}
    assert kept["two"]["numbers"] == {"passed": 2, "failed": 1}
    assert set(kept["two"]["fingerprint"]) == {"core/nice", "core/reno"}
    assert (root / "one").read_text() == "1\n"  # NETNICE_SOAK


def test_what_passed_is_run_again_only_when_it_is_stale(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soaked(monkeypatch)
    assert [unit.key for unit in soak.wanted([], False)] == ["two", "three"]
    (root / records.TRACES).write_text(TRACES.replace("12 4", "13 4"))
    records._hash.cache_clear()
    assert [unit.key for unit in soak.wanted([], False)] == ["two", "three", "a/four"]
    assert len(soak.wanted([], True)) == 4


def test_a_unit_of_data_is_done_as_long_as_the_data_is_fresh(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "units.toml").write_text(
        '[[unit]]\nkey = "data/k1"\nwhat = "w"\ncommand = "false"\nminutes = 1\ndata = "k1: *"\n'
    )
    records.keep("data", "k1: a", verdict=records.MEASURED, depends=["core/nice"])
    records.keep("data", "k1: b", verdict=records.MEASURED, depends=["core/reno"])
    assert soak.wanted([], False) == []
    (root / records.TRACES).write_text(TRACES.replace("12 4", "13 4"))
    records._hash.cache_clear()
    assert soaked(monkeypatch) == 1
    assert "| failed |" in (root / "docs/records/soak.md").read_text()
    time.sleep(1)  # dates are of seconds
    records.keep("data", "k1: b", verdict=records.MEASURED, depends=["core/reno"])
    records.keep("data", "k1: a", verdict=records.MEASURED, depends=["core/nice"])
    assert [unit.key for unit in soak.wanted([], False)] == []


def test_one_unit_or_all_below_a_name_can_be_asked_for(root: Path) -> None:
    assert [unit.key for unit in soak.wanted(["a"], False)] == ["a/one", "a/four"]
    assert [unit.key for unit in soak.wanted(["two"], False)] == ["two"]
    with pytest.raises(SystemExit, match=r"no unit is called b\. Known: a/one, two"):
        soak.wanted(["b"], False)


def test_what_never_ran_stands_in_the_table(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soaked(monkeypatch, "--only", "a/four")
    rows = (root / "docs/records/soak.md").read_text().splitlines()
    assert [row for row in rows if row.startswith("| `two`")] == [
        "| `two` | w | never run |  |  |  |  |"
    ]
    assert any(row.startswith("| `a/four` | w | passed |") for row in rows)


def test_a_soak_that_is_terminated_ends_its_unit_and_keeps_no_record_of_it(root: Path) -> None:
    (root / "units.toml").write_text(
        '[[unit]]\nkey = "long"\nwhat = "w"\nminutes = 1\n'
        "command = \"sh -c 'echo $$ > pid; sleep 60'\"\n"
    )
    program = (
        "import sys; sys.argv = ['soak']; from pathlib import Path; import run_units as soak\n"
        "from netnice_lab import records\n"
        f"root = Path({str(root)!r}); soak.ROOT = records.ROOT = root\n"
        "records.RECORDS = root / 'docs/records'; soak.UNITS = root / 'units.toml'\n"
        "soak.LOGS = root / 'logs'; sys.exit(soak.main())\n"
    )
    path = os.pathsep.join([str(ROOT / "tests/soak"), str(ROOT / "lab")])
    process = subprocess.Popen([sys.executable, "-c", program], env=os.environ | {
        "PYTHONPATH": path})  # fmt: skip
    deadline = time.monotonic() + 60
    while not (root / "pid").exists() or not (root / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    unit = int((root / "pid").read_text())
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 128 + signal.SIGTERM
    while Path(f"/proc/{unit}").exists():  # until whoever inherits it has looked
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert records.load("soak") == {}


def test_the_table_in_the_docs_has_every_unit() -> None:
    text = (ROOT / "docs/records/soak.md").read_text()
    missing = [unit.key for unit in soak.units() if f"| `{unit.key}` |" not in text]
    assert not missing, "write it again: tests/soak/run_units.py --list > docs/records/soak.md"
    assert not [unit.key for unit in soak.units() if " " in unit.key]  # ONLY takes words

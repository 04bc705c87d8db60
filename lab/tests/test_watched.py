# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What `netnice top` saw becomes a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from netnice_lab import LabError
from netnice_lab.watched import panels, points, read

RECORD = Path(__file__).resolve().parents[2] / "docs" / "figures" / "top.jsonl"


def test_a_record_is_drawn_with_each_reason_and_equal_data_gives_an_equal_file(
    tmp_path: Path,
) -> None:
    views = read(RECORD)
    for name in ("one.svg", "two.svg"):
        panels(views, tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    _, reasons = points(views, "why", "reason")
    assert all(str(reason).replace("_", " ") in drawn for reason in reasons)


def test_in_the_published_run_the_job_makes_way_and_comes_back() -> None:
    # others send from 25 s to 50 s of it
    times, bits = points(read(RECORD), "rate_bits")
    beside = [b for at, b in zip(times, bits, strict=True) if 27 < at < 48]
    after = [b for at, b in zip(times, bits, strict=True) if at > 53]
    assert max(beside) < 0.2e6
    assert min(after) > 6e6


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    for text in ("", "{}\n", '{"jobs": []}\n', "no JSON\n"):
        (tmp_path / "record").write_text(text)
        with pytest.raises(LabError):
            read(tmp_path / "record")

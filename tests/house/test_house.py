# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The tree keeps the rules of docs/house.toml."""

import subprocess
from pathlib import Path

import edges as e
import pytest

import house as h

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def house() -> h.House:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return h.House.of(ROOT, [f for f in files.splitlines() if (ROOT / f).is_file()])


@pytest.fixture(scope="module")
def edges(house: h.House) -> set[e.Edge]:
    files = house.sources()
    python = e.python_edges(ROOT, files, ["lab", "tests/kernel", "tests/ns3"])
    return e.c_edges(ROOT, files) | e.cargo_edges(ROOT, e.cargo_packages(ROOT)) | python


def kept(broken: list[str]) -> None:
    assert not broken, "\n" + "\n".join(broken)


def test_every_source_file_is_in_a_room(house: h.House) -> None:
    kept(h.homeless(house))


def test_every_room_uses_only_rooms_that_it_may(house: h.House, edges: set[e.Edge]) -> None:
    kept(h.forbidden(house, edges))


def test_no_file_leads_back_to_itself(house: h.House, edges: set[e.Edge]) -> None:
    kept(h.circular(house, edges))


def test_no_host_names_an_algorithm(house: h.House) -> None:
    kept(h.named(house))


def test_no_file_is_longer_than_agreed(house: h.House) -> None:
    kept(h.too_long(house))


def test_every_exception_has_a_reason(house: h.House) -> None:
    kept(h.unreasoned(house))

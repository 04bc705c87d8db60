# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The tree keeps the rules of docs/house.toml."""

import edges as e
import pytest

import house as h
from house import kept


@pytest.fixture(scope="module")
def edges(house: h.House) -> set[e.Edge]:
    files = house.sources()
    python = e.python_edges(house.root, files, ["lab", "tests/kernel", "tests/ns3"])
    return (
        e.c_edges(house.root, files)
        | e.cargo_edges(house.root, e.cargo_packages(house.root))
        | python
    )


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


def test_no_example_is_in_a_crate_whose_examples_nothing_runs(house: h.House) -> None:
    silent = [f for f in house.files if f.endswith("Cargo.toml")
              and "doctest = false" in (house.root / f).read_text()]  # fmt: skip
    rooms = [f.removesuffix("Cargo.toml") + "src/" for f in silent]
    kept([
        f"{f} has an example: remove `doctest = false` from its crate's Cargo.toml"
        for f in house.files if f.startswith(tuple(rooms)) and f.endswith(".rs")
        and any(line.lstrip().startswith(("/// ```", "//! ```"))
                for line in (house.root / f).read_text().splitlines())
    ])  # fmt: skip

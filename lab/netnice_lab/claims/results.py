# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Saved experiments: the only source of a page's numbers and figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import LabError, output, stats
from ..experiment import SCHEMA, Wanted
from ..scenario import IDEAL, NONE

Json = dict[str, Any]


class MissingError(LabError):
    """A saved experiment lacks a point, or one of its backgrounds."""

    def __init__(self, experiment: str, at: Mapping[str, Any], background: str | None) -> None:
        """Say what is missing; without a background it is the whole point."""
        of = f" for {background!r}" if background else ""
        super().__init__(
            f"The saved experiment {experiment!r} has no point {dict(at)}{of}: another version "
            "saved it. Measure it anew."
        )
        self.experiment = experiment
        self.at = dict(at)
        self.background = background


class Results:
    """A saved experiment. It remembers what was read of it, so that no more need be measured."""

    def __init__(self, document: Json) -> None:
        """Take the document that `experiment.measure` returned."""
        self._document = document
        self._read: dict[str, tuple[Json, set[str]]] = {}
        self._whole = False

    @property
    def document(self) -> Json:
        """Return all of it."""
        self._whole = True
        return self._document

    @property
    def read(self) -> Wanted | None:
        """Return the points and backgrounds that were read; None if that is everything."""
        if self._whole:
            return None
        return Wanted([(at, frozenset(names)) for at, names in self._read.values()])

    @property
    def seeds(self) -> int:
        """Return the number of seeds."""
        return int(self._document["seeds"])

    def places(self, key: str) -> list[Any]:
        """Return the values of a key of `at`, in the order of the points."""
        return list(dict.fromkeys(p["at"][key] for p in self._document["points"] if key in p["at"]))

    def backgrounds(self, **at: float | str) -> list[str]:
        """Return the backgrounds at a point."""
        return list(self._point(at)["runs"])

    def values(self, key: str, background: str, **at: float | str) -> list[float]:
        """Return what was measured with each seed."""
        runs = self._point(at)["runs"]
        if background not in runs:
            raise MissingError(self._document["name"], at, background)
        self._read.setdefault(repr(at), (dict(at), set()))[1].add(background)
        column: list[float] = runs[background][key]
        return column

    def mean(self, key: str, background: str, **at: float | str) -> Json:
        """Return the mean over the seeds, with its interval."""
        return stats.interval(self.values(key, background, **at))

    def ratio(self, key: str, background: str, reference: str, **at: float | str) -> Json:
        """Return the mean ratio to another background with the same seeds, with its interval."""
        pairs = zip(
            self.values(key, background, **at), self.values(key, reference, **at), strict=True
        )  # fmt: skip
        return stats.interval([a / b for a, b in pairs if a is not None and b])

    def harm(self, background: str, key: str = "packet_rtt_ms", **at: float | str) -> Json:
        """Return how many times as long the foreground takes as without any background."""
        return self.ratio(key, background, NONE, **at)

    def share(self, background: str, **at: float | str) -> Json:
        """Return the background's goodput over that under strict priority."""
        return self.ratio("mbit", background, IDEAL, **at)

    def _point(self, at: Mapping[str, float | str]) -> Json:
        found = [p for p in self._document["points"] if p["at"] == at]
        if len(found) != 1:
            raise MissingError(self._document["name"], at, None)
        point: Json = found[0]
        return point


def place(folder: Path, name: str) -> Path:
    """Return the file of an experiment in a folder."""
    return folder / f"{name}.json"


def save(document: Json, folder: Path) -> Path:
    """Write an experiment's document into a folder, a line for each point; return the file."""
    file = place(folder, document["name"])
    points = ",\n".join(json.dumps(point, separators=(",", ":")) for point in document["points"])
    rest = {key: value for key, value in document.items() if key != "points"}
    output.write(file, f'{json.dumps(rest)[:-1]}, "points": [\n{points}\n]}}\n')
    return file


def load(folder: Path, name: str) -> Results | None:
    """Read a saved experiment; None if there is none. Raises LabError if the file is broken."""
    file = place(folder, name)
    if not file.exists():
        return None
    try:
        document = json.loads(file.read_text())
    except ValueError as error:
        raise LabError(f"{file} cannot be read as an experiment: {error}.") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise LabError(f"{file} is not an experiment (schema {SCHEMA}). Delete it and run anew.")
    return Results(document)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""What an engine is, and the result documents, which all return in the same form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .. import ROOT, LabError, output, stats
from ..records import provenance
from ..scenario import Scenario, Section, variants

Json = dict[str, Any]
RESULTS = ROOT / "results"


@dataclass(frozen=True)
class Planned:
    """What an engine shall run of a scenario: every variant with every seed."""

    given: Scenario
    """With every default."""
    seeds: Sequence[int]
    variants: Sequence[Section]
    """As `scenario.variants` has them."""


Plan = TypeVar("Plan", bound=Planned)


class Engine(Protocol[Plan]):
    """What carries the traffic of a scenario."""

    def plan(self, scenario: Scenario, seeds: Sequence[int], variants: Sequence[Section]) -> Plan:
        """Check that it carries all of that; raise LabError with what it does not, and why."""

    def run(
        self,
        plan: Plan,
        *,
        jobs: int,
        command: Sequence[str],
        progress: Callable[[Json], None],
    ) -> Json:
        """Run it, `jobs` at a time, and return the result document.

        `progress` gets each finished run's entry. Raises LabError if anything at all went wrong:
        there are no partial results.
        """


def measure(
    engine: Engine[Plan],
    scenario: Scenario,
    *,
    seeds: Sequence[int],
    only: Sequence[str] = (),
    jobs: int,
    command: Sequence[str],
    progress: Callable[[Json], None] = lambda _: None,
) -> Json:
    """Plan and run the variants called `only`, or all; for the rest see `Engine.run`."""
    plan = engine.plan(scenario, seeds, variants(scenario, only))
    return engine.run(plan, jobs=jobs, command=command, progress=progress)


def document(
    scenario: Json, engine: str, kernel: str | None, command: Sequence[str], runs: Sequence[Json]
) -> Json:
    """Return the result document of an engine's runs."""
    return {
        "schema": 1,
        "scenario": scenario,
        "engine": engine,
        "kernel": kernel,
        **provenance(command),
        "runs": list(runs),
        "summary": stats.summarise(runs),
    }


def shortened(runs: list[Json]) -> list[Json]:
    """Return runs without the time and size of each fetch, which no summary needs."""
    without = ("fct_s", "sizes")
    return [
        entry | {"foreground": {k: v for k, v in entry["foreground"].items() if k not in without}}
        for entry in runs
    ]


def save(result: Json, path: Path | None) -> Path:
    """Write a result to `path`, or under results/ by scenario, engine and date; return where."""
    place = path or output.fresh(RESULTS / _name(result))
    try:
        output.write(place, json.dumps(result, indent=1) + "\n")
    except LabError:
        if path is None:
            place.unlink()
        raise
    return place


def _name(result: Json) -> str:
    stamp = result["date"].replace(":", "").replace("-", "").replace("+0000", "Z")
    return f"{result['scenario']['name']}-{result.get('kind', result['engine'])}-{stamp}.json"


def load(path: Path) -> Json:
    """Read a saved result; raise LabError if it is not one."""
    try:
        result = json.loads(path.read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise LabError(f"{path} cannot be read as a result: {error}.") from error
    if not isinstance(result, dict) or result.get("schema") != 1:
        raise LabError(f"{path} is not a result of netnice-lab run (schema 1).")
    return result


@contextmanager
def showing(path: Path) -> Iterator[Json]:
    """Return a saved result; that it is damaged shows only while something is made of it."""
    with damage_in(path):
        yield load(path)


@contextmanager
def damage_in(path: Path) -> Iterator[None]:
    """Raise LabError with the name of a file if what is made of it fails."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise LabError(f"{path} is damaged, or of another version of the lab ({why}).") from error

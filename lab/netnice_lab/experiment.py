# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Experiments of a reproduction: many simulations at once, and what is kept of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import LabError, stats
from .records import provenance
from .run import check_ranges
from .scenario import IDEAL, NONE, Scenario
from .sim import Simulator, Trace

Json = dict[str, Any]

SCHEMA = 1
_DIGITS = 6


@dataclass(frozen=True)
class Point:
    """One scenario, all of whose backgrounds are run; `at` is what tells it from the others."""

    at: Mapping[str, float | int | str]
    scenario: Scenario


def kept(run: Json, measure_s: float) -> Json:
    """Return what is kept of one run: a number, or None, for each key.

    `packet_rtt_ms`, `lost` (shares of the packets; of TCP those sent again) and `p99_ms` are of the
    foreground, or of the first other traffic where there is none; `fct_s`, `fct_p95_s`, `open`
    (flows at a time) and `unfinished` of the foreground; `mbit` of the background; `cross_mbit` of
    all other traffic; `queue_ms` of the bottleneck.
    """
    fetches = run["foreground"]
    packets = run["cross"][0] if run["cross"] and not fetches["packets"] else fetches
    lost = packets["lost"] if packets is not fetches else fetches["retransmits"]
    done = fetches["flows"] - fetches["unfinished"]
    return {
        "packet_rtt_ms": packets["packet_rtt_mean_ms"],
        "p99_ms": packets["packet_rtt_p99_ms"],
        "lost": lost / packets["packets"] if packets["packets"] else None,
        "fct_s": fetches["fct_mean_s"],
        "fct_p95_s": fetches["fct_p95_s"],
        "open": (fetches["fct_mean_s"] or 0.0) * done / measure_s,
        "unfinished": fetches["unfinished"],
        "mbit": run["background_goodput_mbit"],
        "cross_mbit": sum(cross["goodput_mbit"] for cross in run["cross"]),
        "queue_ms": run["queue"]["mean_ms"],
    }


def kept_of_kernel(run: Json) -> Json:
    """Return what is kept of one run on the kernel: `probe_ms`, and of `kept` what it measures."""
    fetches = run["foreground"]
    return {
        "fct_s": fetches["fct_mean_s"],
        "fct_p95_s": fetches["fct_p95_s"],
        "unfinished": fetches["unfinished"],
        "mbit": run["background_goodput_mbit"],
        "probe_ms": run["probe"]["rtt_mean_ms"] if run["probe"] else None,
    }


@dataclass(frozen=True)
class Experiment:
    """What is simulated together, and saved as one file."""

    name: str
    points: Sequence[Point]
    keep: Callable[[Json, float], Json] = kept
    """What is kept of one run, as `kept` does it."""


def simulate(
    experiments: Sequence[Experiment],
    *,
    seeds: int,
    jobs: int,
    command: Sequence[str],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> dict[str, Json]:
    """Simulate every point with seeds 1 to `seeds`; return a document for each experiment.

    `progress` gets how many simulations of how many have ended. Raises LabError if one failed.
    """
    for experiment in experiments:
        for point in experiment.points:
            check_ranges(point.scenario)
    tasks = [
        (experiment.name, index, seed)
        for experiment in experiments
        for index in range(len(experiment.points))
        for seed in range(1, seeds + 1)
    ]
    points = {(e.name, i): p for e in experiments for i, p in enumerate(e.points)}
    keep = {e.name: e.keep for e in experiments}
    simulator = Simulator()
    ended = 0

    def one(task: tuple[str, int, int]) -> list[Json]:
        nonlocal ended
        scenario = points[task[:2]].scenario
        runs = simulator.runs(scenario, task[2])
        kept_runs = [
            {"background": r["background"], **keep[task[0]](r, scenario.measure_s)} for r in runs
        ]  # fmt: skip
        ended += 1
        progress(ended, len(tasks))
        return kept_runs

    # Those with many flows last longest: start them first.
    order = sorted(tasks, key=lambda task: -_work(points[task[:2]].scenario))
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            futures = {task: pool.submit(one, task) for task in order}
            done, _ = wait(futures.values(), return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        finally:
            simulator.stop()
    return {
        experiment.name: {
            **head(experiment.name, seeds, command),
            "points": [
                {
                    "at": dict(point.at),
                    "runs": columns(
                        [futures[experiment.name, i, s].result() for s in range(1, seeds + 1)]
                    ),
                }
                for i, point in enumerate(experiment.points)
            ],
        }
        for experiment in experiments
    }


def trace_all(
    runs: Sequence[tuple[Scenario, str, int]],
    digests: Sequence[Callable[[Trace], Any]],
    *,
    kinds: Sequence[str],
    jobs: int,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> list[Any]:
    """Trace each run (a scenario, one of its backgrounds, a seed); return what its digest does.

    `kinds` of the trace's lines are kept for the digests; `progress` gets how many runs of how many
    have ended. Raises LabError if one failed.
    """
    for scenario in {id(scenario): scenario for scenario, *_ in runs}.values():
        check_ranges(scenario)
    simulator = Simulator()
    ended = 0

    def one(run: tuple[Scenario, str, int], digest: Callable[[Trace], Any]) -> Any:  # noqa: ANN401
        nonlocal ended
        scenario, background, seed = run
        told = digest(simulator.traced(scenario, seed, background, kinds))
        ended += 1
        progress(ended, len(runs))
        return told

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        try:
            futures = [pool.submit(one, *task) for task in zip(runs, digests, strict=True)]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
        finally:
            simulator.stop()
    return [future.result() for future in futures]


def _work(scenario: Scenario) -> float:
    """Return what a simulation costs, roughly: packets and flows of all backgrounds."""
    rate = scenario.bottleneck.rate_mbit if scenario.bottleneck else 1.0
    flows = sum(b.flows for b in scenario.background)
    return scenario.measure_s * rate * (len(scenario.background) + 0.02 * flows)


def head(name: str, seeds: int, command: Sequence[str]) -> Json:
    """Return what every experiment's document begins with."""
    return {"schema": SCHEMA, "kind": "experiment", "name": name, "seeds": seeds} | provenance(
        command
    )


def columns(runs_of_seeds: Sequence[Sequence[Json]]) -> Json:
    """Return for each background and key the values of all seeds, rounded."""
    table: Json = {}
    for runs in runs_of_seeds:
        for run in runs:
            column = table.setdefault(run["background"], {})
            for key, value in run.items():
                if key != "background":
                    column.setdefault(key, []).append(rounded(value))
    return table


def rounded(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """Return the same JSON with the significant digits that are kept of its floats."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


class Results:
    """A saved experiment: the only source of a report's numbers and figures."""

    def __init__(self, document: Json) -> None:
        """Take the document that `simulate` returned, or another of the same form."""
        self.document = document

    @property
    def seeds(self) -> int:
        """Return the number of seeds."""
        return int(self.document["seeds"])

    def places(self, key: str) -> list[Any]:
        """Return the values of a key of `at`, in the order of the points."""
        return list(dict.fromkeys(p["at"][key] for p in self.document["points"] if key in p["at"]))

    def backgrounds(self, **at: float | str) -> list[str]:
        """Return the backgrounds at a point."""
        return list(self._point(at)["runs"])

    def values(self, key: str, background: str, **at: float | str) -> list[float]:
        """Return what was measured with each seed."""
        column: list[float] = self._point(at)["runs"][background][key]
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
        found = [p for p in self.document["points"] if p["at"] == at]
        if len(found) != 1:
            raise LabError(
                f"The saved experiment {self.document['name']!r} has no point {dict(at)}: another "
                "version saved it. Measure it anew."
            )
        point: Json = found[0]
        return point


def save(document: Json, folder: Path) -> Path:
    """Write an experiment's document into a folder, a line for each point; return the file."""
    file = folder / f"{document['name']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    points = ",\n".join(json.dumps(point, separators=(",", ":")) for point in document["points"])
    rest = {key: value for key, value in document.items() if key != "points"}
    file.write_text(f'{json.dumps(rest)[:-1]}, "points": [\n{points}\n]}}\n')
    return file


def load(folder: Path, name: str) -> Results | None:
    """Read a saved experiment; None if there is none. Raises LabError if the file is broken."""
    file = folder / f"{name}.json"
    if not file.exists():
        return None
    try:
        document = json.loads(file.read_text())
    except ValueError as error:
        raise LabError(f"{file} cannot be read as an experiment: {error}.") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise LabError(f"{file} is not an experiment (schema {SCHEMA}). Delete it and run anew.")
    return Results(document)

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Experiments: what is measured together, with which seeds, and what is kept of each run.

An experiment returns its *points*, each a dictionary of ``at``, which tells it from the others, and
``runs``, which has for each background and key a list with a value for each seed:

    {"at": {"flows": 16}, "runs": {"none": {"fct_s": [0.21, 0.22]}, "nice": {"fct_s": [...]}}}
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

from . import job, vm
from .engines import base, kernel
from .engines.sim import Done, Simulator, Task, simulate
from .records import depends, provenance
from .scenario import Scenario, describe, describe_all, variants

Json = dict[str, Any]
At = Mapping[str, Any]

SCHEMA = 1
SEEDS = 3
"""Of an experiment that does not say how many it takes."""
_DIGITS = 6


@dataclass(frozen=True)
class Wanted:
    """The points, and of each the backgrounds, that somebody asks for."""

    points: Sequence[tuple[At, frozenset[str]]]

    def point(self, at: At) -> bool:
        """Tell whether a point is asked for; `at` may leave out what is not known yet."""
        return any(self._same(wanted, at) for wanted, _ in self.points)

    def names(self, at: At) -> frozenset[str]:
        """Return the backgrounds that are asked for at a point."""
        return frozenset().union(*(names for w, names in self.points if self._same(w, at)))

    @staticmethod
    def _same(wanted: At, at: At) -> bool:
        return all(wanted.get(key, value) == value for key, value in at.items())


@dataclass(frozen=True)
class Context:
    """How something is measured: with how many seeds, how much at a time, and by whose command."""

    seeds: int | None = None
    """1 to this many; None: as many as an experiment takes by itself."""
    jobs: int = 1
    """Simulations or virtual machines at a time."""
    command: Sequence[str] = ("netnice-lab",)
    progress: Callable[[str, int, int], None] = lambda _what, _done, _total: None
    """Gets what runs, and how many of how many have ended."""
    wanted: Wanted | None = None
    """None: everything."""
    name: str = ""
    """Of what is measured."""

    @property
    def numbers(self) -> range:
        """Return the seeds."""
        return range(1, (self.seeds or SEEDS) + 1)

    def wants(self, **at: Any) -> bool:  # noqa: ANN401 (JSON)
        """Tell whether a point is to be measured; `at` may leave out what is not known yet."""
        return self.wanted is None or self.wanted.point(at)

    def among(self, names: Iterable[str], **at: Any) -> list[str]:  # noqa: ANN401 (JSON)
        """Return which of these backgrounds are to be measured at a point."""
        return [n for n in names if self.wanted is None or n in self.wanted.names(at)]

    def ticks(self, total: int) -> Callable[..., None]:
        """Return what counts one more of `total` as ended; any thread may call it."""
        ended, lock = 0, threading.Lock()

        def tick(*_: object) -> None:
            nonlocal ended
            with lock:
                ended += 1
                self.progress(self.name, ended, total)

        return tick

    def simulate(self, tasks: Sequence[Task], one: Callable[[Simulator, Task], Done]) -> list[Done]:
        """Do every task; see `engines.sim.simulate`."""
        return simulate(tasks, one, jobs=self.jobs, tick=self.ticks(len(tasks)))

    def in_one_machine(self, scenario: Scenario, keep: Callable[[Json], Json]) -> list[Json]:
        """Run a scenario on the kernel, in one machine; return what is kept, as one point."""
        tick = self.ticks(len(variants(scenario)) * len(self.numbers))
        result = base.measure(
            kernel.Kernel(), scenario, seeds=self.numbers, jobs=1, command=self.command,
            progress=tick,
        )  # fmt: skip
        return as_points(
            ({}, {"background": run["background"], **keep(run)}) for run in result["runs"]
        )

    def on_kernel(
        self,
        scenario: Scenario,
        plan: Sequence[Json],
        *,
        vms: int | None = None,
        tick: Callable[..., None] | None = None,
        **more: Any,  # noqa: ANN401 (of job.run_all)
    ) -> list[Json]:
        """Run a plan in virtual machines, `jobs` at a time; return its outcomes in its order."""
        outcomes: dict[int, Json] = {}
        tick = tick or self.ticks(len(plan))

        def collect(outcome: Json) -> None:
            outcomes[outcome["run"]] = outcome
            tick()

        scenario = describe(scenario).scenario
        numbered = [{**run, "index": index} for index, run in enumerate(plan)]
        limit = {"timeout_s": kernel.timeout_s(scenario, len(plan))} | more
        job.run_all(scenario, numbered, vms=vms or self.jobs, each=collect, **limit)
        return [outcomes[index] for index in range(len(plan))]


class Experiment(Protocol):
    """What is measured together, and saved as one file."""

    @property
    def name(self) -> str:
        """Return the name of its file."""

    @property
    def seeds(self) -> int:
        """Return how many seeds the published result has."""

    @property
    def random(self) -> bool:
        """Return whether other seeds would give another result."""

    @property
    def kernel(self) -> bool:
        """Return whether it runs on the Linux kernel, not in the simulator alone."""

    @property
    def depends(self) -> frozenset[str]:
        """Return what its result depends on, as `records` names it."""

    def measure(self, context: Context) -> list[Json]:
        """Measure; return the points."""


def simulating(*controls: str) -> frozenset[str]:
    """Return what simulations of these algorithms depend on; ``nice/group`` are groups of one."""
    own = {control.removesuffix("/group") for control in controls} | {"strict priority"}
    return frozenset(f"core/{c}" for c in controls) | {f"sim/{name}" for name in own}


def running(*controls: str) -> frozenset[str]:
    """Return what runs of these algorithms on the kernel depend on."""
    return frozenset({"kernel", *(f"core/{control}" for control in controls)})


@dataclass(frozen=True)
class Procedure:
    """An experiment that measures in a way of its own."""

    name: str
    of: Callable[[Context], list[Json]]
    seeds: int = SEEDS
    random: bool = True
    kernel: bool = False
    depends: frozenset[str] = frozenset()

    def measure(self, context: Context) -> list[Json]:
        """Measure; return the points."""
        return self.of(context)


@dataclass(frozen=True)
class Point:
    """One scenario, all of whose backgrounds are run; `at` is what tells it from the others."""

    at: At
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
class Simulated:
    """An experiment that simulates scenarios."""

    name: str
    points: Sequence[Point]
    keep: Callable[[Json, float], Json] = field(default=kept)
    """What is kept of one run, as `kept` does it."""
    seeds: int = SEEDS
    random: bool = True
    first_seed: int = 1
    """Others were used to choose parameters."""
    kernel: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Give the scenarios their defaults, all at once."""
        known = describe_all(point.scenario for point in self.points)
        points = [Point(p.at, k.scenario) for p, k in zip(self.points, known, strict=True)]
        object.__setattr__(self, "points", points)

    @property
    def depends(self) -> frozenset[str]:
        """Return what its result depends on, as `records` names it."""
        return frozenset().union(*(depends(point.scenario, "sim") for point in self.points))

    def measure(self, context: Context) -> list[Json]:
        """Simulate every point with every seed; return the points."""
        points = [p for p in self.points if context.wants(**p.at)]
        seeds = [self.first_seed - 1 + number for number in context.numbers]
        # Those with many flows last longest: start them first.
        tasks = sorted(
            ((point, seed) for point in points for seed in seeds),
            key=lambda task: -_work(task[0].scenario),
        )

        def one(simulator: Simulator, task: tuple[Point, int]) -> list[tuple[At, Json]]:
            (point, seed), scenario = task, task[0].scenario
            only = sorted(context.wanted.names(point.at)) if context.wanted else ()
            return [
                (point.at, {"background": r["background"], **self.keep(r, scenario.measure_s)})
                for r in simulator.runs(scenario, seed, only)
            ]

        found = dict(zip(map(_key, tasks), context.simulate(tasks, one), strict=True))
        return as_points(
            entry for point in points for seed in seeds for entry in found[_key((point, seed))]
        )


def _key(task: tuple[Point, int]) -> tuple[int, int]:
    return id(task[0]), task[1]


def _work(scenario: Scenario) -> float:
    """Return what a simulation costs, roughly: packets and flows of all backgrounds."""
    rate = scenario.bottleneck.rate_mbit if scenario.bottleneck else 1.0
    flows = sum(b.flows for b in scenario.background)
    return float(scenario.measure_s * rate * (len(scenario.background) + 0.02 * flows))


def as_points(entries: Iterable[tuple[At, Json]]) -> list[Json]:
    """Return the points that hold these entries, each at its point, in the order of the seeds.

    An entry has `background`, its name; its other values are rounded.
    """
    points: dict[str, Json] = {}
    for at, entry in entries:
        point = points.setdefault(repr(dict(at)), {"at": dict(at), "runs": {}})
        column = point["runs"].setdefault(entry["background"], {})
        for key, value in entry.items():
            if key != "background":
                column.setdefault(key, []).append(rounded(value))
    return list(points.values())


def rounded(value: Any) -> Any:  # noqa: ANN401 (JSON)
    """Return the same JSON with the significant digits that are kept of its floats."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(v) for v in value]
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def measure(experiment: Experiment, context: Context) -> Json:
    """Measure an experiment; return its document. Raises LabError if anything failed."""
    asked = context.seeds if experiment.random else None
    context = replace(context, seeds=asked or experiment.seeds, name=experiment.name)
    begin = time.monotonic()
    points = experiment.measure(context)
    wall: Json = {"wall_s": round(time.monotonic() - begin, 1)}
    if experiment.kernel:
        wall["kernel"] = vm.find_kernel().version
    return {
        **head(experiment.name, len(context.numbers), context.command),
        **wall,
        "points": points,
    }


def head(name: str, seeds: int, command: Sequence[str]) -> Json:
    """Return what every experiment's document begins with."""
    return {"schema": SCHEMA, "kind": "experiment", "name": name, "seeds": seeds} | provenance(
        command
    )

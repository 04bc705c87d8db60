# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""The engine that simulates: netnice-sim, in one process for each seed."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from .. import LabError, tools
from ..scenario import NONE, Scenario, Section, describe
from .base import Planned, document

Json = dict[str, Any]
Task = TypeVar("Task")
Done = TypeVar("Done")
Series = npt.NDArray[np.float64]


class Trace:
    """What happened over time in one run; kinds, names and units are those of `--trace`."""

    def __init__(self, file: Path) -> None:
        """Read the CSV that netnice-sim wrote."""
        series: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
        with file.open(newline="") as lines:
            for row in csv.DictReader(lines):
                times, values = series.setdefault((row["kind"], row["name"]), ([], []))
                times.append(float(row["time_s"]))
                values.append(float(row["value"]))
        self._series = {key: (np.array(t), np.array(v)) for key, (t, v) in series.items()}

    def series(self, kind: str, name: str) -> tuple[Series, Series]:
        """Return times in seconds and values; nothing where nothing was measured."""
        return self._series.get((kind, name), (np.array([]), np.array([])))

    def names(self, kind: str) -> list[str]:
        """Return whom the lines of a kind are of, as in ``background 0``."""
        return [name for of, name in self._series if of == kind]

    def rate(self, kind: str, name: str, begin_s: Series, end_s: Series) -> Series:
        """Return by how much a count grew between two times, per second."""
        times, values = self.series(kind, name)
        grown = np.interp(end_s, times, values) - np.interp(begin_s, times, values)
        return grown / (end_s - begin_s)


class Simulator:
    """Runs netnice-sim; `stop` ends what runs, so that an interrupted lab leaves nothing behind."""

    def __init__(self, threads: int = 1) -> None:
        """Nothing runs yet; each process will have so many `threads`."""
        self._environment = os.environ | {"RAYON_NUM_THREADS": str(threads)}
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._stopped = False

    def runs(self, scenario: Scenario, seed: int, only: Sequence[str] = ()) -> list[Json]:
        """Return the entries of all backgrounds with one seed, or raise the simulator's words."""
        runs: list[Json] = json.loads(self._run(scenario, seed, only))["runs"]
        return runs

    def traced(self, scenario: Scenario, seed: int, background: str, kinds: Sequence[str]) -> Trace:
        """Return what happened over time in the run of one background, or raise as `runs` does.

        Only these kinds of lines are kept.
        """
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "trace.csv"
            wanted = [word for kind in kinds for word in ("--trace-kind", kind)]
            self._run(scenario, seed, [background], ["--trace", file, *wanted])
            return Trace(file)

    def _run(
        self, scenario: Scenario, seed: int, only: Sequence[str], more: Sequence[str | Path] = ()
    ) -> str:
        """Return the document that the simulator printed, or raise its words."""
        command: list[str | Path] = [tools.built(tools.SIM), "run", "-", "--seed", str(seed)]
        command += ["--json", "--data", tools.WEB_LOG, *more]
        for background in only:
            command += ["--only", background]
        status, out, complaints = self._call(command, json.dumps(scenario))
        if status != 0:
            said = complaints.strip().removeprefix("netnice-sim: ") or "it said nothing"
            raise LabError(
                f"{scenario.name}, seed {seed}: netnice-sim failed (status {status}): "
                f"{said.replace('standard input', scenario.name)}"
            )
        return out

    def _call(self, command: Sequence[str | Path], scenario: str) -> tuple[int, str, str]:
        with self._lock:
            if self._stopped:
                raise LabError("The simulation was stopped before it ended.")
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=self._environment,
            )  # fmt: skip
            self._running.add(process)
        try:
            out, complaints = process.communicate(scenario)
        finally:
            process.kill()  # of one that ended it does nothing
            with self._lock:
                self._running.discard(process)
        return process.returncode, out, complaints

    def stop(self) -> None:
        """End what runs, and start nothing more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


def simulate(
    tasks: Sequence[Task],
    one: Callable[[Simulator, Task], Done],
    *,
    jobs: int,
    threads: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> list[Done]:
    """Do every task, `jobs` at a time; return what was done in the order of the tasks.

    `tick` is called as each ends. The first failure ends the simulations that run, and is raised.
    """
    simulator = Simulator(threads)
    with ThreadPoolExecutor(jobs) as pool:
        try:
            futures = [pool.submit(one, simulator, task) for task in tasks]
            for future in as_completed(futures):
                future.result()
                tick()
        finally:
            simulator.stop()
    return [future.result() for future in futures]


class Simulation:
    """The engine: netnice-sim with every seed."""

    def plan(
        self, scenario: Scenario, seeds: Sequence[int], variants: Sequence[Section]
    ) -> Planned:
        """Take all that is valid."""
        return Planned(describe(scenario).scenario, seeds, variants)

    def run(
        self,
        plan: Planned,
        *,
        jobs: int,
        command: Sequence[str],
        progress: Callable[[Json], None],
    ) -> Json:
        """Simulate it; see `Engine.run`."""
        own = [b.name for b in plan.given.background]
        names = [v.name for v in plan.variants if v.name in own]
        # the simulator adds none and strict priority, but no names are all
        only = names or [NONE] if len(names) < len(own) else []

        def one(simulator: Simulator, seed: int) -> list[Json]:
            entries = simulator.runs(plan.given, seed, only)
            for entry in entries:
                progress(entry)
            return entries

        threads = max(1, jobs // len(plan.seeds))
        found = simulate(plan.seeds, one, jobs=jobs, threads=threads)
        return document(plan.given, "sim", None, command, [e for entries in found for e in entries])

# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Sweeps: the simulator over the cross product of settings, here or on the workers of Dask.

Workers on other machines need what this one has: the lab installed from a checkout in which
``make build`` has run.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from itertools import count, product
from pathlib import Path
from typing import Any

from . import LabError, stats
from .engines.base import shortened
from .engines.sim import Simulator, simulate
from .records import provenance
from .scenario import Scenario, read, variants

Json = dict[str, Any]
Task = tuple[Scenario, int, list[str]]
"""One setting, a seed, and the names of backgrounds."""
CONNECT_S = 10
"""How long a scheduler may take to answer."""


def parse_vary(vary: Sequence[str]) -> dict[str, list[str]]:
    """Return the values of each key, from words such as ``foreground.load=0.3,0.5``."""
    keys: dict[str, list[str]] = {}
    for word in vary:
        key, _, text = word.partition("=")
        values = [value.strip() for value in text.split(",") if value.strip()]
        if not key or not values:
            raise LabError(f"--vary {word!r} has no values. Write it as foreground.load=0.3,0.5.")
        if key in keys:
            raise LabError(f"--vary names {key} twice. Give all of its values at once.")
        keys[key] = values
    return keys


def toml_value(text: str) -> Any:  # noqa: ANN401 (TOML)
    """Return the value that `text` is in TOML; a word needs no quotes."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def on_worker(scenario: Scenario, seed: int, only: Sequence[str]) -> list[Json] | LabError:
    """Return the runs of one setting with one seed, without what summaries do not need.

    An error is returned too: a worker would report one that is raised as its own failure.
    """
    try:
        runs = Simulator().runs(scenario, seed, only)
    except LabError as error:
        return error
    return shortened(runs)


def run(
    file: Path,
    *,
    overrides: Sequence[str] = (),
    vary: Sequence[str],
    seeds: Sequence[int],
    only: Sequence[str] = (),
    scheduler: str | None = None,
    jobs: int,
    command: Sequence[str],
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Json:
    """Simulate every combination of settings with every seed, and return the sweep's document.

    `scheduler` is the address of a Dask scheduler; without one, `jobs` simulations run here at a
    time.
    `progress` gets how many simulations of how many have ended. Raises LabError if one failed.
    """
    keys = parse_vary(vary)
    base = read(file, overrides)
    points: list[tuple[Json, Scenario]] = []
    for values in product(*keys.values()):
        settings = dict(zip(keys, values, strict=True))
        scenario = read(file, [*overrides, *(f"{k}={v}" for k, v in settings.items())])
        variants(scenario, only)
        points.append(({k: toml_value(v) for k, v in settings.items()}, scenario))
    tasks = [(scenario, seed, list(only)) for _, scenario in points for seed in seeds]
    if scheduler is None:
        ended = count(1)
        found = simulate(
            tasks, lambda simulator, task: shortened(simulator.runs(*task)), jobs=jobs,
            tick=lambda: progress(next(ended), len(tasks)),
        )  # fmt: skip
    else:
        found = _on_workers(scheduler, tasks, progress)
    runs = iter(found)
    return {
        "schema": 1,
        "kind": "sweep",
        "scenario": base,
        "engine": "sim",
        **provenance(command),
        "vary": {key: [toml_value(v) for v in values] for key, values in keys.items()},
        "seeds": len(seeds),
        "results": [
            {
                "settings": settings,
                "summary": stats.summarise([r for _ in seeds for r in next(runs)]),
            }
            for settings, _ in points
        ],
    }


def _on_workers(
    scheduler: str, tasks: Sequence[Task], progress: Callable[[int, int], None]
) -> list[list[Json]]:
    """Return the runs of every task, done by the workers of a scheduler at an address."""
    from distributed import Client, as_completed  # noqa: PLC0415 (takes long to import)

    try:
        client = Client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise LabError(
            f"No Dask scheduler answers at {scheduler}: {error}. Start one with dask scheduler, "
            "and workers with dask worker ADDRESS --nthreads 1."
        ) from error
    with client:
        futures = [client.submit(on_worker, *task, pure=False) for task in tasks]
        found = {}
        for future in as_completed(futures):
            found[future] = done = future.result()
            if isinstance(done, LabError):
                raise done
            progress(len(found), len(tasks))
        return [found[future] for future in futures]

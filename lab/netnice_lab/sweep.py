# SPDX-License-Identifier: MIT OR GPL-2.0-only
"""Sweeps: the simulator over the cross product of settings, on the processes of a Dask cluster.

A cluster on other machines needs what this one has: the lab installed from a checkout in which
``make build`` has run.
"""

from __future__ import annotations

import logging
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, as_completed

from . import LabError, stats
from .engines.base import shortened
from .engines.sim import Simulator
from .records import provenance
from .scenario import Scenario, read, variants

Json = dict[str, Any]


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


def simulate(scenario: Scenario, seed: int, only: Sequence[str]) -> list[Json] | LabError:
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

    `scheduler` is the address of a Dask scheduler; without one, `jobs` local processes do the work.
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
    tasks = [(point, seed) for point in range(len(points)) for seed in seeds]
    runs: dict[tuple[int, int], list[Json]] = {}
    with _cluster(scheduler, min(jobs, len(tasks))) as client:
        futures = {
            client.submit(simulate, points[point][1], seed, list(only), pure=False): (point, seed)
            for point, seed in tasks
        }
        for future in as_completed(futures):
            done = future.result()
            if isinstance(done, LabError):
                raise done
            runs[futures[future]] = done
            progress(len(runs), len(tasks))
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
                "summary": stats.summarise([r for seed in seeds for r in runs[index, seed]]),
            }
            for index, (settings, _) in enumerate(points)
        ],
    }


@contextmanager
def _cluster(scheduler: str | None, jobs: int) -> Iterator[Client]:
    """Give a client of the scheduler at an address, or of a cluster that lasts as long."""
    if scheduler is None:
        with (
            LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                dashboard_address=None,
                silence_logs=logging.ERROR,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError) as error:
        raise LabError(
            f"No Dask scheduler answers at {scheduler}: {error}. Start one with dask scheduler, "
            "and workers with dask worker ADDRESS --nthreads 1."
        ) from error
    with client:
        yield client
